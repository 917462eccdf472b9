#include "base/sized.h"

#include <string.h>

psld_status psld_sized_check(const void *callers, size_t size, const char *macro)
{
    size_t found;
    if (!callers) return psld_fail(PSLD_BAD_ARGUMENT, "expected a struct initialised with %s, found NULL", macro);
    memcpy(&found, callers, sizeof found);
    if (found >= sizeof found && found <= size) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "size of a struct: expected %zu to %zu, found %zu: initialise it with %s",
                     sizeof found, size, found, macro);
}

psld_status psld_sized_copy(const void *callers, void *own, size_t size, const char *macro)
{
    size_t found;
    if (!callers) return PSLD_OK;
    PSLD_TRY(psld_sized_check(callers, size, macro));
    memcpy(&found, callers, sizeof found);
    memcpy((char *)own + sizeof found, (const char *)callers + sizeof found, found - sizeof found);
    return PSLD_OK;
}

void psld_sized_write(void *callers, const void *own)
{
    size_t size;
    memcpy(&size, callers, sizeof size);
    memcpy((char *)callers + sizeof size, (const char *)own + sizeof size, size - sizeof size);
}
