#include "sampling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Models ------------------------------------------------------------------------------------------------------ */

static psld_status open_classifier(const sampling_request *s, sampling_job *job)
{
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.config = s->classifier_config;
    options.reference = s->model.options.reference;
    options.isa = s->model.options.isa;
    options.precision = s->model.options.precision;
    options.device = cli_device(s->model.options.device);
    psld_status status = psld_model_open(s->classifier, &options, &job->classifier);
    if (status != PSLD_OK) return status;
    if (!psld_model_classifier(job->classifier)) return cli_bad_input("%s: is not a classifier", s->classifier);
    const psld_recipe *own = psld_model_recipe(job->model), *its = psld_model_recipe(job->classifier);
    if (its && !psld_recipe_same(own, its)) {
        char what[128];
        psld_recipe_difference(its, own, what, sizeof what);
        return cli_bad_input("%s: is a classifier for recipe %s, the model has recipe %s: %s", s->classifier,
                             psld_recipe_get(its)->name, psld_recipe_get(own)->name, what);
    }
    size_t shape[PSLD_MAX_RANK], size = 1;
    int rank = psld_model_shape(job->classifier, shape);
    for (int i = 0; i < rank; i++) size *= shape[i];
    if (!its) size /= job->k; /* its channels are then those of states */
    if (size != job->dim)
        return cli_bad_input("%s: classifies data of %zu numbers, the model's have %zu", s->classifier, size, job->dim);
    return PSLD_OK;
}

psld_status sampling_choose(const sampling_request *s, const psld_model *model, psld_sample_options *options)
{
    const psld_recipe *recipe = psld_model_recipe(model);
    const psld_process *process = psld_model_process(model);
    psld_status status = PSLD_OK;
    *options = s->options;
    if (process) return psld_process_sample_complete(process, options);
    if (options->batch == 0) options->batch = (int)psld_model_batch(model);
    int is_open = !s->sampler && !s->quality && !s->default_sampler;
    if (is_open || s->sampler) status = psld_model_prefer(model, options);
    if (status == PSLD_OK && !options->sampler)
        status = psld_sample_quality(recipe, s->quality ? s->quality : "normal", options);
    return status == PSLD_OK ? psld_sample_complete(recipe, options) : status;
}

static psld_status open_model(const char *const *words, int count, const sampling_request *s, sampling_job *job)
{
    cli_model model = s->model;
    cli_model_settle(&model);
    model.options.overrides = words + 1;
    model.options.override_count = count - 1;
    return (s->formulas ? psld_model_open_any : psld_model_open)(words[0], &model.options, &job->model);
}

psld_status sampling_open(const char *const *words, int count, const sampling_request *s, int classifier,
                          sampling_job *job)
{
    psld_status status = open_model(words, count, s, job);
    return status == PSLD_OK ? sampling_begin(words[0], s, classifier, job) : status;
}

psld_status sampling_begin(const char *origin, const sampling_request *s, int classifier, sampling_job *job)
{
    psld_status status;
    const psld_process *process = psld_model_process(job->model);
    if (!process && !psld_model_source(job->model)) return cli_bad_input("%s: a classifier has no samples", origin);
    job->request = s;
    job->rank = psld_model_shape(job->model, job->shape);
    job->dim = 1;
    for (int i = 0; i < job->rank; i++) job->dim *= job->shape[i];
    job->k = process ? 1 : (size_t)psld_recipe_get(psld_model_recipe(job->model))->k;
    job->width = process ? (size_t)psld_process_variables(process) : job->k * job->dim;
    job->kept = s->state ? job->width : job->dim;
    /* With scale 1 a network follows the class only in part: see docs/measurements/conditional.md. */
    job->scale = s->scale > 0 ? s->scale : psld_model_kind_of(job->model) == PSLD_EXACT_MODEL ? 1 : 3;
    if (s->zoom && !sampling_is_image(job)) return cli_bad_input("--zoom: %s draws no pictures", origin);
    status = sampling_choose(s, job->model, &job->options);
    if (status != PSLD_OK) return status;
    status = labels_choose(&s->labels, job->model, origin, &job->labels);
    if (status != PSLD_OK) return status;
    if (s->classifier) return open_classifier(s, job);
    if (!classifier) return PSLD_OK;
    if (!psld_model_classifier(job->model))
        return cli_bad_input("%s: has no classes of its own; give --classifier", origin);
    job->classifier = job->model;
    return PSLD_OK;
}

