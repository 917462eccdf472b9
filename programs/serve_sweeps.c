/* Results of sweeps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve_runs.h"

enum { LARGEST = 64 << 20, MOST_ROWS = 20000 };

/* The rows of results.jsonl; NULL: there is none. Lines that were cut short are left out. */
static json_t *rows_of(const char *path, serve_found *found)
{
    char inner[SERVE_URL_SIZE + 16], *text;
    size_t size;
    snprintf(inner, sizeof inner, "%s/results.jsonl", path);
    *found = serve_folder_read(serve.folder, inner, LARGEST, &text, &size);
    if (*found != SERVE_FOUND) return NULL;
    json_t *rows = json_array();
    for (char *line = text; line && *line && json_array_size(rows) < MOST_ROWS;) {
        char *end = strchr(line, '\n');
        json_t *row = json_loadb(line, end ? (size_t)(end - line) : strlen(line), 0, NULL);
        if (json_is_object(row) && json_is_string(json_object_get(row, "sampler"))) {
            json_object_del(row, "key");
            json_array_append(rows, row);
        }
        json_decref(row);
        line = end ? end + 1 : NULL;
    }
    free(text);
    return rows;
}

/* The numbers that rows have beside those that say what was measured. */
static json_t *metrics_of(const json_t *rows)
{
    static const char *const others[] = {"nfe", "seed", "number", "seconds", "tolerance", "images"};
    json_t *names = json_array(), *seen = json_object(), *row, *value;
    const char *key;
    size_t i;
    json_array_foreach(rows, i, row) json_object_foreach(row, key, value)
    {
        int is_metric = json_is_number(value) && !json_object_get(seen, key);
        for (size_t j = 0; j < sizeof others / sizeof *others; j++) is_metric &= strcmp(key, others[j]) != 0;
        if (!is_metric) continue;
        json_object_set_new(seen, key, json_true());
        json_array_append_new(names, json_string(key));
    }
    json_decref(seen);
    return names;
}

enum MHD_Result serve_sweeps_list(serve_request *request)
{
    json_t *found = serve_files_of_kind("sweep"), *list = json_array(), *file;
    size_t i;
    serve_found unused;
    json_array_foreach(found, i, file)
    {
        const char *path = json_string_value(json_object_get(file, "path"));
        json_t *rows = rows_of(path, &unused);
        json_array_append_new(list, json_pack("{s:s, s:i, s:O}", "path", path, "rows", (int)json_array_size(rows),
                                              "modified", json_object_get(file, "modified")));
        json_decref(rows);
    }
    json_decref(found);
    return serve_answer_json(request, 200, json_pack("{s:o}", "sweeps", list));
}

enum MHD_Result serve_sweep_get(serve_request *request)
{
    serve_found found;
    const char *path = serve_url_get(&request->url, "path");
    if (!path) return serve_refuse(request, 400, "expected path=P");
    json_t *rows = rows_of(path, &found);
    if (!rows) return serve_refuse(request, serve_http_status(found), "%s: %s", path, serve_found_text(found));
    return serve_answer_json(request, 200,
                             json_pack("{s:s, s:o, s:o}", "path", path, "metrics", metrics_of(rows), "rows", rows));
}
