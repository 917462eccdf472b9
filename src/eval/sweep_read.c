/* The file of a sweep:
 *     name: cifar10-sde
 *     models: {psld: runs/psld, vp: runs/vp}    # label: path, or a list of paths
 *     processes: [vp, cld]                      # other recipes than the models' own (exact models)
 *     data: cifar10/train.tar                   # images, features, statistics; not needed for exact models
 *     size: 64                                  # that images of the data are brought to; as they are without it
 *     fit: crop                                 # or stretch: those that are not square
 *     resample: lanczos                         # the filter that brings them to the size
 *     weights: inception.safetensors            # what images become features by
 *     metrics: fid,is
 *     samplers: [em, sscs, ode, ancestral eta=0.5 grid=log nfe=50]
 *     grids: [uniform, quadratic]               # without it each sampler takes its own
 *     nfe: [50, 100]                            # of samplers with a fixed number of steps
 *     tolerances: [1e-3, 1e-5]                  # of adaptive ones
 *     label: all                                # classes that samples are to have, in turn; by frequency without it
 *     cfg: [1, 2, 3]                            # classifier-free guidance; the models' own without it
 *     cfg_range: [0.2, 5]                       # only where the effective noise is in this range
 *     number: 10000                             # samples per cell
 *     seeds: [0]
 *     quantize: round                           # or floor
 *     inpaint: {images: afhq/test, hide: right} # continue images instead of drawing freely; or hide what is white in
 *                                               # masks: mnist/train-images-idx3-ubyte.gz; method: replace or authors
 */
#include <math.h>
#include <string.h>

#include "eval/sweep.h"

/* Duplicates would look like two seeds with equal results. */
static psld_status check_different(const psld_node *node, const psld_sweep_texts *list)
{
    for (size_t i = 1; i < list->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(list->text[i], list->text[j]) == 0)
                return psld_node_fail(node, "\"%s\" is listed twice", list->text[i]);
    return PSLD_OK;
}

static psld_status read_texts(const psld_node *node, const char *fallback, psld_sweep_texts *list)
{
    list->count = 0;
    if (!node && fallback) list->text[list->count++] = fallback;
    if (!node) return PSLD_OK;
    if (psld_node_kind_of(node) == PSLD_NODE_SCALAR) return psld_node_text(node, &list->text[list->count++]);
    if (psld_node_kind_of(node) != PSLD_NODE_LIST || psld_node_size(node) > PSLD_SWEEP_LIST ||
        psld_node_size(node) == 0)
        return psld_node_fail(node, "expected a list of 1 to %d", PSLD_SWEEP_LIST);
    for (size_t i = 0; i < psld_node_size(node); i++)
        PSLD_TRY(psld_node_text(psld_node_at(node, i), &list->text[list->count++]));
    return check_different(node, list);
}

static psld_status read_sweep_number(const psld_node *node, double least, double most, int whole,
                                     psld_sweep_numbers *list)
{
    double value;
    PSLD_TRY(psld_node_number(node, &value));
    if (!(value >= least && value <= most) || (whole && value != floor(value)))
        return psld_node_fail(node, "expected a %snumber from %g to %g, found %g", whole ? "whole " : "", least, most,
                              value);
    for (size_t i = 0; i < list->count; i++)
        if (list->value[i] == value) return psld_node_fail(node, "%g is listed twice", value);
    list->value[list->count++] = value;
    return PSLD_OK;
}

static psld_status read_sweep_numbers(const psld_node *node, double least, double most, int whole,
                                      psld_sweep_numbers *list)
{
    list->count = 0;
    if (!node) return PSLD_OK;
    if (psld_node_kind_of(node) == PSLD_NODE_SCALAR) return read_sweep_number(node, least, most, whole, list);
    size_t count = psld_node_size(node);
    if (count == 0 || count > PSLD_SWEEP_LIST)
        return psld_node_fail(node, "expected a list of 1 to %d numbers", PSLD_SWEEP_LIST);
    for (size_t i = 0; i < count; i++) PSLD_TRY(read_sweep_number(psld_node_at(node, i), least, most, whole, list));
    return PSLD_OK;
}

static psld_status read_models(const psld_node *root, psld_sweep *s)
{
    const psld_node *node = psld_node_get(root, "models");
    if (!node) return psld_node_fail(root, "models is missing");
    if (psld_node_kind_of(node) != PSLD_NODE_MAP) {
        PSLD_TRY(read_texts(node, NULL, &s->models));
        s->labels = s->models;
        return PSLD_OK;
    }
    size_t count = psld_node_size(node);
    if (count == 0 || count > PSLD_SWEEP_LIST) return psld_node_fail(node, "expected 1 to %d models", PSLD_SWEEP_LIST);
    for (size_t i = 0; i < count; i++) {
        s->labels.text[i] = psld_node_key_at(node, i);
        PSLD_TRY(psld_node_text(psld_node_at(node, i), &s->models.text[i]));
    }
    s->labels.count = s->models.count = count;
    return PSLD_OK;
}

