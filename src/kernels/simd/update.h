/* The parameter update of training: clipping by the norm of the gradient, Adam and the moving average in one pass
 * over memory, which is all that it costs. */
#ifndef PSLD_KERNELS_SIMD_UPDATE_H
#define PSLD_KERNELS_SIMD_UPDATE_H

#include <stddef.h>

#include "kernels/adam.h"
#include "kernels/simd/names.h"

/* Sum of squares in double, by chunks of fixed size that are added in order. Scratch: one double for each chunk. */
size_t simd_square_chunks(size_t count);
double simd_sum_squares(size_t count, const float *x, double *scratch);

/* average may be NULL. */
void simd_adam(const psld_adam *adam, size_t count, const float *g, float *w, float *m, float *v, float *average);

#endif
