/* Products in tiles (kernels/product.cl): what they are told, and how they are started. */
#ifndef PSLD_DEVICE_OPENCL_PRODUCT_H
#define PSLD_DEVICE_OPENCL_PRODUCT_H

#include "device/opencl/opencl.h"

/* As product_shape there. Places and lines are in elements. */
typedef struct psld_cl_product {
    int64_t a, b, bias, vector, residual, out; /* where they begin */
    int64_t a_batch, b_batch;                  /* from a product to the next, */
    int64_t out_batch, residual_batch;         /* likewise */
    int32_t m, n, k;                           /* n: a multiple of 4; k of 8 where A comes by rows or pixels */
    int32_t columns;                           /* of n, those that are not zero lanes */
    int32_t b_rows;                            /* lines of a panel */
    int32_t lda, ldb, ldc, ldv, ldr;           /* from a line to the next, also of vector and residual */
    int32_t height, width;                     /* of the pixels that are read */
    int32_t out_height, out_width;             /* of those that are rows of the result, or numbers of the sum */
    int32_t taps_y, taps_x, stride_y, stride_x;
    int32_t pad_y, pad_x, spread_y, spread_x;
    int32_t lanes; /* of a tap */
    int32_t chunk; /* numbers of the sum that a product of the batch takes; 0: all */
    int32_t finish;
    float by;
} psld_cl_product;

enum { PSLD_CL_HALF_VECTOR = 32, PSLD_CL_HALF_RESIDUAL = 64, PSLD_CL_HALF_OUT = 128 }; /* in `finish` */

/* Where a factor comes from; the names are those of the source. */
typedef enum psld_cl_from { PSLD_CL_ROWS = 1, PSLD_CL_COLUMNS, PSLD_CL_PIXELS, PSLD_CL_PANEL } psld_cl_from;

typedef struct psld_cl_product_kind {
    psld_cl_from a, b;
    int a_half, b_half;
    int spread;
} psld_cl_product_kind;

/* The tensors of a product; NULL where there is none. */
typedef struct psld_cl_factors {
    const psld_memory *a, *b, *bias, *vector, *residual, *out;
} psld_cl_factors;

/* Makes the kernel for products of this shape, `batch` of them, into step->kernel[slot]. Bits do not depend on how it
 * cuts them. */
psld_status psld_cl_product_prepare(psld_cl_device *device, psld_cl_step *step, int slot,
                                    const psld_cl_product_kind *kind, const psld_cl_product *shape, int batch,
                                    const psld_cl_factors *factors);
psld_status psld_cl_product_run(psld_cl_device *device, psld_cl_step *step, int slot, const psld_cl_product *shape,
                                int batch, const psld_cl_factors *factors);

static inline int psld_cl_lanes(int c)
{
    return (int)psld_lanes(c);
}

#endif
