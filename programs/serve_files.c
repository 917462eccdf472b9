/* The files of the folder: the list, and their bytes. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve_runs.h"

enum { DEPTH = 6, MOST = 10000, HEAD = 1 << 16, MANY_PICTURES = 24 };

/* ---- Kinds of files ---------------------------------------------------------------------------------------------- */

/* Whether a text has a line that begins with the key. */
static int has_key(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':') return 1;
    return 0;
}

/* The first bytes of a file as a text. */
static size_t read_head(int fd, char head[HEAD])
{
    ssize_t got = pread(fd, head, HEAD - 1, 0);
    head[got > 0 ? got : 0] = 0;
    return got > 0 ? (size_t)got : 0;
}

static const char *kind_of_yaml(int fd, char head[HEAD])
{
    read_head(fd, head);
    if (has_key(head, "mixture")) return "model";
    if (has_key(head, "D") || has_key(head, "drift") || has_key(head, "preset")) return "recipe";
    if (has_key(head, "samplers") || has_key(head, "models")) return "other";
    return has_key(head, "model") || has_key(head, "data") || has_key(head, "train") ? "config" : "other";
}

/* Its first bytes as a text to search in. */
static const char *read_text(int fd, char head[HEAD])
{
    size_t size = read_head(fd, head);
    for (size_t i = 0; i < size; i++)
        if (!head[i]) head[i] = ' ';
    return head;
}

/* The configuration is in the header, as JSON. */
static const char *kind_of_weights(int fd, char head[HEAD])
{
    return strstr(read_text(fd, head), "loss: cross_entropy") ? "classifier" : "model";
}

/* A pickle of a network as an object; those of data are none. */
static const char *kind_of_pickle(int fd, char head[HEAD])
{
    return strstr(read_text(fd, head), "torch_utils.persistence") ? "model" : "other";
}

static const char *kind_of_file(const char *name, int fd)
{
    char *head = malloc(HEAD);
    const char *kind = "other";
    if (!head) return kind;
    if (cli_ends_in(name, ".yaml|.yml")) kind = kind_of_yaml(fd, head);
    if (cli_ends_in(name, ".safetensors")) kind = kind_of_weights(fd, head);
    if (cli_ends_in(name, ".pkl")) kind = kind_of_pickle(fd, head);
    if (cli_ends_in(name, ".png|.jpg|.jpeg|.webp|.PNG|.JPG|.JPEG")) kind = "picture";
    if (cli_ends_in(name, ".npy")) kind = "array";
    if (cli_ends_in(name, ".tar|.tar.gz|.tgz|.zip|.npz|-ubyte|-ubyte.gz")) kind = "data";
    free(head);
    return kind;
}

static int has_file(int folder, const char *name)
{
    return faccessat(folder, name, F_OK, 0) == 0;
}

/* NULL: a folder to look into. */
static const char *kind_of_folder(int fd)
{
    if (has_file(fd, "config.yaml") && (has_file(fd, "log.jsonl") || has_file(fd, "checkpoints"))) return "run";
    return has_file(fd, "results.jsonl") ? "sweep" : NULL;
}

/* ---- The list ---------------------------------------------------------------------------------------------------- */

typedef struct listing {
    json_t *files;
    const char *kind; /* only these; NULL: all */
    size_t count;
    int cut;
} listing;

