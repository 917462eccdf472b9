/* MNIST and similar sets: an IDX file of images, and one of labels. Their names differ in "images" and "idx3" against
 * "labels" and "idx1". A folder or archive of such files is the training set, or the test set if the options ask for
 * it. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "data/kinds.h"
#include "data/raw.h"
#include "io/tensors/idx.h"

enum { NAME_SIZE = 4096 };

/* ---- Images and labels ------------------------------------------------------------------------------------------- */

/* [n, h, w], or [n, h, w, c] or [n, c, h, w] with c = 1 or 3. */
static psld_status idx_create_raw(const psld_idx *images, const char *origin, psld_raw **raw)
{
    const size_t *s = images->shape;
    int last = images->rank == 4 && (s[3] == 1 || s[3] == 3), second = images->rank == 4 && (s[1] == 1 || s[1] == 3);
    if (images->rank == 3) return psld_raw_create(s[2], s[1], 1, 1, raw);
    if (last) return psld_raw_create(s[2], s[1], (int)s[3], 0, raw);
    if (second) return psld_raw_create(s[3], s[2], (int)s[1], 1, raw);
    return psld_fail(PSLD_BAD_INPUT, "%s: an IDX file of rank %d, expected images [n, height, width]", origin,
                     images->rank);
}

static psld_status add_labels(psld_raw *raw, psld_map *bytes, const char *origin)
{
    psld_idx labels;
    PSLD_TRY(psld_idx_read(bytes, origin, &labels));
    if (labels.rank != 1 || labels.shape[0] != raw->items.count)
        return psld_fail(PSLD_BAD_INPUT, "%s: %zu labels, expected as many as images: %zu", origin, labels.shape[0],
                         (size_t)raw->items.count);
    int32_t *label = psld_raw_labels(raw);
    if (!label) return PSLD_NO_MEMORY;
    size_t classes = 0;
    for (size_t i = 0; i < labels.shape[0]; i++) {
        label[i] = labels.data[i];
        if (labels.data[i] >= classes) classes = (size_t)labels.data[i] + 1;
    }
    return psld_items_number_classes(&raw->items, classes);
}

