#define _GNU_SOURCE /* memfd_create, O_PATH */
#include "serve_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli.h"
#include "serve_url.h"

struct serve_folder {
    int fd;
    char *path;
};

#define SHIPPED "shipped:"

const char *serve_found_text(serve_found found)
{
    static const char *const texts[] = {
        [SERVE_FOUND] = "",
        [SERVE_BAD_PATH] = "expected a path within the folder, of parts that are not empty and do not begin with a dot",
        [SERVE_OUTSIDE] = "points outside of the folder",
        [SERVE_NOT_THERE] = "is not there, or is not of the right kind",
        [SERVE_EXISTS] = "exists already",
        [SERVE_NOT_WRITTEN] = "cannot be written",
    };
    return texts[found];
}

serve_folder *serve_folder_open(const char *path)
{
    serve_folder *made = malloc(sizeof *made);
    if (!made) return NULL;
    made->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    made->path = realpath(path, NULL);
    if (made->fd >= 0 && made->path) return made;
    serve_folder_close(made);
    return NULL;
}

void serve_folder_close(serve_folder *folder)
{
    if (!folder) return;
    if (folder->fd >= 0) close(folder->fd);
    free(folder->path);
    free(folder);
}

const char *serve_folder_path(const serve_folder *folder)
{
    return folder->path;
}

const char *serve_folder_name(const serve_folder *folder)
{
    const char *slash = strrchr(folder->path, '/');
    return slash && slash[1] ? slash + 1 : folder->path;
}

/* ---- Finding ----------------------------------------------------------------------------------------------------- */

