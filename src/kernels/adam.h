/* The update of parameters: clipping, Adam and the moving average in one pass over memory. */
#ifndef PSLD_KERNELS_ADAM_H
#define PSLD_KERNELS_ADAM_H

#include <stddef.h>

/* g' = clip g + decay w
 *     m = beta1 m + (1 - beta1) g',    v = beta2 v + (1 - beta2) g'^2
 *     w = shrink w - rate / (1 - beta1^step)  m / (sqrt(v / (1 - beta2^step)) + epsilon)
 *     average = ema average + (1 - ema) w
 * decay is the L2 penalty of Adam, shrink = 1 - rate decay the weight decay of AdamW; unused, they are 0 and 1. */
typedef struct psld_adam {
    double rate, beta1, beta2, epsilon, decay, clip, ema, shrink;
    long step; /* 1 for the first */
} psld_adam;

/* A backend has three kernels for it (kernels.h, psld_update_kernels):
 *     adam            the update; average may be NULL
 *     sum_squares     of the gradient, for its norm: in double, in chunks of fixed size that are added in order.
 *                     `scratch` has room for square_chunks(count) doubles
 * These are the plain ones. */
void psld_ref_adam(const psld_adam *adam, size_t count, const float *g, float *w, float *m, float *v, float *average);
size_t psld_ref_square_chunks(size_t count);
double psld_ref_sum_squares(size_t count, const float *x, double *scratch);

#endif
