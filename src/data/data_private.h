/* A data set from the inside, for the files data*.c. */
#ifndef PSLD_DATA_DATA_PRIVATE_H
#define PSLD_DATA_DATA_PRIVATE_H

#include <stdatomic.h>

#include "data/cache.h"
#include "data/data.h"
#include "data/items.h"

struct psld_data {
    char *path;
    psld_items *items;
    psld_data_options options; /* pointers in it are not used after opening */
    int rank;
    size_t shape[PSLD_MAX_RANK];
    size_t dim;
    psld_cache *cache;                  /* NULL: images cost nothing, or items are numbers */
    int32_t *new_label;                 /* [items->class_count] where the caller gave an order of classes, or NULL */
    char **classes;                     /* names in the caller's order, or NULL */
    atomic_ullong *sizes;               /* [classes] items of each, but for broken ones */
    size_t stored_height, stored_width; /* of the middle image, as it is */
    atomic_int mixed;                   /* others were found that differ */
    atomic_int fitted;                  /* some were brought to the shape of the set */
    atomic_ullong broken;               /* images */
    float values[256];                  /* v / 127.5 - 1 */
};

/* Whether a failure is the image's own. What was read but cannot be decoded is wrong with one file and not with the
 * others. A file that cannot be read says nothing about its image: the disk, the network or a limit of the system may
 * be at fault. */
int psld_data_status_is_broken(psld_status status);
/* Fails if more images are broken than data.skip_limit allows. */
psld_status psld_data_check_broken(const psld_data *data);
/* Decodes the first good image at or after `index`; *found is its number. `pixels` has room for one image. */
psld_status psld_data_find_image(psld_data *data, uint64_t index, uint8_t *pixels, uint64_t *found);
/* Decodes an image only to see whether it is broken. Nothing is kept: a set may be larger than the memory. */
psld_status psld_data_check_image(psld_data *data, uint64_t index);

/* Maps the set's own classes to the order of classes in the options, if there is one. */
psld_status psld_data_order_classes(psld_data *data);
/* Counts the items of each class. */
psld_status psld_data_count_classes(psld_data *data);

#endif
