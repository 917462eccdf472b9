/* Locks on folders that only one process at a time may write into. The lock is on the folder itself, which leaves
 * nothing behind; on file systems that cannot lock folders it is on a file inside. The owner of the lock may remove
 * temporary files, except those that a writer still holds by a lock of their own (file.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/files/file.h"

struct psld_folder_lock {
    int folder;
    int lock; /* -1: the folder itself is locked */
};

static psld_status fail_taken(const char *folder)
{
    return psld_fail(PSLD_IO, "%s: another process is writing into this folder; wait for it, or give another folder",
                     folder);
}

static psld_status lock_folder(const char *folder, psld_folder_lock *claim)
{
    if (flock(claim->folder, LOCK_EX | LOCK_NB) == 0) return PSLD_OK;
    if (errno == EWOULDBLOCK) return fail_taken(folder);
    claim->lock = openat(claim->folder, ".psld-lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (claim->lock < 0) return psld_fail_errno(folder, "lock", errno);
    /* A file system without locks is written to all the same. */
    return flock(claim->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK ? fail_taken(folder) : PSLD_OK;
}

/* A temporary file whose lock can be taken is abandoned. */
static void remove_if_left(int folder, const char *name)
{
    int fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, name, 0);
    close(fd);
}

static psld_status remove_temporaries(const char *path, int folder)
{
    const struct dirent *entry = NULL;
    int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        if (copy >= 0) close(copy);
        return psld_fail_errno(path, "read", errno);
    }
    psld_status status;
    while ((status = psld_folder_next(dir, path, &entry)) == PSLD_OK && entry)
        if (strncmp(entry->d_name, ".psld-", 6) == 0 && psld_text_ends_in(entry->d_name, ".tmp"))
            remove_if_left(folder, entry->d_name);
    closedir(dir);
    return status;
}

psld_status psld_folder_lock_take(const char *folder, psld_folder_lock **claim)
{
    *claim = NULL;
    psld_folder_lock *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->lock = -1;
    made->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    psld_status status = made->folder < 0 ? psld_fail_errno(folder, "open", errno) : lock_folder(folder, made);
    if (status == PSLD_OK) status = remove_temporaries(folder, made->folder);
    if (status != PSLD_OK) {
        psld_folder_lock_free(made);
        return status;
    }
    *claim = made;
    return PSLD_OK;
}

void psld_folder_lock_free(psld_folder_lock *claim)
{
    if (!claim) return;
    if (claim->lock >= 0) close(claim->lock);
    if (claim->folder >= 0) close(claim->folder);
    psld_release(claim);
}
