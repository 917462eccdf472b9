/* Folders that are written into. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io/files/file.h"

enum { LONGEST_PATH = 4096 };

psld_status psld_folder_make(const char *path)
{
    char part[LONGEST_PATH];
    struct stat about;
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part)
        return psld_fail(PSLD_BAD_INPUT, "%.200s: cannot be the name of a folder", path);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != 0) continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0777) == 0 || errno == EEXIST || (path[i] && errno != ENOENT && errno != ENOTDIR)) continue;
        return psld_fail_errno(part, "make this folder", errno);
    }
    if (stat(path, &about) != 0) return psld_fail_errno(path, "make this folder", errno);
    return S_ISDIR(about.st_mode) ? PSLD_OK : psld_fail_errno(path, "make this folder", ENOTDIR);
}
