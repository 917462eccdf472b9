/* What was compiled or measured before, in files of the user's cache: $XDG_CACHE_HOME/psld/opencl, or ~/.cache/psld/opencl.
 * A file says how long it is and what its bytes add up to; one that is not whole counts as none and is written again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "device/opencl/opencl.h"
#include "io/files/file.h"

enum { LARGEST = 1 << 28 };

typedef struct head {
    char magic[8];
    uint64_t size, hash;
} head;

static const char magic[8] = {'P', 'S', 'L', 'D', 'C', 'L', '1', '\n'};

int psld_cl_cache_is_on(void)
{
    const char *said = getenv("PSLD_OPENCL_CACHE");
    return !said || strcmp(said, "off") != 0;
}

/* 0: there is no such folder to be had. */
static int folder_path(char *path, size_t size)
{
    if (!psld_cl_cache_is_on()) return 0;
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;
    if (cache && *cache == '/')
        length = snprintf(path, size, "%s/psld/opencl", cache);
    else if (home && *home == '/')
        length = snprintf(path, size, "%s/.cache/psld/opencl", home);
    return length > 0 && (size_t)length < size;
}

static int file_path(const char *name, char *path, size_t size)
{
    char folder[2048];
    if (!folder_path(folder, sizeof folder)) return 0;
    int length = snprintf(path, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size;
}

void psld_cl_cache_get(const char *name, void **bytes, size_t *size)
{
    char path[4096], *all;
    size_t whole;
    head h;
    *bytes = NULL;
    *size = 0;
    if (!file_path(name, path, sizeof path) || access(path, R_OK) != 0) return;
    if (psld_file_read(path, LARGEST, &all, &whole) != PSLD_OK) return;
    if (whole > sizeof h) {
        memcpy(&h, all, sizeof h);
        if (memcmp(h.magic, magic, sizeof magic) == 0 && h.size == whole - sizeof h &&
            h.hash == psld_hash_words(PSLD_HASH_START, all + sizeof h, whole - sizeof h))
            *bytes = psld_copy_bytes(all + sizeof h, whole - sizeof h);
    }
    if (*bytes) *size = whole - sizeof h;
    psld_release(all);
}

void psld_cl_cache_put(const char *name, const void *bytes, size_t size)
{
    char folder[2048], path[4096];
    psld_writer *writer;
    head h = {.size = size, .hash = psld_hash_words(PSLD_HASH_START, bytes, size)};
    memcpy(h.magic, magic, sizeof magic);
    if (!folder_path(folder, sizeof folder) || !file_path(name, path, sizeof path)) return;
    if (psld_folder_make(folder) != PSLD_OK || psld_writer_open_own(path, &writer) != PSLD_OK) return;
    psld_writer_put(writer, &h, sizeof h);
    psld_writer_put(writer, bytes, size);
    (void)psld_writer_commit(writer);
}
