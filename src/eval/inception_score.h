/* Inception score (Salimans et al. 2016) of logits that arrive a few at a time: for each split
 *     exp(mean_i sum_c p_i(c) log(p_i(c) / q(c))),   q the mean of the p_i,
 * and of these the mean and the deviation. Since sum p log p and q are sums over images, nothing else is kept. */
#ifndef PSLD_EVAL_INCEPTION_SCORE_H
#define PSLD_EVAL_INCEPTION_SCORE_H

#include "base/status.h"

typedef struct psld_score psld_score;

/* For `count` images in all. `shuffle`: the splits are of a permutation, that of NumPy's RandomState(2020), as
 * torch-fidelity has them; otherwise of the order of arrival. */
psld_status psld_score_create(size_t count, size_t classes, size_t splits, int shuffle, psld_score **score);
void psld_score_free(psld_score *score);

/* The next n images: logits [n][classes]. */
psld_status psld_score_add(psld_score *score, size_t n, const float *logits);
/* When all have come. */
void psld_score_finish(const psld_score *score, double *mean, double *deviation);

#endif
