#include "data/raw.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static psld_status raw_image_size(const psld_items *items, uint64_t index, psld_image *image)
{
    const psld_raw *raw = (const psld_raw *)items;
    (void)index;
    *image = (psld_image){.width = raw->width, .height = raw->height, .channels = raw->channels};
    return PSLD_OK;
}

static psld_status read_pixels(const psld_raw *raw, uint64_t index, size_t size, uint8_t *to)
{
    const psld_raw_part *part = raw->parts;
    for (; index >= part->count; part++) index -= part->count;
    return psld_map_read(&part->bytes, part->first + (size_t)index * part->stride, size, to);
}

static psld_status get_image(const psld_items *items, uint64_t index, psld_image *image)
{
    const psld_raw *raw = (const psld_raw *)items;
    size_t plane = raw->width * raw->height, channels = (size_t)raw->channels, size = plane * channels;
    int apart = raw->planar && channels > 1;
    raw_image_size(items, index, image);
    uint8_t *to = image->pixels = psld_alloc(size, apart ? 2 : 1);
    if (!to) return PSLD_NO_MEMORY;
    uint8_t *from = apart ? to + size : to; /* planes are stored after the pixels that are computed from them */
    psld_status status = read_pixels(raw, index, size, from);
    if (status != PSLD_OK) psld_image_release(image);
    for (size_t i = 0; status == PSLD_OK && apart && i < plane; i++)
        for (size_t c = 0; c < channels; c++) *to++ = from[c * plane + i];
    return status;
}

static int32_t get_label(const psld_items *items, uint64_t index)
{
    const psld_raw *raw = (const psld_raw *)items;
    return raw->label ? raw->label[index] : -1;
}

static void free_raw(psld_items *items)
{
    psld_raw *raw = (psld_raw *)items;
    for (size_t i = 0; i < raw->part_count; i++) {
        psld_map_close(&raw->parts[i].bytes);
        psld_array_free(raw->parts[i].array);
    }
    psld_files_free(raw->files);
    psld_release(raw->parts);
    psld_release(raw->label);
    psld_release(raw);
}

static const psld_items_ops raw_ops = {
    .image = get_image, .image_size = raw_image_size, .label = get_label, .free = free_raw};

psld_status psld_raw_create(size_t width, size_t height, int channels, int planar, psld_raw **raw)
{
    *raw = psld_items_create(&raw_ops, sizeof **raw);
    if (!*raw) return PSLD_NO_MEMORY;
    (*raw)->width = width;
    (*raw)->height = height;
    (*raw)->channels = channels;
    (*raw)->planar = planar;
    return PSLD_OK;
}

psld_status psld_raw_add(psld_raw *raw, const psld_raw_part *part)
{
    void *parts = raw->parts;
    PSLD_TRY(psld_grow(&parts, &raw->part_capacity, raw->part_count + 1, sizeof *raw->parts));
    raw->parts = parts;
    raw->parts[raw->part_count++] = *part;
    raw->items.count += part->count;
    return PSLD_OK;
}

void psld_raw_unmap(psld_raw *raw)
{
    for (size_t i = 0; i < raw->part_count; i++) psld_map_unmap(&raw->parts[i].bytes);
    if (raw->files) psld_files_unmap(raw->files);
}

int32_t *psld_raw_labels(psld_raw *raw)
{
    void *label = raw->label;
    if (psld_grow(&label, &raw->label_capacity, raw->items.count, sizeof *raw->label) != PSLD_OK) return NULL;
    return raw->label = label;
}

psld_status psld_items_number_classes(psld_items *items, size_t count)
{
    char name[32];
    for (size_t i = 0; i < count; i++) {
        int length = snprintf(name, sizeof name, "%zu", i);
        PSLD_TRY(psld_items_add_class(items, name, (size_t)length));
    }
    return PSLD_OK;
}
