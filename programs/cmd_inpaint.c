/* psld inpaint: fills in the unknown part of pictures or vectors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inpaint.h"

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
        psld_status status = inpaint_fill(r, &job);
        exit_code = sampling_finish(&job.sampling, status, job.x, job.corrupted, job.samples, job.each);
        if (exit_code == EXIT_DONE) exit_code = inpaint_report(&job);
    }
    inpaint_release(&job);
    return exit_code;
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
        INPAINT_OPTIONS(r),
        SAMPLING_RESTORATION(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (!sampling_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    exit_code = inpaint_check(command, &r);
    if (exit_code == EXIT_DONE) exit_code = sampling_check_restored(command, s);
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
