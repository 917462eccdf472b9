/* A plan: what to run, in which order, and where everything lies.
 *
 * Made once from a graph for a backend and the largest batch; running it (nn/exec.h) allocates nothing and takes any
 * batch up to that. A plan is immutable and may be shared. Operands are (buffer, offset), not
 * pointers: a plan belongs to no memory yet. */
#ifndef PSLD_NN_PLAN_H
#define PSLD_NN_PLAN_H

#include "nn/graph.h"

typedef enum psld_buffer {
    PSLD_IN_ARENA,      /* everything that lives for some steps */
    PSLD_IN_PARAMETERS, /* all parameters, at their offsets */
    PSLD_IN_GRADIENTS,  /* gradients, each at the offset of its parameter */
    PSLD_IN_KEPT,       /* what depends only on parameters: computed when they change, and kept */
} psld_buffer;

typedef struct psld_location {
    psld_buffer buffer;
    size_t offset; /* elements */
    int parameter; /* for the buffer of parameters: the parameter's number */
    psld_shape shape;
    size_t pixel; /* elements from a pixel to the next; 0: dense */
    int half;     /* elements of half the size; the offset still counts full elements */
} psld_location;

/* Memory that belongs to a step alone. */
typedef struct psld_step_memory {
    size_t size, offset; /* elements; 0: none */
    int region;          /* in the arena; PSLD_NONE: in the buffer of kept results */
} psld_step_memory;

typedef struct psld_step {
    psld_op op;
    psld_id id; /* the node that it computes */
    psld_op_kernel kernel;
    psld_attributes attributes;
    int inputs;
    psld_id from[PSLD_MAX_INPUTS]; /* the nodes that it reads; PSLD_NONE: an unused input */
    psld_location in[PSLD_MAX_INPUTS], out;
    psld_step_memory scratch, packed; /* memory of this step only */
} psld_step;

/* A piece of the arena, from the step that writes it to the last that reads it. Input tensors are written before step
 * 0 (first = -1), outputs are read after the last step. Several nodes share one where a kernel works in place. */
typedef struct psld_region {
    int first, last;     /* steps, both included */
    size_t size, offset; /* elements */
} psld_region;

typedef struct psld_plan_output {
    psld_id id;
    int gradient_of; /* the parameter whose gradient this output is; PSLD_NONE: it stays in the arena until the next run */
} psld_plan_output;

typedef struct psld_plan {
    const psld_backend *backend;
    int batch;      /* at most */
    int threads;    /* largest number of threads: it also runs with fewer, but not with more */
    size_t element; /* bytes */
    size_t block;   /* elements of the largest block of memory: no tensor crosses a multiple of this */
    psld_step *steps;
    size_t step_count;
    psld_region *regions;
    size_t region_count;
    int *region_of;        /* [node_count]: PSLD_NONE where a node has none */
    psld_location *places; /* [node_count]: where each node that takes part lies */
    size_t node_count;
    size_t arena;      /* elements */
    size_t bound;      /* elements: the most that is alive at one step; no arrangement needs less */
    size_t parameters; /* elements of a buffer of parameters, and of one of gradients */
    size_t kept;       /* elements of kept results: packed weights, and what depends only on parameters */
} psld_plan;

/* Optimisations of the graph; 0: none. */
enum {
    PSLD_PASS_FUSE = 1, /* biases, residuals and scales that follow a convolution become part of it */
    PSLD_PASS_ALL = 1
};

typedef struct psld_plan_options {
    const psld_backend *backend;
    int batch;       /* at most */
    unsigned passes; /* PSLD_PASS_... */
    size_t store;    /* bytes for kept results; other weights are packed just before their use */
} psld_plan_options;

psld_status psld_plan_create(const psld_graph *graph, const psld_plan_options *options, const psld_plan_output *outputs,
                             size_t count, psld_plan **plan);
void psld_plan_free(psld_plan *plan);

/* Proves for this plan that regions which are alive at the same time do not overlap, and that every operand lies in
 * a live region. PSLD_BAD_ARGUMENT with the first violation. */
psld_status psld_plan_check(const psld_plan *plan);

/* Multiplications and additions of a run with n samples. */
double psld_plan_flops(const psld_plan *plan, int n);

/* The plan as a table, one line per step; with `seconds`, [step_count] of a run with n samples, also the time of
 * each step. Release with psld_release. */
psld_status psld_plan_text(const psld_plan *plan, const double *seconds, int n, char **text);

/* Times per sample of a run with n samples, summed by kernel, the slowest first. Returns the number of kernels, at
 * most `room`. */
size_t psld_plan_kinds(const psld_plan *plan, const double *seconds, int n, size_t room, psld_kernel_time *kinds);

#endif
