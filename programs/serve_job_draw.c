/* Drawing: psld sample, and with a classifier psld guide. */
#include <stdlib.h>
#include <string.h>

#include "serve_walk.h"

enum { STRIPS = 8, MOST_FRAMES = 64, LARGEST_FIRST = 1 << 30 };

typedef struct draw {
    serve_words words;
    sampling_request request;
    long first, frames;
    sampling_job sampling;
    serve_preview preview;
    psld_array *samples;
} draw;

/* ---- The options ------------------------------------------------------------------------------------------------- */

static const serve_key keys[] = {{"n", "--number", SERVE_OPTION},
                                 {"first", NULL, SERVE_ELSE},
                                 {"frames", NULL, SERVE_ELSE},
                                 SERVE_GUIDANCE_KEYS,
                                 SERVE_WALK_KEYS,
                                 {NULL, NULL, SERVE_ELSE}};

static psld_status parse_sample(draw *d)
{
    sampling_request *s = &d->request;
    const cli_option options[] = {
        {"number", 'n', CLI_COUNT, "N", "", &s->n, NULL},
        LABEL_OPTIONS(s->labels),
        SAMPLING_OPTIONS(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    psld_status status = serve_walk_parse(&command_sample, options, &d->words);
    if (status == PSLD_OK) status = serve_walk_checked(sampling_check(&command_sample, s));
    return status == PSLD_OK ? serve_walk_checked(labels_check(&command_sample, &s->labels)) : status;
}

static psld_status parse_guide(draw *d)
{
    sampling_request *s = &d->request;
    s->model.weak = "none";
    const cli_option options[] = {
        {"number", 'n', CLI_COUNT, "N", "", &s->n, NULL},
        {"label", 0, CLI_TEXT, "L", "", &s->label, NULL},
        SAMPLING_GUIDANCE(*s),
        SAMPLING_OPTIONS(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    psld_status status = serve_walk_parse(&command_guide, options, &d->words);
    if (status == PSLD_OK && !s->label) status = cli_bad_input("label: expected the class to draw");
    return status == PSLD_OK ? serve_walk_checked(sampling_check(&command_guide, s)) : status;
}

static psld_status take_number(const json_t *body, const char *key, long most, long *number)
{
    const json_t *value = json_object_get(body, key);
    *number = json_is_integer(value) ? (long)json_integer_value(value) : 0;
    if ((!value || json_is_integer(value)) && *number >= 0 && *number <= most) return PSLD_OK;
    return cli_bad_input("%s: expected a whole number from 0 to %ld", key, most);
}

static psld_status draw_prepare(serve_job *job, const json_t *body)
{
    draw *d = calloc(1, sizeof *d);
    if (!d) return PSLD_NO_MEMORY;
    job->own = d;
    sampling_defaults(&d->request);
    int guided = json_object_get(body, "classifier") != NULL;
    psld_status status = serve_walk_model(job, body);
    if (status == PSLD_OK) status = serve_take_keys(job, body, keys, &d->words);
    if (status == PSLD_OK) status = take_number(body, "first", LARGEST_FIRST, &d->first);
    if (status == PSLD_OK) status = take_number(body, "frames", MOST_FRAMES, &d->frames);
    if (status == PSLD_OK && d->frames == 1) status = cli_bad_input("frames: expected 0, or 2 to %d", MOST_FRAMES);
    if (status == PSLD_OK && guided && (d->frames || d->first))
        status = cli_bad_input("first and frames do not go with a classifier");
    serve_walk_lock(1);
    if (status == PSLD_OK) status = guided ? parse_guide(d) : parse_sample(d);
    serve_walk_lock(0);
    job->command = serve_command_line(job, guided ? "guide" : "sample", &d->words, "samples.npy");
    return status;
}

/* ---- The work ---------------------------------------------------------------------------------------------------- */

static psld_status take_samples(void *user, uint64_t first, const psld_array *x)
{
    draw *d = user;
    sampling_job *s = &d->sampling;
    (void)first;
    memcpy((float *)d->samples->data + s->drawn * s->dim, x->data, x->count * sizeof(float));
    s->drawn += x->shape[0];
    return PSLD_OK;
}

/* As sample_draw of psld sample does. */
static psld_status draw_samples(serve_job *job, draw *d, size_t n)
{
    sampling_job *s = &d->sampling;
    psld_trajectory *trajectory = NULL;
    psld_status status = PSLD_OK;
    if (s->labels.is_set) s->options.labels = &s->labels.labels;
    if (d->frames) {
        status = psld_trajectory_create(s->model, (uint64_t)d->first, n < STRIPS ? n : STRIPS, (size_t)d->frames,
                                        &trajectory);
        if (status == PSLD_OK) psld_trajectory_watch(trajectory, &s->options);
    }
    serve_preview_watch(&d->preview, job, psld_model_source(s->model), psld_model_recipe(s->model), &s->options);
    s->options.progress = serve_job_progress;
    s->options.progress_user = job;
    if (status == PSLD_OK)
        status = psld_model_draw(s->model, &s->options, (uint64_t)d->first, n, NULL, 0, take_samples, d, &s->nfe);
    if (status == PSLD_OK && trajectory) {
        psld_array *frames = NULL;
        status = psld_array_convert(psld_trajectory_frames(trajectory), PSLD_F32, &frames);
        serve_job_keep(job, "trajectory", frames);
    }
    psld_trajectory_free(trajectory);
    return status;
}

/* As guide_draw_classes of psld guide does. */
static psld_status draw_guided(serve_job *job, draw *d, size_t n)
{
    sampling_job *s = &d->sampling;
    int all = strcmp(d->request.label, "all") == 0;
    size_t number = 0, last;
    psld_status status = all ? PSLD_OK : psld_model_label(s->classifier, d->request.label, &number);
    last = all ? sampling_classes(s) - 1 : number;
    serve_preview_watch(&d->preview, job, psld_model_source(s->model), psld_model_recipe(s->model), &s->options);
    for (; status == PSLD_OK && number <= last; number++) {
        psld_source *guided = NULL;
        status = sampling_guide_class(s, psld_model_source(s->model), number, &guided);
        if (status == PSLD_OK) status = sampling_draw(s, guided, (uint64_t)number << 32, n, d->samples);
        psld_source_free(guided);
    }
    return status;
}

static psld_status draw_work(serve_job *job)
{
    draw *d = job->own;
    sampling_job *s = &d->sampling;
    int guided = d->request.classifier != NULL;
    psld_status status = serve_walk_open(job, &d->request, guided, s);
    if (status != PSLD_OK) return status;
    size_t usual = sampling_is_image(s) ? guided ? 8 : 64 : 1000, n = d->request.n ? (size_t)d->request.n : usual,
           all = n;
    if (guided && strcmp(d->request.label, "all") == 0) all = n * sampling_classes(s);
    status = serve_walk_check_number(s, all);
    if (status == PSLD_OK) status = sampling_array(s, all, &d->samples);
    if (status == PSLD_OK) status = guided ? draw_guided(job, d, n) : draw_samples(job, d, n);
    if (status == PSLD_OK || status == PSLD_CANCELLED) serve_job_set_result(job, serve_walk_result(s, s->drawn));
    serve_walk_keep(job, s, status, d->samples);
    d->samples = NULL;
    return status;
}

static void draw_release(serve_job *job)
{
    draw *d = job->own;
    serve_words_free(&d->words);
    sampling_close(&d->sampling);
    psld_array_free(d->samples);
}

const serve_kind serve_kind_draw = {"draw", draw_prepare, draw_work, draw_release};
