/* Uncompressed images, one after the other in a file: what CIFAR, IDX and arrays have in common. */
#ifndef PSLD_DATA_RAW_H
#define PSLD_DATA_RAW_H

#include "data/items.h"
#include "io/archives/files.h"

typedef struct psld_raw_part {
    psld_map bytes;    /* owned; may borrow from the files or the array */
    psld_array *array; /* owned, or NULL; contains the bytes */
    size_t first;      /* offset of the pixels of the first image */
    size_t stride;     /* bytes from an image to the next */
    uint64_t count;
} psld_raw_part;

typedef struct psld_raw {
    psld_items items;
    size_t width, height;
    int channels;      /* 1 or 3 */
    int planar;        /* 1: [channels][height][width], 0: [height][width][channels] */
    psld_files *files; /* owned: the folder or archive of the parts, or NULL */
    psld_raw_part *parts;
    size_t part_count, part_capacity;
    int32_t *label; /* [items.count], or NULL */
    size_t label_capacity;
} psld_raw;

/* An empty set. Freed by psld_items_free(&raw->items). */
psld_status psld_raw_create(size_t width, size_t height, int channels, int planar, psld_raw **raw);
/* Adds images. The set then owns the part's bytes, array and files; on failure the caller keeps them. */
psld_status psld_raw_add(psld_raw *raw, const psld_raw_part *part);
/* Call this when all parts are added: from then on files are read, not mapped. */
void psld_raw_unmap(psld_raw *raw);
/* Memory for the labels of all images added so far; NULL if memory has run out. */
int32_t *psld_raw_labels(psld_raw *raw);
/* Classes that are called "0", "1", ... */
psld_status psld_items_number_classes(psld_items *items, size_t count);

#endif
