#include "io/files/map.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/files/file.h"

/* The contents of a pipe must fit into memory, and their length is not known in advance. */
enum { LARGEST_PIPED = 1 << 30, PIECE = 1 << 16 };

struct psld_map_file {
    int fd;
    char *path;
};

static psld_status map_read_all(psld_reader *reader, psld_map *map)
{
    size_t capacity = 0, got = 0;
    do {
        if (map->size > LARGEST_PIPED)
            return psld_fail(PSLD_BAD_INPUT, "%s: more than the %d bytes that may come through a pipe", reader->path,
                             LARGEST_PIPED);
        PSLD_TRY(psld_grow(&map->block, &capacity, map->size + PIECE, 1));
        PSLD_TRY(psld_reader_get(reader, (char *)map->block + map->size, capacity - map->size, &got));
        map->size += got;
    } while (map->size == capacity);
    map->bytes = map->block;
    return PSLD_OK;
}

static void close_file(psld_map_file *file)
{
    if (!file) return;
    if (file->fd >= 0) close(file->fd);
    psld_release(file->path);
    psld_release(file);
}

/* Takes the reader's file over. */
static psld_status keep_file(psld_reader *reader, psld_map *map)
{
    psld_map_file *file = psld_alloc(1, sizeof *file);
    char *path = psld_copy_text(reader->path);
    if (!file || !path) {
        psld_release(file);
        psld_release(path);
        return PSLD_NO_MEMORY;
    }
    *file = (psld_map_file){.fd = reader->fd, .path = path};
    reader->fd = -1;
    map->file = file;
    map->owns_file = 1;
    return PSLD_OK;
}

static psld_status open_map(const char *path, int keep, psld_map *map)
{
    *map = (psld_map){0};
    psld_reader reader;
    PSLD_TRY(psld_reader_open(path, &reader));
    psld_status status = PSLD_OK;
    /* /dev/stdin may have been read in part, but a mapping begins at the start of the file. */
    if (reader.length_known && reader.left > 0 && lseek(reader.fd, 0, SEEK_CUR) == 0) {
        void *mapping = mmap(NULL, reader.left, PROT_READ, MAP_PRIVATE, reader.fd, 0);
        if (mapping != MAP_FAILED) *map = (psld_map){.bytes = mapping, .size = reader.left, .mapping = mapping};
    }
    /* Some file systems cannot map. */
    if (!map->bytes) status = map_read_all(&reader, map);
    if (keep && map->mapping) status = keep_file(&reader, map);
    psld_reader_close(&reader);
    if (status != PSLD_OK) psld_map_close(map);
    return status == PSLD_NO_MEMORY ? psld_fail_in(status, "%s", path) : status;
}

psld_status psld_map_open(const char *path, psld_map *map)
{
    return open_map(path, 0, map);
}

psld_status psld_map_open_file(const char *path, psld_map *map)
{
    return open_map(path, 1, map);
}

psld_map psld_map_part(const psld_map *map, size_t offset, size_t size)
{
    assert(offset <= map->size && size <= map->size - offset);
    return (psld_map){.bytes = map->bytes ? map->bytes + offset : NULL,
                      .size = size,
                      .file = map->file,
                      .start = map->start + offset};
}

void psld_map_unmap(psld_map *map)
{
    if (!map->file) return;
    if (map->mapping) munmap(map->mapping, map->size);
    map->mapping = NULL;
    map->bytes = NULL;
}

psld_status psld_map_read(const psld_map *map, size_t offset, size_t size, void *to)
{
    const psld_map_file *file = map->file;
    assert(offset <= map->size && size <= map->size - offset);
    if (!file && size) memcpy(to, map->bytes + offset, size);
    for (size_t done = 0; file && done < size;) {
        ssize_t got = pread(file->fd, (char *)to + done, size - done, (off_t)(map->start + offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return psld_fail_errno(file->path, "read", errno);
        if (got == 0)
            return psld_fail(PSLD_IO, "%s: cannot read: it has become shorter since it was opened", file->path);
        done += (size_t)got;
    }
    return PSLD_OK;
}

void psld_map_expect(const psld_map *map, int scattered)
{
    if (map->mapping) posix_madvise(map->mapping, map->size, scattered ? POSIX_MADV_RANDOM : POSIX_MADV_NORMAL);
}

void psld_map_close(psld_map *map)
{
    if (map->mapping) munmap(map->mapping, map->size);
    psld_release(map->block);
    if (map->owns_file) close_file(map->file);
    *map = (psld_map){0};
}
