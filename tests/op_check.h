/* One operation, checked in every way that there is, from one description of a case.
 *
 *   value        the kernels in double, in float and the fast ones of this CPU against a definition in the test, on
 *     the logical [n][c][h][w]
 *   gradient     of every input that has one, in double, against central differences along random directions
 *   adjoint      <K x, y> = <x, K' y> for every input in which the operation is linear
 *   bits         of each sample alone and in the batch, and with 1, 2 and 3 threads, in float
 *   memory       all of it on memory full of NaN, filled again when it dies; lanes behind the channels are zero */
#ifndef PSLD_TESTS_OP_CHECK_H
#define PSLD_TESTS_OP_CHECK_H

#include "nn/graph.h"

enum { OP_INPUTS = 5 };

typedef enum input_kind {
    NORMAL_NUMBERS, /* differentiated */
    FIXED_NUMBERS,  /* not differentiated */
    TIMES,          /* in (0, 1) */
    LABELS,         /* 0 ... classes - 1, classes being the channels of input 0 */
    PROBABILITIES,  /* positive, differentiated */
} input_kind;

typedef struct op_case op_case;

struct op_case {
    char name[96];
    psld_op op;
    int inputs;
    psld_shape in[OP_INPUTS]; /* n = 0: one for each sample */
    input_kind kind[OP_INPUTS];
    psld_attributes a;
    psld_shape hint;  /* what the shape rule is told */
    unsigned linear;  /* bit i: the result is linear in input i */
    double tolerance; /* of float values, against the largest; 0: 5e-7, some roundings of the result */
    int training;     /* dropout is on */
    int samples;      /* of the batch; 0: 3 */
    psld_id (*build)(psld_graph *graph, const op_case *c, const psld_id *in); /* NULL: the operation itself */
    /* The definition: inputs and result [n][c][h][w], or dense; `out` is 0 at first. NULL: float against double. */
    void (*define)(const op_case *c, int n, double *const *in, psld_shape out_shape, double *out);
};

void check_op(const op_case *c);
/* From now on cases are run on this device alone, in fp32 and fp16, against the reference in double: its values and
 * gradients, and the bits of each sample alone and of another run. */
void check_ops_on(struct psld_device *device);
/* Cases checked so far. */
int checked_ops(void);

#endif