/* Without openat2 no link is followed at all: part after part. */
static int open_by_parts(int folder, const char *path, int flags)
{
    int at = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    while (at >= 0) {
        char part[NAME_MAX + 1];
        size_t length = strcspn(path, "/");
        if (length >= sizeof part) errno = ENAMETOOLONG;
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        int last = !path[length];
        int next = length < sizeof part
                       ? openat(at, part, (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC)
                       : -1;
        int error = errno;
        close(at);
        errno = error == ELOOP || error == ENOTDIR ? EXDEV : error;
        if (last || next < 0) return next;
        at = next;
        path += length + 1;
    }
    return -1;
}

/* Links are followed if they stay below the folder. The kernel checks every step, so no link can be exchanged between a
 * check and its use. */
static int open_below(int folder, const char *path, int flags)
{
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    return fd < 0 && (errno == ENOSYS || errno == EPERM) ? open_by_parts(folder, path, flags) : (int)fd;
}

static int is_shipped(const char *path)
{
    return strncmp(path, SHIPPED, sizeof SHIPPED - 1) == 0;
}

/* Names of shipped files are plain file names, so that they cannot point elsewhere. */
static int shipped_path(const char *path, char found[CLI_PATH])
{
    const char *name = path + sizeof SHIPPED - 1;
    if (!serve_path_is_plain(name) || strchr(name, '/')) return 0;
    return cli_shipped_model(name, found) || cli_shipped_config(name, found);
}

serve_found serve_folder_find(const serve_folder *folder, const char *path, mode_t want, int *fd)
{
    char shipped[CLI_PATH];
    struct stat about;
    *fd = -1;
    if (is_shipped(path)) {
        if (!shipped_path(path, shipped)) return SERVE_NOT_THERE;
        *fd = open(shipped, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } else {
        if (!serve_path_is_plain(path)) return SERVE_BAD_PATH;
        *fd = open_below(folder->fd, path, O_RDONLY | O_NONBLOCK); /* a pipe must not block */
        if (*fd < 0 && (errno == EXDEV || errno == ELOOP)) return SERVE_OUTSIDE;
    }
    if (*fd < 0) return SERVE_NOT_THERE;
    mode_t kind = fstat(*fd, &about) == 0 ? about.st_mode & S_IFMT : 0;
    if ((kind == S_IFREG || kind == S_IFDIR) && (want == 0 || want == kind)) return SERVE_FOUND;
    close(*fd);
    *fd = -1;
    return SERVE_NOT_THERE;
}

serve_found serve_folder_read(const serve_folder *folder, const char *path, size_t limit, char **text, size_t *size)
{
    int fd;
    struct stat about;
    *text = NULL;
    *size = 0;
    serve_found found = serve_folder_find(folder, path, S_IFREG, &fd);
    if (found != SERVE_FOUND) return found;
    if (fstat(fd, &about) == 0 && (size_t)about.st_size <= limit) *text = malloc((size_t)about.st_size + 1);
    while (*text && *size < (size_t)about.st_size) {
        ssize_t got = read(fd, *text + *size, (size_t)about.st_size - *size);
        if (got <= 0) break;
        *size += (size_t)got;
    }
    close(fd);
    if (!*text) return SERVE_NOT_THERE;
    (*text)[*size] = 0;
    return SERVE_FOUND;
}

void serve_folder_user_path(const char *path, char *text, size_t size)
{
    char shipped[CLI_PATH];
    int found = is_shipped(path) && shipped_path(path, shipped);
    snprintf(text, size, "%s%s", *path == '-' && path[1] != '-' && !strchr("0123456789.", path[1]) ? "./" : "",
             found ? shipped : path);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return 0;
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return 1;
}

/* In the folder `at`: a file of another name that gets its own when it is whole. */
static serve_found write_in(int at, const char *name, const void *bytes, size_t size, int replace)
{
    static atomic_uint number;
    char temporary[64];
    struct stat about;
    if (!replace && fstatat(at, name, &about, AT_SYMLINK_NOFOLLOW) == 0) return SERVE_EXISTS;
    snprintf(temporary, sizeof temporary, ".psld-%ld-%u.tmp", (long)getpid(), atomic_fetch_add(&number, 1));
    int fd = openat(at, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return SERVE_NOT_WRITTEN;
    int whole = write_all(fd, bytes, size) && fsync(fd) == 0;
    whole = close(fd) == 0 && whole;
    serve_found found = SERVE_FOUND;
    if (!whole)
        found = SERVE_NOT_WRITTEN;
    else if (replace ? renameat(at, temporary, at, name) != 0 : linkat(at, temporary, at, name, 0) != 0)
        found = errno == EEXIST ? SERVE_EXISTS : SERVE_NOT_WRITTEN;
    unlinkat(at, temporary, 0);
    return found;
}

serve_found serve_folder_write(const serve_folder *folder, const char *path, const void *bytes, size_t size,
                               int replace)
{
    char parent[SERVE_URL_SIZE];
    const char *slash = strrchr(path, '/');
    int at;
    if (!serve_path_is_plain(path)) return SERVE_BAD_PATH;
    if (!slash) return write_in(folder->fd, path, bytes, size, replace);
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    serve_found found = serve_folder_find(folder, parent, S_IFDIR, &at);
    if (found != SERVE_FOUND) return found;
    found = write_in(at, slash + 1, bytes, size, replace);
    close(at);
    return found;
}

/* ---- Descriptors for the library --------------------------------------------------------------------------------- */

int serve_files_add_fd(serve_files *files, const char *name, int fd, const char **path)
{
    if (fd < 0) return 0;
    if (files->count == SERVE_FILES) {
        close(fd);
        return 0;
    }
    struct serve_opened *opened = &files->opened[files->count++];
    opened->fd = fd;
    snprintf(opened->name, sizeof opened->name, "%s", name);
    /* Not /proc/self/fd: the library takes that for the descriptor itself, which has been read to its end after once. */
    snprintf(opened->path, sizeof opened->path, "/proc/%ld/fd/%d", (long)getpid(), fd);
    *path = opened->path;
    return 1;
}

serve_found serve_files_add(serve_files *files, const serve_folder *folder, const char *name, mode_t want,
                            const char **path)
{
    int fd;
    serve_found found = serve_folder_find(folder, name, want, &fd);
    if (found != SERVE_FOUND) return found;
    return serve_files_add_fd(files, name, fd, path) ? SERVE_FOUND : SERVE_NOT_THERE;
}

int serve_files_add_bytes(serve_files *files, const char *name, const void *bytes, size_t size, const char **path)
{
    int fd = memfd_create("psld", MFD_CLOEXEC);
    if (fd >= 0 && (!write_all(fd, bytes, size) || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        fd = -1;
    }
    return serve_files_add_fd(files, name, fd, path);
}

void serve_files_close(serve_files *files)
{
    for (int i = 0; i < files->count; i++) close(files->opened[i].fd);
    files->count = 0;
}

const char *serve_files_rename(const serve_files *files, const char *message, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    while (*message && used + 1 < size) {
        const struct serve_opened *found = NULL;
        size_t length = 0;
        for (int i = 0; !found && files && i < files->count; i++) {
            length = strlen(files->opened[i].path);
            int more = message[length > strlen(message) ? 0 : length];
            if (strncmp(message, files->opened[i].path, length) == 0 && !(more >= '0' && more <= '9'))
                found = &files->opened[i];
        }
        if (found) {
            snprintf(text + used, size - used, "%s", found->name);
            used += strlen(text + used);
            message += length;
        } else {
            text[used++] = *message++;
            text[used] = 0;
        }
    }
    return text;
}
