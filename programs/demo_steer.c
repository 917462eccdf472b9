/* The model that comes with the program, steered: one digit of each class by its own labels and classifier-free guidance,
 * one by the gradient of a classifier, and a digit whose lower half is hidden and filled in again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define MODEL      "digits.safetensors"
#define CLASSIFIER "digits-classifier.safetensors"

enum { CLASSES = 10, SHOWN = 3, COMPLETIONS = CLASSES - 2 };

static struct steered {
    int found;
    psld_model *model, *classifier;
    psld_sample_options options;
    size_t k, dim;
    psld_array *row; /* float32 [CLASSES, 1, h, w]: what a picture shows */
    double *states;  /* [CLASSES][k * dim] */
    int labelled;    /* whether the model takes labels, */
    double cfg;      /* and its guidance */
    cli_progress progress;
    uint64_t nfe[3];
    double seconds[3];
} steered;
enum { BY_LABEL, BY_CLASSIFIER, COMPLETED };

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* Opens one of the two models. It is no failure if it is missing: *model is NULL then. */
static psld_status open_shipped(const char *name, psld_model **model)
{
    char path[CLI_PATH];
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.weak = "";
    return cli_shipped_model(name, path) ? psld_model_open(path, &options, model) : PSLD_OK;
}

/* Whether the two are a model of grey pictures and a classifier of its states. */
static int belong_together(void)
{
    size_t shape[PSLD_MAX_RANK];
    if (!steered.model || !steered.classifier || !psld_model_classifier(steered.classifier)) return 0;
    const psld_recipe *its = psld_model_recipe(steered.classifier);
    if (!its || !psld_recipe_same(psld_model_recipe(steered.model), its)) return 0;
    return psld_model_shape(steered.model, shape) == 3 && shape[0] == 1 &&
           psld_model_classes(steered.classifier) >= CLASSES;
}

