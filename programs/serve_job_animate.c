/* Data diffusing to noise and back: points of the plane, forward by the process itself and back by a sampler with the exact
 * score of a mixture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve_walk.h"

enum { DIM = 2, MOST_POINTS = 2000, USUAL = 1000, MOST = 5000, USUAL_FRAMES = 48, MOST_FRAMES = 96 };
/* Sample numbers of sets that are drawn for comparison: far from those that are shown. */
#define TRUTH ((uint64_t)1 << 40)
#define OTHER ((uint64_t)2 << 40)

typedef struct animation {
    serve_words words;
    sampling_request request;
    sampling_job sampling;
    serve_preview preview;
    char *yaml; /* of the mixture; NULL: it is a file */
    long frames;
    size_t n, width;        /* width: numbers of a state */
    int is_adaptive, count; /* count: frames of the reverse so far */
    long evaluations, stride;
    double times[MOST_FRAMES], reverse_times[MOST_FRAMES + 1];
    double *gap; /* [n][frames], adaptive samplers: how far in sqrt(t) what is kept is from its moment */
    psld_array *forward, *reverse;
} animation;

/* ---- The options ------------------------------------------------------------------------------------------------- */

static const serve_key keys[] = {{"mixture", NULL, SERVE_ELSE},   {"points", NULL, SERVE_ELSE},
                                 {"scale", NULL, SERVE_ELSE},     {"frames", NULL, SERVE_ELSE},
                                 {"n", "--number", SERVE_OPTION}, SERVE_WALK_KEYS,
                                 {NULL, NULL, SERVE_ELSE}};

/* A mixture of points of equal weight. */
static psld_status mixture_of_points(const json_t *points, const json_t *scale, json_t **mixture)
{
    size_t count = json_array_size(points);
    double deviation = scale ? json_number_value(scale) : 0.05;
    if (count < 1 || count > MOST_POINTS)
        return cli_bad_input("points: expected a list of 1 to %d points", MOST_POINTS);
    if (!(deviation > 0)) return cli_bad_input("scale: expected a number above 0");
    json_t *weights = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(weights, json_real(1 / (double)count));
    *mixture = json_pack("{s:o, s:O, s:f}", "weights", weights, "means", points, "scales", deviation);
    return *mixture ? PSLD_OK : PSLD_NO_MEMORY;
}

