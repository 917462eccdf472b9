/* The tables of kinds: files are recognised by their first bytes, folders and archives by the names in them. */
#include "data/kinds.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "io/files/file.h"
#include "io/files/gzip.h"
#include "io/tensors/idx.h"

enum { HEAD = 4096, INSIDE = 4 };

/* The first bytes of a file, decompressed if it is a .gz file. */
typedef struct head {
    const char *path;
    unsigned char bytes[HEAD];
    size_t size;
    unsigned char inside[INSIDE];
    size_t inside_size;
} head;

static int begins_with(const head *h, const char *magic, size_t length)
{
    return h->size >= length && memcmp(h->bytes, magic, length) == 0;
}

static int ends_in(const head *h, const char *ending)
{
    const char *dot = strrchr(h->path, '.');
    return dot && psld_text_same(dot, ending);
}

static int is_toy(const head *h)
{
    return strncmp(h->path, "toy:", 4) == 0;
}

static int is_npy(const head *h)
{
    return begins_with(h, "\x93NUMPY", 6);
}

static int is_npz(const head *h)
{
    return begins_with(h, "PK", 2) && ends_in(h, ".npz");
}

static int is_idx(const head *h)
{
    return psld_idx_is(h->bytes, h->size) || psld_idx_is(h->inside, h->inside_size);
}

/* A pickle begins with its protocol, or in the oldest one with a dict. */
static int is_cifar(const head *h)
{
    return ends_in(h, ".bin") || begins_with(h, "\x80\x02}", 3) || begins_with(h, "\x80\x03}", 3) ||
           begins_with(h, "\x80\x04\x95", 3) || begins_with(h, "\x80\x05\x95", 3) || begins_with(h, "(dp", 3);
}

static const struct {
    int (*is)(const head *h);
    psld_status (*open)(const char *path, const psld_data_options *options, psld_items **items);
} file_kinds[] = {
    {is_npy, psld_npy_set_open},
    {is_npz, psld_npz_set_open},
    {is_idx, psld_idx_set_open},
    {is_cifar, psld_cifar_open},
};

static const struct {
    int (*are)(const psld_files *files); /* NULL: any other */
    psld_status (*open)(psld_files *files, const psld_data_options *options, psld_items **items);
} folder_kinds[] = {
    {psld_idx_files_are, psld_idx_files_open},
    {psld_cifar_files_are, psld_cifar_files_open},
    {NULL, psld_images_open},
};

static psld_status open_files(const char *path, const psld_data_options *options, psld_items **items)
{
    psld_files *files = NULL;
    size_t i = 0;
    PSLD_TRY(psld_files_open(path, (size_t)options->memory, options->cache_dir, &files));
    while (folder_kinds[i].are && !folder_kinds[i].are(files)) i++;
    psld_status status = folder_kinds[i].open(files, options, items);
    if (status != PSLD_OK) psld_files_free(files);
    return status;
}

static psld_status read_head(head *h)
{
    struct stat info;
    psld_reader reader;
    if (stat(h->path, &info) == 0 && S_ISDIR(info.st_mode)) return PSLD_OK;
    PSLD_TRY(psld_reader_open(h->path, &reader));
    psld_status status = psld_reader_peek(&reader, h->bytes, sizeof h->bytes, &h->size);
    psld_reader_close(&reader);
    if (status != PSLD_OK || !psld_gzip_is(h->bytes, h->size)) return status;
    /* The first bytes are enough here. */
    status = psld_gzip_read(h->bytes, h->size, h->path, h->inside, INSIDE, &h->inside_size);
    return status == PSLD_NO_MEMORY ? status : PSLD_OK;
}

/* A run folder has pictures in it, but they are not data. */
static int is_run(const char *path)
{
    static const char *const files[] = {"config.yaml", "checkpoints"};
    char file[4096];
    for (int i = 0; i < 2; i++)
        if (snprintf(file, sizeof file, "%s/%s", path, files[i]) >= (int)sizeof file || access(file, F_OK) != 0)
            return 0;
    return 1;
}

psld_status psld_items_open(const char *path, const psld_data_options *options, psld_items **items)
{
    head h = {.path = path};
    *items = NULL;
    if (is_toy(&h)) return psld_toy_open(path, options, items);
    if (is_run(path))
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: is the folder of a training run, not data (psld train -o %s goes on with it; pictures of "
                         "its samples are in %s/samples)",
                         path, path, path);
    PSLD_TRY(read_head(&h));
    for (size_t i = 0; i < sizeof file_kinds / sizeof *file_kinds; i++)
        if (h.size > 0 && file_kinds[i].is(&h)) return file_kinds[i].open(path, options, items);
    return open_files(path, options, items);
}
