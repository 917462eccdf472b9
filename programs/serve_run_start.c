/* Requests to start, stop and resume runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve_runs.h"

enum { WORDS = 100, WORD = 2048, MOST_SETTINGS = 64 };

/* ---- Starting ---------------------------------------------------------------------------------------------------- */

typedef struct words {
    const char *words[WORDS + 1];
    char texts[WORDS][WORD];
    int count;
} words;

static int add_word(words *w, const char *before, const char *word)
{
    if (w->count == WORDS) return 0;
    int fits = snprintf(w->texts[w->count], WORD, "%s%s", before, word) < WORD;
    w->words[w->count] = w->texts[w->count];
    w->count += fits;
    return fits;
}

static void add_out(words *w, const char *path)
{
    add_word(w, "", "-o");
    add_word(w, "", path);
}

/* Whether a key is one of training that names no file. */
static int may_be_set(const char *name)
{
    static const char *const files[] = {"data.path", "data.cache", "train.init", "train.metric_weights"};
    psld_key key = PSLD_KEY_EMPTY;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(name, files[i]) == 0) return 0;
    for (int i = 0; psld_training_key_info(i, &key); i++)
        if (strcmp(key.name, name) == 0) return 1;
    return strcmp(name, "process") == 0;
}

/* "train.lr=2e-4", with the value as YAML. Returns what is wrong, or NULL. */
static const char *add_setting(words *w, const char *name, const json_t *value)
{
    char before[256];
    int fits = 0;
    if (!may_be_set(name)) return "cannot be set here";
    if (strcmp(name, "process") == 0) {
        serve_files files = {0};
        psld_recipe *recipe;
        psld_status status = serve_recipe_open(value, &files, &recipe);
        psld_recipe_free(recipe);
        serve_files_close(&files);
        if (status != PSLD_OK) return "is not a valid recipe: check it in the process lab";
    }
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : serve_json_text(value);
    snprintf(before, sizeof before, "%.200s=", name);
    if (text) fits = serve_text_is_clean(text, strlen(text)) && add_word(w, before, text);
    free(text);
    return fits ? NULL : "is too long";
}

static enum MHD_Result add_settings(serve_request *request, words *w, int *refused)
{
    const json_t *set = json_object_get(request->json, "set");
    const char *name;
    json_t *value;
    *refused = 1;
    if (set && (!json_is_object(set) || json_object_size(set) > MOST_SETTINGS))
        return serve_refuse(request, 400, "set: expected an object of at most %d keys", MOST_SETTINGS);
    json_object_foreach((json_t *)(uintptr_t)set, name, value)
    {
        const char *wrong = add_setting(w, name, value);
        if (wrong) return serve_refuse(request, 422, "set: %.100s %s", name, wrong);
    }
    *refused = 0;
    return MHD_YES;
}

/* A configuration or data, as the process that works in the folder will name it. */
static serve_found check_file(const char *name, mode_t want, char path[WORD])
{
    int fd;
    serve_found found = serve_folder_find(serve.folder, name, want, &fd);
    if (found == SERVE_FOUND) close(fd);
    serve_folder_user_path(name, path, WORD);
    return found;
}

static enum MHD_Result add_sources(serve_request *request, words *w, int *refused)
{
    char path[WORD];
    const char *config = json_string_value(json_object_get(request->json, "config"));
    const char *data = json_string_value(json_object_get(request->json, "data"));
    const char *time = json_string_value(json_object_get(request->json, "time"));
    serve_found found = config ? check_file(config, S_IFREG, path) : SERVE_FOUND;
    *refused = 1;
    if (!config && !data) return serve_refuse(request, 400, "expected data, or config, or both");
    if (found != SERVE_FOUND)
        return serve_refuse(request, serve_http_status(found), "config: %s: %s", config, serve_found_text(found));
    if (config && !cli_ends_in(config, ".yaml|.yml"))
        return serve_refuse(request, 422, "config: expected a .yaml file");
    if (config) add_word(w, "", path);
    if (data && strncmp(data, "toy:", 4) != 0) {
        found = check_file(data, 0, path);
        if (found != SERVE_FOUND)
            return serve_refuse(request, serve_http_status(found), "data: %s: %s", data, serve_found_text(found));
        data = path;
    }
    if (data) add_word(w, "--data=", data);
    if (time) add_word(w, "--time=", time);
    *refused = 0;
    return MHD_YES;
}

static char *line_of(const words *w)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    fputs("psld train", to);
    for (int i = 0; i < w->count; i++) {
        int plain = strcspn(w->words[i], " '\"[]{}()<>|&;$*?\\~#!`") == strlen(w->words[i]);
        fprintf(to, plain ? " %s" : " '%s'", w->words[i]);
    }
    fclose(to);
    return text;
}

