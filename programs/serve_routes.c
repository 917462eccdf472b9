/* What can be asked for. docs/reference/serve.md describes each. */
#include <string.h>

#include "serve.h"

static const serve_route routes[] = {
    {"GET", "api/about", serve_about, SERVE_NO_BODY},
    {"GET", "api/recipe", serve_recipe_get, SERVE_NO_BODY},
    {"POST", "api/recipe", serve_recipe_post, SERVE_JSON_BODY},
    {"GET", "api/files", serve_files_list, SERVE_NO_BODY},
    {"GET", "api/file", serve_file_get, SERVE_NO_BODY},
    {"GET", "api/model", serve_model_get, SERVE_NO_BODY},
    {"POST", "api/save", serve_save, SERVE_JSON_BODY},
    {"POST", "api/uploads", serve_uploads_post, SERVE_BYTES_BODY},
    {"GET", "api/uploads/*", serve_uploads_get, SERVE_NO_BODY},
    {"DELETE", "api/uploads/*", serve_uploads_delete, SERVE_NO_BODY},
    {"POST", "api/jobs", serve_jobs_post, SERVE_JSON_BODY},
    {"GET", "api/jobs", serve_jobs_list, SERVE_NO_BODY},
    {"GET", "api/jobs/*", serve_jobs_get, SERVE_NO_BODY},
    {"DELETE", "api/jobs/*", serve_jobs_delete, SERVE_NO_BODY},
    {"GET", "api/jobs/*/events", serve_jobs_events, SERVE_NO_BODY},
    {"GET", "api/jobs/*/*", serve_jobs_array, SERVE_NO_BODY},
    {"GET", "api/runs", serve_runs_list, SERVE_NO_BODY},
    {"POST", "api/runs", serve_runs_post, SERVE_JSON_BODY},
    {"GET", "api/run", serve_run_get, SERVE_NO_BODY},
    {"GET", "api/run/log", serve_run_log, SERVE_NO_BODY},
    {"GET", "api/run/events", serve_run_events, SERVE_NO_BODY},
    {"POST", "api/run/resume", serve_run_resume, SERVE_JSON_BODY},
    {"POST", "api/run/stop", serve_run_stop, SERVE_JSON_BODY},
    {"GET", "api/sweeps", serve_sweeps_list, SERVE_NO_BODY},
    {"GET", "api/sweep", serve_sweep_get, SERVE_NO_BODY},
    {"GET", "", serve_page, SERVE_NO_BODY},
    {"GET", "*", serve_page, SERVE_NO_BODY},
};

static int matches(const char *pattern, const serve_url *url)
{
    size_t i = 0;
    for (; *pattern; i++) {
        size_t length = strcspn(pattern, "/");
        if (i == url->segment_count) return 0;
        int any = length == 1 && *pattern == '*';
        if (!any && (strlen(url->segments[i]) != length || strncmp(url->segments[i], pattern, length) != 0)) return 0;
        pattern += length + (pattern[length] == '/');
    }
    return i == url->segment_count;
}

const serve_route *serve_route_find(const serve_url *url, const char *method, unsigned *status)
{
    if (strcmp(method, "HEAD") == 0) method = "GET";
    *status = 404;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (!matches(routes[i].path, url)) continue;
        if (strcmp(routes[i].method, method) == 0) return &routes[i];
        *status = 405;
    }
    return NULL;
}
