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
    size_t stored_height, stored_width; /* of the middle image, before fitting */
    atomic_int mixed;                   /* images of other sizes were found */
    atomic_int fitted;                  /* some images were fitted to the shape of the set */
    atomic_ullong broken;               /* images */
    float values[256];                  /* v / 127.5 - 1 */
};

/* Whether a failure means that the image is broken. If a file was read but cannot be decoded, this file is broken and
 * others may be good. If a file cannot be read, the reason may be the disk, the network or a limit of the system. */
int psld_data_status_is_broken(psld_status status);
/* Fails if more images are broken than data.skip_limit allows. */
psld_status psld_data_check_broken(const psld_data *data);
/* Decodes the first good image at or after `index`; *found is its number. `pixels` has room for one image. */
psld_status psld_data_find_image(psld_data *data, uint64_t index, uint8_t *pixels, uint64_t *found);
/* Decodes an image only to find out whether it is broken. Nothing is kept, since a set may be larger than the
 * memory. */
psld_status psld_data_check_image(psld_data *data, uint64_t index);

/* Maps the set's own classes to the order of classes in the options, if there is one. */
psld_status psld_data_order_classes(psld_data *data);
/* Counts the items of each class. */
psld_status psld_data_count_classes(psld_data *data);

#endif
