#include "restore.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

/* ---- The options ------------------------------------------------------------------------------------------------- */

void restore_defaults(restore_request *r)
{
    memset(r, 0, sizeof *r);
    sampling_defaults(&r->sampling);
    r->sampling.model.weak = "none";
    r->task = (psld_task)PSLD_TASK_DEFAULTS;
    r->options = (psld_restore_options)PSLD_RESTORE_DEFAULTS;
    r->options.method = psld_restore_method_at(0)->name;
    snprintf(r->method_help, sizeof r->method_help, "%s (default %s; the paper's: diffused)",
             names_join(names_method, ", ", r->methods), r->options.method);
    names_join(names_method, "|", r->methods);
    names_join(names_task, ", ", r->task_help);
    names_join(names_task, "|", r->tasks);
}

/* Checks for options that the task needs, and for those that it does not use. */
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

int restore_check(const cli_command *command, restore_request *r)
{
    if (!r->task.name) return cli_wrong_usage(command, "which --task?");
    if (!r->image) return cli_wrong_usage(command, "no image given; add --image I");
    int exit_code = check_uses(command, r);
    if (exit_code != EXIT_DONE) return exit_code;
    if (r->factor) r->task.factor = r->factor > INT_MAX ? INT_MAX : (int)r->factor;
    if (r->iterations) r->options.iterations = r->iterations > 100000 ? 100000 : (int)r->iterations;
    return sampling_check_conditions(command, &r->sampling);
}

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

/* Masks come with whole pictures: the measured elements are taken out of them. */
static int is_picked(const restore_request *r)
{
    return psld_task_find(r->task.name)->uses_known;
}

/* The measurements: --image itself with --degraded, otherwise measured from --image. */
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

/* y of image i, of `size` numbers, in memory of its own. */
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

psld_status restore_images(const restore_request *r, restore_job *job)
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

void restore_release(restore_job *job)
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
