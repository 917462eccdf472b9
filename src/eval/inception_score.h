/* Inception score (Salimans et al. 2016) of logits that arrive in batches: for each split
 *     exp(mean_i sum_c p_i(c) log(p_i(c) / q(c))),   q the mean of the p_i,
 * and of these the mean and the standard deviation. sum p log p and q are sums over images, so nothing else is kept. */
#ifndef PSLD_EVAL_INCEPTION_SCORE_H
#define PSLD_EVAL_INCEPTION_SCORE_H

#include "base/status.h"

typedef struct psld_logit_sums psld_logit_sums;

/* For `count` images in total. With `shuffle` the images are permuted by NumPy's RandomState(2020) before they are
 * split, as in torch-fidelity; otherwise they are split in the order of arrival. */
psld_status psld_logit_sums_create(size_t count, size_t classes, size_t splits, int shuffle, psld_logit_sums **score);
void psld_logit_sums_free(psld_logit_sums *score);

/* Adds the next n images: logits [n][classes]. */
psld_status psld_logit_sums_add(psld_logit_sums *score, size_t n, const float *logits);
/* Call this after the last image. */
void psld_logit_sums_finish(const psld_logit_sums *score, double *mean, double *deviation);

#endif
