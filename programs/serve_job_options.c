/* Options of jobs: from JSON to the words of a command line. The words are then parsed by the command itself, so that a
 * job and the command have the same meaning, and the command line that is shown is the one that was parsed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve_jobs.h"
#include "serve_uploads.h"

enum { WORD = 4096 };

/* ---- Words ------------------------------------------------------------------------------------------------------- */

int serve_words_add(serve_words *words, const char *word)
{
    if (words->count == SERVE_ARGUMENTS) return 0;
    words->words[words->count] = strdup(word);
    if (!words->words[words->count]) return 0;
    words->count++;
    return 1;
}

void serve_words_free(serve_words *words)
{
    for (int i = 0; i < words->count; i++) free(words->words[i]);
    words->count = 0;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* A text or number of a body as a word. */
static psld_status value_text(const serve_key *key, const json_t *value, char text[WORD])
{
    char number[PSLD_NUMBER_SIZE];
    if (json_is_string(value) && json_string_length(value) < WORD - 64)
        snprintf(text, WORD, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(text, WORD, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, WORD, "%s", psld_text_shortest(json_real_value(value), number));
    else
        return cli_bad_input("%s: expected a text or a number", key->key);
    return PSLD_OK;
}

static psld_status add_option(const serve_key *key, const char *value, serve_words *words)
{
    char option[64], word[WORD + 64];
    snprintf(option, sizeof option, "--%s", key->key);
    for (char *c = option; *c; c++)
        if (*c == '_') *c = '-';
    snprintf(word, sizeof word, "%s%s%s", key->option ? key->option : option, value ? "=" : "", value ? value : "");
    return serve_words_add(words, word) ? PSLD_OK : cli_bad_input("too many options");
}

static psld_status take_switch(const serve_key *key, const json_t *value, serve_words *words)
{
    if (!json_is_boolean(value)) return cli_bad_input("%s: expected true or false", key->key);
    return json_is_true(value) == (key->value == SERVE_SWITCH) ? add_option(key, NULL, words) : PSLD_OK;
}

static psld_status open_path(serve_files *files, const char *key, const char *name, const char **path)
{
    serve_found found = serve_files_add(files, serve.folder, name, S_IFREG, path);
    return found == SERVE_FOUND ? PSLD_OK : cli_bad_input("%s: %s: %s", key, name, serve_found_text(found));
}

static psld_status take_file(serve_job *job, const serve_key *key, const json_t *value, serve_words *words)
{
    const char *name = json_string_value(value), *path = name;
    psld_status status = PSLD_OK;
    if (!name) return cli_bad_input("%s: expected a text", key->key);
    if (key->value == SERVE_THING)
        status = serve_thing_open(&job->files, name, &path);
    else if (strcmp(name, "none") != 0)
        status = open_path(&job->files, key->key, name, &path);
    return status == PSLD_OK ? add_option(key, path, words) : status;
}

static psld_status take_recipe(serve_job *job, const serve_key *key, const json_t *value, serve_words *words)
{
    char *text;
    psld_recipe *recipe;
    psld_status status = serve_recipe_open(value, &job->files, &recipe); /* refused now, not when the job starts */
    psld_recipe_free(recipe);
    if (status != PSLD_OK) return status;
    status = serve_recipe_text(value, &job->files, &text);
    if (status == PSLD_OK) status = add_option(key, text, words);
    free(text);
    return status;
}

static psld_status take_key(serve_job *job, const serve_key *key, const json_t *value, serve_words *words)
{
    char text[WORD];
    switch (key->value) {
    case SERVE_SWITCH:
    case SERVE_UNLESS:
        return take_switch(key, value, words);
    case SERVE_PATH:
    case SERVE_THING:
        return take_file(job, key, value, words);
    case SERVE_RECIPE:
        return take_recipe(job, key, value, words);
    case SERVE_ELSE:
        return PSLD_OK;
    case SERVE_OPTION:
        break;
    }
    psld_status status = value_text(key, value, text);
    return status == PSLD_OK ? add_option(key, text, words) : status;
}

static int is_known(const char *name, const serve_key *keys)
{
    static const char *const always[] = {"kind", "dry", "preview", "model"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(name, always[i]) == 0) return 1;
    while (keys->key && strcmp(keys->key, name) != 0) keys++;
    return keys->key != NULL;
}

psld_status serve_take_keys(serve_job *job, const json_t *body, const serve_key *keys, serve_words *words)
{
    const char *name;
    json_t *value;
    psld_status status = PSLD_OK;
    json_object_foreach((json_t *)(uintptr_t)body, name, value)
    {
        if (!is_known(name, keys))
            return cli_bad_input("unknown key \"%.60s\" of a job of kind %s", name, job->kind->name);
    }
    job->has_previews = !json_is_false(json_object_get(body, "preview"));
    for (; status == PSLD_OK && keys->key; keys++) {
        value = json_object_get(body, keys->key);
        if (value && !json_is_null(value)) status = take_key(job, keys, value, words);
    }
    return status;
}

/* ---- The command line -------------------------------------------------------------------------------------------- */

/* As a shell takes it. */
static void put_word(FILE *to, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        fputs(word, to);
        return;
    }
    fputc('\'', to);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", to);
        else
            fputc(*word, to);
    }
    fputc('\'', to);
}

