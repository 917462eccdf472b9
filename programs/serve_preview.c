/* Predictions of a model while samples are drawn, for open streams. */
#include <stdlib.h>
#include <string.h>

#include "serve_jobs.h"

enum { PICTURES = 64, POINTS = 1000, LARGEST = 1 << 16 }; /* numbers per sample that is still shown */

/* Seconds between previews; and they may take a fiftieth of the time at most. */
#define PAUSE 0.2
#define SHARE 50

static char *base64(const unsigned char *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((size + 2) / 3 * 4 + 1), *to = text;
    if (!text) return NULL;
    for (size_t i = 0; i < size; i += 3) {
        unsigned group = (unsigned)bytes[i] << 16;
        if (i + 1 < size) group |= (unsigned)bytes[i + 1] << 8;
        if (i + 2 < size) group |= bytes[i + 2];
        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = i + 1 < size ? digits[group >> 6 & 63] : '=';
        *to++ = i + 2 < size ? digits[group & 63] : '=';
    }
    *to = 0;
    return text;
}

/* A sheet of the samples [n, c, h, w]. */
static psld_status put_pictures(const serve_job *job, const psld_array *x, json_t *event)
{
    psld_array *pixels = NULL, *sheet = NULL;
    void *bytes = NULL;
    char *text = NULL;
    size_t size = 0, columns = 1;
    while (columns * columns < x->shape[0]) columns++;
    psld_status status = psld_images_from_data(x, 0, &pixels);
    if (status == PSLD_OK) status = psld_images_sheet(pixels, columns, &sheet);
    if (status == PSLD_OK) status = psld_image_encode(sheet, &bytes, &size);
    if (status == PSLD_OK) text = base64(bytes, size);
    if (text) {
        json_t *shape = json_array();
        for (int i = 0; i < job->rank; i++) json_array_append_new(shape, json_integer((json_int_t)job->shape[i]));
        json_object_set_new(event, "shape", shape);
        json_object_set_new(event, "columns", json_integer((json_int_t)columns));
        json_object_set_new(event, "png", json_string(text));
    }
    free(text);
    psld_bytes_free(bytes);
    psld_array_free(pixels);
    psld_array_free(sheet);
    return status;
}

static void put_points(const psld_array *x, json_t *event)
{
    json_t *list = json_array();
    const float *at = x->data;
    for (size_t i = 0; i < x->shape[0]; i++) {
        double point[2] = {(double)at[2 * i], (double)at[2 * i + 1]};
        json_array_append_new(list, cli_json_numbers(point, 2));
    }
    json_object_set_new(event, "points", list);
}

/* The predicted data of the first samples of an evaluation. */
static psld_status preview_predict(const serve_preview *p, const psld_evaluation *evaluation, psld_array **x)
{
    const serve_job *job = p->job;
    psld_states states = *evaluation->states;
    psld_evaluation part = *evaluation;
    size_t most = job->is_image ? PICTURES : POINTS, shape[PSLD_MAX_RANK + 1];
    if (states.n > most) states.n = most;
    part.states = &states;
    shape[0] = states.n;
    memcpy(shape + 1, job->shape, (size_t)job->rank * sizeof *shape);
    double *clean = malloc(states.n * states.dim * sizeof *clean);
    psld_status status = clean ? psld_evaluation_denoise(&part, p->source, p->recipe, clean) : PSLD_NO_MEMORY;
    if (status == PSLD_OK) status = psld_array_create(PSLD_F32, job->rank + 1, shape, x);
    for (size_t i = 0; status == PSLD_OK && i < states.n * states.dim; i++) ((float *)(*x)->data)[i] = (float)clean[i];
    free(clean);
    return status;
}

static void preview_publish(serve_job *job, json_t *event)
{
    char *data = json_dumps(event, JSON_REAL_PRECISION(6) | JSON_COMPACT), *text = NULL;
    size_t size = data ? strlen(data) + 64 : 0;
    if (data) text = malloc(size);
    if (text) snprintf(text, size, "event: preview\ndata: %s\n\n", data);
    free(data);
    if (!text) return;
    pthread_mutex_lock(&job->lock);
    free(job->preview);
    job->preview = text;
    job->preview_news = atomic_fetch_add(&job->news, 1) + 1;
    pthread_mutex_unlock(&job->lock);
}

static void preview_tell(serve_preview *p, const psld_evaluation *evaluation)
{
    psld_array *x = NULL;
    double t = evaluation->states->t[0], sigma = 0;
    if (preview_predict(p, evaluation, &x) != PSLD_OK) return; /* the next one will do */
    psld_recipe_sigma(p->recipe, t, &sigma);
    json_t *event = json_object();
    json_object_set_new(event, "t", cli_json_number(t));
    json_object_set_new(event, "sigma", cli_json_number(sigma));
    json_object_set_new(event, "first", json_integer((json_int_t)evaluation->states->sample[0]));
    json_object_set_new(event, "count", json_integer((json_int_t)x->shape[0]));
    psld_status status = PSLD_OK;
    if (p->job->is_image)
        status = put_pictures(p->job, x, event);
    else
        put_points(x, event);
    if (status == PSLD_OK) preview_publish(p->job, event);
    json_decref(event);
    psld_array_free(x);
}

static psld_status watch_evaluation(void *user, const psld_evaluation *evaluation)
{
    serve_preview *p = user;
    double began = cli_seconds(), pause = PAUSE > SHARE * p->cost ? PAUSE : SHARE * p->cost;
    int is_shown = p->job->is_image || (p->job->rank == 1 && p->job->shape[0] == 2);
    if (is_shown && evaluation->states->dim <= LARGEST && atomic_load(&p->job->watchers) > 0 &&
        began - p->job->previewed >= pause) {
        preview_tell(p, evaluation);
        p->job->previewed = cli_seconds();
        p->cost = p->job->previewed - began;
    }
    if (atomic_load(&p->job->cancels)) return PSLD_CANCELLED;
    return p->next ? p->next(p->next_user, evaluation) : PSLD_OK;
}

void serve_preview_watch(serve_preview *preview, serve_job *job, const psld_source *source, const psld_recipe *recipe,
                         psld_sample_options *options)
{
    if (!job->has_previews) return;
    *preview = (serve_preview){
        .job = job, .source = source, .recipe = recipe, .next = options->watch, .next_user = options->watch_user};
    options->watch = watch_evaluation;
    options->watch_user = preview;
}
