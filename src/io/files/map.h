/* A whole file as bytes in memory. It is mapped where possible, so opening costs nothing and only the pages that are
 * used are ever read; a pipe is read into memory.
 *
 * The bytes do not change as long as nobody writes into the file. Our own writers replace files and so leave
 * mappings alone. If another program shortens a mapped file, accessing the lost pages ends the program (SIGBUS). So
 * data sets, which are used for days, are mapped only while they are opened: psld_map_open_file keeps the file,
 * psld_map_unmap releases the mapping, and psld_map_read fails if bytes are gone. */
#ifndef PSLD_IO_MAP_H
#define PSLD_IO_MAP_H

#include <stddef.h>

#include "base/status.h"

typedef struct psld_map_file psld_map_file;

typedef struct psld_map {
    const unsigned char *bytes; /* not NULL from opening until release */
    size_t size;
    void *mapping;       /* to be unmapped, or NULL */
    void *block;         /* to be released, or NULL */
    psld_map_file *file; /* what psld_map_read reads from; NULL: the bytes are in memory */
    int owns_file;
    size_t start; /* of the bytes in the file */
} psld_map;

psld_status psld_map_open(const char *path, psld_map *map);
/* The same, and keeps the file open for psld_map_read. */
psld_status psld_map_open_file(const char *path, psld_map *map);
/* A part of another mapping, which must outlive it. */
psld_map psld_map_part(const psld_map *map, size_t offset, size_t size);
/* Ends access in place: only psld_map_read is allowed from now on. Bytes in memory stay. */
void psld_map_unmap(psld_map *map);
/* Copies `size` bytes from `offset`. PSLD_IO if the file has become shorter. Thread-safe. */
psld_status psld_map_read(const psld_map *map, size_t offset, size_t size, void *to);
/* Announces the access pattern: random, so that the kernel does not read ahead, or sequential, which is the default.
 * Advice only. */
void psld_map_expect(const psld_map *map, int scattered);
/* Harmless if all fields are 0. */
void psld_map_close(psld_map *map);

#endif
