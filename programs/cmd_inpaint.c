/* psld inpaint: fills in what is unknown of pictures or vectors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling.h"

typedef struct inpaint_request {
    sampling_request sampling;
    const char *image, *mask, *rectangle, *method;
    long repeats, jump;
} inpaint_request;

typedef struct inpaint_job {
    sampling_job sampling;
    psld_array *x, *known, *corrupted, *samples; /* [images][dim] but for samples */
    size_t each;                                 /* samples per image */
    psld_inpainting inpainting;
} inpaint_job;

/* The unknown part becomes grey. */
static psld_status hide_unknown_pixels(inpaint_job *job)
{
    psld_status status = psld_array_convert(job->x, PSLD_F64, &job->corrupted);
    for (size_t i = 0; status == PSLD_OK && i < job->x->count; i++)
        if (!((unsigned char *)job->known->data)[i]) ((double *)job->corrupted->data)[i] = 0;
    return status;
}

static void inpaint_describe(const inpaint_request *r, inpaint_job *job)
{
    psld_inpainting *p = &job->inpainting;
    *p = (psld_inpainting)PSLD_INPAINTING_DEFAULTS;
    p->images = (int)job->x->shape[0];
    p->each = (int)job->each;
    p->x = job->x->data;
    p->known = job->known->data;
    p->lagging = strcmp(r->method, "authors") == 0;
    if (strcmp(r->method, "resample") != 0) return;
    p->repeats = r->repeats > 100000 ? 100000 : (int)r->repeats;
    p->jump = r->jump > 1000000 ? 1000000 : (int)r->jump;
}

static psld_status fill_in(const inpaint_request *r, inpaint_job *job)
{
    sampling_job *s = &job->sampling;
    psld_source *guided = NULL, *labelled = NULL, *source = psld_model_source(s->model);
    psld_status status = sampling_read(s, r->image, &job->x);
    job->each = r->sampling.n ? (size_t)r->sampling.n : sampling_is_image(s) ? 4 : 1000;
    if (status == PSLD_OK) status = sampling_masks(s, r->mask, r->rectangle, job->x->shape[0], &job->known);
    if (status == PSLD_OK) status = hide_unknown_pixels(job);
    if (status == PSLD_OK) status = sampling_check_strips(s, job->x->shape[0], job->x->shape[0] * job->each);
    if (status == PSLD_OK) status = sampling_array(s, job->x->shape[0] * job->each, &job->samples);
    if (status == PSLD_OK) status = sampling_label(s, &labelled);
    if (labelled) source = labelled;
    if (status == PSLD_OK && s->classifier) status = sampling_guide(s, source, r->sampling.label, &guided);
    if (status == PSLD_OK) {
        inpaint_describe(r, job);
        s->options.inpainting = &job->inpainting;
        status = sampling_draw(s, guided ? guided : source, 0, job->samples->shape[0], job->samples);
    }
    psld_source_free(guided);
    psld_source_free(labelled);
    return status;
}

static int inpaint_report(const inpaint_job *job)
{
    char what[128];
    size_t images = job->x->shape[0];
    snprintf(what, sizeof what, "of %zu %s%s", images, sampling_is_image(&job->sampling) ? "picture" : "vector",
             images == 1 ? "" : "s");
    return sampling_report(&job->sampling, job->samples->shape[0], what);
}

static int inpaint_images(const cli_command *command, const char *const *words, int count, const inpaint_request *r)
{
    inpaint_job job = {0};
    int exit_code = sampling_open_restoration(command, words, count, &r->sampling, &job.sampling);
    if (exit_code == EXIT_DONE) {
        psld_status status = fill_in(r, &job);
        exit_code = sampling_finish(&job.sampling, status, job.x, job.corrupted, job.samples, job.each);
        if (exit_code == EXIT_DONE) exit_code = inpaint_report(&job);
    }
    psld_array_free(job.x);
    psld_array_free(job.known);
    psld_array_free(job.corrupted);
    psld_array_free(job.samples);
    sampling_close(&job.sampling);
    return exit_code;
}

static int inpaint_check_options(const cli_command *command, inpaint_request *r)
{
    if (!r->image) return cli_wrong_usage(command, "no image given; add --image I");
    if (!r->mask == !r->rectangle)
        return cli_wrong_usage(command, "the unknown part is not given; add --mask M or --rect X,Y,W,H");
    int adaptive = sampling_is_adaptive(r->sampling.sampler);
    if (!r->method) r->method = adaptive ? "replace" : "resample";
    if (strcmp(r->method, "resample") != 0 && (r->repeats || r->jump))
        return cli_wrong_usage(command, "--repeats and --jump are for --method resample");
    if (!r->repeats) r->repeats = 10;
    if (!r->jump) r->jump = 1;
    return sampling_check_restoration(command, &r->sampling);
}

static int inpaint_run(const cli_command *command, int argc, char **argv)
{
    inpaint_request r = {0};
    sampling_request *s = &r.sampling;
    const char *words[SAMPLING_WORDS];
    int count, exit_code;
    sampling_defaults(s);
    s->model.weak = "none";
    const cli_option options[] = {
        {"image", 0, CLI_FILE, "I", "a picture, a folder or archive of them, or .npy ([dim] or [n, dim])", &r.image,
         NULL},
        {"mask", 0, CLI_FILE, "M", "white is unknown: a picture, many, digits (IDX: any size), or .npy", &r.mask, NULL},
        {"rect", 0, CLI_TEXT, "X,Y,W,H", "a rectangle that is unknown, instead of --mask", &r.rectangle, NULL},
        {"method", 0, CLI_TEXT, "NAME",
         "resample (default), replace (the paper's; default with ode), authors (as they ran it)", &r.method,
         "replace|resample|authors"},
        {"repeats", 0, CLI_COUNT, "R", "resample: how often each group of --jump steps is repeated (default 10)",
         &r.repeats, NULL},
        {"jump", 0, CLI_COUNT, "J", "resample: reverse steps per repetition (default 1)", &r.jump, NULL},
        SAMPLING_RESTORATION(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (!sampling_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    exit_code = inpaint_check_options(command, &r);
    return exit_code == EXIT_DONE ? inpaint_images(command, words, count, &r) : exit_code;
}

const cli_command command_inpaint = {
    .name = "inpaint",
    .summary = "fills in the unknown part of pictures",
    .usage = "MODEL --image I (--mask M | --rect X,Y,W,H) -n N -o OUT [options] [key=value ...]",
    .description =
        "After each reverse step, the known part of all variables is replaced by a fresh sample of p(z_t | known). The "
        "last step\n"
        "returns the known part exactly. `replace` does only that: it is the paper's method. `authors` samples at the "
        "time where a\n"
        "step began, as the authors' code did. `resample` repeats every group of --jump steps --repeats times and adds "
        "noise in\n"
        "between, which makes the unknown part consistent with the known one: its error is a fourth. --nfe is then the "
        "number of\n"
        "one pass; the report counts all evaluations.\n\n"
        "Without --sampler, --quality chooses sampler, grid, evaluations and end time as for psld sample.\n\n"
        "The folder OUT gets originals/, corrupted/, samples/ (those of the first picture first) and strips.png.",
    .examples = "  psld inpaint digits.safetensors --image seven.png --rect 0,14,28,14 -n 8 -o completions.png\n"
                "  psld inpaint RUN --image photos/ --mask t10k-images-idx3-ubyte -n 1 -o OUT\n"
                "  psld inpaint mixture.yaml --image x.npy --mask unknown.npy -n 10000 -o samples.npy\n",
    .run = inpaint_run,
};
