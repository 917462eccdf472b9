/* A computation as a list of nodes.
 *
 * Building only records. A node is an operation, the numbers (ids) of its inputs, its attributes and the logical
 * shape [n][c][h][w] of its result; nothing here knows of memory, layout or the size of a batch. Invariants:
 *   1. Nodes are appended, never changed or removed; inputs have smaller ids than the node, so the order of ids is an
 *      order of computation.
 *   2. Every node fits: its operation's shape rule was run when it was added.
 *   3. The first failure sticks. Later additions do nothing and return PSLD_NONE, so that builders need not look
 *      after each step: psld_graph_status says at the end. */
#ifndef PSLD_NN_GRAPH_H
#define PSLD_NN_GRAPH_H

#include "base/status.h"
#include "kernels/kernels.h"

typedef int psld_id;

enum { PSLD_NONE = -1, PSLD_PARAMETER_NAME = 96 };

/* How a parameter starts. */
typedef enum psld_init {
    PSLD_INIT_ZEROS,
    PSLD_INIT_ONES,
    PSLD_INIT_UNIFORM, /* variance scaling: uniform with variance scale / fan, fan the mean of fan-in and fan-out */
    PSLD_INIT_NORMAL,  /* normal with standard deviation `scale` */
} psld_init;

typedef struct psld_parameter {
    char name[PSLD_PARAMETER_NAME]; /* in files: the key of the state_dict */
    int rank;
    int shape[4];  /* in files */
    size_t count;  /* product of the shape */
    size_t offset; /* first element in a buffer of all parameters */
    psld_init init;
    double scale;
    int trained; /* 0: no gradient is computed (the Fourier frequencies) */
    psld_id id;  /* its node */
} psld_parameter;

typedef struct psld_graph_node {
    psld_op op;
    int inputs;
    psld_id in[PSLD_MAX_INPUTS];
    psld_attributes attributes;
    psld_shape shape;
    int parameter; /* its number; PSLD_NONE: not a parameter */
} psld_graph_node;

typedef struct psld_graph {
    psld_status status;
    psld_graph_node *nodes;
    size_t count, capacity;
    psld_parameter *parameters; /* in the order in which they were first used: that of the state_dict */
    size_t parameter_count, parameter_capacity;
    size_t parameter_elements; /* size of a buffer of all parameters */
    int dropouts;
} psld_graph;

psld_status psld_graph_create(psld_graph **graph);
void psld_graph_free(psld_graph *graph);

/* The first failure, or PSLD_OK. psld_graph_fail records one: for builders that detect their own mistakes. */
psld_status psld_graph_status(const psld_graph *graph);
psld_id psld_graph_fail(psld_graph *graph, psld_status status);

/* Appends a node. `shape` has what the operation's rule cannot know (see nn/ops.h); NULL if the rule knows
 * everything. */
psld_id psld_graph_add(psld_graph *graph, psld_op op, int inputs, const psld_id *in, const psld_attributes *attributes,
                       const psld_shape *shape);

/* A tensor with one [c][h][w] per sample, written before each run. */
psld_id psld_graph_input(psld_graph *graph, int c, int h, int w);

/* A parameter of `rank` 1 to 4. A vector [c] is a node of shape [1][c][1][1], a matrix [a][b] one of [a][b][1][1].
 * An existing name gives the same node; its shape must be the same. */
psld_id psld_graph_parameter(psld_graph *graph, const char *name, int rank, const int *shape, psld_init init,
                             double scale);
/* The same, but with no gradient. */
psld_id psld_graph_fixed(psld_graph *graph, const char *name, int rank, const int *shape, psld_init init, double scale);

psld_shape psld_graph_shape(const psld_graph *graph, psld_id id);

/* Elements per sample (batched) or in total (dense). */
size_t psld_shape_count(psld_shape shape);
int psld_shape_same(psld_shape a, psld_shape b);

#endif
