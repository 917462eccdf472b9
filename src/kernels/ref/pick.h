/* Rows of a dense matrix, or numbers of a dense vector, at equal distances. */
#ifndef PSLD_KERNELS_REF_PICK_H
#define PSLD_KERNELS_REF_PICK_H

#include "kernels/ref/view.h"

static size_t tasks_whole(const psld_call *call)
{
    (void)call;
    return 1;
}

/* A vector is a matrix with one number in each row. */
static ptrdiff_t pick_width(psld_shape s)
{
    return s.n == 1 ? 1 : (ptrdiff_t)s.c * s.h * s.w;
}

static ptrdiff_t pick_count(psld_shape s)
{
    return s.n == 1 ? s.c : s.n;
}

static void ref_pick(const psld_call *call, size_t begin, size_t end)
{
    ptrdiff_t width = pick_width(call->in[0].shape), count = pick_count(call->out.shape);
    const real *from = (const real *)call->in[0].data + call->attributes->pick.first * width;
    real *to = call->out.data;
    if (begin == end) return;
    for (ptrdiff_t i = 0; i < count; i++)
        memcpy(to + i * width, from + i * call->attributes->pick.step * width, (size_t)width * sizeof *to);
}

static void ref_pick_dx(const psld_call *call, size_t begin, size_t end)
{
    ptrdiff_t width = pick_width(call->out.shape), count = pick_count(call->in[0].shape);
    const real *from = call->in[0].data;
    real *to = call->out.data;
    if (begin == end) return;
    for (ptrdiff_t i = 0; i < width * pick_count(call->out.shape); i++) to[i] = 0;
    to += call->attributes->pick.first * width;
    for (ptrdiff_t i = 0; i < count; i++)
        memcpy(to + i * call->attributes->pick.step * width, from + i * width, (size_t)width * sizeof *to);
}

#endif
