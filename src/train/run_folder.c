#include "train/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "io/files/file.h"
#include "psld_train.h"

enum { LONGEST_PATH = 4096, LONGEST_NAME = 256, LONGEST_LINE = 1 << 16 };

#define STOP "stop" /* a file that asks the process that trains here to stop */

struct psld_run_folder {
    int lock, log;
    int locked; /* the lock is ours */
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

/* Whether a file may be in the folder of a new run: one that a run left which was killed at its start, or a log of the
 * shell. */
static int is_harmless(const struct dirent *entry, const char *folder)
{
    static const char *const own[] = {"checkpoints", "samples"};
    static const char *const data[] = {".png", ".jpg", ".jpeg", ".webp", ".npy",  ".npz",        ".tar",
                                       ".zip", ".gz",  ".bin",  ".yaml", ".json", ".safetensors"};
    char path[LONGEST_PATH];
    struct stat about;
    if (entry->d_name[0] == '.') return 1;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(entry->d_name, own[i]) == 0) return 1;
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        if (psld_text_ends_in(entry->d_name, data[i])) return 0;
    snprintf(path, sizeof path, "%.3800s/%.255s", folder, entry->d_name);
    return stat(path, &about) != 0 || !S_ISDIR(about.st_mode);
}

psld_status psld_run_folder_check_new(const char *path)
{
    char found[256] = "";
    DIR *dir = opendir(path);
    if (!dir) return PSLD_OK; /* there is none, or creating it will report why it cannot be read */
    for (const struct dirent *entry; !*found && (entry = readdir(dir));)
        if (!is_harmless(entry, path)) snprintf(found, sizeof found, "%.255s", entry->d_name);
    closedir(dir);
    if (!*found) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT,
                     "%s: cannot become the folder of a run: it has other files in it (%s); give a new folder", path,
                     found);
}

/* Somebody else may have put links into the folder, under the names of files that a run writes; their targets must not
 * be overwritten. */
static psld_status refuse_link(const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISLNK(about.st_mode)) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: is a symbolic link, expected a file of the run itself", path);
}

static psld_status refuse_links(psld_run_folder *run)
{
    static const char *const names[] = {"config.yaml",  "log.jsonl",  "model.safetensors", "loss.png",
                                        "accuracy.png", "index.html", "best.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        PSLD_TRY(refuse_link(psld_run_folder_file(run, names[i])));
    return PSLD_OK;
}

/* Checkpoints and pictures. */
static psld_status refuse_links_in(const char *folder)
{
    char path[LONGEST_PATH + NAME_MAX + 2];
    psld_status status = PSLD_OK;
    DIR *dir = opendir(folder);
    if (!dir) return PSLD_OK; /* the first write will report it */
    for (const struct dirent *entry; status == PSLD_OK && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strncmp(entry->d_name, "step-", 5) == 0) status = refuse_link(path);
    }
    closedir(dir);
    return status;
}

/* In a folder without a run the file is not ours. */
static void forget_stop(psld_run_folder *run)
{
    if (psld_run_folder_exists(run->path)) unlink(psld_run_folder_file(run, STOP));
}

static psld_status lock_run(psld_run_folder *run)
{
    const char *path = psld_run_folder_file(run, ".lock");
    PSLD_TRY(refuse_link(path));
    run->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (run->lock < 0) return psld_fail_errno(path, "write", errno);
    for (int tries = 0; flock(run->lock, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK) return psld_fail_errno(path, "lock", errno);
        if (tries == 5) return psld_fail(PSLD_IO, "%s: another process is training into this folder", run->path);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* inspecting a run takes the lock briefly */
    }
    run->locked = 1;
    forget_stop(run); /* it was for an earlier process */
    return PSLD_OK;
}

