/* Sweeps. A file lists models, recipes, samplers and budgets; every combination is a cell, which is drawn, compared with
 * the data, and forgotten. The side of the data is measured once: its features are kept, or their moments where that is
 * enough.
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
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sized.h"
#include "base/text.h"
#include "eval/identity.h"
#include "eval/metrics.h"
#include "eval/set.h"
#include "io/yaml/yaml.h"
#include "sample/options.h"
#include "sample/sample.h"

enum { MAX_LIST = 64, ADAPTIVE_GUESS = 100, ESTIMATE_NFE = 3 };

typedef struct texts {
    size_t count;
    const char *text[MAX_LIST]; /* owned by the YAML */
} texts;

typedef struct numbers {
    size_t count;
    double value[MAX_LIST];
} numbers;

struct psld_sweep {
    psld_yaml *yaml;
    char *path;
    char *device; /* NULL: the CPU */
    const char *name, *data, *weights, *metric_names, *quantize, *fit, *inpaint_images, *hide, *masks_path, *method,
        *label;
    texts labels, models, processes, samplers, grids;
    numbers nfe, tolerances, seeds, cfg, cfg_range;
    int64_t number, size;
    int resample;
    unsigned metrics;
    psld_sweep_cell *cells;
    psld_comparison comparison; /* of the last cell that was run */
    size_t *model_of;           /* [cell_count] */
    size_t cell_count;
    /* identities of what the names stand for; 0: not given */
    uint64_t *fingerprint; /* [cell_count]: model with its recipe */
    uint64_t data_identity, weights_identity, known_identity, masks_identity;
    /* made when the first cell runs */
    psld_features *features;
    psld_set *real, *known, *masks;
    /* the model of the last cell: the next cell often has the same */
    psld_model *model;
    size_t model_index;
    const char *model_process;
    uint64_t model_fingerprint;
};

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Duplicates would look like two seeds with equal results. */
static psld_status check_different(const psld_node *node, const texts *list)
{
    for (size_t i = 1; i < list->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(list->text[i], list->text[j]) == 0)
                return psld_node_fail(node, "\"%s\" is listed twice", list->text[i]);
    return PSLD_OK;
}

static psld_status read_texts(const psld_node *node, const char *fallback, texts *list)
{
    list->count = 0;
    if (!node && fallback) list->text[list->count++] = fallback;
    if (!node) return PSLD_OK;
    if (psld_node_kind_of(node) == PSLD_NODE_SCALAR) return psld_node_text(node, &list->text[list->count++]);
    if (psld_node_kind_of(node) != PSLD_NODE_LIST || psld_node_size(node) > MAX_LIST || psld_node_size(node) == 0)
        return psld_node_fail(node, "expected a list of 1 to %d", MAX_LIST);
    for (size_t i = 0; i < psld_node_size(node); i++)
        PSLD_TRY(psld_node_text(psld_node_at(node, i), &list->text[list->count++]));
    return check_different(node, list);
}

static psld_status read_sweep_number(const psld_node *node, double least, double most, int whole, numbers *list)
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