/* The label of a restoration without a classifier: the model's own, or that of an exact model's components. */
static psld_status label_restoration(const char *origin, const sampling_request *s, sampling_job *job)
{
    label_request labels = s->labels;
    labels.label = s->label;
    if (psld_model_classes(job->model) == 0 && psld_model_classifier(job->model)) {
        job->classifier = job->model;
        return PSLD_OK;
    }
    labels_free(&job->labels);
    return labels_choose(&labels, job->model, origin, &job->labels);
}

psld_status sampling_begin_restoration(const char *origin, const sampling_request *s, sampling_job *job)
{
    psld_status status = sampling_begin(origin, s, 0, job);
    return status == PSLD_OK && s->label && !s->classifier ? label_restoration(origin, s, job) : status;
}

int sampling_open_restoration(const cli_command *command, const char *const *words, int count,
                              const sampling_request *s, sampling_job *job)
{
    psld_status status = open_model(words, count, s, job);
    if (status == PSLD_OK) status = sampling_begin_restoration(words[0], s, job);
    if (status != PSLD_OK) return cli_failed(status);
    if (!sampling_is_image(job) && !cli_ends_in(s->out, ".npy"))
        return cli_wrong_usage(command, "-o %s: vectors are written as .npy", s->out);
    return EXIT_DONE;
}

void sampling_close(sampling_job *job)
{
    labels_free(&job->labels);
    if (job->classifier != job->model) psld_model_free(job->classifier);
    psld_model_free(job->model);
}

int sampling_is_image(const sampling_job *job)
{
    return job->rank == 3 && (job->shape[0] == 1 || job->shape[0] == 3);
}

size_t sampling_classes(const sampling_job *job)
{
    return psld_classifier_classes(psld_model_classifier(job->classifier));
}

psld_status sampling_guide_class(sampling_job *job, psld_source *base, size_t number, psld_source **owned)
{
    *owned = NULL;
    return psld_source_guide(base, psld_model_recipe(job->model), psld_model_classifier(job->classifier), number,
                             job->scale, owned);
}

psld_status sampling_label(sampling_job *job, psld_source **owned)
{
    psld_labels labels = job->labels.labels;
    *owned = NULL;
    if (!job->labels.is_set) return PSLD_OK;
    if (labels.cfg == PSLD_UNSET) labels.cfg = psld_model_cfg(job->model);
    return psld_source_label(psld_model_source(job->model), psld_model_recipe(job->model), &labels, owned);
}

psld_status sampling_guide(sampling_job *job, psld_source *base, const char *label, psld_source **owned)
{
    size_t number = 0;
    *owned = NULL;
    psld_status status = psld_model_label(job->classifier, label, &number);
    return status == PSLD_OK ? sampling_guide_class(job, base, number, owned) : status;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

psld_status sampling_array(const sampling_job *job, size_t n, psld_array **x)
{
    size_t shape[PSLD_MAX_RANK] = {n};
    for (int i = 0; i < job->rank; i++) shape[i + 1] = i == 0 ? job->shape[0] * job->kept / job->dim : job->shape[i];
    return psld_array_create(PSLD_F32, job->rank + 1, shape, x);
}

typedef struct sampling_batch {
    sampling_job *job;
    size_t count;
} sampling_batch;

/* Progress of a batch as progress of the whole. */
static int report_batch(void *user, uint64_t done, uint64_t total)
{
    const sampling_batch *batch = user;
    uint64_t unit = total / batch->count; /* per sample */
    return cli_progress_report(&batch->job->progress, batch->job->drawn * unit + done, batch->job->planned * unit);
}

/* Draws one batch; z is memory for its states. */
static psld_status draw_batch(sampling_job *job, psld_source *source, uint64_t first, size_t count, double *z, float *x)
{
    sampling_batch batch = {job, count};
    size_t state = job->k * job->dim;
    uint64_t nfe = 0;
    job->options.progress = report_batch;
    job->options.progress_user = &batch;
    psld_status status =
        psld_sample(psld_model_recipe(job->model), source, &job->options, first, count, job->dim, NULL, z, &nfe);
    if (status != PSLD_OK) return status;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < job->kept; j++) x[i * job->kept + j] = (float)z[i * state + j];
    job->drawn += count;
    job->evaluations += nfe * count;
    job->nfe = (job->evaluations + job->drawn - 1) / job->drawn;
    return PSLD_OK;
}

