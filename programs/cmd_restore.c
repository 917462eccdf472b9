/* psld restore: linear inverse problems, y = A x + noise. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "sampling.h"

typedef struct restore_request {
    sampling_request sampling;
    const char *image, *mask, *rectangle, *matrix;
    int degraded;
    long factor, iterations;
    psld_task task;
    psld_restore_options options;
} restore_request;

typedef struct restore_job {
    sampling_job sampling;
    psld_array *x;              /* [images][dim]: originals, or NULL with --degraded */
    psld_array *y, *shown;      /* [images][size], [images][dim] */
    psld_array *known, *matrix; /* of the task */
    psld_array *samples;
    psld_operator *op;   /* of the image under way: masks may differ */
    size_t images, each; /* each: samples per image */
} restore_job;

/* ---- The task ---------------------------------------------------------------------------------------------------- */

static psld_status read_matrix(const char *path, restore_job *job)
{
    psld_array *loaded = NULL;
    psld_status status = psld_array_load(path, &loaded);
    if (status == PSLD_OK) status = psld_array_convert(loaded, PSLD_F64, &job->matrix);
    psld_array_free(loaded);
    if (status == PSLD_OK && (job->matrix->rank != 2 || job->matrix->shape[1] != job->sampling.dim))
        return cli_bad_input("%s: expected a matrix [rows, %zu]", path, job->sampling.dim);
    if (status == PSLD_OK && job->matrix->shape[0] > INT_MAX)
        return cli_bad_input("%s: expected fewer rows, found %zu", path, job->matrix->shape[0]);
    return status;
}

/* The operator for image i. */
static psld_status make_operator(const restore_request *r, restore_job *job, size_t i)
{
    psld_task task = r->task;
    psld_operator_free(job->op);
    task.rank = job->sampling.rank;
    memcpy(task.shape, job->sampling.shape, sizeof task.shape);
    if (job->known) task.known = (const unsigned char *)job->known->data + i * job->sampling.dim;
    if (job->matrix) task.matrix = job->matrix->data, task.rows = (int)job->matrix->shape[0];
    return psld_operator_create(&task, &job->op);
}

static size_t measurement_size(const psld_operator *op)
{
    size_t shape[PSLD_MAX_RANK], size = 1;
    int rank = psld_operator_shape(op, shape);
    for (int i = 0; i < rank; i++) size *= shape[i];
    return size;
}

/* Masks come with whole pictures: what is measured is picked out of them. */
static int is_picked(const restore_request *r)
{
    return psld_task_find(r->task.name)->uses_known;
}

/* What was measured: as it is with --degraded, else of what --image shows. */
static psld_status read_input(const restore_request *r, restore_job *job)
{
    size_t shape[PSLD_MAX_RANK];
    psld_status status = PSLD_OK;
    if (r->matrix) status = read_matrix(r->matrix, job);
    if (status != PSLD_OK) return status;
    if (!r->degraded || is_picked(r)) {
        status = sampling_read(&job->sampling, r->image, &job->x);
        if (status == PSLD_OK) job->images = job->x->shape[0];
        if (status == PSLD_OK && is_picked(r))
            status = sampling_masks(&job->sampling, r->mask, r->rectangle, job->images, &job->known);
        return status;
    }
    status = make_operator(r, job, 0);
    if (status != PSLD_OK) return status;
    int rank = psld_operator_shape(job->op, shape);
    status = sampling_read_shape(r->image, "measurements", rank, shape, 0, &job->y);
    if (status == PSLD_OK) job->images = job->y->shape[0];
    return status;
}

/* y of image i, of `size` numbers, in room of its own. */
static psld_status restore_measure(const restore_request *r, const restore_job *job, size_t i, double *y)
{
    size_t size = measurement_size(job->op);
    if (job->y) {
        memcpy(y, (const double *)job->y->data + i * size, size * sizeof *y);
        return PSLD_OK;
    }
    return psld_operator_measure(job->op, (const double *)job->x->data + i * job->sampling.dim,
                                 r->degraded ? 0 : r->options.noise, r->sampling.options.seed, i, y);
}

/* ---- Restoring --------------------------------------------------------------------------------------------------- */

static psld_status restore_image(const restore_request *r, restore_job *job, size_t i, double *y)
{
    sampling_job *s = &job->sampling;
    psld_source *restored = NULL, *guided = NULL, *labelled = NULL;
    psld_status status = make_operator(r, job, i);
    if (status == PSLD_OK) status = restore_measure(r, job, i, y);
    if (status == PSLD_OK) status = psld_operator_show(job->op, y, (double *)job->shown->data + i * s->dim);
    if (status == PSLD_OK) status = sampling_label(s, &labelled);
    if (status == PSLD_OK)
        status = psld_source_restore(labelled ? labelled : psld_model_source(s->model), psld_model_recipe(s->model),
                                     job->op, y, &r->options, &restored);
    if (status == PSLD_OK && s->classifier) status = sampling_guide(s, restored, r->sampling.label, &guided);
    if (status == PSLD_OK)
        status = sampling_draw(s, guided ? guided : restored, i * job->each, job->each, job->samples);
    psld_source_free(guided);
    psld_source_free(restored);
    psld_source_free(labelled);
    return status;
}

