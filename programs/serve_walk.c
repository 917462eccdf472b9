#include "serve_walk.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Texts of help, which parsing makes, are shared by all threads. */
static pthread_mutex_t parsing = PTHREAD_MUTEX_INITIALIZER;

psld_status serve_walk_model(serve_job *job, const json_t *body)
{
    const char *name = json_string_value(json_object_get(body, "model"));
    int fd;
    if (!name || strlen(name) >= sizeof job->model_name) return cli_bad_input("model: expected the path of a model");
    snprintf(job->model_name, sizeof job->model_name, "%s", name);
    serve_found found = serve_folder_find(serve.folder, name, 0, &fd);
    if (found != SERVE_FOUND) return cli_bad_input("model: %s: %s", name, serve_found_text(found));
    close(fd);
    return PSLD_OK;
}

psld_status serve_walk_checked(int exit_code)
{
    if (exit_code == EXIT_DONE) return PSLD_OK;
    return cli_bad_input("%s", cli_listener_get()->message);
}

psld_status serve_walk_parse(const cli_command *command, const cli_option *options, const serve_words *words)
{
    char *argv[SERVE_ARGUMENTS];
    const char *rest[SERVE_ARGUMENTS];
    int count, exit_code;
    memcpy(argv, words->words, (size_t)words->count * sizeof *argv);
    int done = cli_parse(command, options, words->count, argv, rest, &count, &exit_code);
    return done ? PSLD_OK : serve_walk_checked(EXIT_USAGE);
}

void serve_walk_lock(int locks)
{
    if (locks)
        pthread_mutex_lock(&parsing);
    else
        pthread_mutex_unlock(&parsing);
}

psld_status serve_walk_open(serve_job *job, sampling_request *request, int classifier, sampling_job *s)
{
    cli_model model = request->model;
    cli_model_settle(&model);
    psld_status status = serve_model_open(&job->files, job->model_name, &model.options, &s->model);
    if (status == PSLD_OK) status = sampling_begin(job->model_name, request, classifier, s);
    if (status == PSLD_OK) serve_job_set_shape(job, sampling_is_image(s), s->rank, s->shape);
    return status;
}

psld_status serve_walk_check_number(const sampling_job *s, size_t n)
{
    size_t most = sampling_is_image(s) ? SERVE_SAMPLES : SERVE_POINTS;
    size_t numbers = ((size_t)SERVE_MEGABYTES << 20) / sizeof(float) / 4;
    if (n <= most && n <= numbers / s->dim) return PSLD_OK;
    return cli_bad_input("n: expected at most %zu, found %zu", most < numbers / s->dim ? most : numbers / s->dim, n);
}

void serve_walk_keep(serve_job *job, sampling_job *s, psld_status status, psld_array *samples)
{
    if (!samples) return;
    if (sampling_keep(s, status, samples))
        serve_job_keep(job, "samples", samples);
    else
        psld_array_free(samples);
}

json_t *serve_walk_result(const sampling_job *s, size_t n)
{
    double weak = psld_model_weak_scale(s->model);
    json_t *result = json_pack("{s:I, s:I, s:s, s:s, s:I}", "n", (json_int_t)n, "nfe", (json_int_t)s->nfe, "sampler",
                               s->options.sampler, "process", psld_recipe_get(psld_model_recipe(s->model))->name,
                               "seed", (json_int_t)s->options.seed);
    if (result && weak != 0) json_object_set_new(result, "weak_scale", cli_json_number(weak));
    return result;
}
