/* Convolutions with stride 1 and 16-bit factors, summed in float tap by tap: on a matrix unit, whose products are so cheap
 * that Winograd's transforms would cost more than they save, and its errors would be several times as large.
 *
 * Weights are packed as [outputs / 16][taps][inputs / 32][16 pairs of inputs][16 outputs][2], padded with zeros. */
#ifndef PSLD_KERNELS_SIMD_DIRECT_H
#define PSLD_KERNELS_SIMD_DIRECT_H

#include <stdint.h>

#include "kernels/simd/conv.h"

/* Whether this build and this processor can do it at all. */
int simd_direct_runs(void);

/* Bytes of packed weights, and packing them; with `mirrored` from those of the shape that `shape` mirrors. */
ptrdiff_t simd_direct_weights_size(const simd_conv_shape *shape);
void simd_direct_weights(const simd_conv_shape *shape, int mirrored, const float *weights, uint16_t *packed);

/* Floats of scratch, aligned to 64 bytes; enough for fewer images, too. */
ptrdiff_t simd_direct_scratch(const simd_conv_shape *shape);

/* y = finish(x * weights); finish may be NULL. */
void simd_direct(const simd_conv_shape *shape, simd_const_pixels x, const uint16_t *packed, const simd_finish *finish,
                 simd_pixels y, float *scratch);

#endif