static psld_status read_sweep_numbers(const psld_node *node, double least, double most, int whole, numbers *list)
{
    list->count = 0;
    if (!node) return PSLD_OK;
    if (psld_node_kind_of(node) == PSLD_NODE_SCALAR) return read_sweep_number(node, least, most, whole, list);
    size_t count = psld_node_size(node);
    if (count == 0 || count > MAX_LIST) return psld_node_fail(node, "expected a list of 1 to %d numbers", MAX_LIST);
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
    if (count == 0 || count > MAX_LIST) return psld_node_fail(node, "expected 1 to %d models", MAX_LIST);
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

static psld_status read_sweep(const psld_node *root, psld_sweep *s)
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

/* ---- Cells ------------------------------------------------------------------------------------------------------- */

/* The cells of one grid and budget, filled in: one per guidance and seed. With `cells` NULL they are only counted. */
static void add_cells_like(psld_sweep *s, const psld_sweep_cell *like, size_t model, psld_sweep_cell *cells)
{
    const numbers own = {1, {PSLD_UNSET}}, *cfg = s->cfg.count ? &s->cfg : &own;
    for (size_t c = 0; c < cfg->count; c++)
        for (size_t seed = 0; seed < s->seeds.count; seed++) {
            size_t at = s->cell_count++;
            if (!cells) continue;
            s->model_of[at] = model;
            cells[at] = *like;
            cells[at].cfg = cfg->value[c];
            cells[at].has_cfg = s->cfg.count > 0;
            cells[at].seed = (uint64_t)s->seeds.value[seed];
        }
}

/* All cells of one sampler: a grid and a number of steps each, or a tolerance. The sampler's own options override
 * the lists. With `cells` NULL they are only counted. */
static psld_status add_sampler(psld_sweep *s, size_t model, const char *process, const char *text,
                               psld_sweep_cell *cells)
{
    psld_sample_options said = PSLD_SAMPLE_DEFAULTS;
    if (psld_sample_options_parse(text, &said) != PSLD_OK) return psld_fail_in(PSLD_BAD_INPUT, "%s", s->path);
    const psld_sampler_info *sampler = psld_sampler_find(said.sampler);
    const texts alone = {1, {said.grid ? said.grid : sampler->grid}};
    int adaptive = sampler->adaptive;
    const texts *grids = adaptive || said.grid || s->grids.count == 0 ? &alone : &s->grids;
    const numbers own = {1, {said.nfe}}, *budgets = adaptive ? &s->tolerances : said.nfe > 0 ? &own : &s->nfe;
    if (budgets->count == 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: sampler %s needs %s", s->path, text, adaptive ? "tolerances" : "nfe");
    for (size_t grid = 0; grid < grids->count; grid++)
        for (size_t budget = 0; budget < budgets->count; budget++) {
            const psld_sweep_cell cell = {.size = sizeof cell,
                                          .model = s->labels.text[model],
                                          .process = process,
                                          .sampler = text,
                                          .grid = adaptive ? NULL : grids->text[grid],
                                          .nfe = adaptive ? 0 : (int)budgets->value[budget],
                                          .tolerance = adaptive ? budgets->value[budget] : 0};
            add_cells_like(s, &cell, model, cells);
        }
    return PSLD_OK;
}

static psld_status add_cells(psld_sweep *s, psld_sweep_cell *cells)
{
    size_t processes = s->processes.count ? s->processes.count : 1;
    s->cell_count = 0;
    for (size_t model = 0; model < s->models.count; model++)
        for (size_t process = 0; process < processes; process++)
            for (size_t sampler = 0; sampler < s->samplers.count; sampler++)
                PSLD_TRY(add_sampler(s, model, s->processes.count ? s->processes.text[process] : NULL,
                                     s->samplers.text[sampler], cells));
    return PSLD_OK;
}

/* Each exact model has its own exact samples: the reference of a cell must not depend on earlier cells. */
static psld_status open_model(psld_sweep *s, size_t index)
{
    const psld_sweep_cell *cell = &s->cells[index];
    if (s->model && s->model_index == s->model_of[index] && s->model_process == cell->process) return PSLD_OK;
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.process = cell->process;
    options.device = s->device;
    psld_model_free(s->model);
    s->model = NULL;
    if (!s->data) psld_set_free(s->real), s->real = NULL;
    PSLD_TRY(psld_model_open(s->models.text[s->model_of[index]], &options, &s->model));
    s->model_index = s->model_of[index];
    s->model_process = cell->process;
    s->model_fingerprint = psld_model_fingerprint(s->model);
    return PSLD_OK;
}

static psld_status sampling_of(const psld_sweep_cell *cell, psld_sample_options *sampling)
{
    *sampling = (psld_sample_options)PSLD_SAMPLE_DEFAULTS;
    sampling->eps = 1e-3; /* the same for all samplers, so that their results can be compared */
    PSLD_TRY(psld_sample_options_parse(cell->sampler, sampling));
    if (cell->grid) sampling->grid = cell->grid;
    if (cell->nfe) sampling->nfe = cell->nfe;
    if (cell->tolerance > 0) sampling->tolerance = cell->tolerance;
    sampling->seed = cell->seed;
    return PSLD_OK;
}

/* The labels of a cell; *list, which belongs to the caller, is NULL if they are drawn. */
static psld_status labels_of(const psld_sweep *s, const psld_sweep_cell *cell, psld_labels *labels, psld_array **list)
{
    *labels = (psld_labels)PSLD_LABELS_DEFAULTS;
    *list = NULL;
    labels->cfg = cell->cfg;
    if (cell->has_cfg && cell->cfg == PSLD_UNSET) labels->cfg = nextafter(PSLD_UNSET, 0); /* -1 would mean unset */
    if (s->cfg_range.count) {
        labels->sigma_min = s->cfg_range.value[0];
        labels->sigma_max = s->cfg_range.value[1];
    }
    if (!s->label) return PSLD_OK;
    PSLD_TRY(psld_model_labels(s->model, s->label, list));
    labels->label = (*list)->data;
    labels->count = (*list)->count;
    return PSLD_OK;
}

static int has_labels(const psld_sweep *s)
{
    return s->label || s->cfg.count || s->cfg_range.count;
}

static psld_status check_cell_labels(const psld_sweep *s, const psld_sweep_cell *cell)
{
    psld_labels labels;
    psld_array *list;
    if (!has_labels(s)) return PSLD_OK;
    if (psld_source_classes(psld_model_source(s->model)) == 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: %s: %s takes no labels", s->path,
                         s->label       ? "label"
                         : s->cfg.count ? "cfg"
                                        : "cfg_range",
                         cell->model);
    psld_status status = labels_of(s, cell, &labels, &list);
    psld_array_free(list);
    if (status == PSLD_OK && psld_source_needs_label(psld_model_source(s->model)) && labels.cfg != PSLD_UNSET &&
        labels.cfg != 1)
        status = psld_fail(PSLD_BAD_INPUT, "cfg: %s cannot predict without a label; expected 1", cell->model);
    return status == PSLD_BAD_ARGUMENT || status == PSLD_BAD_INPUT ? psld_fail_in(PSLD_BAD_INPUT, "%s", s->path)
                                                                   : status;
}

/* Checks a cell as far as is possible without the data. */
static psld_status check_cell(const psld_sweep *s, size_t index)
{
    const psld_sweep_cell *cell = &s->cells[index];
    psld_sample_options sampling;
    if (!psld_model_source(s->model))
        return psld_fail(PSLD_BAD_INPUT, "%s: %s: a classifier has no samples", s->path, cell->model);
    if (!s->data && !psld_model_mixture(s->model))
        return psld_fail(PSLD_BAD_INPUT, "%s: data is missing; only exact models can be compared without it", s->path);
    PSLD_TRY(sampling_of(cell, &sampling));
    PSLD_TRY(check_cell_labels(s, cell));
    psld_status status = psld_sample_check(psld_model_recipe(s->model), psld_model_source(s->model), &sampling);
    if (status == PSLD_OK) return PSLD_OK;
    return psld_fail_in(status == PSLD_BAD_ARGUMENT ? PSLD_BAD_INPUT : status, "%s: %s", s->path, cell->sampler);
}

static int differ_by_seed_alone(const psld_sweep *s, size_t i, size_t j)
{
    psld_sweep_cell a = s->cells[i], b = s->cells[j];
    return s->model_of[i] == s->model_of[j] && a.process == b.process && a.sampler == b.sampler && a.grid == b.grid &&
           a.nfe == b.nfe && a.tolerance == b.tolerance && a.cfg == b.cfg;
}

/* Checks before anything is computed that every cell is possible, and identifies models, data and weights. Results
 * are stored under these identities, since names stay the same when a model is trained further or a file is edited. */
static psld_status check_all_cells(psld_sweep *s)
{
    if (s->data) PSLD_TRY(psld_path_identity(s->data, &s->data_identity));
    if (s->weights) PSLD_TRY(psld_path_identity(s->weights, &s->weights_identity));
    if (s->inpaint_images) PSLD_TRY(psld_path_identity(s->inpaint_images, &s->known_identity));
    if (s->masks_path) PSLD_TRY(psld_path_identity(s->masks_path, &s->masks_identity));
    for (size_t i = 0; i < s->cell_count; i++) {
        PSLD_TRY(open_model(s, i));
        s->fingerprint[i] = s->model_fingerprint;
        if (i == 0 || !differ_by_seed_alone(s, i, i - 1)) PSLD_TRY(check_cell(s, i));
    }
    return PSLD_OK;
}

static psld_status open_sweep(const char *path, const char *const *overrides, size_t override_count, psld_sweep *s)
{
    PSLD_TRY(psld_text_list_check("overrides", overrides, override_count));
    s->path = psld_copy_text(path);
    if (!s->path) return PSLD_NO_MEMORY;
    PSLD_TRY(psld_yaml_load(path, &s->yaml));
    for (size_t i = 0; i < override_count; i++) PSLD_TRY(psld_yaml_override(s->yaml, overrides[i]));
    PSLD_TRY(read_sweep(psld_yaml_root(s->yaml), s));
    PSLD_TRY(add_cells(s, NULL));
    s->cells = psld_alloc(s->cell_count, sizeof *s->cells);
    s->model_of = s->cells ? psld_alloc(s->cell_count, sizeof *s->model_of) : NULL;
    s->fingerprint = s->model_of ? psld_alloc(s->cell_count, sizeof *s->fingerprint) : NULL;
    if (!s->fingerprint) return PSLD_NO_MEMORY;
    PSLD_TRY(add_cells(s, s->cells));
    return check_all_cells(s);
}

psld_status psld_sweep_open(const char *path, const char *const *overrides, size_t override_count, psld_sweep **sweep)
{
    *sweep = NULL;
    psld_sweep *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = open_sweep(path, overrides, override_count, made);
    if (status != PSLD_OK)
        psld_sweep_free(made);
    else
        *sweep = made;
    return status;
}

void psld_sweep_free(psld_sweep *sweep)
{
    if (!sweep) return;
    psld_set_free(sweep->real);
    psld_set_free(sweep->known);
    psld_set_free(sweep->masks);
    psld_features_free(sweep->features);
    psld_model_free(sweep->model);
    psld_release(sweep->cells);
    psld_release(sweep->model_of);
    psld_release(sweep->fingerprint);
    psld_yaml_free(sweep->yaml);
    psld_release(sweep->path);
    psld_release(sweep->device);
    psld_release(sweep);
}

psld_status psld_sweep_set_device(psld_sweep *sweep, const char *device)
{
    psld_release(sweep->device);
    psld_model_free(sweep->model);
    sweep->model = NULL;
    sweep->device = device ? psld_copy_text(device) : NULL;
    return sweep->device || !device ? PSLD_OK : PSLD_NO_MEMORY;
}

const char *psld_sweep_name(const psld_sweep *sweep)
{
    return sweep->name;
}

unsigned psld_sweep_metrics(const psld_sweep *sweep)
{
    return sweep->metrics;
}

uint64_t psld_sweep_number(const psld_sweep *sweep)
{
    return (uint64_t)sweep->number;
}

size_t psld_sweep_count(const psld_sweep *sweep)
{
    return sweep->cell_count;
}

static psld_status check_index(const psld_sweep *sweep, size_t index)
{
    if (index < sweep->cell_count) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: there is no cell %zu, only %zu", sweep->path, index, sweep->cell_count);
}

psld_status psld_sweep_cell_at(const psld_sweep *sweep, size_t index, psld_sweep_cell *cell)
{
    psld_sweep_cell empty = PSLD_SWEEP_CELL_EMPTY;
    PSLD_TRY(psld_sized_check(cell, sizeof empty, "PSLD_SWEEP_CELL_EMPTY"));
    psld_sized_write(cell, index < sweep->cell_count ? &sweep->cells[index] : &empty);
    return check_index(sweep, index);
}

/* The part of the key about images. It has the form of older versions, so that their results are found, followed by
 * newer options that differ from their defaults. */
static void image_key(const psld_sweep *s, char *key, size_t size)
{
    int authors = s->inpaint_images && strcmp(s->method, "authors") == 0, resampled = s->size && s->resample;
    psld_text_print(key, size, "%s|%" PRId64 " %s", s->inpaint_images && !s->masks_path ? s->hide : "", s->size,
                    s->size ? s->fit : "");
    if (resampled) psld_text_print(key + strlen(key), size - strlen(key), " %s", psld_resample_at(s->resample)->name);
    if (s->masks_path) psld_text_print(key + strlen(key), size - strlen(key), "|masks %016" PRIx64, s->masks_identity);
    if (authors) psld_text_print(key + strlen(key), size - strlen(key), "|authors");
}

/* The part of the key about labels; empty for sweeps without labels. */
static void label_key(const psld_sweep *s, const psld_sweep_cell *cell, char *key, size_t size)
{
    *key = 0;
    if (!has_labels(s)) return;
    psld_text_print(key, size, "|label %s|cfg %.17g", s->label ? s->label : "", cell->cfg);
    if (s->cfg_range.count)
        psld_text_print(key + strlen(key), size - strlen(key), "|%.17g %.17g", s->cfg_range.value[0],
                        s->cfg_range.value[1]);
}

psld_status psld_sweep_key(const psld_sweep *sweep, size_t index, char *key, size_t size)
{
    if (size > 0) *key = 0;
    PSLD_TRY(check_index(sweep, index));
    const psld_sweep_cell *c = &sweep->cells[index];
    char images[256], labels[512];
    image_key(sweep, images, sizeof images);
    label_key(sweep, c, labels, sizeof labels);
    int length = psld_text_print(key, size,
                                 "model %016" PRIx64 "|%s|%s|%d|%.17g|%" PRIu64 "|%" PRId64 "|%s|data %016" PRIx64
                                 "|weights %016" PRIx64 "|%s|inpaint %016" PRIx64 "|%s%s",
                                 sweep->fingerprint[index], c->sampler, c->grid ? c->grid : "", c->nfe, c->tolerance,
                                 c->seed, sweep->number, sweep->metric_names, sweep->data_identity,
                                 sweep->weights_identity, sweep->quantize, sweep->known_identity, images, labels);
    return length >= 0 && (size_t)length < size ? PSLD_OK
                                                : psld_fail(PSLD_BAD_INPUT, "%s: names too long", sweep->path);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

/* Exact samples of a mixture, with a seed that no sampler uses: the reference if no data are given. */
static psld_status exact_draws(const psld_model *model, size_t count, psld_array **rows)
{
    const psld_mixture *mixture = psld_model_mixture(model);
    const psld_recipe *recipe = psld_model_recipe(model);
    size_t dim = psld_mixture_dim(mixture), width = dim * (size_t)psld_recipe_get(recipe)->k;
    double *z = psld_alloc(count, width * sizeof *z);
    if (!z) return PSLD_NO_MEMORY;
    psld_status status = psld_array_create(PSLD_F32, 2, (const size_t[]){count, dim}, rows);
    if (status == PSLD_OK) status = psld_mixture_draw(mixture, recipe, 0, UINT64_MAX, 0, count, z);
    for (size_t i = 0; status == PSLD_OK && i < count * dim; i++)
        ((float *)(*rows)->data)[i] = (float)z[i / dim * width + i % dim];
    psld_release(z);
    if (status == PSLD_OK) return PSLD_OK;
    psld_array_free(*rows);
    *rows = NULL;
    return status;
}

/* Reduces the data to features, or to moments if these are enough. */
static psld_status reduce_data(psld_sweep *s, psld_set *data, psld_progress_fn progress, void *user)
{
    unsigned rows_needed = s->metrics & psld_metrics_that(psld_metric_needs_rows);
    if (rows_needed) {
        psld_array *rows;
        PSLD_TRY(psld_set_features(data, s->features, progress, user, &rows));
        return psld_set_of_rows(rows, s->data, &s->real);
    }
    psld_statistics *statistics;
    PSLD_TRY(psld_set_statistics(data, s->features, progress, user, &statistics));
    return psld_set_of_statistics(statistics, s->data, &s->real);
}

static psld_status open_image_set(const psld_sweep *s, const char *path, psld_set **set)
{
    psld_data_options options = PSLD_DATA_DEFAULTS;
    options.image_size = (int)s->size;
    options.stretch = strcmp(s->fit, "stretch") == 0;
    options.resample = s->resample;
    return psld_set_open_as(path, 0, &options, set);
}

static psld_status open_sweep_data(psld_sweep *s, psld_progress_fn progress, void *user)
{
    psld_set *data;
    psld_array *rows;
    if (s->weights && !s->features) PSLD_TRY(psld_features_open_on(s->weights, s->device, &s->features));
    if (s->inpaint_images && !s->known) PSLD_TRY(open_image_set(s, s->inpaint_images, &s->known));
    if (s->masks_path && !s->masks) PSLD_TRY(psld_set_open(s->masks_path, 0, &s->masks));
    if (!s->data) {
        PSLD_TRY(exact_draws(s->model, 4 * (size_t)s->number, &rows));
        return psld_set_of_rows(rows, "exact draws", &s->real);
    }
    PSLD_TRY(open_image_set(s, s->data, &data));
    if (data->kind == PSLD_SET_STATISTICS) {
        s->real = data;
        return PSLD_OK;
    }
    psld_status status = reduce_data(s, data, progress, user);
    psld_set_free(data);
    return status;
}

static psld_status inpaint_samples(psld_sweep *s, const psld_sample_options *sampling, int floor, psld_set **set)
{
    const psld_hiding hiding = {
        .size = sizeof hiding, .part = s->hide, .masks = s->masks, .lagging = strcmp(s->method, "authors") == 0};
    return psld_set_inpainted_as(s->model, sampling, (uint64_t)s->number, floor, s->known, &hiding, set);
}

static psld_status make_samples(psld_sweep *s, size_t index, psld_set **set)
{
    psld_sample_options sampling;
    psld_labels labels;
    psld_array *list = NULL;
    int floor = strcmp(s->quantize, "floor") == 0;
    PSLD_TRY(sampling_of(&s->cells[index], &sampling));
    if (has_labels(s)) {
        PSLD_TRY(labels_of(s, &s->cells[index], &labels, &list));
        sampling.labels = &labels;
    }
    psld_status status = s->known ? inpaint_samples(s, &sampling, floor, set)
                                  : psld_set_model(s->model, &sampling, (uint64_t)s->number, floor, set);
    psld_array_free(list);
    return status;
}

static psld_status run_cell(psld_sweep *sweep, size_t index, psld_progress_fn progress, void *user,
                            psld_sweep_result *result)
{
    psld_set *samples;
    psld_compare_options options = PSLD_COMPARE_DEFAULTS;
    PSLD_TRY(check_index(sweep, index));
    PSLD_TRY(open_model(sweep, index));
    if (sweep->model_fingerprint != sweep->fingerprint[index])
        return psld_fail(PSLD_BAD_INPUT, "%s: has changed since the sweep began",
                         sweep->models.text[sweep->model_of[index]]);
    if (!sweep->real) PSLD_TRY(open_sweep_data(sweep, progress, user));
    double began = psld_seconds();
    PSLD_TRY(make_samples(sweep, index, &samples));
    options.metrics = sweep->metrics;
    options.progress = progress;
    options.progress_user = user;
    psld_status status = psld_compare(samples, sweep->real, sweep->features, &options, &sweep->comparison);
    result->comparison = &sweep->comparison;
    result->is_fid = !sweep->features || psld_features_is_fid(sweep->features);
    result->nfe = psld_set_nfe(samples);
    result->seconds = psld_seconds() - began;
    psld_set_free(samples);
    return status;
}

psld_status psld_sweep_run(psld_sweep *sweep, size_t index, psld_progress_fn progress, void *user,
                           psld_sweep_result *result)
{
    psld_sweep_result own = PSLD_SWEEP_RESULT_EMPTY;
    PSLD_TRY(psld_sized_check(result, sizeof own, "PSLD_SWEEP_RESULT_EMPTY"));
    sweep->comparison = (psld_comparison)PSLD_COMPARISON_EMPTY;
    psld_status status = run_cell(sweep, index, progress, user, &own);
    psld_sized_write(result, &own);
    return status;
}

psld_status psld_sweep_estimate(psld_sweep *sweep, size_t index, double *seconds)
{
    psld_sample_options sampling = PSLD_SAMPLE_DEFAULTS;
    psld_array *x;
    uint64_t nfe;
    PSLD_TRY(check_index(sweep, index));
    PSLD_TRY(open_model(sweep, index));
    size_t batch = psld_model_batch(sweep->model);
    sampling.sampler = "em";
    sampling.nfe = ESTIMATE_NFE;
    if ((uint64_t)batch > (uint64_t)sweep->number) batch = (size_t)sweep->number;
    double began = psld_seconds();
    PSLD_TRY(psld_model_sample(sweep->model, &sampling, 0, batch, NULL, 0, &x, &nfe));
    psld_array_free(x);
    double each = (psld_seconds() - began) / (double)batch / ESTIMATE_NFE;
    int evaluations = sweep->cells[index].nfe ? sweep->cells[index].nfe : ADAPTIVE_GUESS;
    *seconds = each * (double)evaluations * (double)sweep->number;
    return PSLD_OK;
}
