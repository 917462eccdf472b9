/* Writes items as PNG files, named by their numbers, into one folder per class. They are written under a temporary name
 * beside the target, which is renamed at the end: nobody ever sees an incomplete set. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"

enum { BATCH = 64, DIGITS = 6 };

typedef struct folder {
    char out[CLI_PATH];       /* without '/' at its end */
    char part[CLI_PATH];      /* folder in which it is filled */
    unsigned char *has_class; /* [classes]: its folder was made */
    int digits;               /* of names: enough for their order to be that of the numbers */
} folder;

/* ---- Where to ---------------------------------------------------------------------------------------------------- */

static int is_empty_folder(const char *path)
{
    DIR *dir = opendir(path);
    int names = 0;
    if (!dir) return 0;
    while (readdir(dir)) names++;
    closedir(dir);
    return names == 2; /* "." and ".." */
}

static psld_status check_out(const char *out)
{
    struct stat about;
    if (stat(out, &about) != 0) return PSLD_OK;
    if (!S_ISDIR(about.st_mode)) return cli_bad_input("%s: is a file; expected a new or empty folder", out);
    return is_empty_folder(out)
               ? PSLD_OK
               : cli_bad_input("%s: has files already; expected a new or empty folder, so that nothing is "
                               "mixed or overwritten",
                               out);
}

/* A folder of our own beside OUT. */
static psld_status make_subfolder(folder *f)
{
    const char *slash = strrchr(f->out, '/');
    int parent = slash ? (int)(slash - f->out) + 1 : 0;
    for (int i = 0; i < 1000; i++) {
        if (snprintf(f->part, sizeof f->part, "%.*s.psld-data-%ld-%d", parent, f->out, (long)getpid(), i) >=
            (int)sizeof f->part)
            break;
        if (mkdir(f->part, 0777) == 0) return PSLD_OK;
        if (errno != EEXIST) break;
    }
    psld_status status = cli_bad_input("%s: cannot make this folder: %s", f->out, strerror(errno));
    f->part[0] = 0;
    return status;
}

static void remove_in(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(fd, entry->d_name, 0) != 0 && depth > 0) remove_in(fd, entry->d_name, depth - 1);
    }
    if (dir) closedir(dir);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static psld_status begin_folder(const data_job *job, folder *f)
{
    size_t length = strlen(job->request->out);
    if (length + 64 > sizeof f->out) return cli_bad_input("%s: the name is too long", job->request->out);
    strcpy(f->out, job->request->out);
    while (length > 1 && f->out[length - 1] == '/') f->out[--length] = 0;
    f->digits = snprintf(NULL, 0, "%llu", (unsigned long long)psld_data_count(job->data) - 1);
    if (f->digits < DIGITS) f->digits = DIGITS;
    f->has_class = calloc(psld_data_classes(job->data) + 1, 1);
    if (!f->has_class) return cli_bad_input("out of memory");
    psld_status status = check_out(f->out);
    return status == PSLD_OK ? make_subfolder(f) : status;
}

/* ---- Pictures ---------------------------------------------------------------------------------------------------- */

/* The name of a class comes from a file and becomes that of a folder: it must be a valid name, and one that is not left
 * out when the data are read again. */
static psld_status make_class_folder(const data_job *job, folder *f, int32_t label, char path[CLI_PATH])
{
    const char *name = label < 0 ? "" : psld_data_class(job->data, (size_t)label);
    if (label >= 0 && (!*name || *name == '.' || strchr(name, '/') || strlen(name) > 255))
        return cli_bad_input("%s: the class \"%.60s\" cannot be the name of a folder; write .npz", job->request->path,
                             name);
    if (snprintf(path, CLI_PATH, "%s%s%s", f->part, *name ? "/" : "", name) >= CLI_PATH - 64)
        return cli_bad_input("%s: the name is too long", f->out);
    if (label < 0 || f->has_class[label]) return PSLD_OK;
    f->has_class[label] = 1;
    return mkdir(path, 0777) == 0 ? PSLD_OK : cli_bad_input("%s: cannot make this folder: %s", path, strerror(errno));
}

/* Nobody uses the folder yet: its files are synced to the disk once, all together. */
static psld_status write_folder_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wbx");
    if (file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0) return PSLD_OK;
    return cli_bad_input("%s: cannot write: %s", path, strerror(errno));
}

static psld_status save_picture(const data_job *job, folder *f, uint64_t index, int32_t label, unsigned char *pixels)
{
    char path[CLI_PATH];
    psld_array one = {.type = PSLD_U8, .rank = 3, .count = job->dim, .data = pixels};
    memcpy(one.shape, job->shape, 3 * sizeof *one.shape);
    psld_status status = make_class_folder(job, f, label, path);
    if (status != PSLD_OK) return status;
    size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "/%0*llu.png", f->digits, (unsigned long long)index);
    void *bytes = NULL;
    size_t size = 0;
    status = psld_image_encode(&one, &bytes, &size);
    if (status == PSLD_OK) status = write_folder_file(path, bytes, size);
    psld_bytes_free(bytes);
    return status;
}

static psld_status fill_folder(data_job *job, folder *f, uint64_t *written)
{
    uint64_t index[BATCH];
    int32_t label[BATCH];
    size_t got = 1;
    unsigned char *pixels = malloc(BATCH * job->dim);
    psld_status status = pixels ? PSLD_OK : cli_bad_input("out of memory");
    while (status == PSLD_OK && got > 0) {
        status = data_next(job, BATCH, 0, index, label, pixels, &got);
        for (size_t i = 0; status == PSLD_OK && i < got; i++) {
            status = save_picture(job, f, index[i], label[i], pixels + i * job->dim);
            *written += status == PSLD_OK;
        }
    }
    free(pixels);
    if (status == PSLD_OK && *written == 0) return cli_bad_input("%s: no images to write", job->request->path);
    return status;
}

psld_status data_write_folder(data_job *job, uint64_t *written)
{
    folder f = {0};
    *written = 0;
    psld_status status = begin_folder(job, &f);
    if (status == PSLD_OK) status = fill_folder(job, &f, written);
    if (status == PSLD_OK) sync();
    if (status == PSLD_OK && rename(f.part, f.out) != 0)
        status = cli_bad_input("%s: cannot be renamed from %s: %s", f.out, f.part, strerror(errno));
    if (status != PSLD_OK && f.part[0]) remove_in(AT_FDCWD, f.part, 1);
    free(f.has_class);
    return status;
}
