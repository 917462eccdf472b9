/* The table of kinds, and how a path is told to be of one. */
#include "data/kinds.h"

#include <string.h>

static psld_status open_files(const char *path, const psld_data_options *options, psld_items **items)
{
    psld_files *files = NULL;
    PSLD_TRY(psld_files_open(path, options->memory, options->cache_dir, &files));
    psld_status status = psld_images_open(files, options, items);
    if (status != PSLD_OK) psld_files_free(files);
    return status;
}

psld_status psld_items_open(const char *path, const psld_data_options *options, psld_items **items)
{
    static const char toy[] = "toy:";
    *items = NULL;
    if (strncmp(path, toy, sizeof toy - 1) == 0) return psld_toy_open(path, options, items);
    return open_files(path, options, items);
}
