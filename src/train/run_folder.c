#include "train/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/file.h"

enum { LONGEST_PATH = 4096, LONGEST_NAME = 256, LONGEST_LINE = 1 << 16 };

struct psld_run_folder {
    int lock, log;
    char path[LONGEST_PATH - LONGEST_NAME];
    char file[LONGEST_PATH];
};

const char *psld_run_folder_path(const psld_run_folder *run)
{
    return run->path;
}

const char *psld_run_folder_file(psld_run_folder *run, const char *name)
{
    snprintf(run->file, sizeof run->file, "%s/%.200s", run->path, name);
    return run->file;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static psld_status make_folder(const char *path)
{
    struct stat about;
    if (mkdir(path, 0777) == 0) return PSLD_OK;
    int error = errno;
    if (error == EEXIST && stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return PSLD_OK;
    return psld_fail_errno(path, "make this folder", error == EEXIST ? ENOTDIR : error);
}

static psld_status take_lock(psld_run_folder *run)
{
    const char *path = psld_run_folder_file(run, ".lock");
    run->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (run->lock < 0) return psld_fail_errno(path, "write", errno);
    for (int tries = 0; flock(run->lock, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK) return psld_fail_errno(path, "lock", errno);
        if (tries == 5) return psld_fail(PSLD_IO, "%s: another process is training into this folder", run->path);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* who looks at the run has it for a moment */
    }
    return PSLD_OK;
}

/* Temporary files of writers (io/file.c) that were killed; nobody else can be writing here, we have the lock. */
static void remove_remains(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, ".psld-", 6) == 0 && length > 10 && strcmp(entry->d_name + length - 4, ".tmp") == 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
}

static psld_status open_in(psld_run_folder *run, const char *path)
{
    if (!*path || strlen(path) >= sizeof run->path)
        return psld_fail(PSLD_BAD_INPUT, "%.200s: cannot be the name of a folder", path);
    strcpy(run->path, path);
    for (size_t length = strlen(run->path); length > 1 && run->path[length - 1] == '/';) run->path[--length] = 0;
    PSLD_TRY(make_folder(run->path));
    PSLD_TRY(take_lock(run));
    remove_remains(run->path);
    static const char *const parts[] = {"checkpoints", "samples"};
    for (int i = 0; i < 2; i++) {
        const char *part = psld_run_folder_file(run, parts[i]);
        PSLD_TRY(make_folder(part));
        remove_remains(part);
    }
    return PSLD_OK;
}

psld_status psld_run_folder_open(const char *path, psld_run_folder **run)
{
    *run = NULL;
    psld_run_folder *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->lock = made->log = -1;
    psld_status status = open_in(made, path);
    if (status != PSLD_OK) {
        psld_run_folder_close(made);
        return status;
    }
    *run = made;
    return PSLD_OK;
}

int psld_run_folder_exists(const char *path)
{
    char config[LONGEST_PATH];
    return snprintf(config, sizeof config, "%s/config.yaml", path) < (int)sizeof config && access(config, F_OK) == 0;
}

void psld_run_folder_close(psld_run_folder *run)
{
    if (!run) return;
    if (run->log >= 0) close(run->log);
    if (run->lock >= 0) close(run->lock); /* and with it the lock goes */
    psld_release(run);
}

/* ---- Configuration ----------------------------------------------------------------------------------------------- */

psld_status psld_run_folder_config(psld_run_folder *run, psld_yaml **yaml)
{
    const char *path = psld_run_folder_file(run, "config.yaml");
    *yaml = NULL;
    return access(path, F_OK) == 0 ? psld_yaml_load(path, yaml) : PSLD_OK;
}

psld_status psld_run_folder_set_config(psld_run_folder *run, const char *text)
{
    psld_writer *writer;
    PSLD_TRY(psld_writer_open(psld_run_folder_file(run, "config.yaml"), &writer));
    psld_writer_put(writer, text, strlen(text));
    return psld_writer_commit(writer);
}

/* ---- Log --------------------------------------------------------------------------------------------------------- */

/* Bytes up to the end of the last whole line in a row from the beginning that is about a step <= `step`. */
static psld_status length_until(const char *path, long step, off_t *length)
{
    FILE *file = fopen(path, "r");
    *length = 0;
    if (!file) return errno == ENOENT ? PSLD_OK : psld_fail_errno(path, "read", errno);
    char *line = psld_alloc(LONGEST_LINE, 1);
    while (line && fgets(line, LONGEST_LINE, file)) {
        long number;
        size_t size = strlen(line);
        if (size == 0 || line[size - 1] != '\n' || sscanf(line, "{\"step\": %ld", &number) != 1 || number > step) break;
        *length += (off_t)size;
    }
    psld_status status = !line ? PSLD_NO_MEMORY : ferror(file) ? psld_fail_errno(path, "read", errno) : PSLD_OK;
    fclose(file);
    psld_release(line);
    return status;
}

psld_status psld_run_folder_log_from(psld_run_folder *run, long step)
{
    const char *path = psld_run_folder_file(run, "log.jsonl");
    off_t length;
    PSLD_TRY(length_until(path, step, &length));
    run->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (run->log < 0 || ftruncate(run->log, length) != 0) return psld_fail_errno(path, "write", errno);
    return PSLD_OK;
}

psld_status psld_run_folder_log(psld_run_folder *run, const char *line)
{
    char text[LONGEST_LINE];
    int length = snprintf(text, sizeof text, "%s\n", line);
    if (length >= (int)sizeof text) return psld_fail(PSLD_BAD_ARGUMENT, "log: the line is too long");
    ssize_t written;
    do written = write(run->log, text, (size_t)length);
    while (written < 0 && errno == EINTR);
    if (written == length) return PSLD_OK;
    if (written >= 0) errno = ENOSPC; /* a file takes part of a line only when the disk is full */
    return psld_fail_errno(psld_run_folder_file(run, "log.jsonl"), "write", errno);
}

psld_status psld_run_folder_sync(psld_run_folder *run)
{
    return fsync(run->log) == 0 ? PSLD_OK : psld_fail_errno(psld_run_folder_file(run, "log.jsonl"), "write", errno);
}
