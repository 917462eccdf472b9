/* Data to noise and back: psld encode, and psld interpolate. */
#include <stdlib.h>
#include <string.h>

#include "latent.h"
#include "serve_walk.h"

enum { MOST_BETWEEN = 64, USUAL_BETWEEN = 9 };

typedef struct encoding {
    serve_words words;
    latent_request request;
    latent_job latent;
    serve_preview preview;
    const char *files[2]; /* what is encoded */
    char names[2][512];   /* as the client calls it */
    int count;
    long number;
} encoding;

/* clang-format off */
static const serve_key keys[] = {
    {"image", NULL, SERVE_ELSE}, {"a", NULL, SERVE_ELSE}, {"b", NULL, SERVE_ELSE}, {"n", "--number", SERVE_OPTION},
    {"sampler", NULL, SERVE_OPTION}, {"nfe", NULL, SERVE_OPTION}, {"order", NULL, SERVE_OPTION},
    {"grid", NULL, SERVE_OPTION}, {"eps", NULL, SERVE_OPTION}, {"end_sigma", NULL, SERVE_OPTION},
    {"label", NULL, SERVE_OPTION}, {"cfg", NULL, SERVE_OPTION}, {"cfg_range", NULL, SERVE_OPTION},
    {"fit", NULL, SERVE_SWITCH}, {"process", NULL, SERVE_RECIPE}, {"seed", NULL, SERVE_OPTION},
    {"weak", NULL, SERVE_PATH}, {"weak_scale", NULL, SERVE_OPTION}, {"use", NULL, SERVE_OPTION},
    {NULL, NULL, SERVE_ELSE}};
/* clang-format on */

static psld_status take_picture(serve_job *job, encoding *e, const json_t *body, const char *key)
{
    const char *name = json_string_value(json_object_get(body, key));
    if (!name || strlen(name) >= sizeof e->names[0]) return cli_bad_input("%s: expected a picture or data", key);
    strcpy(e->names[e->count], name);
    return serve_thing_open(&job->files, name, &e->files[e->count++]);
}

