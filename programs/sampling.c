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
    psld_status status = psld_model_open(s->classifier, &options, &job->classifier);
    if (status != PSLD_OK) return status;
    if (!psld_model_classifier(job->classifier)) return cli_bad_input("%s: is no classifier", s->classifier);
    const psld_recipe *own = psld_model_recipe(job->model), *its = psld_model_recipe(job->classifier);
    if (its && !psld_recipe_same(own, its)) {
        char what[128];
        psld_recipe_difference(its, own, what, sizeof what);
        return cli_bad_input("%s: is a classifier for recipe %s, the model has %s: %s", s->classifier,
                             psld_recipe_get(its)->name, psld_recipe_get(own)->name, what);
    }
    size_t shape[PSLD_MAX_RANK], size = 1;
    int rank = psld_model_shape(job->classifier, shape);
    for (int i = 0; i < rank; i++) size *= shape[i];
    if (!its) size /= job->k; /* then its channels are those of states */
    if (size != job->dim)
        return cli_bad_input("%s: classifies data of %zu numbers, the model's have %zu", s->classifier, size, job->dim);
    return PSLD_OK;
}

psld_status sampling_choose(const sampling_request *s, const psld_model *model, psld_sample_options *options)
{
    const psld_recipe *recipe = psld_model_recipe(model);
    psld_status status = PSLD_OK;
    *options = s->options;
    if (options->batch == 0) options->batch = (int)psld_model_batch(model);
    if (!s->sampler) status = psld_sample_quality(recipe, s->quality ? s->quality : "normal", options);
    return status == PSLD_OK ? psld_sample_complete(recipe, options) : status;
}

psld_status sampling_open(const char *const *words, int count, const sampling_request *s, int labels, sampling_job *job)
{
    cli_model model = s->model;
    cli_model_settle(&model);
    model.options.overrides = words + 1;
    model.options.override_count = count - 1;
    psld_status status = psld_model_open(words[0], &model.options, &job->model);
    if (status != PSLD_OK) return status;
    if (!psld_model_source(job->model)) return cli_bad_input("%s: a classifier has no samples", words[0]);
    job->request = s;
    job->rank = psld_model_shape(job->model, job->shape);
    job->k = (size_t)psld_recipe_get(psld_model_recipe(job->model))->k;
    job->dim = 1;
    for (int i = 0; i < job->rank; i++) job->dim *= job->shape[i];
    job->kept = job->dim * (s->state ? job->k : 1);
    job->parts = 1;
    /* With scale 1 a network follows the class in part only: docs/measurements/conditional.md has it. */
    job->scale = s->scale > 0 ? s->scale : psld_model_kind_of(job->model) == PSLD_EXACT_MODEL ? 1 : 3;
    if (s->zoom && !sampling_is_image(job)) return cli_bad_input("--zoom: %s draws no pictures", words[0]);
    status = sampling_choose(s, job->model, &job->options);
    if (status != PSLD_OK) return status;
    if (s->classifier) return open_classifier(s, job);
    if (!labels) return PSLD_OK;
    if (!psld_model_classifier(job->model))
        return cli_bad_input("%s: has no classes of its own; give --classifier", words[0]);
    job->classifier = job->model;
    return PSLD_OK;
}

int sampling_open_restoration(const cli_command *command, const char *const *words, int count,
                              const sampling_request *s, sampling_job *job)
{
    psld_status status = sampling_open(words, count, s, s->label != NULL, job);
    if (status != PSLD_OK) return cli_failed(status);
    if (!sampling_is_image(job) && !cli_ends_in(s->out, ".npy"))
        return cli_wrong_usage(command, "-o %s: vectors are written as .npy", s->out);
    return EXIT_DONE;
}

void sampling_close(sampling_job *job)
{
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
    for (int i = 0; i < job->rank; i++) shape[i + 1] = job->shape[i] * (i == 0 ? job->kept / job->dim : 1);
    return psld_array_create(PSLD_F32, job->rank + 1, shape, x);
}

/* Progress of a part as that of the whole. */
static int report_part(void *user, uint64_t done, uint64_t total)
{
    sampling_job *job = user;
    return cli_progress_report(&job->progress, job->part * total + done, job->parts * total);
}

psld_status sampling_draw(sampling_job *job, psld_source *source, uint64_t first, size_t count, float *out)
{
    size_t state = job->k * job->dim;
    double *z = malloc(count * state * sizeof *z), began = cli_seconds();
    if (!z) return cli_bad_input("out of memory for %zu samples", count);
    if (job->part == 0) cli_progress_begin(&job->progress, "sampling");
    job->options.progress = report_part;
    job->options.progress_user = job;
    psld_status status =
        psld_sample(psld_model_recipe(job->model), source, &job->options, first, count, job->dim, NULL, z, &job->nfe);
    for (size_t i = 0; status == PSLD_OK && i < count; i++)
        for (size_t j = 0; j < job->kept; j++) out[i * job->kept + j] = (float)z[i * state + j];
    free(z);
    if (++job->part == job->parts || status != PSLD_OK) cli_progress_end(&job->progress);
    job->seconds += cli_seconds() - began;
    return status;
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
    json_object_set_new(object, "process", json_string(psld_recipe_get(psld_model_recipe(job->model))->name));
    json_object_set_new(object, "seed", json_integer((json_int_t)job->options.seed));
    if (psld_model_weak_scale(job->model) != 0)
        json_object_set_new(object, "weak_scale", cli_json_number(psld_model_weak_scale(job->model)));
    json_object_set_new(object, "out", json_string(s->out));
    return cli_json_print(object);
}
