/* Tables of what can be named: samplers, grids, presets, ... Each row is a struct whose first field is its name
 * (const char *), so that all tables are searched by the same two functions. */
#ifndef PSLD_BASE_TABLE_H
#define PSLD_BASE_TABLE_H

#include <stddef.h>

/* Row `index` of `count` rows of `size` bytes; NULL past the last. */
const void *psld_table_at(const void *rows, size_t count, size_t size, int index);
/* The row of that name, which may be NULL. NULL where there is none: the error text (PSLD_BAD_ARGUMENT) then says "what:
 * expected one of ...". */
const void *psld_table_find(const void *rows, size_t count, size_t size, const char *what, const char *name);

/* The same for an array. */
#define PSLD_TABLE_AT(table, index) psld_table_at(table, sizeof(table) / sizeof *(table), sizeof *(table), index)
#define PSLD_TABLE_FIND(table, what, name) \
    psld_table_find(table, sizeof(table) / sizeof *(table), sizeof *(table), what, name)

/* All names of a table into `names`; how many there are, at most PSLD_TABLE_ROWS. */
enum { PSLD_TABLE_ROWS = 64 };
size_t psld_table_names(const void *rows, size_t count, size_t size, const char *names[PSLD_TABLE_ROWS]);

#endif