/* The data as the YAML of an exact model, or the file of one. */
static psld_status take_data(serve_job *job, animation *a, const json_t *body)
{
    const json_t *points = json_object_get(body, "points"), *given = json_object_get(body, "mixture");
    json_t *mixture = NULL, *model;
    if (!points + !given + !json_object_get(body, "model") != 2)
        return cli_bad_input("expected one of model, mixture and points");
    if (!points && !given) return serve_walk_model(job, body);
    psld_status status = points ? mixture_of_points(points, json_object_get(body, "scale"), &mixture) : PSLD_OK;
    if (given) mixture = json_deep_copy(given);
    if (status != PSLD_OK) return status;
    model = json_pack("{s:o, s:s}", "mixture", mixture, "process", "psld");
    a->yaml = model ? serve_json_text(model) : NULL;
    json_decref(model);
    return a->yaml ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_status parse_animation(animation *a)
{
    sampling_request *s = &a->request;
    const cli_option options[] = {
        {"number", 'n', CLI_COUNT, "N", "", &s->n, NULL},
        LABEL_OPTIONS(s->labels),
        SAMPLING_OPTIONS(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    psld_status status = serve_walk_parse(&command_sample, options, &a->words);
    if (status == PSLD_OK) status = serve_walk_checked(sampling_check(&command_sample, s));
    return status == PSLD_OK ? serve_walk_checked(labels_check(&command_sample, &s->labels)) : status;
}

static psld_status animate_prepare(serve_job *job, const json_t *body)
{
    const json_t *frames = json_object_get(body, "frames");
    animation *a = calloc(1, sizeof *a);
    if (!a) return PSLD_NO_MEMORY;
    job->own = a;
    job->has_previews = 0;
    sampling_defaults(&a->request);
    a->frames = frames ? (long)json_integer_value(frames) : USUAL_FRAMES;
    if (a->frames < 2 || a->frames > MOST_FRAMES) return cli_bad_input("frames: expected 2 to %d", MOST_FRAMES);
    psld_status status = take_data(job, a, body);
    if (status == PSLD_OK) status = serve_take_keys(job, body, keys, &a->words);
    serve_walk_lock(1);
    if (status == PSLD_OK) status = parse_animation(a);
    serve_walk_lock(0);
    if (!*job->model_name) strcpy(job->model_name, "mixture.yaml");
    job->command = serve_command_line(job, "sample", &a->words, "points.npy");
    if (a->yaml) job->model_name[0] = 0;
    return status;
}

/* ---- Forward ----------------------------------------------------------------------------------------------------- */

static void keep_frame(psld_array *frames, size_t frame, size_t count, const double *z)
{
    float *to = (float *)frames->data + frame * count;
    for (size_t i = 0; i < count; i++) to[i] = (float)z[i];
}

static psld_status go_forward(animation *a, double *z)
{
    const sampling_job *s = &a->sampling;
    const psld_recipe *recipe = psld_model_recipe(s->model);
    uint64_t seed = s->options.seed;
    psld_status status = psld_mixture_draw(psld_model_mixture(s->model), recipe, 0, seed, 0, a->n, z);
    for (long f = 0; status == PSLD_OK && f < a->frames; f++) {
        double u = (double)f / (double)(a->frames - 1);
        a->times[f] = u * u;
        if (f) status = psld_recipe_move(recipe, a->times[f - 1], a->times[f], seed, (uint64_t)f, 0, a->n, DIM, z);
        keep_frame(a->forward, (size_t)f, a->n * a->width, z);
    }
    return status;
}

/* ---- Back -------------------------------------------------------------------------------------------------------- */

/* All samples are at the same time: every so many evaluations make a frame. */
static void keep_step(animation *a, const psld_states *states)
{
    if (a->evaluations++ % a->stride != 0 || a->count >= a->frames - 1) return;
    a->reverse_times[a->count] = states->t[0];
    keep_frame(a->reverse, (size_t)a->count++, a->n * a->width, states->z);
}

/* Groups of samples have different times: each sample keeps the state nearest to the moment of a frame. */
static void keep_nearest(animation *a, const psld_states *states)
{
    double root = sqrt(states->t[0]);
    for (size_t i = 0; i < states->n; i++) {
        size_t sample = (size_t)states->sample[i];
        for (long f = 0; f < a->frames - 1; f++) {
            double *gap = &a->gap[sample * (size_t)a->frames + (size_t)f],
                   distance = fabs(root - sqrt(a->reverse_times[f]));
            if (!(distance < *gap)) continue;
            *gap = distance;
            float *to = (float *)a->reverse->data + ((size_t)f * a->n + sample) * a->width;
            for (size_t j = 0; j < a->width; j++) to[j] = (float)states->z[i * a->width + j];
        }
    }
}

static psld_status watch_animation(void *user, const psld_evaluation *evaluation)
{
    animation *a = user;
    if (a->is_adaptive)
        keep_nearest(a, evaluation->states);
    else
        keep_step(a, evaluation->states);
    return PSLD_OK;
}

static psld_status plan_frames(animation *a)
{
    const psld_sample_options *o = &a->sampling.options;
    a->is_adaptive = sampling_is_adaptive(o->sampler);
    a->stride = (o->nfe + a->frames - 2) / (a->frames - 1);
    if (a->stride < 1) a->stride = 1;
    if (!a->is_adaptive) return PSLD_OK;
    a->gap = malloc(a->n * (size_t)a->frames * sizeof *a->gap);
    if (!a->gap) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < a->n * (size_t)a->frames; i++) a->gap[i] = (double)INFINITY;
    for (long f = 0; f < a->frames - 1; f++) {
        double u = 1 + (sqrt(o->eps) - 1) * (double)f / (double)(a->frames - 2 > 0 ? a->frames - 2 : 1);
        a->reverse_times[f] = u * u;
    }
    a->count = (int)a->frames - 1;
    return PSLD_OK;
}

/* Runs the sampler; the last frame is its result. */
static psld_status go_back(serve_job *job, animation *a, double *z)
{
    sampling_job *s = &a->sampling;
    psld_source *labelled = NULL;
    psld_status status = plan_frames(a);
    if (status == PSLD_OK) status = sampling_label(s, &labelled);
    s->options.batch = (int)a->n;
    s->options.watch = watch_animation;
    s->options.watch_user = a;
    s->options.progress = serve_job_progress;
    s->options.progress_user = job;
    if (status == PSLD_OK)
        status = psld_sample(psld_model_recipe(s->model), labelled ? labelled : psld_model_source(s->model),
                             &s->options, 0, a->n, DIM, NULL, z, &s->nfe);
    psld_source_free(labelled);
    if (status != PSLD_OK) return status;
    a->reverse_times[a->count] = 0;
    keep_frame(a->reverse, (size_t)a->count++, a->n * a->width, z);
    a->reverse->shape[0] = (size_t)a->count;
    a->reverse->count = (size_t)a->count * a->n * a->width;
    return PSLD_OK;
}

/* ---- Distance from the exact distribution ------------------------------------------------------------------------ */

/* The positions of states, packed. */
static void positions_of(const animation *a, double *z)
{
    for (size_t i = 0; i < a->n; i++) memmove(z + i * DIM, z + i * a->width, DIM * sizeof *z);
}

static psld_status compare_with_truth(serve_job *job, animation *a, double *z)
{
    const sampling_job *s = &a->sampling;
    const psld_mixture *mixture = psld_model_mixture(s->model);
    const psld_recipe *recipe = psld_model_recipe(s->model);
    size_t shape[2] = {a->n, DIM}, numbers = a->n * a->width;
    double distance = 0, lowest = 0, *truth = malloc(2 * numbers * sizeof *truth), *other = truth + numbers;
    psld_array *kept = NULL;
    if (!truth) return PSLD_NO_MEMORY;
    psld_status status = psld_mixture_draw(mixture, recipe, 0, s->options.seed, TRUTH, a->n, truth);
    if (status == PSLD_OK) status = psld_mixture_draw(mixture, recipe, 0, s->options.seed, OTHER, a->n, other);
    positions_of(a, z);
    positions_of(a, truth);
    if (status == PSLD_OK) positions_of(a, other);
    if (status == PSLD_OK) status = psld_sliced_wasserstein(DIM, a->n, z, a->n, truth, 256, 0, &distance);
    if (status == PSLD_OK) status = psld_sliced_wasserstein(DIM, a->n, other, a->n, truth, 256, 0, &lowest);
    if (status == PSLD_OK) status = psld_array_create(PSLD_F32, 2, shape, &kept);
    if (status == PSLD_OK) keep_frame(kept, 0, a->n * DIM, truth);
    serve_job_keep(job, "truth", kept);
    free(truth);
    if (status != PSLD_OK) return status;
    json_t *result = serve_walk_result(s, a->n);
    json_object_set_new(result, "k", json_integer((json_int_t)s->k));
    json_object_set_new(result, "times", cli_json_numbers(a->times, (size_t)a->frames));
    json_object_set_new(result, "reverse_times", cli_json_numbers(a->reverse_times, (size_t)a->count));
    json_object_set_new(result, "distance", cli_json_number(distance));
    json_object_set_new(result, "floor", cli_json_number(lowest));
    serve_job_set_result(job, result);
    return PSLD_OK;
}

/* ---- The work ---------------------------------------------------------------------------------------------------- */

static psld_status open_data(serve_job *job, animation *a)
{
    sampling_job *s = &a->sampling;
    cli_model model = a->request.model;
    cli_model_settle(&model);
    psld_status status = a->yaml ? psld_model_parse(a->yaml, "the mixture", &model.options, &s->model)
                                 : serve_model_open(&job->files, job->model_name, &model.options, &s->model);
    if (status == PSLD_OK && (!psld_model_mixture(s->model) || psld_mixture_dim(psld_model_mixture(s->model)) != DIM))
        status = cli_bad_input("model: expected an exact model of points of the plane");
    if (status == PSLD_OK) status = sampling_begin(a->yaml ? "the mixture" : job->model_name, &a->request, 0, s);
    if (status != PSLD_OK) return status;
    serve_job_set_shape(job, 0, s->rank, s->shape);
    a->n = a->request.n ? (size_t)a->request.n : USUAL;
    a->width = s->k * DIM;
    return a->n <= MOST ? PSLD_OK : cli_bad_input("n: expected at most %d, found %zu", MOST, a->n);
}

static psld_status animate_work(serve_job *job)
{
    animation *a = job->own;
    psld_status status = open_data(job, a);
    if (status != PSLD_OK) return status;
    size_t shape[3] = {(size_t)a->frames, a->n, a->width};
    double *z = malloc(a->n * a->width * sizeof *z);
    status = z ? psld_array_create(PSLD_F32, 3, shape, &a->forward) : PSLD_NO_MEMORY;
    if (status == PSLD_OK) status = psld_array_create(PSLD_F32, 3, shape, &a->reverse);
    if (status == PSLD_OK) status = go_forward(a, z);
    if (status == PSLD_OK) status = go_back(job, a, z);
    if (status == PSLD_OK) status = compare_with_truth(job, a, z);
    free(z);
    if (status != PSLD_OK) return status;
    serve_job_keep(job, "forward", a->forward);
    serve_job_keep(job, "reverse", a->reverse);
    a->forward = a->reverse = NULL;
    return PSLD_OK;
}

static void animate_done(serve_job *job)
{
    animation *a = job->own;
    serve_words_free(&a->words);
    sampling_close(&a->sampling);
    psld_array_free(a->forward);
    psld_array_free(a->reverse);
    free(a->gap);
    free(a->yaml);
}

const serve_kind serve_kind_animate = {"animate", animate_prepare, animate_work, animate_done};
