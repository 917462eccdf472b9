/* The product of two dense matrices. A task is a row of it. */
#ifndef PSLD_KERNELS_REF_PRODUCT_H
#define PSLD_KERNELS_REF_PRODUCT_H

#include "kernels/ref/view.h"

static double matrix_element(const psld_operand *o, int transposed, int row, int column)
{
    ptrdiff_t i = transposed ? column : row, j = transposed ? row : column;
    return (double)((const real *)o->data)[i * o->shape.c + j];
}

static void ref_product(const psld_call *call, size_t begin, size_t end)
{
    const psld_operand *a = &call->in[0], *b = &call->in[1];
    const int *transposed = call->attributes->product.transposed;
    int columns = call->out.shape.c, length = transposed[0] ? a->shape.n : a->shape.c;
    for (int row = (int)begin; row < (int)end; row++)
        for (int column = 0; column < columns; column++) {
            double sum = 0;
            for (int k = 0; k < length; k++)
                sum += matrix_element(a, transposed[0], row, k) * matrix_element(b, transposed[1], k, column);
            ((real *)call->out.data)[(ptrdiff_t)row * columns + column] = (real)sum;
        }
}

#endif