static psld_status restore_images(const restore_request *r, restore_job *job)
{
    sampling_job *s = &job->sampling;
    psld_status status = read_input(r, job);
    size_t shape[2] = {job->images, s->dim}, room = s->dim + (job->matrix ? job->matrix->shape[0] : 0);
    double *y = malloc(room * sizeof *y);
    job->each = r->sampling.n ? (size_t)r->sampling.n : sampling_is_image(s) ? 4 : 1000;
    if (status == PSLD_OK && !y) status = cli_bad_input("out of memory");
    if (status == PSLD_OK) status = psld_array_create(PSLD_F64, 2, shape, &job->shown);
    if (status == PSLD_OK) status = sampling_check_strips(s, job->images, job->images * job->each);
    if (status == PSLD_OK) status = sampling_array(s, job->images * job->each, &job->samples);
    for (size_t i = 0; status == PSLD_OK && i < job->images; i++) status = restore_image(r, job, i, y);
    free(y);
    return status;
}

static void restore_release(restore_job *job)
{
    psld_array_free(job->x);
    psld_array_free(job->y);
    psld_array_free(job->shown);
    psld_array_free(job->known);
    psld_array_free(job->matrix);
    psld_array_free(job->samples);
    psld_operator_free(job->op);
    sampling_close(&job->sampling);
}

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

/* What the task needs and what it has no use for. */
static int check_uses(const cli_command *command, const restore_request *r)
{
    const psld_task_info *task = psld_task_find(r->task.name);
    if (task->uses_known && !r->mask == !r->rectangle)
        return cli_wrong_usage(command, "the unknown part is not given; add --mask M or --rect X,Y,W,H");
    if (!task->uses_known && (r->mask || r->rectangle))
        return cli_wrong_usage(command, "--mask and --rect are for --task inpaint");
    if (task->uses_matrix && !r->matrix) return cli_wrong_usage(command, "--task %s needs --matrix", task->name);
    if (!task->uses_matrix && r->matrix) return cli_wrong_usage(command, "--matrix is for --task linear");
    return EXIT_DONE;
}

static int restore_check_options(const cli_command *command, restore_request *r)
{
    if (!r->image) return cli_wrong_usage(command, "no image given; add --image I");
    int exit_code = check_uses(command, r);
    if (exit_code != EXIT_DONE) return exit_code;
    if (r->factor) r->task.factor = r->factor > INT_MAX ? INT_MAX : (int)r->factor;
    if (r->iterations) r->options.iterations = r->iterations > 100000 ? 100000 : (int)r->iterations;
    return sampling_check_restoration(command, &r->sampling);
}

static int restore_run(const cli_command *command, int argc, char **argv)
{
    restore_request r = {0};
    sampling_request *s = &r.sampling;
    const char *words[SAMPLING_WORDS];
    char tasks[NAMES_SIZE], task_help[NAMES_SIZE], methods[NAMES_SIZE], names[NAMES_SIZE], method_help[NAMES_SIZE + 64];
    int count, exit_code;
    sampling_defaults(s);
    s->model.weak = "none";
    r.task = (psld_task)PSLD_TASK_DEFAULTS;
    r.options = (psld_restore_options)PSLD_RESTORE_DEFAULTS;
    r.options.method = psld_restore_method_at(0)->name;
    snprintf(method_help, sizeof method_help, "%s (default %s; the paper's: diffused)",
             names_join(names_method, ", ", names), r.options.method);
    double pull = 1;
    const cli_option options[] = {
        {"task", 0, CLI_TEXT, "NAME", names_join(names_task, ", ", task_help), &r.task.name,
         names_join(names_task, "|", tasks)},
        {"image", 0, CLI_FILE, "I", "what is measured, and then restored: a picture, many, or .npy", &r.image, NULL},
        {"degraded", 0, CLI_FLAG, NULL, "--image is the measurement itself: small, blurred, grey ...", &r.degraded,
         NULL},
        {"factor", 0, CLI_COUNT, "F", "super-resolution: width of a block in pixels (default 4)", &r.factor, NULL},
        {"blur", 0, CLI_NUMBER, "B", "deblur: deviation in pixels (default 2)", &r.task.blur, NULL},
        {"mask", 0, CLI_FILE, "M", "inpaint: white is unknown, as of psld inpaint", &r.mask, NULL},
        {"rect", 0, CLI_TEXT, "X,Y,W,H", "inpaint: a rectangle that is unknown", &r.rectangle, NULL},
        {"matrix", 0, CLI_FILE, "A.npy", "linear: [rows, dim]", &r.matrix, NULL},
        {"noise", 0, CLI_NUMBER, "S", "deviation of the noise in the measurement (default 0)", &r.options.noise, NULL},
        {"method", 0, CLI_TEXT, "NAME", method_help, &r.options.method, names_join(names_method, "|", methods)},
        {"strength", 0, CLI_NUMBER, "W", "scale of the measurement's gradient (default 1: Bayes' rule)", &pull, NULL},
        {"iterations", 0, CLI_COUNT, "N", "posterior: at most N products per evaluation (default 8)", &r.iterations,
         NULL},
        SAMPLING_RESTORATION(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (!sampling_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (!r.task.name) return cli_wrong_usage(command, "which --task?");
    r.options.scale = pull;
    exit_code = restore_check_options(command, &r);
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
