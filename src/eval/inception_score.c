#include "eval/inception_score.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "eval/mersenne.h"
#include "eval/rows.h"
#include "psld_eval.h"

enum { FIDELITY_SEED = 2020 };

struct psld_logit_sums {
    size_t count, classes, splits, arrived;
    uint32_t *split_of; /* [count] */
    double *p;          /* [splits][classes]: sums of probabilities, */
    double *p_log_p;    /* [splits]: and of sum p log p */
    double *row;        /* [classes] */
};

/* Split s is made of places s n / splits ... (s + 1) n / splits - 1; order[place] is the image there. */
static void assign_splits(psld_logit_sums *score, const uint32_t *order)
{
    for (size_t s = 0; s < score->splits; s++) {
        size_t begin = s * score->count / score->splits, end = (s + 1) * score->count / score->splits;
        for (size_t place = begin; place < end; place++) score->split_of[order ? order[place] : place] = (uint32_t)s;
    }
}

static psld_status allocate_splits(psld_logit_sums *score, int shuffle)
{
    score->split_of = psld_alloc(score->count, sizeof *score->split_of);
    score->p = score->split_of ? psld_alloc(score->splits * score->classes, sizeof *score->p) : NULL;
    score->p_log_p = score->p ? psld_alloc(score->splits, sizeof *score->p_log_p) : NULL;
    score->row = score->p_log_p ? psld_alloc(score->classes, sizeof *score->row) : NULL;
    uint32_t *order = score->row && shuffle ? psld_alloc(score->count, sizeof *order) : NULL;
    if (!score->row || (shuffle && !order)) return PSLD_NO_MEMORY;
    if (shuffle) {
        psld_mersenne state;
        psld_mersenne_seed(&state, FIDELITY_SEED);
        psld_mersenne_permutation(&state, score->count, order);
    }
    assign_splits(score, order);
    psld_release(order);
    return PSLD_OK;
}

psld_status psld_logit_sums_create(size_t count, size_t classes, size_t splits, int shuffle, psld_logit_sums **score)
{
    *score = NULL;
    if (splits < 1 || count < splits || count > UINT32_MAX)
        return psld_fail(PSLD_BAD_INPUT, "inception score: needs at least %zu images, one for each split, found %zu",
                         splits, count);
    if (classes < 2) return psld_fail(PSLD_BAD_INPUT, "inception score: needs logits of at least 2 classes");
    psld_logit_sums *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    *made = (psld_logit_sums){.count = count, .classes = classes, .splits = splits};
    psld_status status = allocate_splits(made, shuffle);
    if (status != PSLD_OK)
        psld_logit_sums_free(made);
    else
        *score = made;
    return status;
}

void psld_logit_sums_free(psld_logit_sums *score)
{
    if (!score) return;
    psld_release(score->split_of);
    psld_release(score->p);
    psld_release(score->p_log_p);
    psld_release(score->row);
    psld_release(score);
}

static psld_status add_logits(psld_logit_sums *score, const float *logits)
{
    size_t split = score->split_of[score->arrived];
    double largest = -INFINITY, sum = 0, information = 0;
    for (size_t c = 0; c < score->classes; c++) {
        if (!isfinite(logits[c]))
            return psld_fail(PSLD_BAD_INPUT, "logits: number %zu of image %zu is not finite", c, score->arrived);
        largest = fmax(largest, (double)logits[c]);
    }
    for (size_t c = 0; c < score->classes; c++) sum += score->row[c] = exp((double)logits[c] - largest);
    for (size_t c = 0; c < score->classes; c++) {
        double p = score->row[c] / sum;
        score->p[split * score->classes + c] += p;
        information += p * ((double)logits[c] - largest - log(sum));
    }
    score->p_log_p[split] += information;
    score->arrived++;
    return PSLD_OK;
}

psld_status psld_logit_sums_add(psld_logit_sums *score, size_t n, const float *logits)
{
    assert(score->arrived + n <= score->count);
    for (size_t i = 0; i < n; i++) PSLD_TRY(add_logits(score, logits + i * score->classes));
    return PSLD_OK;
}

static double split_score(const psld_logit_sums *score, size_t split)
{
    double n = (double)((split + 1) * score->count / score->splits - split * score->count / score->splits);
    double divergence = score->p_log_p[split] / n;
    for (size_t c = 0; c < score->classes; c++) {
        double q = score->p[split * score->classes + c] / n;
        if (q > 0) divergence -= q * log(q);
    }
    return exp(divergence);
}

void psld_logit_sums_finish(const psld_logit_sums *score, double *mean, double *deviation)
{
    double sum = 0, square = 0, splits = (double)score->splits;
    assert(score->arrived == score->count);
    for (size_t s = 0; s < score->splits; s++) sum += split_score(score, s);
    *mean = sum / splits;
    for (size_t s = 0; s < score->splits; s++) square += pow(split_score(score, s) - *mean, 2);
    *deviation = sqrt(square / splits);
}

psld_status psld_inception_score(const psld_array *logits, size_t splits, int shuffle, double *mean, double *deviation)
{
    psld_array *rows;
    psld_logit_sums *score;
    PSLD_TRY(psld_rows_check(logits, "inception score"));
    PSLD_TRY(psld_logit_sums_create(logits->shape[0], logits->shape[1], splits, shuffle, &score));
    psld_status status = psld_array_convert(logits, PSLD_F32, &rows);
    if (status == PSLD_OK) {
        status = psld_logit_sums_add(score, rows->shape[0], rows->data);
        psld_array_free(rows);
    }
    if (status == PSLD_OK) psld_logit_sums_finish(score, mean, deviation);
    psld_logit_sums_free(score);
    return status;
}
