#include "train/log_read.h"

#include <stdio.h>

#include "base/alloc.h"

psld_status psld_log_read(const char *path, psld_log_entry_fn *entry, void *user)
{
    enum { LONGEST_LINE = 1 << 16 };
    char *line = psld_alloc(LONGEST_LINE, 1);
    if (!line) return PSLD_NO_MEMORY;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, LONGEST_LINE, file)) {
        json_t *object = json_loads(line, 0, NULL);
        if (object) entry(user, object);
        json_decref(object);
    }
    if (file) fclose(file);
    psld_release(line);
    return PSLD_OK;
}
