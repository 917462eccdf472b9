/* The items of a data set, behind psld_data: items by number, from any kind of file. A kind is a struct that begins
 * with psld_items, and a table of operations; src/data/kinds.c lists them. */
#ifndef PSLD_DATA_ITEMS_H
#define PSLD_DATA_ITEMS_H

#include "io/images/image.h"
#include "psld_data.h"

typedef struct psld_items psld_items;

/* Several threads may call them at once, except for free. */
typedef struct psld_items_ops {
    /* Images: item `index` in its own size; the caller releases it. NULL for numbers. */
    psld_status (*image)(const psld_items *items, uint64_t index, psld_image *image);
    /* Images: the sizes alone; pixels stay NULL. */
    psld_status (*image_size)(const psld_items *items, uint64_t index, psld_image *image);
    /* Numbers: item `index` into x [shape]. NULL for images. */
    psld_status (*numbers)(const psld_items *items, uint64_t index, float *x);
    /* -1: none. */
    int32_t (*label)(const psld_items *items, uint64_t index);
    /* The name of an item that is a file; NULL for others. */
    const char *(*name)(const psld_items *items, uint64_t index);
    void (*free)(psld_items *items);
} psld_items_ops;

struct psld_items {
    const psld_items_ops *ops;
    char *kind; /* in a few words */
    uint64_t count;
    int endless; /* computed, not stored: too many to count or check all */
    int costly;  /* images need decoding: they should be kept */
    int rank;    /* of numbers; the size of an image is known when it is read */
    size_t shape[PSLD_MAX_RANK];
    char **classes;
    size_t class_count, class_capacity;
    uint64_t skipped; /* files left out when the set was opened */
};

/* Opens data of any kind. */
psld_status psld_items_open(const char *path, const psld_data_options *options, psld_items **items);
/* NULL is harmless. */
void psld_items_free(psld_items *items);

/* For kinds: makes an empty one of `size` bytes (all 0 except the operations; NULL: no memory), describes it, adds its
 * classes. */
void *psld_items_create(const psld_items_ops *ops, size_t size);
psld_status psld_items_set_kind(psld_items *items, const char *format, ...) PSLD_PRINTF(2, 3);
psld_status psld_items_add_class(psld_items *items, const char *name, size_t length);

#endif
