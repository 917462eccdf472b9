/* The parameter update of training: clipping by the norm of the gradient, Adam and the moving average in one pass
 * over memory, which is all that it costs. */
#ifndef PSLD_KERNELS_AVX2_UPDATE_H
#define PSLD_KERNELS_AVX2_UPDATE_H

#include <stddef.h>

#include "kernels/adam.h"

/* Sum of squares in double, by chunks of fixed size that are added in order. Scratch: one double for each chunk. */
ptrdiff_t psld_sum_squares_chunks_avx2(ptrdiff_t count);
double psld_sum_squares_avx2(ptrdiff_t count, const float *x, double *scratch);

/* psld_adam_update on vectors. average may be NULL. */
void psld_adam_avx2_8(const psld_adam *adam, ptrdiff_t count, const float *g, float *w, float *m, float *v,
                      float *average);

#endif
