/* The parameter update of training: clipping by the norm of the gradient, Adam and the moving average in one pass
 * over memory, which is all that it costs. */
#ifndef PSLD_KERNELS_AVX2_UPDATE_H
#define PSLD_KERNELS_AVX2_UPDATE_H

#include <stddef.h>

/* Sum of squares in double, by chunks of fixed size that are added in order. Scratch: one double for each chunk. */
ptrdiff_t psld_sum_squares_chunks_avx2(ptrdiff_t count);
double psld_sum_squares_avx2(ptrdiff_t count, const float *x, double *scratch);

/*     g' = clip g + decay w
 *     m = beta1 m + (1 - beta1) g',    v = beta2 v + (1 - beta2) g'^2
 *     w = shrink w - rate / (1 - beta1^step)  m / (sqrt(v / (1 - beta2^step)) + epsilon)
 *     average = ema average + (1 - ema) w */
typedef struct psld_adam_avx2 {
    double rate, beta1, beta2, epsilon, decay, clip, ema, shrink;
    long step; /* 1 for the first */
} psld_adam_avx2;

/* average may be NULL. */
void psld_adam_avx2_8(const psld_adam_avx2 *adam, ptrdiff_t count, const float *g, float *w, float *m, float *v,
                      float *average);

#endif
