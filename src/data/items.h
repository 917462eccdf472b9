/* What a data set is behind psld_data: items by number, from whatever kind of file. A kind is a struct that begins with
 * psld_items and a table of operations; src/data/kinds.c has the list of them. */
#ifndef PSLD_DATA_ITEMS_H
#define PSLD_DATA_ITEMS_H

#include "io/images/image.h"
#include "psld_data.h"

typedef struct psld_items psld_items;

/* All may be called from several threads at once, free excepted. */
typedef struct psld_items_ops {
    /* Images: item `index` as it is; released by the caller. NULL for numbers. */
    psld_status (*image)(const psld_items *items, uint64_t index, psld_image *image);
    /* Images: the sizes alone; pixels stay NULL. */
    psld_status (*image_size)(const psld_items *items, uint64_t index, psld_image *image);
    /* Numbers: item `index` into x [shape]. NULL for images. */
    psld_status (*numbers)(const psld_items *items, uint64_t index, float *x);
    /* -1 where there is none. */
    int32_t (*label)(const psld_items *items, uint64_t index);
    /* Of items that are files: the name; NULL for others. */
    const char *(*name)(const psld_items *items, uint64_t index);
    void (*free)(psld_items *items);
} psld_items_ops;

struct psld_items {
    const psld_items_ops *ops;
    char *kind; /* in a few words */
    uint64_t count;
    int endless; /* made, not stored: nobody is to count or check them all */
    int costly;  /* making an image takes decoding: worth keeping */
    int rank;    /* of numbers; images say their sizes when they are looked at */
    size_t shape[PSLD_MAX_RANK];
    char **classes;
    size_t class_count, class_capacity;
    uint64_t skipped; /* files passed over when it was opened */
};

/* Opens whatever `path` is. */
psld_status psld_items_open(const char *path, const psld_data_options *options, psld_items **items);
/* NULL is harmless. */
void psld_items_free(psld_items *items);

/* For kinds: an empty one of `size` bytes (all 0 but the operations; NULL: no memory), what it is, its classes. */
void *psld_items_create(const psld_items_ops *ops, size_t size);
psld_status psld_items_set_kind(psld_items *items, const char *format, ...) PSLD_PRINTF(2, 3);
psld_status psld_items_add_class(psld_items *items, const char *name, size_t length);

#endif
