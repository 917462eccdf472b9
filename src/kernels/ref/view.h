/* Reference kernels: views of operands. The headers of this folder are compiled twice, by reference_f32.c and
 * reference_f64.c, which define `real`; they are plain definitions, written to be read. */
#ifndef PSLD_KERNELS_REF_VIEW_H
#define PSLD_KERNELS_REF_VIEW_H

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

static real *pixel_at(const psld_operand *o, int n, int y, int x)
{
    return (real *)o->data + (((ptrdiff_t)n * o->shape.h + y) * o->shape.w + x) * (ptrdiff_t)o->pixel;
}

static int ref_pixels_of(psld_shape s)
{
    return s.h * s.w;
}

/* For operations that see pixels one by one: a batched tensor is a row for each pixel, a dense one a single row. */
typedef struct row_view {
    size_t count;
    ptrdiff_t width;  /* elements of a row that count */
    ptrdiff_t lanes;  /* elements to write: zeros behind `width` */
    ptrdiff_t stride; /* from a row to the next */
} row_view;

static row_view rows_of(const psld_operand *o)
{
    psld_shape s = o->shape;
    size_t planes = (size_t)s.n * (size_t)s.h * (size_t)s.w;
    if (o->pixel == 0) {
        ptrdiff_t all = (ptrdiff_t)planes * s.c;
        return (row_view){1, all, all, all};
    }
    return (row_view){planes, s.c, (ptrdiff_t)psld_lanes(s.c), (ptrdiff_t)o->pixel};
}

static real *row_at(const psld_operand *o, row_view rows, size_t row)
{
    return (real *)o->data + (ptrdiff_t)row * rows.stride;
}

static void ref_clear_lanes(real *row, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t i = from; i < to; i++) row[i] = 0;
}

/* Tasks of the common kinds. */
static size_t tasks_rows(const psld_call *call)
{
    return rows_of(&call->out).count;
}

static size_t tasks_samples(const psld_call *call)
{
    return (size_t)call->out.shape.n;
}

static size_t tasks_lines(const psld_call *call)
{
    return (size_t)call->out.shape.n * (size_t)call->out.shape.h;
}

#endif
