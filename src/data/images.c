/* Image files in a folder or an archive. Folders that contain all images are ignored; the first folder below them is
 * the class of an image. Items are sorted by name. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "data/kinds.h"

typedef struct images {
    psld_items items;
    psld_files *files;
    size_t *file;   /* [count] index of each item's file */
    int32_t *label; /* [count] */
} images;

enum { ORIGIN_SIZE = 1024 };

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static psld_status image_item_decode(const psld_items *items, uint64_t index, int look, psld_image *image)
{
    const images *set = (const images *)items;
    psld_map bytes;
    char origin[ORIGIN_SIZE];
    *image = (psld_image){0};
    PSLD_TRY(psld_files_read(set->files, set->file[index], &bytes));
    psld_file_origin(set->files, set->file[index], origin, sizeof origin);
    psld_status status = look ? psld_image_header(bytes.bytes, bytes.size, origin, image)
                              : psld_image_decode(bytes.bytes, bytes.size, origin, image);
    psld_map_close(&bytes);
    return status;
}

static psld_status read_image(const psld_items *items, uint64_t index, psld_image *image)
{
    return image_item_decode(items, index, 0, image);
}

static psld_status read_image_size(const psld_items *items, uint64_t index, psld_image *image)
{
    return image_item_decode(items, index, 1, image);
}

static int32_t get_label(const psld_items *items, uint64_t index)
{
    return ((const images *)items)->label[index];
}

static const char *get_name(const psld_items *items, uint64_t index)
{
    const images *set = (const images *)items;
    return psld_files_name(set->files, set->file[index]);
}

static void free_images(psld_items *items)
{
    images *set = (images *)items;
    psld_files_free(set->files);
    psld_release(set->file);
    psld_release(set->label);
    psld_release(set);
}

static const psld_items_ops image_ops = {
    .image = read_image, .image_size = read_image_size, .label = get_label, .name = get_name, .free = free_images};

/* ---- Classes ----------------------------------------------------------------------------------------------------- */

/* Length of the first part of a path if it is a folder, without its '/'; 0 for a file's name. */
static size_t folder_part(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

static int is_asked_for(const psld_data_options *options, const char *name, size_t length)
{
    for (int i = 0; i < options->class_count; i++)
        if (strlen(options->classes[i]) == length && memcmp(options->classes[i], name, length) == 0) return 1;
    return 0;
}

/* Length of the path of the folders that contain all images. A folder that the options list as a class is a class, even
 * if it is the only one. */
static size_t common_folders(const images *set, const psld_data_options *options)
{
    const char *first = psld_files_name(set->files, set->file[0]);
    /* Names are sorted: a beginning that the first and the last have in common is common to all. */
    const char *last = psld_files_name(set->files, set->file[set->items.count - 1]);
    size_t skip = 0;
    for (;;) {
        size_t length = folder_part(first + skip);
        if (length == 0 || strncmp(first + skip, last + skip, length + 1) != 0) return skip;
        if (is_asked_for(options, first + skip, length)) return skip;
        skip += length + 1;
    }
}

static int is_last_class(const psld_items *items, const char *name, size_t length)
{
    const char *last = items->classes[items->class_count - 1];
    return strlen(last) == length && memcmp(last, name, length) == 0;
}

/* Names are sorted, so the images of a class are adjacent and classes are in order. */
static psld_status find_classes(images *set, const psld_data_options *options)
{
    size_t skip = common_folders(set, options);
    for (uint64_t i = 0; i < set->items.count; i++) {
        const char *name = psld_files_name(set->files, set->file[i]) + skip;
        size_t length = folder_part(name);
        set->label[i] = -1;
        if (length == 0) continue;
        int as_before = i > 0 && set->label[i - 1] >= 0 && is_last_class(&set->items, name, length);
        if (!as_before) PSLD_TRY(psld_items_add_class(&set->items, name, length));
        set->label[i] = (int32_t)(set->items.class_count - 1);
    }
    return PSLD_OK;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* Whether the name is that of an image in a format that psld cannot read. */
static int is_foreign(const char *name)
{
    static const char *const endings[] = {".gif", ".bmp", ".tif",  ".tiff", ".ppm",  ".pgm", ".pnm",
                                          ".jp2", ".jxl", ".avif", ".heic", ".heif", ".tga", ".exr"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (psld_text_same(dot, endings[i])) return 1;
    return 0;
}

/* Warns about images in other formats. Other files are ignored. */
static void warn_of_foreign(const psld_files *files)
{
    size_t count = 0, first = 0;
    for (size_t i = psld_files_count(files); i-- > 0;)
        if (is_foreign(psld_files_name(files, i))) count++, first = i;
    if (count)
        psld_log(PSLD_LOG_WARNING, "%s: %zu images in formats that cannot be read are left out; the first is %s",
                 psld_files_path(files), count, psld_files_name(files, first));
}

static psld_status list_images(images *set, psld_files *files)
{
    size_t all = psld_files_count(files);
    set->file = psld_alloc(all, sizeof *set->file);
    set->label = psld_alloc(all, sizeof *set->label);
    if (!set->file || !set->label) return PSLD_NO_MEMORY;
    int is_picture = strcmp(psld_files_kind(files), "picture") == 0; /* with any name */
    for (size_t i = 0; i < all; i++)
        if (is_picture || psld_image_name(psld_files_name(files, i))) set->file[set->items.count++] = i;
    if (set->items.count == 0)
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: a %s without images, expected names that end in .png, .jpg, .jpeg or .webp",
                         psld_files_path(files), psld_files_kind(files));
    warn_of_foreign(files);
    return PSLD_OK;
}

psld_status psld_images_open(psld_files *files, const psld_data_options *options, psld_items **items)
{
    *items = NULL;
    images *set = psld_items_create(&image_ops, sizeof *set);
    if (!set) return PSLD_NO_MEMORY;
    set->items.costly = 1;
    set->items.skipped = psld_files_refused(files);
    psld_status status = list_images(set, files);
    set->files = files;
    if (status == PSLD_OK) status = find_classes(set, options);
    if (status == PSLD_OK) status = psld_items_set_kind(&set->items, "%s of images", psld_files_kind(files));
    if (status != PSLD_OK) {
        set->files = NULL; /* still owned by the caller */
        psld_items_free(&set->items);
        return status;
    }
    psld_files_unmap(files);
    *items = &set->items;
    return PSLD_OK;
}
