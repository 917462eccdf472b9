#include "base/table.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

static const char *name_of(const void *rows, size_t size, size_t index)
{
    const char *name;
    memcpy(&name, (const char *)rows + index * size, sizeof name);
    return name;
}

const void *psld_table_at(const void *rows, size_t count, size_t size, int index)
{
    return index >= 0 && (size_t)index < count ? (const char *)rows + (size_t)index * size : NULL;
}

size_t psld_table_names(const void *rows, size_t count, size_t size, const char *names[PSLD_TABLE_ROWS])
{
    assert(count <= PSLD_TABLE_ROWS);
    for (size_t i = 0; i < count; i++) names[i] = name_of(rows, size, i);
    return count;
}

const void *psld_table_find(const void *rows, size_t count, size_t size, const char *what, const char *name)
{
    const char *names[PSLD_TABLE_ROWS];
    for (size_t i = 0; i < count; i++)
        if (psld_text_is(name, name_of(rows, size, i))) return (const char *)rows + i * size;
    psld_table_names(rows, count, size, names);
    psld_text_fail_choice(PSLD_BAD_ARGUMENT, what, name, names, count);
    return NULL;
}