/* A file that comes with the program by its whole path. */
static void put_value(FILE *to, const char *value)
{
    char path[CLI_PATH];
    serve_folder_user_path(value, path, sizeof path);
    put_word(to, path);
}

/* "--seed=3" as --seed 3. */
static void put_option(FILE *to, const char *word)
{
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    fputc(' ', to);
    if (!equals) {
        put_value(to, word);
        return;
    }
    if (strncmp(word, "--number=", 9) == 0)
        fputs("-n ", to);
    else
        fprintf(to, "%.*s ", (int)(equals - word), word);
    put_value(to, equals + 1);
}

char *serve_command_line(const serve_job *job, const char *command, const serve_words *words, const char *out)
{
    char *text = NULL, named[WORD], model[CLI_PATH];
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    serve_folder_user_path(job->model_name, model, sizeof model);
    fprintf(to, "psld %s", command);
    if (*model) put_option(to, model);
    for (int i = 0; i < words->count; i++)
        put_option(to, serve_files_rename(&job->files, words->words[i], named, WORD));
    fputs(" -o ", to);
    put_word(to, out);
    fclose(to);
    return text;
}

/* ---- Things and models ------------------------------------------------------------------------------------------- */

/* "job:12/samples/3" as a .npy file in memory. */
static psld_status open_item(serve_files *files, const char *thing, const char **path)
{
    char number[32], name[64], unused;
    unsigned long item;
    void *bytes = NULL;
    size_t size = 0;
    if (sscanf(thing, "job:%31[0-9]/%63[a-z]/%lu%c", number, name, &item, &unused) != 3)
        return cli_bad_input("%s: expected job:ID/ARRAY/I", thing);
    serve_job *job = serve_job_find(number);
    psld_array *part = job ? serve_job_part(job, name, item, 1) : NULL;
    serve_job_release(job);
    if (!part) return cli_bad_input("%s: there is no such item", thing);
    part->rank--;
    memmove(part->shape, part->shape + 1, (size_t)part->rank * sizeof *part->shape);
    psld_status status = psld_array_encode(part, &bytes, &size);
    if (status == PSLD_OK && !serve_files_add_bytes(files, thing, bytes, size, path))
        status = cli_bad_input("%s: too many files", thing);
    psld_bytes_free(bytes);
    psld_array_free(part);
    return status;
}

psld_status serve_thing_open(serve_files *files, const char *thing, const char **path)
{
    unsigned long number;
    char unused;
    if (strncmp(thing, "job:", 4) == 0) return open_item(files, thing, path);
    if (strncmp(thing, "upload:", 7) != 0) return open_path(files, "picture", thing, path);
    int fd = sscanf(thing, "upload:%lu%c", &number, &unused) == 1 ? serve_upload_open(number) : -1;
    return serve_files_add_fd(files, thing, fd, path) ? PSLD_OK : cli_bad_input("%s: there is no such upload", thing);
}

/* The weights of a run, or the file itself. */
static psld_status find_weights(serve_files *files, const char *name, const char **path)
{
    char inner[SERVE_URL_SIZE];
    serve_found found = serve_files_add(files, serve.folder, name, S_IFREG, path);
    if (found == SERVE_NOT_THERE && strncmp(name, "shipped:", 8) != 0 &&
        snprintf(inner, sizeof inner, "%s/model.safetensors", name) < (int)sizeof inner)
        found = serve_files_add(files, serve.folder, inner, S_IFREG, path);
    return found == SERVE_FOUND ? PSLD_OK : cli_bad_input("model: %s: %s", name, serve_found_text(found));
}

psld_status serve_model_open(serve_files *files, const char *name, const psld_model_options *options,
                             psld_model **model)
{
    const char *path;
    char *text = NULL;
    size_t size;
    *model = NULL;
    if (cli_ends_in(name, ".yaml|.yml")) {
        serve_found found = serve_folder_read(serve.folder, name, 16 << 20, &text, &size);
        if (found != SERVE_FOUND) return cli_bad_input("model: %s: %s", name, serve_found_text(found));
        psld_status status = psld_model_parse(text, name, options, model);
        free(text);
        return status;
    }
    psld_status status = find_weights(files, name, &path);
    return status == PSLD_OK ? psld_model_open(path, options, model) : status;
}
