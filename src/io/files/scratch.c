#include "io/files/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

/* Not /tmp first: it may be in memory. */
static const char *const system_folders[] = {"/var/tmp", "/tmp"};

static psld_status open_scratch_in(const char *folder, int *fd)
{
    static const char name[] = "/psld-XXXXXX";
    char *path = psld_alloc(strlen(folder) + sizeof name, 1);
    if (!path) return PSLD_NO_MEMORY;
    memcpy(path, folder, strlen(folder));
    memcpy(path + strlen(folder), name, sizeof name);
    *fd = mkstemp(path);
    int error = errno;
    if (*fd >= 0) {
        unlink(path);
        (void)!fcntl(*fd, F_SETFD, FD_CLOEXEC);
    }
    psld_release(path);
    return *fd >= 0 ? PSLD_OK : psld_fail_errno(folder, "make a temporary file", error);
}

psld_status psld_scratch_open(const char *folder, int *fd)
{
    *fd = -1;
    if (folder) return open_scratch_in(folder, fd);
    psld_status status = PSLD_OK;
    for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++) {
        status = open_scratch_in(system_folders[i], fd);
        if (status != PSLD_IO) break;
    }
    return status;
}

void psld_scratch_close(int fd)
{
    if (fd >= 0) close(fd);
}

psld_status psld_scratch_put(int fd, uint64_t place, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size > 0) {
        ssize_t count = pwrite(fd, from, size, (off_t)place);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return psld_fail_errno("cache", "write a temporary file", errno);
        from += count;
        place += (uint64_t)count;
        size -= (size_t)count;
    }
    return PSLD_OK;
}

psld_status psld_scratch_get(int fd, uint64_t place, void *bytes, size_t size)
{
    char *to = bytes;
    while (size > 0) {
        ssize_t count = pread(fd, to, size, (off_t)place);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return psld_fail_errno("cache", "read a temporary file", count < 0 ? errno : EIO);
        to += count;
        place += (uint64_t)count;
        size -= (size_t)count;
    }
    return PSLD_OK;
}
