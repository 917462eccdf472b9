/* Runs: the contents of their folders. */
#include "serve_runs.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve_server.h"

enum { MOST_POINTS = 20000, CONFIG = 1 << 20, CACHED = 64 };

/* ---- Contents of a folder ---------------------------------------------------------------------------------------- */

/* Reading a long log takes time, so results are kept for a while. */
typedef struct cached {
    char path[1024];
    psld_run_info info;
    double until;
    off_t size; /* of the log */
} cached;

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static cached cache[CACHED];

static size_t slot_of(const char *path)
{
    size_t hash = 5381;
    while (*path) hash = hash * 33 + (unsigned char)*path++;
    return hash % CACHED;
}

static off_t log_size(int fd)
{
    struct stat about;
    return fstatat(fd, "log.jsonl", &about, AT_SYMLINK_NOFOLLOW) == 0 ? about.st_size : 0;
}

/* `fd` is the folder. */
psld_status serve_run_inspect(const char *path, int fd, psld_run_info *info)
{
    char folder[SERVE_FD_PATH];
    off_t size = log_size(fd);
    cached *c = &cache[slot_of(path)];
    pthread_mutex_lock(&cache_lock);
    int found = strcmp(c->path, path) == 0 && cli_seconds() < c->until;
    if (found) *info = c->info;
    pthread_mutex_unlock(&cache_lock);
    if (found) return PSLD_OK;
    snprintf(folder, sizeof folder, "/proc/%ld/fd/%d", (long)getpid(), fd);
    *info = (psld_run_info)PSLD_RUN_INFO_EMPTY;
    psld_status status = psld_run_inspect(folder, info);
    if (status != PSLD_OK || strlen(path) >= sizeof c->path) return status;
    pthread_mutex_lock(&cache_lock);
    strcpy(c->path, path);
    c->info = *info;
    c->until = cli_seconds() + 0.3 + 2e-6 * (double)size;
    pthread_mutex_unlock(&cache_lock);
    return PSLD_OK;
}

void serve_run_forget(const char *path)
{
    pthread_mutex_lock(&cache_lock);
    cache[slot_of(path)].path[0] = 0;
    pthread_mutex_unlock(&cache_lock);
}

/* The last line that is not empty. */
const char *serve_run_last_line(char *output)
{
    for (size_t length = strlen(output); length > 0 && strchr("\n ", output[length - 1]); length--)
        output[length - 1] = 0;
    const char *line = strrchr(output, '\n');
    line = line ? line + 1 : output;
    return strncmp(line, "psld: ", 6) == 0 ? line + 6 : line;
}

static json_t *info_as_json(const char *path, const psld_run_info *info)
{
    double each = info->step ? info->seconds / (double)info->step : (double)NAN;
    json_t *run = json_object();
    json_object_set_new(run, "path", json_string(path));
    json_object_set_new(run, "step", json_integer((json_int_t)info->step));
    json_object_set_new(run, "steps", json_integer((json_int_t)info->steps));
    json_object_set_new(run, "saved", json_integer((json_int_t)info->saved));
    json_object_set_new(run, "checkpoints", json_integer((json_int_t)info->checkpoints));
    json_object_set_new(run, "loss", cli_json_number(info->loss));
    json_object_set_new(run, "held_out", cli_json_number(info->held_out));
    json_object_set_new(run, "accuracy", cli_json_number(info->accuracy));
    json_object_set_new(run, "seconds", cli_json_number(info->seconds));
    json_object_set_new(run, "running", json_boolean(info->running));
    json_object_set_new(run, "classifier", json_boolean(info->classifier));
    json_object_set_new(run, "left",
                        cli_json_number(info->step <= info->steps ? each * (double)(info->steps - info->step) : 0));
    return run;
}

