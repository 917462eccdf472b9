/* The cells of a sweep. A file lists models, recipes, samplers and budgets; every combination is a cell, which is drawn,
 * compared with the data, and forgotten. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/text.h"
#include "eval/identity.h"
#include "eval/sweep.h"
#include "sample/options.h"
#include "sample/sample.h"

/* ---- The list ---------------------------------------------------------------------------------------------------- */

/* The cells of one grid and budget, filled in: one per guidance and seed. With `cells` NULL they are only counted. */
static void add_cells_like(psld_sweep *s, const psld_sweep_cell *like, size_t model, psld_sweep_cell *cells)
{
    const psld_sweep_numbers own = {1, {PSLD_UNSET}}, *cfg = s->cfg.count ? &s->cfg : &own;
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
    const psld_sweep_texts alone = {1, {said.grid ? said.grid : sampler->grid}};
    int adaptive = sampler->adaptive;
    const psld_sweep_texts *grids = adaptive || said.grid || s->grids.count == 0 ? &alone : &s->grids;
    const psld_sweep_numbers own = {1, {said.nfe}}, *budgets = adaptive       ? &s->tolerances
                                                               : said.nfe > 0 ? &own
                                                                              : &s->nfe;
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

/* ---- One cell ---------------------------------------------------------------------------------------------------- */

psld_status psld_sweep_open_model(psld_sweep *s, size_t index)
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

psld_status psld_sweep_sampling(const psld_sweep_cell *cell, psld_sample_options *sampling)
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

psld_status psld_sweep_labels(const psld_sweep *s, const psld_sweep_cell *cell, psld_labels *labels, psld_array **list)
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

int psld_sweep_has_labels(const psld_sweep *s)
{
    return s->label || s->cfg.count || s->cfg_range.count;
}

static psld_status check_cell_labels(const psld_sweep *s, const psld_sweep_cell *cell)
{
    psld_labels labels;
    psld_array *list;
    if (!psld_sweep_has_labels(s)) return PSLD_OK;
    if (psld_source_classes(psld_model_source(s->model)) == 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: %s: %s takes no labels", s->path,
                         s->label       ? "label"
                         : s->cfg.count ? "cfg"
                                        : "cfg_range",
                         cell->model);
    psld_status status = psld_sweep_labels(s, cell, &labels, &list);
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
    PSLD_TRY(psld_sweep_sampling(cell, &sampling));
    PSLD_TRY(check_cell_labels(s, cell));
    psld_status status = psld_sample_check(psld_model_recipe(s->model), psld_model_source(s->model), &sampling);
    if (status == PSLD_OK) return PSLD_OK;
    return psld_fail_in(status == PSLD_BAD_ARGUMENT ? PSLD_BAD_INPUT : status, "%s: %s", s->path, cell->sampler);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

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
        PSLD_TRY(psld_sweep_open_model(s, i));
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
    PSLD_TRY(psld_sweep_read(psld_yaml_root(s->yaml), s));
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

psld_status psld_sweep_check(const psld_sweep *sweep, size_t index)
{
    if (index < sweep->cell_count) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: there is no cell %zu, only %zu", sweep->path, index, sweep->cell_count);
}

psld_status psld_sweep_cell_at(const psld_sweep *sweep, size_t index, psld_sweep_cell *cell)
{
    psld_sweep_cell empty = PSLD_SWEEP_CELL_EMPTY;
    PSLD_TRY(psld_sized_check(cell, sizeof empty, "PSLD_SWEEP_CELL_EMPTY"));
    psld_sized_write(cell, index < sweep->cell_count ? &sweep->cells[index] : &empty);
    return psld_sweep_check(sweep, index);
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

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
    if (!psld_sweep_has_labels(s)) return;
    psld_text_print(key, size, "|label %s|cfg %.17g", s->label ? s->label : "", cell->cfg);
    if (s->cfg_range.count)
        psld_text_print(key + strlen(key), size - strlen(key), "|%.17g %.17g", s->cfg_range.value[0],
                        s->cfg_range.value[1]);
}

psld_status psld_sweep_key(const psld_sweep *sweep, size_t index, char *key, size_t size)
{
    if (size > 0) *key = 0;
    PSLD_TRY(psld_sweep_check(sweep, index));
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
