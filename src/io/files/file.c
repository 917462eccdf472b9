/* Invariants of a writer:
 *   1. `temporary` is the name under which the file may lie beside the target; NULL for direct writing. The file has
 *      this name only between commit's link and rename, so a process that is killed leaves nothing behind. On file
 *      systems without nameless files it has the name from the start (`is_named`), with a lock that shows its use.
 *   2. `error` is the errno of the first failure. Once it is set, nothing more is written and commit cannot succeed.
 *   3. The target is changed only by rename, after the data have reached the disk. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "io/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"

enum { BUFFER_SIZE = 1 << 16, LARGEST_TRANSFER = 1 << 30, TEMPORARY_TRIES = 1000, NAME_SIZE = 64 };

struct psld_writer {
    int fd;
    int error;
    char *path;      /* as the caller wrote it, for messages */
    char *target;    /* the same with symbolic links followed, so that a link stays one */
    char *temporary; /* beside the target */
    int is_named;    /* the file has this name already */
    size_t used;     /* bytes in the buffer */
    char buffer[BUFFER_SIZE];
};

/* The open descriptor that a path stands for, or -1. Opening such a path again would start at the beginning of a
 * redirected file (and fails for sockets). The user means the descriptor as it is. */
static int descriptor_of(const char *path)
{
    static const char *const prefixes[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdin") == 0) return STDIN_FILENO;
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t length = strlen(prefixes[i]);
        int64_t number = 0;
        if (strncmp(path, prefixes[i], length) == 0 && psld_text_integer(path + length, &number) && number >= 0 &&
            number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

static int open_direct(const char *path, int flags)
{
    int number = descriptor_of(path);
    return number >= 0 ? fcntl(number, F_DUPFD_CLOEXEC, 0) : open(path, flags | O_CLOEXEC);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

psld_status psld_reader_open(const char *path, psld_reader *reader)
{
    *reader = (psld_reader){.path = path, .fd = -1};
    int fd = open_direct(path, O_RDONLY);
    if (fd < 0) return psld_fail_errno(path, "read", errno);
    struct stat info;
    int error = fstat(fd, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
    if (error) {
        close(fd);
        return psld_fail_errno(path, "read", error);
    }
    reader->fd = fd;
    /* A regular file of size 0 may be in /proc, where sizes are unknown. */
    if (S_ISREG(info.st_mode) && info.st_size > 0) {
        off_t position = lseek(fd, 0, SEEK_CUR);
        reader->length_known = 1;
        reader->left = info.st_size > position ? (size_t)(info.st_size - position) : 0;
    }
    return PSLD_OK;
}

void psld_reader_memory(const void *bytes, size_t size, const char *name, psld_reader *reader)
{
    *reader = (psld_reader){.path = name, .fd = -1, .length_known = 1, .left = size, .bytes = bytes};
}

void psld_reader_close(psld_reader *reader)
{
    if (reader->fd >= 0) close(reader->fd);
    reader->fd = -1;
}

psld_status psld_reader_get(psld_reader *reader, void *to, size_t size, size_t *got)
{
    *got = 0;
    if (reader->fd < 0) {
        *got = size < reader->left ? size : reader->left;
        if (*got) memcpy(to, reader->bytes, *got);
        if (*got) reader->bytes += *got;
    }
    while (reader->fd >= 0 && *got < size) {
        size_t wanted = size - *got < LARGEST_TRANSFER ? size - *got : LARGEST_TRANSFER;
        ssize_t count = read(reader->fd, (char *)to + *got, wanted);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return psld_fail_errno(reader->path, "read", errno);
        if (count == 0) break;
        *got += (size_t)count;
    }
    reader->left -= *got < reader->left ? *got : reader->left; /* the file may have grown since it was opened */
    return PSLD_OK;
}

psld_status psld_reader_peek(const psld_reader *reader, void *to, size_t size, size_t *got)
{
    *got = 0;
    off_t position = lseek(reader->fd, 0, SEEK_CUR);
    if (position < 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: a pipe cannot be looked at before it is read, expected a file",
                         reader->path);
    while (*got < size) {
        ssize_t count = pread(reader->fd, (char *)to + *got, size - *got, position + (off_t)*got);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return psld_fail_errno(reader->path, "read", errno);
        if (count == 0) break;
        *got += (size_t)count;
    }
    return PSLD_OK;
}

/* Reads to the end or to limit + 1 bytes, whichever comes first, and appends a 0 byte. */
static psld_status read_up_to(psld_reader *reader, size_t limit, char **bytes, size_t *size)
{
    /* Asking for one byte more than promised detects the end, so a file of the promised size is not copied. */
    size_t capacity = (reader->length_known ? reader->left : BUFFER_SIZE) + 2;
    if (capacity > limit + 2) capacity = limit + 2;
    void *block = psld_alloc(capacity, 1);
    if (!block) return PSLD_NO_MEMORY;
    for (;;) {
        size_t room = (capacity < limit + 2 ? capacity : limit + 2) - 1 - *size, got = 0;
        psld_status status = psld_reader_get(reader, (char *)block + *size, room, &got);
        *size += got;
        if (status == PSLD_OK && (got < room || *size > limit)) break;
        if (status == PSLD_OK) status = psld_grow(&block, &capacity, capacity + 1, 1);
        if (status != PSLD_OK) {
            psld_release(block);
            return status;
        }
    }
    ((char *)block)[*size] = '\0';
    *bytes = block;
    return PSLD_OK;
}

psld_status psld_file_read(const char *path, size_t limit, char **bytes, size_t *size)
{
    *bytes = NULL;
    *size = 0;
    if (limit > SIZE_MAX - 2) limit = SIZE_MAX - 2;
    psld_reader reader;
    PSLD_TRY(psld_reader_open(path, &reader));
    char *text = NULL;
    size_t length = 0;
    psld_status status = read_up_to(&reader, limit, &text, &length);
    psld_reader_close(&reader);
    if (status == PSLD_NO_MEMORY) return psld_fail_in(status, "%s", path);
    if (status != PSLD_OK) return status;
    if (length > limit) {
        psld_release(text);
        return psld_fail(PSLD_BAD_INPUT, "%s: longer than the %zu bytes that it may have", path, limit);
    }
    *bytes = text;
    *size = length;
    return PSLD_OK;
}

psld_status psld_folder_next(DIR *folder, const char *path, const struct dirent **entry)
{
    errno = 0; /* readdir tells a failure from the end by errno alone */
    *entry = readdir(folder);
    return *entry || !errno ? PSLD_OK : psld_fail_errno(path, "read", errno);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void writer_free(psld_writer *writer)
{
    if (writer->fd >= 0) close(writer->fd);
    psld_release(writer->path);
    psld_release(writer->target);
    psld_release(writer->temporary);
    psld_release(writer);
}

/* Length of the folder part of a path, its last '/' included; 0 for a name alone. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* A nameless file in the target's folder; -1 if the file system has none, or none that can be given a name later. */
static int open_nameless(const psld_writer *writer, mode_t mode)
{
#ifdef O_TMPFILE
    char folder[PATH_MAX];
    size_t length = folder_length(writer->target);
    if (length >= sizeof folder || access("/proc/self/fd", X_OK) != 0) return -1;
    snprintf(folder, sizeof folder, "%.*s", length ? (int)length : 1, length ? writer->target : ".");
    return open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
#else
    (void)writer, (void)mode;
    return -1;
#endif
}

/* The next temporary name. It contains the process number and a counter, so it is unique. It is short, so even a
 * target with the longest possible name can be written. */
static void next_name(psld_writer *writer)
{
    static atomic_ulong calls;
    size_t folder = folder_length(writer->target);
    snprintf(writer->temporary + folder, NAME_SIZE, ".psld-%ld-%lu.tmp", (long)getpid(), atomic_fetch_add(&calls, 1));
}

/* Gives the nameless file its temporary name. Returns 0, or -1 with errno. */
static int link_nameless(psld_writer *writer)
{
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", writer->fd);
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        if (linkat(AT_FDCWD, open_file, AT_FDCWD, writer->temporary, AT_SYMLINK_FOLLOW) == 0) return 0;
        if (errno != EEXIST) return -1;
        next_name(writer);
    }
    return -1;
}

/* Opens the temporary file. If its name is taken (by a process of another machine, or after a crash), the next one
 * is tried. */
static psld_status open_temporary(psld_writer *writer, mode_t mode)
{
    size_t folder = folder_length(writer->target);
    writer->temporary = psld_alloc(folder + NAME_SIZE, 1);
    if (!writer->temporary) return PSLD_NO_MEMORY;
    memcpy(writer->temporary, writer->target, folder);
    next_name(writer);
    writer->fd = open_nameless(writer, mode);
    for (int i = 0; i < TEMPORARY_TRIES && writer->fd < 0; i++) {
        writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        writer->is_named = writer->fd >= 0;
        if (writer->is_named)
            (void)!flock(writer->fd, LOCK_EX | LOCK_NB);
        else if (errno != EEXIST)
            break;
        else
            next_name(writer);
    }
    return writer->fd >= 0 ? PSLD_OK : psld_fail_errno(writer->path, "write", errno);
}

/* Opens a new file, or one that replaces an old file and keeps its permissions, or writes directly to what is not a
 * regular file. */
static psld_status open_target(psld_writer *writer)
{
    const char *path = writer->path;
    struct stat info;
    int exists = stat(path, &info) == 0;
    if (!exists && (errno != ENOENT || !*path)) return psld_fail_errno(path, "write", errno);
    if (exists && S_ISDIR(info.st_mode)) return psld_fail_errno(path, "write", EISDIR);
    if (descriptor_of(path) >= 0 || (exists && !S_ISREG(info.st_mode))) {
        writer->fd = open_direct(path, O_WRONLY | O_NOCTTY);
        return writer->fd < 0 ? psld_fail_errno(path, "write", errno) : PSLD_OK;
    }
    /* Renaming needs no permission on the file itself. If the user made it read-only, it must not be replaced. */
    if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) return psld_fail_errno(path, "write", errno);
    char resolved[PATH_MAX];
    writer->target = psld_copy_text(exists && realpath(path, resolved) ? resolved : path);
    if (!writer->target) return PSLD_NO_MEMORY;
    PSLD_TRY(open_temporary(writer, 0666));
    if (exists) (void)!fchmod(writer->fd, info.st_mode & 0777); /* some file systems have no permissions */
    return PSLD_OK;
}

/* The same for a name that we chose: anything but a folder is replaced, and a link is not followed. */
static psld_status open_own(psld_writer *writer)
{
    struct stat info;
    if (lstat(writer->path, &info) == 0 && S_ISDIR(info.st_mode)) return psld_fail_errno(writer->path, "write", EISDIR);
    writer->target = psld_copy_text(writer->path);
    return writer->target ? open_temporary(writer, 0666) : PSLD_NO_MEMORY;
}

static psld_status open_writer(const char *path, psld_status (*open_as)(psld_writer *), psld_writer **writer)
{
    *writer = NULL;
    psld_writer *w = psld_alloc(1, sizeof *w);
    if (!w) return psld_fail_in(PSLD_NO_MEMORY, "%s", path);
    w->fd = -1;
    w->path = psld_copy_text(path);
    psld_status status = w->path ? open_as(w) : PSLD_NO_MEMORY;
    if (status != PSLD_OK) {
        writer_free(w);
        return status == PSLD_NO_MEMORY ? psld_fail_in(status, "%s", path) : status;
    }
    *writer = w;
    return PSLD_OK;
}

psld_status psld_writer_open(const char *path, psld_writer **writer)
{
    return open_writer(path, open_target, writer);
}

psld_status psld_writer_open_own(const char *path, psld_writer **writer)
{
    return open_writer(path, open_own, writer);
}

psld_status psld_text_save(const char *text, const char *path)
{
    psld_writer *writer;
    PSLD_TRY(psld_writer_open_own(path, &writer));
    psld_writer_put(writer, text, strlen(text));
    return psld_writer_commit(writer);
}

static void write_out(psld_writer *writer, const char *bytes, size_t size)
{
    while (size > 0 && !writer->error) {
        ssize_t count = write(writer->fd, bytes, size < LARGEST_TRANSFER ? size : LARGEST_TRANSFER);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            writer->error = errno;
            return;
        }
        bytes += count;
        size -= (size_t)count;
    }
}

static void flush_buffer(psld_writer *writer)
{
    write_out(writer, writer->buffer, writer->used);
    writer->used = 0;
}

void psld_writer_put(psld_writer *writer, const void *bytes, size_t size)
{
    if (writer->error || size == 0) return;
    if (size > BUFFER_SIZE - writer->used) flush_buffer(writer);
    if (size >= BUFFER_SIZE) {
        write_out(writer, bytes, size);
        return;
    }
    memcpy(writer->buffer + writer->used, bytes, size);
    writer->used += size;
}

void psld_writer_abort(psld_writer *writer)
{
    if (!writer) return;
    if (writer->is_named) unlink(writer->temporary);
    writer_free(writer);
}

/* Makes the rename durable. The file is complete in any case, so it is no failure if the folder cannot be opened for
 * reading or the file system cannot do this. */
static void sync_folder(char *path)
{
    size_t length = folder_length(path);
    path[length] = '\0';
    int fd = open(length ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!fsync(fd);
    close(fd);
}

psld_status psld_writer_commit(psld_writer *writer)
{
    flush_buffer(writer);
    if (!writer->error && writer->temporary && fsync(writer->fd) != 0) writer->error = errno;
    if (!writer->error && writer->temporary && !writer->is_named) {
        if (link_nameless(writer) != 0)
            writer->error = errno;
        else
            writer->is_named = 1;
    }
    if (close(writer->fd) != 0 && !writer->error) writer->error = errno;
    writer->fd = -1;
    if (!writer->error && writer->temporary) {
        if (rename(writer->temporary, writer->target) != 0)
            writer->error = errno;
        else
            sync_folder(writer->temporary);
    }
    psld_status status = PSLD_OK;
    if (writer->error) {
        if (writer->is_named) unlink(writer->temporary);
        status = psld_fail_errno(writer->path, "write", writer->error);
    }
    writer_free(writer);
    return status;
}