/* Adds the state of a process that this server has started. */
static void put_process(json_t *run, const char *path)
{
    char output[SERVE_OUTPUT];
    serve_run_state state = serve_run_process(path, output);
    if (state == SERVE_RUN_WORKS) json_object_set_new(run, "running", json_true());
    json_object_set_new(run, "ours", json_boolean(state == SERVE_RUN_WORKS));
    json_object_set_new(run, "error",
                        state == SERVE_RUN_FAILED ? json_string(serve_run_last_line(output)) : json_null());
}

json_t *serve_run_json(const char *path)
{
    int fd;
    struct stat about;
    psld_run_info info = PSLD_RUN_INFO_EMPTY;
    char output[SERVE_OUTPUT];
    serve_found found = serve_folder_find(serve.folder, path, S_IFDIR, &fd);
    int has_run = found == SERVE_FOUND && serve_run_inspect(path, fd, &info) == PSLD_OK;
    if (!has_run && serve_run_process(path, output) == SERVE_RUN_NONE) {
        if (found == SERVE_FOUND) close(fd);
        return NULL;
    }
    json_t *run;
    if (has_run) {
        run = info_as_json(path, &info);
        json_object_set_new(run, "has_model", json_boolean(faccessat(fd, "model.safetensors", F_OK, 0) == 0));
        int logged = fstatat(fd, "log.jsonl", &about, AT_SYMLINK_NOFOLLOW) == 0 || fstat(fd, &about) == 0;
        json_object_set_new(run, "modified", json_integer(logged ? (json_int_t)about.st_mtime : 0));
    } else {
        info.loss = info.held_out = info.accuracy = (double)NAN;
        run = info_as_json(path, &info);
        json_object_set_new(run, "has_model", json_false());
        json_object_set_new(run, "modified", json_integer((json_int_t)time(NULL)));
    }
    put_process(run, path);
    if (found == SERVE_FOUND) close(fd);
    return run;
}

typedef struct sample {
    long step;
    char name[64];
} sample;

static int compare_steps(const void *a, const void *b)
{
    long x = ((const sample *)a)->step, y = ((const sample *)b)->step;
    return (x > y) - (x < y);
}

/* The pictures in a folder: "step-000000500.png". */
static sample *samples_in(DIR *folder, size_t *count)
{
    sample *all = NULL, *more;
    char end[8];
    *count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        sample s;
        if (sscanf(entry->d_name, "step-%ld%7s", &s.step, end) != 2 || strcmp(end, ".png") != 0) continue;
        if (strlen(entry->d_name) >= sizeof s.name || !(more = realloc(all, (*count + 1) * sizeof *all))) continue;
        strcpy(s.name, entry->d_name);
        all = more;
        all[(*count)++] = s;
    }
    if (*count) qsort(all, *count, sizeof *all, compare_steps);
    return all;
}

json_t *serve_run_samples(const char *path)
{
    char folder[SERVE_URL_SIZE], name[SERVE_URL_SIZE + 128];
    int fd;
    size_t count;
    json_t *list = json_array();
    snprintf(folder, sizeof folder, "%s/samples", path);
    if (serve_folder_find(serve.folder, folder, S_IFDIR, &fd) != SERVE_FOUND) return list;
    DIR *opened = fdopendir(fd);
    if (!opened) {
        close(fd);
        return list;
    }
    sample *all = samples_in(opened, &count);
    closedir(opened);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, all[i].name);
        json_array_append_new(list, json_pack("{s:I, s:s}", "step", (json_int_t)all[i].step, "path", name));
    }
    free(all);
    return list;
}