static psld_status parse_encoding(encoding *e, const cli_command *command)
{
    latent_request *r = &e->request;
    latent_defaults(r);
    e->number = USUAL_BETWEEN;
    const cli_option options[] = {
        {"number", 'n', CLI_COUNT, "N", "", &e->number, NULL},
        LATENT_OPTIONS(*r),
        CLI_WEAK_OPTIONS(r->model),
        CLI_MODEL_OPTIONS(r->model),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    psld_status status = serve_walk_parse(command, options, &e->words);
    if (status == PSLD_OK) status = serve_walk_checked(labels_check(command, &r->labels));
    if (status == PSLD_OK && (e->number < 2 || e->number > MOST_BETWEEN))
        status = cli_bad_input("n: expected 2 to %d", MOST_BETWEEN);
    return status == PSLD_OK ? latent_settle(r) : status;
}

/* The pictures come between the model and the options. */
static char *line_of(const serve_job *job, const encoding *e, const char *command, const char *out)
{
    serve_words words = {0};
    for (int i = 0; i < e->count; i++) serve_words_add(&words, e->names[i]);
    for (int i = 0; i < e->words.count; i++) serve_words_add(&words, e->words.words[i]);
    char *line = serve_command_line(job, command, &words, out);
    serve_words_free(&words);
    return line;
}

static psld_status encode_prepare_job(serve_job *job, const json_t *body, const char *const *pictures,
                                      const cli_command *command, const char *out)
{
    encoding *e = calloc(1, sizeof *e);
    if (!e) return PSLD_NO_MEMORY;
    job->own = e;
    if (!pictures[1] && json_object_get(body, "n")) return cli_bad_input("unknown key \"n\" of a job of kind encode");
    psld_status status = serve_walk_model(job, body);
    if (status == PSLD_OK) status = serve_take_keys(job, body, keys, &e->words);
    for (; status == PSLD_OK && *pictures; pictures++) status = take_picture(job, e, body, *pictures);
    serve_walk_lock(1);
    if (status == PSLD_OK) status = parse_encoding(e, command);
    serve_walk_lock(0);
    job->command = line_of(job, e, command->name, out);
    return status;
}

static psld_status open_encoding(serve_job *job, encoding *e)
{
    size_t shape[PSLD_MAX_RANK];
    latent_job *l = &e->latent;
    psld_status status = serve_model_open(&job->files, job->model_name, &e->request.model.options, &l->model);
    if (status == PSLD_OK) status = latent_begin(&e->request, job->model_name, e->files, e->count, l);
    if (status != PSLD_OK) return status;
    int rank = psld_model_shape(l->model, shape), images = rank == 3 && (shape[0] == 1 || shape[0] == 3);
    serve_job_set_shape(job, images, rank, shape);
    if (l->x->shape[0] > SERVE_SAMPLES) return cli_bad_input("expected at most %d data", SERVE_SAMPLES);
    job->parts = 2;
    return PSLD_OK;
}

/* The way back, with previews. */
static psld_status encode_decode(serve_job *job, encoding *e, const psld_array *z, psld_array **x)
{
    latent_job *l = &e->latent;
    job->part = 1;
    serve_preview_watch(&e->preview, job, psld_model_source(l->model), psld_model_recipe(l->model), &l->options);
    return latent_decode(l, z, x);
}

static psld_status encode_prepare(serve_job *job, const json_t *body)
{
    static const char *const pictures[] = {"image", NULL};
    return encode_prepare_job(job, body, pictures, &command_encode, "states.npy");
}

static psld_status encode_work(serve_job *job)
{
    encoding *e = job->own;
    latent_job *l = &e->latent;
    psld_array *back = NULL;
    double rms = 0, absolute = 0;
    psld_status status = open_encoding(job, e);
    if (status == PSLD_OK) status = latent_encode(l);
    if (status == PSLD_OK) status = encode_decode(job, e, l->z, &back);
    if (status != PSLD_OK) return status;
    latent_compare(l->x, back, &rms, &absolute);
    serve_job_set_result(job, json_pack("{s:I, s:I, s:f, s:f}", "n", (json_int_t)l->x->shape[0], "nfe",
                                        (json_int_t)l->nfe, "round_trip", absolute, "round_trip_rms", rms));
    serve_job_keep(job, "data", l->x);
    serve_job_keep(job, "states", l->z);
    serve_job_keep(job, "back", back);
    l->x = l->z = NULL;
    return PSLD_OK;
}

static psld_status interpolate_prepare(serve_job *job, const json_t *body)
{
    static const char *const pictures[] = {"a", "b", NULL};
    return encode_prepare_job(job, body, pictures, &command_interpolate, "samples.npy");
}

static psld_status interpolate_work(serve_job *job)
{
    encoding *e = job->own;
    latent_job *l = &e->latent;
    psld_array *between = NULL, *samples = NULL;
    psld_status status = open_encoding(job, e);
    if (status == PSLD_OK) status = latent_check_pair(l, e->names[0], e->names[1]);
    if (status == PSLD_OK) status = latent_encode(l);
    if (status == PSLD_OK) status = latent_between(l, (size_t)e->number, &between);
    if (status == PSLD_OK) status = encode_decode(job, e, between, &samples);
    psld_array_free(between);
    if (status != PSLD_OK) return status;
    serve_job_set_result(job, json_pack("{s:I, s:I}", "n", (json_int_t)e->number, "nfe", (json_int_t)l->nfe));
    serve_job_keep(job, "samples", samples);
    return PSLD_OK;
}

static void encoding_done(serve_job *job)
{
    encoding *e = job->own;
    latent_close(&e->latent);
    serve_words_free(&e->words);
}

const serve_kind serve_kind_encode = {"encode", encode_prepare, encode_work, encoding_done};
const serve_kind serve_kind_interpolate = {"interpolate", interpolate_prepare, interpolate_work, encoding_done};