static psld_status read_text(const psld_node *root, const char *key, const char *fallback, const char **text)
{
    const psld_node *node = psld_node_get(root, key);
    *text = fallback;
    return node ? psld_node_text(node, text) : PSLD_OK;
}

/* The default is the first. */
static psld_status read_one_of(const psld_node *root, const char *key, const char *first, const char *second,
                               const char **word)
{
    PSLD_TRY(read_text(root, key, first, word));
    if (strcmp(*word, first) == 0 || strcmp(*word, second) == 0) return PSLD_OK;
    return psld_node_fail(psld_node_get(root, key), "expected %s or %s, found \"%s\"", first, second, *word);
}

static psld_status read_inpaint(const psld_node *node, psld_sweep *s)
{
    static const char *const keys[] = {"images", "hide", "masks", "method", NULL};
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_check_keys(node, keys));
    PSLD_TRY(read_text(node, "images", NULL, &s->inpaint_images));
    PSLD_TRY(read_text(node, "masks", NULL, &s->masks_path));
    if (!s->inpaint_images) return psld_node_fail(node, "images is missing");
    if (s->masks_path && psld_node_get(node, "hide"))
        return psld_node_fail(node, "expected either hide or masks, found both");
    PSLD_TRY(read_one_of(node, "method", "replace", "authors", &s->method));
    return read_text(node, "hide", "right", &s->hide);
}

static psld_status read_resample(const psld_node *node, int *resample)
{
    const char *word;
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &word));
    const psld_resample_info *filter = psld_resample_find(word);
    if (!filter) return psld_node_fail(node, "%s", psld_error_text());
    *resample = (int)filter->filter;
    return PSLD_OK;
}

static psld_status read_labels(const psld_node *root, psld_sweep *s)
{
    const psld_node *range = psld_node_get(root, "cfg_range");
    PSLD_TRY(read_text(root, "label", NULL, &s->label));
    PSLD_TRY(read_sweep_numbers(psld_node_get(root, "cfg"), -1e3, 1e3, 0, &s->cfg));
    PSLD_TRY(read_sweep_numbers(range, 0, 1e9, 0, &s->cfg_range));
    if (range && (s->cfg_range.count != 2 || s->cfg_range.value[0] >= s->cfg_range.value[1]))
        return psld_node_fail(range, "expected the smallest and the largest effective noise, [LO, HI]");
    return PSLD_OK;
}

psld_status psld_sweep_read(const psld_node *root, psld_sweep *s)
{
    static const char *const keys[] = {"name",  "models", "processes",  "data",   "weights", "metrics",   "samplers",
                                       "grids", "nfe",    "tolerances", "number", "seeds",   "quantize",  "inpaint",
                                       "size",  "fit",    "resample",   "label",  "cfg",     "cfg_range", NULL};
    const psld_node *number = psld_node_get(root, "number"), *size = psld_node_get(root, "size");
    PSLD_TRY(psld_node_check_keys(root, keys));
    PSLD_TRY(read_models(root, s));
    PSLD_TRY(read_texts(psld_node_get(root, "processes"), NULL, &s->processes));
    PSLD_TRY(read_texts(psld_node_get(root, "samplers"), "em", &s->samplers));
    PSLD_TRY(read_texts(psld_node_get(root, "grids"), NULL, &s->grids));
    PSLD_TRY(read_sweep_numbers(psld_node_get(root, "nfe"), 1, 1e6, 1, &s->nfe));
    PSLD_TRY(read_sweep_numbers(psld_node_get(root, "tolerances"), 1e-12, 0.5, 0, &s->tolerances));
    PSLD_TRY(read_sweep_numbers(psld_node_get(root, "seeds"), 0, 9e15, 1, &s->seeds));
    PSLD_TRY(read_text(root, "name", s->path, &s->name));
    PSLD_TRY(read_text(root, "data", NULL, &s->data));
    PSLD_TRY(read_text(root, "weights", NULL, &s->weights));
    PSLD_TRY(read_text(root, "metrics", "fid", &s->metric_names));
    PSLD_TRY(read_one_of(root, "quantize", "round", "floor", &s->quantize));
    PSLD_TRY(read_one_of(root, "fit", "crop", "stretch", &s->fit));
    PSLD_TRY(read_resample(psld_node_get(root, "resample"), &s->resample));
    if (size) PSLD_TRY(psld_node_integer(size, 1, 4096, &s->size));
    PSLD_TRY(read_inpaint(psld_node_get(root, "inpaint"), s));
    PSLD_TRY(read_labels(root, s));
    s->number = 10000;
    if (number) PSLD_TRY(psld_node_integer(number, 2, 1000000000, &s->number));
    if (s->seeds.count == 0) s->seeds.count = 1;
    psld_status status = psld_metrics_parse(s->metric_names, &s->metrics);
    return status == PSLD_OK ? PSLD_OK : psld_node_fail(psld_node_get(root, "metrics"), "%s", psld_error_text());
}