/* config.yaml as {"train.lr": "2e-4"}: the library writes it with at most one level of indentation. */
static json_t *settings_of(const char *text)
{
    char part[128] = "", name[256];
    json_t *settings = json_object();
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        size_t indent = strspn(line, " "), length = strcspn(line, "\n"), key = strcspn(line, ":\n");
        if (line[indent] == '#' || line[key] != ':' || key <= indent) continue;
        size_t from = key + 1 + strspn(line + key + 1, " ");
        if (indent == 0) snprintf(part, sizeof part, "%.*s", (int)key, line);
        if (from >= length) continue;
        if (indent)
            snprintf(name, sizeof name, "%s.%.*s", part, (int)(key - indent), line + indent);
        else
            snprintf(name, sizeof name, "%s", part);
        json_object_set_new(settings, name, json_stringn(line + from, length - from));
    }
    return settings;
}

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

static void add_process(void *user, const char *path)
{
    json_t *list = user, *known;
    size_t i;
    json_array_foreach(list, i, known) if (strcmp(json_string_value(json_object_get(known, "path")), path) == 0) return;
    json_t *run = serve_run_json(path);
    if (run) json_array_append_new(list, run);
}

enum MHD_Result serve_runs_list(serve_request *request)
{
    json_t *found = serve_files_of_kind("run"), *list = json_array(), *file;
    size_t i;
    json_array_foreach(found, i, file)
    {
        json_t *run = serve_run_json(json_string_value(json_object_get(file, "path")));
        if (run) json_array_append_new(list, run);
    }
    json_decref(found);
    serve_run_each_process(add_process, list);
    return serve_answer_json(request, 200, json_pack("{s:o}", "runs", list));
}

/* The run that a request names: refused where there is none. */
json_t *serve_run_of(serve_request *request, const char *path, enum MHD_Result *result)
{
    int fd;
    json_t *run = NULL;
    serve_found found = SERVE_BAD_PATH;
    if (!path) {
        *result = serve_refuse(request, 400, "expected path");
        return NULL;
    }
    if (serve_path_is_plain(path)) found = serve_folder_find(serve.folder, path, S_IFDIR, &fd);
    if (found == SERVE_FOUND) close(fd);
    if (found == SERVE_FOUND || found == SERVE_NOT_THERE) run = serve_run_json(path);
    if (run) return run;
    *result = serve_refuse(request, found == SERVE_FOUND ? 404 : serve_http_status(found), "%s: %s", path,
                           found == SERVE_FOUND ? "is not a training run" : serve_found_text(found));
    return NULL;
}

enum MHD_Result serve_run_get(serve_request *request)
{
    char inner[SERVE_URL_SIZE + 16], output[SERVE_OUTPUT], *text;
    size_t size;
    enum MHD_Result result = MHD_NO;
    const char *path = serve_url_get(&request->url, "path");
    json_t *run = serve_run_of(request, path, &result);
    if (!run) return result;
    snprintf(inner, sizeof inner, "%s/config.yaml", path);
    int has_config = serve_folder_read(serve.folder, inner, CONFIG, &text, &size) == SERVE_FOUND;
    int clean = has_config;
    for (size_t i = 0; clean && i < size; i++) clean = text[i] == '\n' || (text[i] >= 0x20 && text[i] < 0x7f);
    json_object_set_new(run, "config", has_config && json_string(text) ? json_string(text) : json_null());
    json_object_set_new(run, "settings", clean ? settings_of(text) : json_object());
    json_object_set_new(run, "samples", serve_run_samples(path));
    serve_run_process(path, output);
    json_object_set_new(run, "output", json_string(output));
    free(text);
    return serve_answer_json(request, 200, run);
}

static int open_log(const char *path, int *fd)
{
    char inner[SERVE_URL_SIZE + 16];
    snprintf(inner, sizeof inner, "%s/log.jsonl", path);
    return serve_folder_find(serve.folder, inner, S_IFREG, fd) == SERVE_FOUND;
}