/* Waits until the process has a run, or has ended, so that a mistake is reported at once. */
static enum MHD_Result answer_started(serve_request *request, const char *path, const words *w)
{
    char output[SERVE_OUTPUT];
    const struct timespec pause = {.tv_nsec = 20000000};
    serve_run_state state = SERVE_RUN_WORKS;
    psld_run_info info;
    for (int i = 0; i < 100 && state == SERVE_RUN_WORKS; i++) {
        int fd, there = serve_folder_find(serve.folder, path, S_IFDIR, &fd) == SERVE_FOUND;
        serve_run_forget(path);
        int has_run = there && serve_run_inspect(path, fd, &info) == PSLD_OK && info.running;
        if (there) close(fd);
        if (has_run) break;
        nanosleep(&pause, NULL);
        state = serve_run_process(path, output);
    }
    serve_run_forget(path);
    if (state == SERVE_RUN_FAILED) return serve_refuse(request, 422, "%s", serve_run_last_line(output));
    json_t *run = serve_run_json(path);
    char *line = line_of(w);
    if (run && line) json_object_set_new(run, "command", json_string(line));
    free(line);
    return serve_answer_json(request, 202, run ? run : json_object());
}

static enum MHD_Result run_start(serve_request *request, const char *path, words *w)
{
    const char *why;
    if (serve.device) add_word(w, "--device=", serve.device);
    unsigned status = serve_run_start(path, w->words, &why);
    return status ? serve_refuse(request, status, "%s: %s", path, why) : answer_started(request, path, w);
}

enum MHD_Result serve_runs_post(serve_request *request)
{
    static const char *const keys[] = {"path", "data", "config", "set", "time", NULL};
    const char *path = json_string_value(json_object_get(request->json, "path"));
    const char *unknown = serve_json_unknown(request->json, keys);
    int fd, refused;
    if (unknown) return serve_refuse(request, 400, "unknown key \"%.60s\"", unknown);
    if (!path || !serve_path_is_plain(path) || *path == '-')
        return serve_refuse(request, path ? 403 : 400, "path: %s", serve_found_text(SERVE_BAD_PATH));
    serve_found found = serve_folder_find(serve.folder, path, 0, &fd);
    if (found == SERVE_FOUND) close(fd);
    if (found == SERVE_FOUND) return serve_refuse(request, 409, "%s: exists already", path);
    if (found == SERVE_OUTSIDE) return serve_refuse(request, 403, "%s: %s", path, serve_found_text(found));
    words *w = calloc(1, sizeof *w);
    if (!w) return serve_refuse(request, 500, "out of memory");
    enum MHD_Result result = add_sources(request, w, &refused);
    if (!refused) add_out(w, path);
    if (!refused) result = add_settings(request, w, &refused);
    if (!refused) result = run_start(request, path, w);
    free(w);
    return result;
}

/* ---- Resuming and stopping --------------------------------------------------------------------------------------- */

enum MHD_Result serve_run_resume(serve_request *request)
{
    static const char *const keys[] = {"path", "set", NULL};
    const char *path = json_string_value(json_object_get(request->json, "path"));
    const char *unknown = serve_json_unknown(request->json, keys);
    int refused;
    enum MHD_Result result = MHD_NO;
    if (unknown) return serve_refuse(request, 400, "unknown key \"%.60s\"", unknown);
    if (path) serve_run_forget(path);
    json_t *run = serve_run_of(request, path, &result);
    if (!run) return result;
    int running = json_is_true(json_object_get(run, "running"));
    json_decref(run);
    if (running) return serve_refuse(request, 409, "%s: is being trained already", path);
    words *w = calloc(1, sizeof *w);
    if (!w) return serve_refuse(request, 500, "out of memory");
    add_out(w, path);
    result = add_settings(request, w, &refused);
    if (!refused) result = run_start(request, path, w);
    free(w);
    return result;
}

enum MHD_Result serve_run_stop(serve_request *request)
{
    static const char *const keys[] = {"path", NULL};
    char folder[SERVE_FD_PATH];
    int fd;
    const char *path = json_string_value(json_object_get(request->json, "path"));
    const char *unknown = serve_json_unknown(request->json, keys);
    enum MHD_Result result = MHD_NO;
    if (unknown) return serve_refuse(request, 400, "unknown key \"%.60s\"", unknown);
    if (path) serve_run_forget(path);
    json_t *run = serve_run_of(request, path, &result);
    if (!run) return result;
    int running = json_is_true(json_object_get(run, "running")), ours = json_is_true(json_object_get(run, "ours"));
    json_decref(run);
    if (!running) return serve_refuse(request, 409, "%s: nothing trains there", path);
    if (!ours) return serve_refuse(request, 403, "%s: another process trains it; it is watched, not touched", path);
    /* As psld stop does it; before the process looks for that, by a signal. */
    int asked = 0;
    if (serve_folder_find(serve.folder, path, S_IFDIR, &fd) == SERVE_FOUND) {
        snprintf(folder, sizeof folder, "/proc/%ld/fd/%d", (long)getpid(), fd);
        asked = psld_run_stop(folder) == PSLD_OK;
        close(fd);
    }
    if (!asked) serve_run_signal(path);
    return serve_answer_json(request, 202, serve_run_json(path));
}
