#include "io/map.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/file.h"

/* What comes through a pipe has to be in memory as a whole, and says nothing about its length. */
enum { LARGEST_PIPED = 1 << 30, PIECE = 1 << 16 };

static psld_status read_all(psld_reader *reader, psld_map *map)
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

psld_status psld_map_open(const char *path, psld_map *map)
{
    *map = (psld_map){0};
    psld_reader reader;
    PSLD_TRY(psld_reader_open(path, &reader));
    psld_status status = PSLD_OK;
    /* What is behind /dev/stdin may have been read in part, and mappings begin at the beginning. */
    if (reader.length_known && reader.left > 0 && lseek(reader.fd, 0, SEEK_CUR) == 0) {
        void *mapping = mmap(NULL, reader.left, PROT_READ, MAP_PRIVATE, reader.fd, 0);
        if (mapping != MAP_FAILED) *map = (psld_map){.bytes = mapping, .size = reader.left, .mapping = mapping};
    }
    /* Some file systems cannot map. */
    if (!map->bytes) status = read_all(&reader, map);
    psld_reader_close(&reader);
    if (status != PSLD_OK) psld_map_close(map);
    return status == PSLD_NO_MEMORY ? psld_fail_in(status, "%s", path) : status;
}

void psld_map_expect(const psld_map *map, int scattered)
{
    if (map->mapping) posix_madvise(map->mapping, map->size, scattered ? POSIX_MADV_RANDOM : POSIX_MADV_NORMAL);
}

void psld_map_close(psld_map *map)
{
    if (map->mapping) munmap(map->mapping, map->size);
    psld_release(map->block);
    *map = (psld_map){0};
}