/* Whole groups of samples that share their steps: otherwise a sample would depend on the batch. */
static size_t batch_size(const sampling_job *job, size_t count)
{
    size_t batch = (size_t)job->options.batch, group = (size_t)job->options.ode_group;
    if (sampling_is_adaptive(job->options.sampler)) batch = (batch + group - 1) / group * group;
    return batch < count ? batch : count;
}

psld_status sampling_draw(sampling_job *job, psld_source *source, uint64_t first, size_t count, psld_array *x)
{
    size_t batch = batch_size(job, count);
    double *z = malloc(batch * job->k * job->dim * sizeof *z), began = cli_seconds();
    psld_status status = PSLD_OK;
    if (!z) return cli_bad_input("out of memory for %zu samples", batch);
    job->planned = x->shape[0];
    if (job->drawn == 0) cli_progress_begin(&job->progress, "sampling");
    for (size_t i = 0; status == PSLD_OK && i < count; i += batch)
        status = draw_batch(job, source, first + i, count - i < batch ? count - i : batch, z,
                            (float *)x->data + job->drawn * job->kept);
    free(z);
    if (job->drawn == job->planned || status != PSLD_OK) cli_progress_end(&job->progress);
    job->seconds += cli_seconds() - began;
    return status;
}

int sampling_keep(const sampling_job *job, psld_status status, psld_array *x)
{
    if (status != PSLD_OK && (status != PSLD_CANCELLED || job->drawn == 0)) return 0;
    x->shape[0] = job->drawn;
    x->count = job->drawn * job->kept;
    return 1;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

psld_status sampling_pixels(const sampling_job *job, const psld_array *x, psld_array **pixels)
{
    return psld_images_from_data(x, strcmp(job->request->quantize, "floor") == 0, pixels);
}

psld_status sampling_check_folder(const char *out, const char *part, size_t n)
{
    char next[CLI_PATH];
    if (snprintf(next, sizeof next, "%s/%s/%06zu.png", out, part, n) >= (int)sizeof next)
        return cli_bad_input("%s: the name is too long", out);
    if (access(next, F_OK) != 0) return PSLD_OK;
    return cli_bad_input("%s/%s: has more pictures than the %zu to be written here; expected a folder without others",
                         out, part, n);
}

psld_status sampling_write_folder(const psld_array *pixels, const char *path)
{
    char name[CLI_PATH];
    size_t each = pixels->count / pixels->shape[0];
    psld_status status = psld_folder_make(path);
    for (size_t i = 0; status == PSLD_OK && i < pixels->shape[0]; i++) {
        psld_array one = {.type = PSLD_U8, .rank = 3, .count = each};
        memcpy(one.shape, pixels->shape + 1, 3 * sizeof *one.shape);
        one.data = (unsigned char *)pixels->data + i * each;
        if (snprintf(name, sizeof name, "%s/%06zu.png", path, i) >= (int)sizeof name)
            return cli_bad_input("%s: the name is too long", path);
        status = psld_image_save(&one, name);
    }
    return status;
}

int sampling_report(const sampling_job *job, size_t n, const char *what)
{
    const sampling_request *s = job->request;
    if (!s->json) {
        double guided = psld_model_weak_scale(job->model);
        printf("%zu samples %s", n, what);
        if (guided != 0) printf(", guided by a weak model at %g", guided);
        if (job->nfe) printf(", %llu evaluations each, %.2f s", (unsigned long long)job->nfe, job->seconds);
        printf(": %s%s\n", s->out, job->nfe ? "" : " has them all");
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "n", json_integer((json_int_t)n));
    json_object_set_new(object, "nfe", json_integer((json_int_t)job->nfe));
    json_object_set_new(object, "seconds", cli_json_number(job->seconds));
    json_object_set_new(object, "sampler", json_string(job->options.sampler));
    json_object_set_new(object, "process", json_string(psld_model_process_name(job->model)));
    json_object_set_new(object, "seed", json_integer((json_int_t)job->options.seed));
    if (psld_model_weak_scale(job->model) != 0)
        json_object_set_new(object, "weak_scale", cli_json_number(psld_model_weak_scale(job->model)));
    json_object_set_new(object, "out", json_string(s->out));
    return cli_json_print(object);
}

int sampling_report_interrupted(const sampling_job *job, size_t made, size_t n, const char *rest)
{
    if (made == 0 && !*rest)
        cli_complain("interrupted before the first batch of samples was done");
    else
        cli_complain("interrupted: %s has %zu of %zu samples%s", job->request->out, made, n, rest);
    return EXIT_FAILED;
}
