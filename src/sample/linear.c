#include "sample/linear.h"

#include <string.h>

#include "base/threads.h"

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

int psld_block_next(psld_block *block, size_t end, size_t dim)
{
    size_t group = dim < PSLD_BLOCK_WIDTH ? PSLD_BLOCK_WIDTH / dim : 1;
    block->begin += block->width;
    if (block->begin >= dim) {
        block->first += block->states;
        block->begin = 0;
    }
    if (block->first >= end) return 0;
    block->states = end - block->first < group ? end - block->first : group;
    block->width = dim - block->begin < PSLD_BLOCK_WIDTH ? dim - block->begin : PSLD_BLOCK_WIDTH;
    return 1;
}

/* With `width` coordinates of each state: copies written for a width that the compiler knows are several times faster. */
static inline void load_width(const psld_block *block, size_t dim, size_t variables, const double *from,
                              psld_block_rows to, size_t width)
{
    from += block->first * variables * dim + block->begin;
    for (size_t i = 0; i < block->states; i++)
        for (size_t a = 0; a < variables; a++)
            memcpy(to[a] + i * width, from + (i * variables + a) * dim, width * sizeof(double));
}

static inline void store_width(const psld_block *block, size_t dim, size_t variables, psld_block_rows from, double *to,
                               size_t width)
{
    to += block->first * variables * dim + block->begin;
    for (size_t i = 0; i < block->states; i++)
        for (size_t a = 0; a < variables; a++)
            memcpy(to + (i * variables + a) * dim, from[a] + i * width, width * sizeof(double));
}

void psld_block_load(const psld_block *block, size_t dim, size_t variables, const double *from, psld_block_rows to)
{
    if (block->width == 1)
        load_width(block, dim, variables, from, to, 1);
    else if (block->width == 2)
        load_width(block, dim, variables, from, to, 2);
    else
        load_width(block, dim, variables, from, to, block->width);
}

void psld_block_store(const psld_block *block, size_t dim, size_t variables, psld_block_rows from, double *to)
{
    if (block->width == 1)
        store_width(block, dim, variables, from, to, 1);
    else if (block->width == 2)
        store_width(block, dim, variables, from, to, 2);
    else
        store_width(block, dim, variables, from, to, block->width);
}

/* ---- Maps -------------------------------------------------------------------------------------------------------- */

typedef double lanes __attribute__((vector_size(2 * sizeof(double)))); /* every processor has it */

static void add_multiple(size_t count, double factor, const double *from, double *to)
{
    size_t j = 0;
    for (; j + 2 <= count; j += 2) {
        lanes x, y;
        memcpy(&x, from + j, sizeof x);
        memcpy(&y, to + j, sizeof y);
        y += factor * x;
        memcpy(to + j, &y, sizeof y);
    }
    for (; j < count; j++) to[j] += factor * from[j];
}

/* sum[a] += matrix[a][b] in[b], where the rows of `in` are `stride` apart. */
static void add_product(size_t rows, const double *matrix, size_t variables, const double *in, size_t stride,
                        size_t width, psld_block_rows sum)
{
    for (size_t a = 0; a < rows; a++)
        for (size_t b = 0; b < variables; b++) {
            double factor = matrix[a * variables + b];
            if (factor != 0) add_multiple(width, factor, in + b * stride, sum[a]);
        }
}

void psld_linear_add_rows(const psld_block *block, size_t rows, const double *matrix, size_t variables,
                          psld_block_rows in, psld_block_rows sum)
{
    add_product(rows, matrix, variables, in[0], PSLD_BLOCK_WIDTH, block->states * block->width, sum);
}

void psld_linear_add(const psld_block *block, size_t dim, size_t rows, const psld_linear_part *part,
                     psld_block_rows sum)
{
    psld_block_rows in;
    if (block->states > 1) {
        psld_block_load(block, dim, part->variables, part->in, in);
        psld_linear_add_rows(block, rows, part->matrix, part->variables, in, sum);
    } else {
        const double *from = part->in + block->first * part->variables * dim + block->begin;
        add_product(rows, part->matrix, part->variables, from, dim, block->width, sum);
    }
}

typedef struct linear_job {
    size_t dim, rows, count;
    const psld_linear_part *parts;
    double *out;
} linear_job;

static void linear_range(void *context, size_t begin, size_t end)
{
    const linear_job *job = context;
    psld_block block = {.first = begin};
    psld_block_rows sum;
    while (psld_block_next(&block, end, job->dim)) {
        for (size_t a = 0; a < job->rows; a++) memset(sum[a], 0, block.states * block.width * sizeof(double));
        for (size_t p = 0; p < job->count; p++) psld_linear_add(&block, job->dim, job->rows, &job->parts[p], sum);
        psld_block_store(&block, job->dim, job->rows, sum, job->out);
    }
}

void psld_linear_apply(size_t n, size_t dim, size_t rows, size_t count, const psld_linear_part *parts, double *out)
{
    linear_job job = {dim, rows, count, parts, out};
    psld_parallel(n, 4096 / (rows * dim) + 1, linear_range, &job);
}
