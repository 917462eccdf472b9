/* A whole file as bytes in memory: mapped where that is possible, so that opening costs nothing and only the pages that
 * are looked at are ever read; read into memory where it is not (a pipe).
 *
 * The bytes stay what they are as long as nobody writes into the file; our own writers replace files, and so leave
 * what is mapped alone. */
#ifndef PSLD_IO_MAP_H
#define PSLD_IO_MAP_H

#include <stddef.h>

#include "base/status.h"

typedef struct psld_map {
    const unsigned char *bytes; /* never NULL once opened */
    size_t size;
    void *mapping; /* to be unmapped, or NULL */
    void *block;   /* to be released, or NULL */
} psld_map;

psld_status psld_map_open(const char *path, psld_map *map);
/* How it will be read from now on: here and there, so that nothing around it should come from the disk as well, or in
 * order, as is assumed at first. Advice only. */
void psld_map_expect(const psld_map *map, int scattered);
/* Harmless on one that is all 0. */
void psld_map_close(psld_map *map);

#endif
