/* Pictures made whole: psld inpaint and psld restore. */
#include <stdlib.h>
#include <string.h>

#include "inpaint.h"
#include "restore.h"
#include "serve_walk.h"

typedef struct mending {
    serve_words words;
    inpaint_request inpaint; /* one of both */
    inpaint_job inpainting;
    restore_request restore;
    restore_job restoring;
    serve_preview preview;
} mending;

/* clang-format off */
#define PICTURE_KEYS \
    {"image", NULL, SERVE_THING}, {"mask", NULL, SERVE_THING}, {"rect", NULL, SERVE_OPTION}, \
    {"method", NULL, SERVE_OPTION}, {"n", "--number", SERVE_OPTION}, {"fit", NULL, SERVE_SWITCH}, SERVE_GUIDANCE_KEYS, \
    SERVE_WALK_KEYS
static const serve_key inpaint_keys[] = {
    PICTURE_KEYS, {"repeats", NULL, SERVE_OPTION}, {"jump", NULL, SERVE_OPTION}, {NULL, NULL, SERVE_ELSE}};
static const serve_key restore_keys[] = {
    {"task", NULL, SERVE_OPTION}, PICTURE_KEYS, {"factor", NULL, SERVE_OPTION}, {"blur", NULL, SERVE_OPTION},
    {"noise", NULL, SERVE_OPTION}, {"strength", NULL, SERVE_OPTION}, {"iterations", NULL, SERVE_OPTION},
    {"degraded", NULL, SERVE_SWITCH}, {NULL, NULL, SERVE_ELSE}};
/* clang-format on */

static psld_status restore_begin(serve_job *job, const json_t *body, const serve_key *keys, mending **made)
{
    mending *m = calloc(1, sizeof *m);
    *made = m;
    if (!m) return PSLD_NO_MEMORY;
    job->own = m;
    psld_status status = serve_walk_model(job, body);
    return status == PSLD_OK ? serve_take_keys(job, body, keys, &m->words) : status;
}

/* An array of doubles [n][dim] as a result in the shape of the data. */
static psld_status keep_pictures(serve_job *job, const sampling_job *s, const char *name, const psld_array *x)
{
    psld_array *kept = NULL;
    psld_status status = x ? psld_array_convert(x, PSLD_F32, &kept) : PSLD_OK;
    if (!kept) return status;
    kept->rank = s->rank + 1;
    kept->shape[0] = kept->count / s->dim;
    memcpy(kept->shape + 1, s->shape, (size_t)s->rank * sizeof *s->shape);
    serve_job_keep(job, name, kept);
    return PSLD_OK;
}

/* Keeps the samples that were drawn before the work ended, also after a failure. */
static void keep_samples(serve_job *job, sampling_job *s, psld_status status, psld_array **samples)
{
    if (status == PSLD_OK || status == PSLD_CANCELLED) serve_job_set_result(job, serve_walk_result(s, s->drawn));
    serve_walk_keep(job, s, status, *samples);
    *samples = NULL;
}

static psld_status open_mending(serve_job *job, sampling_request *request, sampling_job *s)
{
    cli_model model = request->model;
    cli_model_settle(&model);
    psld_status status = serve_model_open(&job->files, job->model_name, &model.options, &s->model);
    if (status == PSLD_OK) status = sampling_begin_restoration(job->model_name, request, s);
    if (status != PSLD_OK) return status;
    serve_job_set_shape(job, sampling_is_image(s), s->rank, s->shape);
    return serve_walk_check_number(s, request->n ? (size_t)request->n : 1);
}

static void preview_mending(serve_job *job, mending *m, sampling_job *s)
{
    serve_preview_watch(&m->preview, job, psld_model_source(s->model), psld_model_recipe(s->model), &s->options);
}

/* ---- Inpainting -------------------------------------------------------------------------------------------------- */

static psld_status parse_inpaint(mending *m)
{
    inpaint_request *r = &m->inpaint;
    sampling_request *s = &r->sampling;
    sampling_defaults(s);
    s->model.weak = "none";
    const cli_option options[] = {
        INPAINT_OPTIONS(*r),
        SAMPLING_RESTORATION(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    psld_status status = serve_walk_parse(&command_inpaint, options, &m->words);
    s->out = "samples.npy";
    return status == PSLD_OK ? serve_walk_checked(inpaint_check(&command_inpaint, r)) : status;
}

static psld_status inpaint_prepare(serve_job *job, const json_t *body)
{
    mending *m;
    psld_status status = restore_begin(job, body, inpaint_keys, &m);
    if (status != PSLD_OK) return status;
    serve_walk_lock(1);
    status = parse_inpaint(m);
    serve_walk_lock(0);
    job->command = serve_command_line(job, "inpaint", &m->words, "samples.npy");
    return status;
}

static psld_status inpaint_work(serve_job *job)
{
    mending *m = job->own;
    sampling_job *s = &m->inpainting.sampling;
    psld_status status = open_mending(job, &m->inpaint.sampling, s);
    if (status == PSLD_OK) {
        preview_mending(job, m, s);
        status = inpaint_fill(&m->inpaint, &m->inpainting);
    }
    psld_status kept = keep_pictures(job, s, "original", m->inpainting.x);
    if (kept == PSLD_OK) kept = keep_pictures(job, s, "corrupted", m->inpainting.corrupted);
    keep_samples(job, s, status, &m->inpainting.samples);
    return status == PSLD_OK ? kept : status;
}

static void inpaint_done(serve_job *job)
{
    mending *m = job->own;
    inpaint_release(&m->inpainting);
    serve_words_free(&m->words);
}

const serve_kind serve_kind_inpaint = {"inpaint", inpaint_prepare, inpaint_work, inpaint_done};

/* ---- Restoration ------------------------------------------------------------------------------------------------- */

static psld_status parse_restore(mending *m)
{
    restore_request *r = &m->restore;
    sampling_request *s = &r->sampling;
    restore_defaults(r);
    const cli_option options[] = {
        RESTORE_OPTIONS(*r),
        SAMPLING_RESTORATION(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    psld_status status = serve_walk_parse(&command_restore, options, &m->words);
    s->out = "samples.npy";
    return status == PSLD_OK ? serve_walk_checked(restore_check(&command_restore, r)) : status;
}

static psld_status restore_prepare(serve_job *job, const json_t *body)
{
    mending *m;
    psld_status status = restore_begin(job, body, restore_keys, &m);
    if (status != PSLD_OK) return status;
    serve_walk_lock(1);
    status = parse_restore(m);
    serve_walk_lock(0);
    job->command = serve_command_line(job, "restore", &m->words, "samples.npy");
    return status;
}

static psld_status restore_work(serve_job *job)
{
    mending *m = job->own;
    sampling_job *s = &m->restoring.sampling;
    psld_status status = open_mending(job, &m->restore.sampling, s);
    if (status == PSLD_OK) {
        preview_mending(job, m, s);
        status = restore_images(&m->restore, &m->restoring);
    }
    psld_status kept = m->restore.degraded ? PSLD_OK : keep_pictures(job, s, "original", m->restoring.x);
    if (kept == PSLD_OK) kept = keep_pictures(job, s, "corrupted", m->restoring.shown);
    keep_samples(job, s, status, &m->restoring.samples);
    return status == PSLD_OK ? kept : status;
}

static void restore_done(serve_job *job)
{
    mending *m = job->own;
    restore_release(&m->restoring);
    serve_words_free(&m->words);
}

const serve_kind serve_kind_restore = {"restore", restore_prepare, restore_work, restore_done};