static void list_file(listing *list, const char *path, const char *kind, const struct stat *about, int shipped)
{
    if (list->kind && strcmp(list->kind, kind) != 0) return;
    json_t *row = json_pack("{s:s, s:s, s:b}", "path", path, "kind", kind, "shipped", shipped);
    if (!row) return; /* a name that is not UTF-8 cannot be requested */
    json_object_set_new(row, "bytes", json_integer(S_ISREG(about->st_mode) ? (json_int_t)about->st_size : 0));
    json_object_set_new(row, "modified", json_integer((json_int_t)about->st_mtime));
    json_array_append_new(list->files, row);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder, in order; how many of them are pictures. */
static char **names_in(int fd, size_t *count, size_t *pictures)
{
    char **names = NULL;
    size_t room = 0;
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = own >= 0 ? fdopendir(own) : NULL;
    *count = *pictures = 0;
    for (struct dirent *entry; folder && *count < MOST && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        if (*count == room) {
            char **more = realloc(names, (room = 2 * room + 64) * sizeof *names);
            if (!more) break;
            names = more;
        }
        names[*count] = strdup(entry->d_name);
        if (!names[*count]) break;
        *pictures += (size_t)cli_ends_in(entry->d_name, ".png|.jpg|.jpeg|.webp|.PNG|.JPG|.JPEG");
        ++*count;
    }
    if (folder) closedir(folder);
    if (*count) qsort(names, *count, sizeof *names, compare_names);
    return names;
}

static void list_folder(listing *list, int fd, const char *path, int depth);

static void list_entry(listing *list, const char *path, int depth)
{
    int fd;
    struct stat about;
    if (list->count++ >= MOST) {
        list->cut = 1;
        return;
    }
    if (serve_folder_find(serve.folder, path, 0, &fd) != SERVE_FOUND) return;
    const char *slash = strrchr(path, '/');
    if (fstat(fd, &about) == 0) {
        int is_folder = S_ISDIR(about.st_mode);
        const char *kind = is_folder ? kind_of_folder(fd) : kind_of_file(slash ? slash + 1 : path, fd);
        if (kind) list_file(list, path, kind, &about, 0);
        if (!kind && depth < DEPTH) list_folder(list, fd, path, depth + 1);
        list->cut |= !kind && depth == DEPTH;
    }
    close(fd);
}

static void list_folder(listing *list, int fd, const char *path, int depth)
{
    size_t count, pictures;
    struct stat about;
    char **names = names_in(fd, &count, &pictures), inner[SERVE_URL_SIZE];
    int is_data = depth > 0 && pictures >= MANY_PICTURES;
    if (is_data && fstat(fd, &about) == 0) list_file(list, path, "data", &about, 0);
    for (size_t i = 0; i < count; i++) {
        int fits = snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "/" : "", names[i]) < (int)sizeof inner;
        if (!is_data && fits) list_entry(list, inner, depth);
        free(names[i]);
    }
    list->cut |= count == MOST;
    free(names);
}

static void list_shipped(listing *list, const char *name)
{
    char path[512];
    int fd;
    struct stat about;
    snprintf(path, sizeof path, "shipped:%s", name);
    if (serve_folder_find(serve.folder, path, S_IFREG, &fd) != SERVE_FOUND) return;
    if (fstat(fd, &about) == 0) list_file(list, path, kind_of_file(name, fd), &about, 1);
    close(fd);
}

static void list_config(void *user, const char *name, const char *path)
{
    char whole[512];
    (void)path;
    snprintf(whole, sizeof whole, "%s.yaml", name);
    if (!strchr(name, '/')) list_shipped(user, whole);
}

static void list_all(listing *list)
{
    int fd = open(serve_folder_path(serve.folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    list_folder(list, fd, "", 0);
    close(fd);
}

json_t *serve_files_of_kind(const char *kind)
{
    listing list = {.files = json_array(), .kind = kind};
    list_all(&list);
    return list.files;
}

enum MHD_Result serve_files_list(serve_request *request)
{
    listing list = {.files = json_array(), .kind = serve_url_get(&request->url, "kind")};
    list_shipped(&list, "digits.safetensors");
    list_shipped(&list, "digits-classifier.safetensors");
    cli_each_config(list_config, &list);
    list_all(&list);
    return serve_answer_json(request, 200, json_pack("{s:o, s:b}", "files", list.files, "cut", list.cut));
}

/* ---- The bytes --------------------------------------------------------------------------------------------------- */

/* Never a type that a browser would run. */
static const char *type_of_file(const char *path)
{
    static const char *const types[][2] = {{".png", "image/png"},   {".jpg", "image/jpeg"},  {".jpeg", "image/jpeg"},
                                           {".webp", "image/webp"}, {".yaml", "text/plain"}, {".yml", "text/plain"},
                                           {".jsonl", "text/plain"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (cli_ends_in(path, types[i][0])) return types[i][1];
    return "application/octet-stream";
}

enum MHD_Result serve_file_get(serve_request *request)
{
    int fd;
    const char *path = serve_url_get(&request->url, "path");
    if (!path) return serve_refuse(request, 400, "expected path=P");
    serve_found found = serve_folder_find(serve.folder, path, S_IFREG, &fd);
    if (found != SERVE_FOUND)
        return serve_refuse(request, serve_http_status(found), "%s: %s", path, serve_found_text(found));
    const char *slash = strrchr(path, '/');
    return serve_answer_file(request, fd, type_of_file(path),
                             serve_url_get(&request->url, "download") ? (slash ? slash + 1 : path) : NULL);
}
