/* Linear maps of states. The same small matrices act on the variables of every coordinate, so a map is
 *     out[i][a][j] = sum over parts, sum_b matrix[a][b] in[i][b][j]      state i, variables a and b, coordinate j.
 * Loops run over coordinates. A state of few coordinates is taken together with its neighbours, side by side, so that they
 * are long enough; one of many is taken in pieces that fit into the nearest cache. The sums have the same order either way. */
#ifndef PSLD_SAMPLE_LINEAR_H
#define PSLD_SAMPLE_LINEAR_H

#include <stddef.h>

#include "process/recipe.h"

enum { PSLD_BLOCK_WIDTH = 256 };

/* Coordinates begin ... begin + width - 1 of each of several states; of more than one state only if these are all. */
typedef struct psld_block {
    size_t first, states;
    size_t begin, width;
} psld_block;

/* Row a: one variable of all states of a block. */
typedef double psld_block_rows[PSLD_MAX_K][PSLD_BLOCK_WIDTH];

/* The next block of states up to `end`, after one that begins as {.first = BEGIN}; 0: there is none. */
int psld_block_next(psld_block *block, size_t end, size_t dim);
/* Between arrays [n][variables][dim] and rows. */
void psld_block_load(const psld_block *block, size_t dim, size_t variables, const double *from, psld_block_rows to);
void psld_block_store(const psld_block *block, size_t dim, size_t variables, psld_block_rows from, double *to);

typedef struct psld_linear_part {
    const double *matrix; /* [rows][variables] */
    size_t variables;
    const double *in; /* [n][variables][dim] */
} psld_linear_part;

/* sum += matrix in, of rows; matrix is [rows][variables]. */
void psld_linear_add_rows(const psld_block *block, size_t rows, const double *matrix, size_t variables,
                          psld_block_rows in, psld_block_rows sum);
/* sum += the part. */
void psld_linear_add(const psld_block *block, size_t dim, size_t rows, const psld_linear_part *part,
                     psld_block_rows sum);
/* out [n][rows][dim] = the sum of all parts; out may be one of their arrays, if that has as many variables. */
void psld_linear_apply(size_t n, size_t dim, size_t rows, size_t count, const psld_linear_part *parts, double *out);

#endif