/* Removes temporary files of writers (io/files/file.c) that were killed. We have the lock, so nobody else is writing
 * here. */
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
    PSLD_TRY(psld_folder_make(run->path));
    PSLD_TRY(lock_run(run));
    PSLD_TRY(refuse_links(run));
    remove_remains(run->path);
    static const char *const parts[] = {"checkpoints", "samples"};
    for (int i = 0; i < 2; i++) {
        const char *part = psld_run_folder_file(run, parts[i]);
        PSLD_TRY(psld_folder_make(part));
        PSLD_TRY(refuse_links_in(part));
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

/* If the lock can be taken, no process holds it. */
int psld_run_folder_is_busy(const char *path)
{
    char lock[LONGEST_PATH];
    if (snprintf(lock, sizeof lock, "%s/.lock", path) >= (int)sizeof lock) return 0;
    int fd = open(lock, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    int is_locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return is_locked;
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
    if (run->locked) forget_stop(run);    /* the request is fulfilled */
    if (run->lock >= 0) close(run->lock); /* this also releases the lock */
    psld_release(run);
}

/* ---- Stopping ---------------------------------------------------------------------------------------------------- */

int psld_run_folder_asked_to_stop(psld_run_folder *run)
{
    return access(psld_run_folder_file(run, STOP), F_OK) == 0;
}

psld_status psld_run_stop(const char *folder)
{
    char path[LONGEST_PATH];
    if (snprintf(path, sizeof path, "%s/%s", folder, STOP) >= (int)sizeof path || !psld_run_folder_exists(folder))
        return psld_fail(PSLD_BAD_INPUT, "%.300s: has no config.yaml, so it is no training run", folder);
    if (!psld_run_folder_is_busy(folder)) {
        unlink(path);
        return psld_fail(PSLD_BAD_INPUT, "%.300s: nothing is training in this folder", folder);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return psld_fail_errno(path, "write", errno);
    close(fd);
    return PSLD_OK;
}

/* ---- Configuration ----------------------------------------------------------------------------------------------- */

psld_status psld_run_folder_config(psld_run_folder *run, psld_yaml **yaml)
{
    const char *path = psld_run_folder_file(run, "config.yaml");
    *yaml = NULL;
    return access(path, F_OK) == 0 ? psld_yaml_load_found(path, yaml) : PSLD_OK;
}

psld_status psld_run_folder_set_config(psld_run_folder *run, const char *text)
{
    return psld_text_save(text, psld_run_folder_file(run, "config.yaml"));
}

/* ---- Log --------------------------------------------------------------------------------------------------------- */

/* The part of a log that is kept: its lines about steps <= `step`. */
typedef struct kept_lines {
    size_t bytes;                  /* bytes of these lines */
    size_t end;                    /* end of the last of them in the present file */
    size_t damaged, first_damaged; /* damaged lines, and the number of the first, from 1 */
} kept_lines;

/* The step of a line; -1 if it is damaged. */
static long step_of(const char *line, size_t length)
{
    json_t *entry = json_loadb(line, length, 0, NULL), *step = json_object_get(entry, "step");
    long number = json_is_integer(step) ? (long)json_integer_value(step) : -1;
    json_decref(entry);
    return number;
}

/* Reads all complete lines, and writes those that are kept (`writer` NULL: nothing is written). A last line without its
 * end is ignored. */
static kept_lines sort_lines(const char *text, size_t size, long step, psld_writer *writer)
{
    kept_lines kept = {0};
    const char *at = text, *stop;
    for (size_t number = 1; (stop = memchr(at, '\n', size - (size_t)(at - text))); number++, at = stop + 1) {
        size_t length = (size_t)(stop - at) + 1;
        long about = step_of(at, length);
        if (about < 0 && kept.damaged++ == 0) kept.first_damaged = number;
        if (about < 0 || about > step) continue;
        kept.bytes += length;
        kept.end = (size_t)(stop + 1 - text);
        if (writer) psld_writer_put(writer, at, length);
    }
    return kept;
}

/* Removes the lines that are not to be kept. A damaged log is written anew without its damaged lines. */
static psld_status clean_log(const char *path, long step)
{
    char *text = NULL;
    size_t size = 0;
    if (access(path, F_OK) != 0) return PSLD_OK;
    PSLD_TRY(psld_file_read(path, SIZE_MAX, &text, &size));
    kept_lines kept = sort_lines(text, size, step, NULL);
    psld_status status = PSLD_OK;
    psld_writer *writer = NULL;
    if (kept.damaged)
        psld_log(PSLD_LOG_WARNING, "%s: left out %zu damaged line%s, the first is line %zu", path, kept.damaged,
                 kept.damaged == 1 ? "" : "s", kept.first_damaged);
    if (kept.bytes == kept.end) { /* the lines to keep are adjacent: the file is only shortened */
        if (truncate(path, (off_t)kept.end) != 0) status = psld_fail_errno(path, "write", errno);
    } else {
        status = psld_writer_open(path, &writer);
        if (status == PSLD_OK) sort_lines(text, size, step, writer);
        if (status == PSLD_OK) status = psld_writer_commit(writer);
    }
    psld_release(text);
    return status;
}

psld_status psld_run_folder_log_from(psld_run_folder *run, long step)
{
    const char *path = psld_run_folder_file(run, "log.jsonl");
    PSLD_TRY(clean_log(path, step));
    run->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    return run->log < 0 ? psld_fail_errno(path, "write", errno) : PSLD_OK;
}

psld_status psld_run_folder_log(psld_run_folder *run, const char *line)
{
    char text[LONGEST_LINE];
    int length = snprintf(text, sizeof text, "%s\n", line);
    if (length >= (int)sizeof text) return psld_fail(PSLD_BAD_ARGUMENT, "log: the line is too long");
    for (int done = 0; done < length;) { /* part of a line: the next call reports why the rest could not be written */
        ssize_t written = write(run->log, text + done, (size_t)(length - done));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return psld_fail_errno(psld_run_folder_file(run, "log.jsonl"), "write", errno);
        done += (int)written;
    }
    return PSLD_OK;
}

psld_status psld_run_folder_sync(psld_run_folder *run)
{
    return fsync(run->log) == 0 ? PSLD_OK : psld_fail_errno(psld_run_folder_file(run, "log.jsonl"), "write", errno);
}
