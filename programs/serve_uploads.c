#define _GNU_SOURCE /* memfd_create */
#include "serve_uploads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve.h"

typedef struct upload {
    unsigned long number; /* 0: none */
    int fd;
    size_t size;
} upload;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static upload all[SERVE_UPLOADS];
static unsigned long last_number;

static upload *find_upload(unsigned long number)
{
    upload *u = &all[number % SERVE_UPLOADS]; /* the oldest makes room */
    return number && u->number == number ? u : NULL;
}

static void drop_upload(upload *u)
{
    if (u->number) close(u->fd);
    *u = (upload){0};
}

static unsigned long keep_upload(int fd, size_t size)
{
    pthread_mutex_lock(&lock);
    unsigned long number = ++last_number;
    drop_upload(&all[number % SERVE_UPLOADS]);
    all[number % SERVE_UPLOADS] = (upload){number, fd, size};
    pthread_mutex_unlock(&lock);
    return number;
}

int serve_upload_open(unsigned long number)
{
    char path[64];
    pthread_mutex_lock(&lock);
    const upload *u = find_upload(number);
    if (u) snprintf(path, sizeof path, "/proc/self/fd/%d", u->fd);
    int fd = u ? open(path, O_RDONLY | O_CLOEXEC) : -1; /* with a position of its own */
    pthread_mutex_unlock(&lock);
    return fd;
}

void serve_uploads_free(void)
{
    for (size_t i = 0; i < SERVE_UPLOADS; i++) drop_upload(&all[i]);
}

/* ---- What it is -------------------------------------------------------------------------------------------------- */

static json_t *shape_as_json(int rank, const size_t *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(list, json_integer((json_int_t)shape[i]));
    return list;
}

/* A picture or array of a size that is taken: its description. NULL: what is wrong is in `why`. */
static json_t *upload_describe(const char *path, size_t size, const char *name, char *why, size_t room)
{
    const char *format;
    size_t shape[PSLD_MAX_RANK] = {0};
    psld_array array = {0};
    if (psld_array_inspect(path, &array) == PSLD_OK)
        return json_pack("{s:s, s:s, s:o, s:s}", "kind", "array", "format", "NPY", "shape",
                         shape_as_json(array.rank, array.shape), "name", name);
    if (psld_image_inspect(path, &format, shape) != PSLD_OK || size == 0) {
        snprintf(why, room, "expected a PNG, JPEG or WebP picture, or a .npy array: %s", psld_error_text());
        return NULL;
    }
    if (shape[1] * shape[2] > SERVE_UPLOAD_PIXELS) {
        snprintf(why, room, "the picture has %zu x %zu pixels, at most %d are taken", shape[2], shape[1],
                 SERVE_UPLOAD_PIXELS);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:o, s:s}", "kind", "picture", "format", format, "shape", shape_as_json(3, shape),
                     "name", name);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static int upload_store(const serve_request *request)
{
    int fd = memfd_create("psld upload", MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < request->body_size) {
        ssize_t wrote = write(fd, request->body + done, request->body_size - done);
        if (wrote <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)wrote;
    }
    return fd;
}

enum MHD_Result serve_uploads_post(serve_request *request)
{
    char path[64], why[1024], thing[64], plain[1024];
    const char *name = serve_url_get(&request->url, "name");
    int fd = upload_store(request);
    if (fd < 0) return serve_refuse(request, 500, "no memory for the upload");
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), fd);
    serve_files files = {.count = 1, .opened = {{.fd = fd, .name = "the upload"}}};
    snprintf(files.opened[0].path, SERVE_FD_PATH, "%.40s", path);
    json_t *about = upload_describe(path, request->body_size, name ? name : "", why, sizeof why);
    if (!about) {
        close(fd);
        int large = strstr(why, "at most") != NULL || strstr(why, "pixels") != NULL;
        return serve_refuse(request, large ? 413 : 422, "%s", serve_files_rename(&files, why, plain, sizeof plain));
    }
    unsigned long number = keep_upload(fd, request->body_size);
    snprintf(thing, sizeof thing, "upload:%lu", number);
    json_object_set_new(about, "id", json_integer((json_int_t)number));
    json_object_set_new(about, "thing", json_string(thing));
    return serve_answer_json(request, 200, about);
}

static int number_of(const serve_request *request, unsigned long *number)
{
    char *end;
    const char *text = request->url.segments[2];
    *number = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end;
}

enum MHD_Result serve_uploads_get(serve_request *request)
{
    unsigned long number;
    int fd = number_of(request, &number) ? serve_upload_open(number) : -1;
    if (fd < 0) return serve_refuse(request, 404, "there is no upload %.40s", request->url.segments[2]);
    unsigned char head[4] = {0};
    (void)!pread(fd, head, sizeof head, 0);
    const char *type = head[0] == 0x89   ? "image/png"
                       : head[0] == 0xff ? "image/jpeg"
                       : head[0] == 'R'  ? "image/webp"
                                         : "application/octet-stream";
    return serve_answer_file(request, fd, type, NULL);
}

enum MHD_Result serve_uploads_delete(serve_request *request)
{
    unsigned long number;
    int found = 0;
    if (number_of(request, &number)) {
        pthread_mutex_lock(&lock);
        upload *u = find_upload(number);
        found = u != NULL;
        if (u) drop_upload(u);
        pthread_mutex_unlock(&lock);
    }
    if (!found) return serve_refuse(request, 404, "there is no upload %.40s", request->url.segments[2]);
    return serve_answer_json(request, 200, json_object());
}
