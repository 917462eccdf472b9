/* Into the folder: a recipe, an array of a job, or a thing that only the server has. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve.h"
#include "serve_jobs.h"

static psld_status recipe_bytes(const json_t *given, serve_files *files, void **bytes, size_t *size)
{
    psld_recipe *recipe;
    psld_status status = serve_recipe_open(given, files, &recipe);
    if (status != PSLD_OK) return status;
    *bytes = serve_recipe_yaml(recipe);
    *size = *bytes ? strlen(*bytes) : 0;
    psld_recipe_free(recipe);
    return *bytes ? PSLD_OK : PSLD_NO_MEMORY;
}

static enum MHD_Result write_bytes(serve_request *request, const char *path, const void *bytes, size_t size)
{
    int replace = json_is_true(json_object_get(request->json, "replace"));
    serve_found found = serve_folder_write(serve.folder, path, bytes, size, replace);
    if (found != SERVE_FOUND)
        return serve_refuse(request, serve_http_status(found), "%s: %s", path, serve_found_text(found));
    return serve_answer_json(request, 200, json_pack("{s:s, s:I}", "path", path, "bytes", (json_int_t)size));
}

static enum MHD_Result save_recipe(serve_request *request, const char *path, const json_t *recipe)
{
    serve_files files = {0};
    void *bytes = NULL;
    size_t size = 0;
    cli_listener listener = {.progress = NULL};
    if (!cli_ends_in(path, ".yaml")) return serve_refuse(request, 400, "path: expected a name that ends in .yaml");
    cli_listen(&listener);
    psld_status status = recipe_bytes(recipe, &files, &bytes, &size);
    if (status != PSLD_OK) cli_failed(status);
    enum MHD_Result result =
        status == PSLD_OK ? write_bytes(request, path, bytes, size) : serve_refuse_status(request, status, &files);
    cli_listen(NULL);
    serve_files_close(&files);
    free(bytes);
    return result;
}

static enum MHD_Result save_array(serve_request *request, const char *path, const char *number, const char *name)
{
    void *bytes = NULL;
    size_t size = 0;
    int is_sheet = cli_ends_in(path, ".png");
    cli_listener listener = {.progress = NULL};
    if (!is_sheet && !cli_ends_in(path, ".npy"))
        return serve_refuse(request, 400, "path: expected a name that ends in .npy or .png");
    serve_job *job = serve_job_find(number);
    psld_array *part = job ? serve_job_part(job, name, 0, SIZE_MAX) : NULL;
    serve_job_release(job);
    if (!part) return serve_refuse(request, 404, "there is no finished job %.40s with an array %.60s", number, name);
    cli_listen(&listener);
    psld_status status =
        is_sheet ? serve_sheet_encode(part, 0, 1, &bytes, &size) : psld_array_encode(part, &bytes, &size);
    if (status != PSLD_OK) cli_failed(status);
    enum MHD_Result result =
        status == PSLD_OK ? write_bytes(request, path, bytes, size) : serve_refuse_status(request, status, NULL);
    cli_listen(NULL);
    psld_bytes_free(bytes);
    psld_array_free(part);
    return result;
}

/* The ending of a name by the first bytes; an item of a job is a .npy. */
static const char *ending_of(const unsigned char *bytes, size_t size)
{
    static const struct {
        const char *begin, *ending;
    } kinds[] = {{"\x93NUMPY", ".npy"}, {"\x89PNG", ".png"}, {"\xff\xd8", ".jpg"}, {"RIFF", ".webp"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].begin);
        if (size >= length && memcmp(bytes, kinds[i].begin, length) == 0) return kinds[i].ending;
    }
    return NULL;
}

static enum MHD_Result save_open_file(serve_request *request, const char *path, int fd)
{
    struct stat about;
    if (fstat(fd, &about) != 0 || about.st_size < 1) return serve_refuse(request, 500, "the thing cannot be read");
    size_t size = (size_t)about.st_size;
    unsigned char *bytes = malloc(size);
    int whole = bytes && pread(fd, bytes, size, 0) == (ssize_t)size;
    const char *ending = whole ? ending_of(bytes, size) : NULL;
    enum MHD_Result result =
        !whole ? serve_refuse(request, 500, "the thing cannot be read")
        : !ending || !cli_ends_in(path, ending)
            ? serve_refuse(request, 400, "path: expected a name that ends in %s", ending ? ending : "what it is")
            : write_bytes(request, path, bytes, size);
    free(bytes);
    return result;
}

/* So that a command line which names it can be used by others. */
static enum MHD_Result save_thing(serve_request *request, const char *path, const char *thing)
{
    serve_files files = {0};
    const char *opened;
    cli_listener listener = {.progress = NULL};
    if (strncmp(thing, "job:", 4) != 0 && strncmp(thing, "upload:", 7) != 0)
        return serve_refuse(request, 400, "thing: expected job:ID/ARRAY/I or upload:N");
    cli_listen(&listener);
    psld_status status = serve_thing_open(&files, thing, &opened);
    if (status != PSLD_OK) cli_failed(status);
    enum MHD_Result result = status == PSLD_OK ? save_open_file(request, path, files.opened[0].fd)
                                               : serve_refuse_status(request, status, &files);
    cli_listen(NULL);
    serve_files_close(&files);
    return result;
}

enum MHD_Result serve_save(serve_request *request)
{
    static const char *const keys[] = {"path", "recipe", "job", "array", "thing", "replace", NULL};
    const json_t *body = request->json, *recipe = json_object_get(body, "recipe");
    const char *path = json_string_value(json_object_get(body, "path"));
    const char *job = json_string_value(json_object_get(body, "job"));
    const char *array = json_string_value(json_object_get(body, "array")), *unknown = serve_json_unknown(body, keys);
    const char *thing = json_string_value(json_object_get(body, "thing"));
    if (unknown) return serve_refuse(request, 400, "unknown key \"%.60s\"", unknown);
    if (!path) return serve_refuse(request, 400, "path: expected a text");
    if (recipe && !job && !array && !thing) return save_recipe(request, path, recipe);
    if (!recipe && job && array && !thing) return save_array(request, path, job, array);
    if (!recipe && !job && !array && thing) return save_thing(request, path, thing);
    return serve_refuse(request, 400, "expected one of recipe, job with array, and thing");
}