static psld_status open_models(void)
{
    size_t shape[PSLD_MAX_RANK];
    psld_status status = open_shipped(MODEL, &steered.model);
    if (status == PSLD_OK) status = open_shipped(CLASSIFIER, &steered.classifier);
    steered.found = status == PSLD_OK && belong_together();
    if (!steered.found) return status;
    steered.labelled = psld_model_classes(steered.model) >= CLASSES;
    steered.cfg = psld_model_cfg(steered.model);
    psld_model_shape(steered.model, shape);
    size_t row[4] = {CLASSES, 1, shape[1], shape[2]};
    steered.dim = shape[1] * shape[2];
    steered.k = (size_t)psld_recipe_get(psld_model_recipe(steered.model))->k;
    steered.states = malloc(CLASSES * steered.k * steered.dim * sizeof *steered.states);
    if (!steered.states) return cli_bad_input("out of memory");
    steered.options = (psld_sample_options)PSLD_SAMPLE_DEFAULTS;
    status = psld_sample_quality(psld_model_recipe(steered.model), "normal", &steered.options);
    return status == PSLD_OK ? psld_array_create(PSLD_F32, 4, row, &steered.row) : status;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

static void keep_position(const double *state, size_t column)
{
    float *to = (float *)steered.row->data + column * steered.dim;
    for (size_t j = 0; j < steered.dim; j++) to[j] = (float)state[j];
}

static psld_status save_row(const char *path)
{
    psld_array *pixels = NULL;
    psld_status status = psld_images_from_data(steered.row, 0, &pixels);
    if (status == PSLD_OK) status = psld_image_grid(pixels, CLASSES, path);
    psld_array_free(pixels);
    return status;
}

static psld_status demo_draw_labels(const char *folder)
{
    const psld_recipe *recipe = psld_model_recipe(steered.model);
    int32_t label[CLASSES];
    psld_labels labels = PSLD_LABELS_DEFAULTS;
    psld_source *labelled = NULL;
    double began = cli_seconds();
    if (!steered.labelled) return PSLD_OK;
    for (int32_t c = 0; c < CLASSES; c++) label[c] = c;
    labels.label = label;
    labels.count = CLASSES;
    labels.cfg = steered.cfg;
    psld_status status = psld_source_label(psld_model_source(steered.model), recipe, &labels, &labelled);
    if (status == PSLD_OK)
        status = psld_sample(recipe, labelled, &steered.options, 0, CLASSES, steered.dim, NULL, steered.states,
                             &steered.nfe[BY_LABEL]);
    for (size_t c = 0; status == PSLD_OK && c < CLASSES; c++)
        keep_position(steered.states + c * steered.k * steered.dim, c);
    psld_source_free(labelled);
    steered.seconds[BY_LABEL] = cli_seconds() - began;
    return status == PSLD_OK ? save_row(demo_file(folder, "digits-labels.png")) : status;
}

static psld_status demo_draw_class(size_t label)
{
    const psld_recipe *recipe = psld_model_recipe(steered.model);
    psld_source *guided = NULL;
    psld_status status = psld_source_guide(psld_model_source(steered.model), recipe,
                                           psld_model_classifier(steered.classifier), label, 3, &guided);
    if (status == PSLD_OK)
        status = psld_sample(recipe, guided, &steered.options, label, 1, steered.dim, NULL, steered.states,
                             &steered.nfe[BY_CLASSIFIER]);
    if (status == PSLD_OK) keep_position(steered.states, label);
    psld_source_free(guided);
    return status;
}

static psld_status demo_draw_classes(const char *folder)
{
    double began = cli_seconds();
    psld_status status = PSLD_OK;
    for (size_t label = 0; label < CLASSES && status == PSLD_OK; label++) {
        status = demo_draw_class(label);
        if (cli_progress_report(&steered.progress, label + 1, 2 * CLASSES)) return PSLD_CANCELLED;
    }
    steered.seconds[BY_CLASSIFIER] = cli_seconds() - began;
    return status == PSLD_OK ? save_row(demo_file(folder, "digits-guided.png")) : status;
}

/* Digit SHOWN of the row, the same with its lower half hidden, and completions. */
static psld_status complete_digits(double *x, unsigned char *known)
{
    psld_inpainting inpainting = PSLD_INPAINTING_DEFAULTS;
    psld_sample_options options = steered.options;
    const float *digit = (const float *)steered.row->data + SHOWN * steered.dim;
    double began = cli_seconds();
    for (size_t j = 0; j < steered.dim; j++) {
        x[j] = (double)digit[j];
        known[j] = j < steered.dim / 2;
    }
    inpainting.x = x;
    inpainting.known = known;
    inpainting.repeats = 5;
    options.inpainting = &inpainting;
    options.nfe = 21;
    psld_status status = psld_sample(psld_model_recipe(steered.model), psld_model_source(steered.model), &options, 0,
                                     COMPLETIONS, steered.dim, NULL, steered.states, &steered.nfe[COMPLETED]);
    if (status != PSLD_OK) return status;
    keep_position(x, 0);
    for (size_t j = steered.dim / 2; j < steered.dim; j++) x[j] = 0;
    keep_position(x, 1);
    for (size_t i = 0; i < COMPLETIONS; i++) keep_position(steered.states + i * steered.k * steered.dim, 2 + i);
    steered.seconds[COMPLETED] = cli_seconds() - began;
    return PSLD_OK;
}

static psld_status draw_completions(const char *folder)
{
    double *x = malloc(steered.dim * sizeof *x);
    unsigned char *known = malloc(steered.dim);
    psld_status status = x && known ? complete_digits(x, known) : cli_bad_input("out of memory");
    free(x);
    free(known);
    return status == PSLD_OK ? save_row(demo_file(folder, "digits-completed.png")) : status;
}

psld_status demo_steer(const char *folder)
{
    psld_status status = open_models();
    if (status == PSLD_OK && steered.found) {
        cli_progress_begin(&steered.progress, "digits, steered");
        status = demo_draw_labels(folder);
        if (status == PSLD_OK) status = demo_draw_classes(folder);
        if (status == PSLD_OK) status = draw_completions(folder);
        cli_progress_end(&steered.progress);
    }
    psld_array_free(steered.row);
    psld_model_free(steered.model);
    psld_model_free(steered.classifier);
    free(steered.states);
    return status;
}

/* ---- Output ------------------------------------------------------------------------------------------------------ */

static void print_steered(FILE *out, const char *what, int row)
{
    fprintf(out, "  %-41s %4llu evaluations, %.1f s\n", what, (unsigned long long)steered.nfe[row],
            steered.seconds[row]);
}

void demo_steer_print(FILE *out)
{
    if (!steered.found) {
        fprintf(out, "Nothing steered: " MODEL " and " CLASSIFIER " are not both where they should be\n");
        return;
    }
    fprintf(out, "The same network steered\n\n");
    if (steered.labelled) print_steered(out, "one digit per label", BY_LABEL);
    print_steered(out, "one digit of each class, by a classifier", BY_CLASSIFIER);
    print_steered(out, "a lower half filled in", COMPLETED);
}

void demo_steer_page(FILE *out)
{
    if (!steered.found) return;
    fprintf(out, "<h2>Steered</h2>\n");
    if (steered.labelled)
        fprintf(out,
                "<p>One digit per label, with classifier-free guidance at %g (psld sample --label all).</p>\n"
                "<img class=\"pixels\" src=\"digits-labels.png\" alt=\"one digit per label\">\n",
                steered.cfg);
    fprintf(out,
            "<p>The same network without labels, guided to each class by the gradient of a classifier of noisy digits "
            "(psld "
            "guide);\nand one digit of that row, its lower half hidden, then filled in %d times (psld inpaint).</p>\n"
            "<img class=\"pixels\" src=\"digits-guided.png\" alt=\"one digit of each class\">\n"
            "<img class=\"pixels\" src=\"digits-completed.png\" alt=\"original, lower half hidden, completions\">\n",
            (int)COMPLETIONS);
}
