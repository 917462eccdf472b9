/* Into the folder: a recipe, or an array of a job. */
#include <stdlib.h>
#include <string.h>

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

enum MHD_Result serve_save(serve_request *request)
{
    static const char *const keys[] = {"path", "recipe", "job", "array", "replace", NULL};
    const json_t *body = request->json, *recipe = json_object_get(body, "recipe");
    const char *path = json_string_value(json_object_get(body, "path"));
    const char *job = json_string_value(json_object_get(body, "job"));
    const char *array = json_string_value(json_object_get(body, "array")), *unknown = serve_json_unknown(body, keys);
    if (unknown) return serve_refuse(request, 400, "unknown key \"%.60s\"", unknown);
    if (!path) return serve_refuse(request, 400, "path: expected a text");
    if (recipe && !job && !array) return save_recipe(request, path, recipe);
    if (!recipe && job && array) return save_array(request, path, job, array);
    return serve_refuse(request, 400, "expected either recipe, or job and array");
}