enum MHD_Result serve_run_log(serve_request *request)
{
    long points = 1000, after = 0, until = 1L << 50, offset = 0;
    int fd;
    enum MHD_Result result = MHD_NO;
    const char *path = serve_url_get(&request->url, "path");
    if (!serve_number(request, "points", 1, MOST_POINTS, &points) ||
        !serve_number(request, "after", 0, 1L << 50, &after) || !serve_number(request, "until", 0, 1L << 50, &until))
        return serve_refuse(request, 400, "expected whole numbers: points from 1 to %d, after and until", MOST_POINTS);
    json_t *run = serve_run_of(request, path, &result);
    if (!run) return result;
    json_decref(run);
    if (!open_log(path, &fd)) fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return serve_refuse(request, 500, "no descriptor");
    json_t *curves = serve_log_curves(fd, &offset, (double)after, (double)until, (size_t)points);
    close(fd);
    return serve_answer_json(request, 200, curves);
}

/* ---- Watching ---------------------------------------------------------------------------------------------------- */

typedef struct run_watch {
    char *path, *told; /* told: the last state of the run that was sent */
    double after, looked;
    long offset, sample;
    int phase;
} run_watch;

static char *event_of(const char *name, json_t *json)
{
    char *data = serve_json_text(json), *event = data ? serve_event(name, data) : NULL;
    free(data);
    json_decref(json);
    return event;
}

static char *run_news(run_watch *w)
{
    json_t *run = serve_run_json(w->path);
    char *text = run ? serve_json_text(run) : NULL, *event = NULL;
    if (text && (!w->told || strcmp(text, w->told) != 0)) event = serve_event("run", text);
    if (event) {
        free(w->told);
        w->told = text;
    } else {
        free(text);
    }
    json_decref(run);
    return event;
}

static char *log_news(run_watch *w)
{
    int fd;
    struct stat about;
    if (!open_log(w->path, &fd)) return NULL;
    if (fstat(fd, &about) == 0 && about.st_size < w->offset)
        w->offset = 0, w->after = 0; /* it went back to a checkpoint */
    json_t *curves = serve_log_curves(fd, &w->offset, w->after, 1e15, 1000);
    close(fd);
    if (json_array_size(json_object_get(curves, "step")) == 0) {
        json_decref(curves);
        return NULL;
    }
    w->after = json_number_value(json_object_get(curves, "last"));
    return event_of("log", curves);
}

static char *sample_news(run_watch *w)
{
    json_t *all = serve_run_samples(w->path), *newest = json_array_get(all, json_array_size(all) - 1);
    long step = newest ? (long)json_integer_value(json_object_get(newest, "step")) : -1;
    char *event = step > w->sample ? event_of("sample", json_incref(newest)) : NULL;
    if (step > w->sample) w->sample = step;
    json_decref(all);
    return event;
}

static int run_is_due(void *user)
{
    const run_watch *w = user;
    return cli_seconds() - w->looked >= 0.5;
}

static char *next_run_event(void *user, int *end)
{
    static char *(*const kinds[])(run_watch *) = {run_news, log_news, sample_news};
    run_watch *w = user;
    (void)end;
    while (w->phase < 3) {
        char *event = kinds[w->phase++](w);
        if (event) return event;
    }
    w->phase = 0;
    w->looked = cli_seconds();
    return NULL;
}

static void release_run_watch(void *user)
{
    run_watch *w = user;
    free(w->path);
    free(w->told);
    free(w);
}

enum MHD_Result serve_run_events(serve_request *request)
{
    enum MHD_Result result = MHD_NO;
    long after = 0;
    const char *path = serve_url_get(&request->url, "path");
    if (!serve_number(request, "after", 0, 1L << 50, &after))
        return serve_refuse(request, 400, "after: expected a step");
    json_t *run = serve_run_of(request, path, &result);
    if (!run) return result;
    json_decref(run);
    run_watch *w = calloc(1, sizeof *w);
    if (w) *w = (run_watch){.path = strdup(path), .after = (double)after, .sample = -1};
    if (!w || !w->path) {
        free(w);
        return serve_refuse(request, 500, "out of memory");
    }
    return serve_stream_begin(request, next_run_event, run_is_due, release_run_watch, w);
}
