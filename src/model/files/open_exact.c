/* Exact models: YAML with a mixture and a process.
 *     mixture: {weights: [0.5, 0.5], means: [[-1, 0], [1, 0]], scales: [0.1, 0.1]}     # scales: or one number for all
 *     process: psld gamma=0.02        # a line, or a recipe as a map
 * and perhaps, in `mixture`, `labels: [0, 1]`, the class of each component, and
 *     as: edm                         # or {timesteps: linear}: posed as such a network */
#include "base/alloc.h"
#include "model/foreign/foreign.h"
#include "model/model.h"
#include "process/recipe_read.h"
#include "sample/sources/mixture.h"

enum { MAX_NUMBERS = 1 << 24 };

static psld_status read_scales(const psld_node *node, size_t components, double *scales)
{
    if (psld_node_kind_of(node) == PSLD_NODE_LIST) return psld_node_numbers(node, components, scales);
    double all = 0;
    PSLD_TRY(psld_node_number(node, &all));
    for (size_t c = 0; c < components; c++) scales[c] = all;
    return PSLD_OK;
}

static psld_status require_key(const psld_node *map, const char *key, const psld_node **value)
{
    *value = psld_node_get(map, key);
    return *value ? PSLD_OK : psld_node_fail(map, "%s is missing", key);
}

static psld_status read_mixture(const psld_node *map, psld_mixture **mixture)
{
    static const char *const keys[] = {"weights", "means", "scales", "labels", NULL};
    const psld_node *weights, *means, *scales;
    PSLD_TRY(psld_node_check_keys(map, keys));
    PSLD_TRY(require_key(map, "weights", &weights));
    PSLD_TRY(require_key(map, "means", &means));
    PSLD_TRY(require_key(map, "scales", &scales));
    size_t components = psld_node_size(means);
    if (psld_node_kind_of(means) != PSLD_NODE_LIST || components == 0)
        return psld_node_fail(means, "expected a list of points, one for each component");
    size_t dim = psld_node_size(psld_node_at(means, 0));
    if (dim == 0 || components > MAX_NUMBERS / dim)
        return psld_node_fail(psld_node_at(means, 0), "expected a point as a list of numbers");
    double *numbers = psld_alloc(components * (dim + 2), sizeof *numbers);
    if (!numbers) return PSLD_NO_MEMORY;
    double *w = numbers, *s = w + components, *m = s + components;
    psld_status status = psld_node_numbers(weights, components, w);
    if (status == PSLD_OK) status = read_scales(scales, components, s);
    if (status == PSLD_OK) status = psld_node_matrix(means, components, dim, m);
    if (status == PSLD_OK) {
        status = psld_mixture_create(components, dim, w, m, s, mixture);
        if (status == PSLD_BAD_INPUT) psld_node_fail(map, "%s", psld_error_text());
    }
    psld_release(numbers);
    return status;
}

/* Reads the classes of the components. */
static psld_status read_labels(const psld_node *map, size_t components, psld_mixture **mixture)
{
    const psld_node *labels = psld_node_get(map, "labels");
    psld_mixture *labelled;
    if (!labels) return PSLD_OK;
    if (psld_node_kind_of(labels) != PSLD_NODE_LIST || psld_node_size(labels) != components)
        return psld_node_fail(labels, "expected a class for each of the %zu components", components);
    int32_t *label = psld_alloc(components, sizeof *label);
    psld_status status = label ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t c = 0; status == PSLD_OK && c < components; c++) {
        int64_t number = 0;
        status = psld_node_integer(psld_node_at(labels, c), 0, (int64_t)components - 1, &number);
        label[c] = (int32_t)number;
    }
    if (status == PSLD_OK) {
        status = psld_mixture_label(*mixture, label, &labelled);
        if (status == PSLD_BAD_INPUT) psld_node_fail(labels, "%s", psld_error_text());
    }
    psld_release(label);
    if (status != PSLD_OK) return status;
    psld_mixture_free(*mixture);
    *mixture = labelled;
    return PSLD_OK;
}

/* The probabilities of the classes. */
static psld_status count_classes(psld_model *model)
{
    size_t classes = psld_mixture_classes(model->mixture);
    if (classes == 0) return PSLD_OK;
    model->class_counts = psld_alloc(classes, sizeof *model->class_counts);
    if (!model->class_counts) return PSLD_NO_MEMORY;
    for (size_t y = 0; y < classes; y++) model->class_counts[y] = psld_mixture_frequency(model->mixture, y);
    return PSLD_OK;
}

/* Replaces the score by that of a network which has learned the mixture perfectly. */
static psld_status pose_as_network(const psld_node *as, psld_model *model)
{
    PSLD_TRY(psld_conditioning_read_short(as, &model->conditioning));
    PSLD_TRY(psld_foreign_check_range(model->recipe, &model->conditioning));
    model->learned = model->recipe;
    PSLD_TRY(psld_source_create(model->recipe, psld_model_predict, NULL, model, &model->source));
    model->source->gradient = psld_model_differentiate;
    model->source->classes = psld_mixture_classes(model->mixture);
    return PSLD_OK;
}

psld_status psld_model_read_exact(const psld_node *root, const char *process, psld_model *model)
{
    static const char *const keys[] = {"name", "mixture", "process", "as", NULL};
    const psld_node *mixture, *own_process, *as = psld_node_get(root, "as");
    PSLD_TRY(psld_node_check_keys(root, keys));
    PSLD_TRY(require_key(root, "mixture", &mixture));
    PSLD_TRY(read_mixture(mixture, &model->mixture));
    PSLD_TRY(read_labels(mixture, psld_node_size(psld_node_get(mixture, "means")), &model->mixture));
    PSLD_TRY(count_classes(model));
    if (process) {
        PSLD_TRY(psld_recipe_open(process, &model->recipe));
    } else {
        PSLD_TRY(require_key(root, "process", &own_process));
        PSLD_TRY(psld_recipe_read(own_process, &model->recipe));
    }
    model->kind = PSLD_EXACT_MODEL;
    model->cfg = 1;
    model->rank = 1;
    model->shape[0] = psld_mixture_dim(model->mixture);
    PSLD_TRY(psld_classifier_mixture(model->mixture, model->recipe, &model->classifier));
    PSLD_TRY(as ? pose_as_network(as, model) : psld_source_mixture(model->mixture, model->recipe, &model->source));
    model->source->kind = PSLD_SOURCE_MEAN;
    return PSLD_OK;
}
