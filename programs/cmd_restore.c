/* psld restore: linear inverse problems, y = A x + noise. */
#include <stdio.h>

#include "restore.h"

static int restore_report(const restore_request *r, const restore_job *job)
{
    char what[128];
    snprintf(what, sizeof what, "of %zu measurement%s by %s", job->images, job->images == 1 ? "" : "s",
             r->options.method);
    return sampling_report(&job->sampling, job->samples->shape[0], what);
}

static int restore_model(const cli_command *command, const char *const *words, int count, const restore_request *r)
{
    restore_job job = {0};
    int exit_code = sampling_open_restoration(command, words, count, &r->sampling, &job.sampling);
    if (exit_code == EXIT_DONE) {
        psld_status status = restore_images(r, &job);
        exit_code =
            sampling_finish(&job.sampling, status, r->degraded ? NULL : job.x, job.shown, job.samples, job.each);
        if (exit_code == EXIT_DONE) exit_code = restore_report(r, &job);
    }
    restore_release(&job);
    return exit_code;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static int restore_run(const cli_command *command, int argc, char **argv)
{
    restore_request r;
    sampling_request *s = &r.sampling;
    const char *words[SAMPLING_WORDS];
    int count, exit_code;
    restore_defaults(&r);
    const cli_option options[] = {
        RESTORE_OPTIONS(r),
        SAMPLING_RESTORATION(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (!sampling_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    exit_code = restore_check(command, &r);
    if (exit_code == EXIT_DONE) exit_code = sampling_check_restored(command, s);
    return exit_code == EXIT_DONE ? restore_model(command, words, count, &r) : exit_code;
}

const cli_command command_restore = {
    .name = "restore",
    .summary = "undoes linear degradations of pictures",
    .usage = "MODEL --task TASK --image I -n N -o OUT [options] [key=value ...]",
    .description =
        "Samples p(x | y) for a measurement y = A x + noise: means of blocks (super-resolution), a periodic Gaussian "
        "blur\n"
        "(deblur), the luma of colours (colorize), the picture itself (denoise), a part of it (inpaint), or any matrix "
        "(linear).\n"
        "--image is measured first, so the strips show original | measured | samples. With --degraded it is the "
        "measurement.\n\n"
        "The method posterior takes the covariance of x_0 given z_t from the score's derivatives and is exact for a "
        "Gaussian prior;\n"
        "isotropic uses one variance instead; reconstruction follows the gradient of |y - A x_0|^2 through the "
        "denoiser; diffused,\n"
        "the paper's method, needs no derivatives. Standard deviations of noise are in units of data in [-1, 1].\n\n"
        "Without --sampler, --quality chooses sampler, grid, evaluations and end time as for psld sample.",
    .examples =
        "  psld restore digits.safetensors --task super-resolution --factor 4 --image seven.png -n 8 -o eights.png\n"
        "  psld restore RUN --task deblur --blur 1.5 --noise 0.05 --image photos/ -n 4 -o OUT\n"
        "  psld restore prior.yaml --task linear --matrix A.npy --noise 0.1 --image y.npy --degraded -n 10000 -o "
        "x.npy\n",
    .run = restore_run,
};
