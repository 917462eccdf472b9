/* A whole file as bytes in memory: mapped where that is possible, so that opening costs nothing and only the pages that
 * are looked at are ever read; read into memory where it is not (a pipe).
 *
 * The bytes stay what they are as long as nobody writes into the file; our own writers replace files, and so leave
 * what is mapped alone. Who makes a mapped file shorter takes its pages away, and looking at them then ends the program
 * (SIGBUS). So data sets, which are used for days, are mapped only while they are opened: psld_map_open_file keeps the
 * file, psld_map_unmap gives the mapping back, and psld_map_read fails where bytes are gone. */
#ifndef PSLD_IO_MAP_H
#define PSLD_IO_MAP_H

#include <stddef.h>

#include "base/status.h"

typedef struct psld_map_file psld_map_file;

typedef struct psld_map {
    const unsigned char *bytes; /* never NULL once opened, until it is let go */
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
/* A part of another one, which must outlive it. */
psld_map psld_map_part(const psld_map *map, size_t offset, size_t size);
/* No more will be looked at in place: only psld_map_read is allowed from now on. Bytes in memory stay. */
void psld_map_unmap(psld_map *map);
/* `size` bytes from `offset` on. PSLD_IO when the file has become shorter. Any thread. */
psld_status psld_map_read(const psld_map *map, size_t offset, size_t size, void *to);
/* How it will be read from now on: here and there, so that nothing around it should come from the disk as well, or in
 * order, as is assumed at first. Advice only. */
void psld_map_expect(const psld_map *map, int scattered);
/* Harmless on one that is all 0. */
void psld_map_close(psld_map *map);

#endif
