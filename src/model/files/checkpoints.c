#include "model/files/checkpoints.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "io/files/file.h"

psld_status psld_checkpoints_path(const char *folder, long step, char path[PSLD_CHECKPOINT_PATH])
{
    int length = snprintf(path, PSLD_CHECKPOINT_PATH, "%s/step-%09ld.safetensors", folder, step);
    if (length < PSLD_CHECKPOINT_PATH) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%.200s...: the name is too long", folder);
}

static int step_of_name(const char *name, long *step)
{
    int length = 0;
    return sscanf(name, "step-%ld.safetensors%n", step, &length) == 1 && length > 0 && !name[length] && *step >= 0;
}

static int newer(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x < y) - (x > y);
}

static psld_status collect_steps(DIR *dir, const char *folder, long **steps, size_t *count)
{
    size_t capacity = 0;
    for (;;) {
        const struct dirent *entry;
        long step;
        PSLD_TRY(psld_folder_next(dir, folder, &entry));
        if (!entry) return PSLD_OK;
        if (!step_of_name(entry->d_name, &step)) continue;
        PSLD_TRY(psld_grow((void **)steps, &capacity, *count + 1, sizeof **steps));
        (*steps)[(*count)++] = step;
    }
}

psld_status psld_checkpoints_list(const char *folder, long **steps, size_t *count)
{
    *steps = NULL;
    *count = 0;
    DIR *dir = opendir(folder);
    /* Fail if the folder exists but cannot be read: a run that took it for empty would begin again. */
    if (!dir) return errno == ENOENT ? PSLD_OK : psld_fail_errno(folder, "read", errno);
    psld_status status = collect_steps(dir, folder, steps, count);
    closedir(dir);
    if (status != PSLD_OK) {
        psld_release(*steps);
        *steps = NULL;
        *count = 0;
    }
    if (*count) qsort(*steps, *count, sizeof **steps, newer);
    return status;
}