/* Owns the bytes of the images on success. Those of the labels stay with the caller. */
static psld_status idx_build(psld_map *bytes, const char *origin, psld_map *labels, const char *labels_origin,
                             psld_items **items)
{
    psld_idx images;
    psld_raw *raw = NULL;
    PSLD_TRY(psld_idx_read(bytes, origin, &images));
    PSLD_TRY(idx_create_raw(&images, origin, &raw));
    size_t stride = raw->width * raw->height * (size_t)raw->channels;
    size_t first = (size_t)(images.data - bytes->bytes);
    const psld_raw_part part = {.bytes = *bytes, .first = first, .stride = stride, .count = images.shape[0]};
    psld_status status = psld_raw_add(raw, &part);
    if (status == PSLD_OK) *bytes = (psld_map){0};
    if (status == PSLD_OK && labels->bytes) status = add_labels(raw, labels, labels_origin);
    if (status == PSLD_OK) status = psld_items_set_kind(&raw->items, "IDX images");
    if (status != PSLD_OK) {
        psld_items_free(&raw->items);
        return status;
    }
    *items = &raw->items;
    return PSLD_OK;
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* Replaces the last occurrence of `text` in a name by a text of the same length; returns 0 if there is none. */
static int replace_in_name(char *name, const char *text, const char *by)
{
    char *found = NULL;
    for (char *at = name; (at = strstr(at, text)); at++) found = at;
    if (found) memcpy(found, by, strlen(by));
    return found != NULL;
}

/* The name of the labels; 0 if that of the images has another form. With `other`, the labels end in .gz if the images
 * do not, and the other way round. */
static int name_of_labels(const char *images, int other, char name[NAME_SIZE])
{
    size_t length = strlen(images);
    if (length + 4 > NAME_SIZE) return 0;
    memcpy(name, images, length + 1);
    if (!replace_in_name(name, "images", "labels")) return 0;
    if (!replace_in_name(name, "idx3", "idx1")) replace_in_name(name, "idx4", "idx1");
    if (!other) return 1;
    if (length > 3 && strcmp(name + length - 3, ".gz") == 0)
        name[length - 3] = '\0';
    else
        memcpy(name + length, ".gz", 4);
    return 1;
}

psld_status psld_idx_set_open(const char *path, const psld_data_options *options, psld_items **items)
{
    psld_map images, labels = {0};
    char name[NAME_SIZE] = "";
    struct stat info;
    (void)options;
    *items = NULL;
    PSLD_TRY(psld_map_open_file(path, &images));
    psld_status status = PSLD_OK;
    for (int other = 0; other < 2 && status == PSLD_OK && !labels.bytes; other++)
        if (name_of_labels(path, other, name) && stat(name, &info) == 0) {
            status = psld_map_open(name, &labels);
            break;
        }
    if (status == PSLD_OK) status = idx_build(&images, path, &labels, name, items);
    psld_map_close(&images);
    psld_map_close(&labels);
    if (status == PSLD_OK) psld_raw_unmap((psld_raw *)*items);
    return status;
}

/* ---- Folders and archives ---------------------------------------------------------------------------------------- */

static int is_test(const char *name)
{
    return strstr(name, "t10k") != NULL || strstr(name, "test") != NULL;
}

static const char *base_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static int has_images(const char *name)
{
    static const char *const patterns[] = {"images-idx3", "images.idx3", "images-idx4", "images.idx4"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (strstr(name, patterns[i])) return 1;
    return 0;
}

int psld_idx_files_are(const psld_files *files)
{
    for (size_t i = 0; i < psld_files_count(files); i++)
        if (has_images(base_name(psld_files_name(files, i)))) return 1;
    return 0;
}

/* The file of images of the wanted part (training or test). If there is only one file, it is taken. */
static psld_status find_images(const psld_files *files, int test, size_t *found)
{
    size_t all = 0, fitting = 0, only = 0;
    for (size_t i = 0; i < psld_files_count(files); i++) {
        const char *name = base_name(psld_files_name(files, i));
        if (!has_images(name)) continue;
        all++;
        only = i;
        if (is_test(name) != test) continue;
        if (++fitting == 1) *found = i;
    }
    if (fitting == 0 && all == 1) *found = only;
    if (fitting == 1 || (fitting == 0 && all == 1)) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: has %zu IDX files of %s images, expected one; give the path of one of them",
                     psld_files_path(files), fitting, test ? "test" : "training");
}

psld_status psld_idx_files_open(psld_files *files, const psld_data_options *options, psld_items **items)
{
    psld_map images = {0}, labels = {0};
    char origin[NAME_SIZE] = "", name[NAME_SIZE] = "", labels_origin[NAME_SIZE] = "";
    size_t at = 0;
    ptrdiff_t at_labels = -1;
    *items = NULL;
    PSLD_TRY(find_images(files, options->test, &at));
    for (int other = 0; other < 2 && at_labels < 0; other++)
        if (name_of_labels(psld_files_name(files, at), other, name)) at_labels = psld_files_find(files, name);
    psld_file_origin(files, at, origin, sizeof origin);
    psld_status status = psld_files_view(files, at, &images);
    if (status == PSLD_OK && at_labels >= 0) {
        psld_file_origin(files, (size_t)at_labels, labels_origin, sizeof labels_origin);
        status = psld_files_read(files, (size_t)at_labels, &labels);
    }
    if (status == PSLD_OK) status = idx_build(&images, origin, &labels, labels_origin, items);
    psld_map_close(&images);
    psld_map_close(&labels);
    if (status != PSLD_OK) return status;
    ((psld_raw *)*items)->files = files;
    psld_raw_unmap((psld_raw *)*items);
    return PSLD_OK;
}
