/* Bits per dimension of a model for a data set. A pixel's value v stands for the cell (v - 1/2, v + 1/2), in which a
 * uniform draw is taken; x = v / 127.5 - 1, so a cell has the size 1 / 127.5, and
 *     -log2 P(v) <= E_u [-log2 p(x(v + u))] + log2 127.5    per dimension, by Jensen. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/sized.h"
#include "eval/likelihood.h"
#include "eval/set.h"
#include "model/model.h"
#include "sample/sample.h"

enum { PIECE = 1024 };

typedef struct totals {
    double sum, square; /* of -log p over samples */
    uint64_t evaluations, pieces;
} totals;

static psld_status read_points(psld_set *set, uint64_t first, size_t n, uint64_t seed, void *room, double *x)
{
    size_t dim = set->size;
    if (set->kind == PSLD_SET_ROWS) {
        const float *rows = room;
        PSLD_TRY(psld_set_read_rows(set, first, n, room));
        for (size_t i = 0; i < n * dim; i++) x[i] = (double)rows[i];
        return PSLD_OK;
    }
    const uint8_t *pixels = room;
    PSLD_TRY(psld_set_read_images(set, first, n, room));
    for (size_t i = 0; i < n; i++) {
        psld_random_uniform(seed, PSLD_FOR_DEQUANTISE, first + i, 0, 0, dim, x + i * dim);
        for (size_t j = 0; j < dim; j++)
            x[i * dim + j] = ((double)pixels[i * dim + j] + x[i * dim + j] - 0.5) / 127.5 - 1;
    }
    return PSLD_OK;
}

/* Progress of one part as progress of all samples. */
typedef struct share {
    const psld_likelihood_options *options;
    uint64_t first, n, total;
} share;

static int report_nll_share(void *user, uint64_t done, uint64_t total)
{
    const share *s = user;
    return s->options->progress(s->options->progress_user, 1000 * s->first + s->n * 1000 * done / (total ? total : 1),
                                1000 * s->total);
}

static psld_status sum_over_set(psld_model *model, psld_set *set, const psld_likelihood_options *options, size_t piece,
                                double *memory, totals *t)
{
    size_t dim = set->size;
    double *x = memory, *log_p = x + piece * dim;
    void *room = log_p + piece;
    for (uint64_t first = 0; first < set->count; first += piece) {
        size_t n = set->count - first < piece ? (size_t)(set->count - first) : piece;
        share part = {options, first, n, set->count};
        psld_likelihood_options now = *options;
        uint64_t nfe;
        if (options->progress) now.progress = report_nll_share, now.progress_user = &part;
        PSLD_TRY(read_points(set, first, n, options->seed, room, x));
        PSLD_TRY(psld_likelihood(psld_model_recipe(model), psld_model_unguided_source(model), &now, first, n, dim, x,
                                 log_p, &nfe));
        for (size_t i = 0; i < n; i++) {
            t->sum -= log_p[i];
            t->square += log_p[i] * log_p[i];
        }
        t->evaluations += nfe;
        t->pieces++;
    }
    return PSLD_OK;
}

static psld_status check_nll(const psld_model *model, const psld_set *set)
{
    size_t shape[PSLD_MAX_RANK], dim = 1;
    if (psld_model_kind_of(model) == PSLD_CLASSIFIER)
        return psld_fail(PSLD_BAD_INPUT, "nll: a classifier has no likelihood");
    if (psld_model_is_tuned(model))
        return psld_fail(PSLD_BAD_INPUT,
                         "nll: the model is tuned for the sampler consistency, and is no score any more: "
                         "it has no likelihood");
    if (set->kind == PSLD_SET_STATISTICS)
        return psld_fail(PSLD_BAD_INPUT, "%s: nll needs data, not their mean and covariance", set->name);
    int rank = psld_model_shape(model, shape);
    for (int i = 0; i < rank; i++) dim *= shape[i];
    if (rank == 3 && set->kind == PSLD_SET_IMAGES && memcmp(shape, set->shape, 3 * sizeof *shape) != 0)
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: its images have %zu x %zu x %zu, the model's %zu x %zu x %zu (channels, height, width)",
                         set->name, set->shape[0], set->shape[1], set->shape[2], shape[0], shape[1], shape[2]);
    if (dim != set->size)
        return psld_fail(PSLD_BAD_INPUT, "%s: its items have %zu numbers, the model's %zu", set->name, set->size, dim);
    return PSLD_OK;
}

static psld_status find_nll(psld_model *model, psld_set *set, const psld_likelihood_options *options, psld_nll *nll)
{
    PSLD_TRY(check_nll(model, set));
    size_t piece = psld_batch_size((size_t)set->count, PIECE, (size_t)options->ode_group);
    double *memory = psld_alloc(piece, (2 * set->size + 1) * sizeof *memory);
    if (!memory) return PSLD_NO_MEMORY;
    totals t = {0};
    psld_status status = sum_over_set(model, set, options, piece, memory, &t);
    psld_release(memory);
    if (status != PSLD_OK) return status;
    const psld_recipe *recipe = psld_model_recipe(model);
    int images = set->kind == PSLD_SET_IMAGES;
    double n = (double)set->count, dim = (double)set->size, mean = t.sum / n;
    double cell = images ? dim * log(127.5) : 0;
    nll->count = set->count;
    nll->dim = set->size;
    nll->nats = mean + cell;
    nll->bits = nll->nats / (dim * log(2));
    nll->error = n > 1 ? sqrt(fmax(0, t.square / n - mean * mean) / (n - 1)) / (dim * log(2)) : (double)INFINITY;
    nll->nfe = (t.evaluations + t.pieces - 1) / t.pieces;
    nll->is_bound = images || psld_recipe_get(recipe)->k > 1;
    nll->is_exact = psld_likelihood_is_exact(recipe, options, set->size);
    return PSLD_OK;
}

psld_status psld_model_nll(psld_model *model, psld_set *set, const psld_likelihood_options *options, psld_nll *nll)
{
    psld_likelihood_options own;
    psld_nll result = PSLD_NLL_EMPTY;
    PSLD_TRY(psld_sized_check(nll, sizeof result, "PSLD_NLL_EMPTY"));
    PSLD_TRY(psld_likelihood_options_read(options, &own));
    psld_status status = find_nll(model, set, &own, &result);
    psld_sized_write(nll, &result);
    return status;
}
