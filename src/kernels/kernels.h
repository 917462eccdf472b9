/* The arguments of kernels, and the tables with one kernel for every operation.
 *
 * Layout, which every kernel relies on and keeps:
 *   1. A *batched* tensor (shape.n = 0 in the graph) is NHWC: pixel (n, y, x) begins at data + ((n h + y) w + x)
 *      pixel, its channels follow one another, and `pixel` is a multiple of PSLD_LANES.
 *   2. The lanes from c up to the next multiple of PSLD_LANES are zero. A kernel that writes a tensor writes these,
 *      too: memory that another tensor had before may hold anything, and 0 x NaN is NaN.
 *   3. A *dense* tensor (parameters and their gradients, shape.n > 0) is n c h w numbers in that order, without gaps;
 *      pixel = 0.
 *   4. A sum over samples is made in the order of samples, any other sum in an order that the shape of one sample
 *      fixes: an output's bits depend neither on the batch it sits in nor on the number of threads.
 *
 * A backend is a table of kernels for one element type. The reference backends have all of them; a faster one starts as
 * a copy and overrides entries. */
#ifndef PSLD_KERNELS_KERNELS_H
#define PSLD_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/adam.h"
#include "psld.h"

enum {
    PSLD_LANES = 8,
    PSLD_MAX_INPUTS = 6,
    PSLD_MAX_TAPS = 16,
    PSLD_MAX_METRIC = 24 /* variables of a loss's metric */
};

typedef enum psld_op {
    PSLD_OP_INPUT,          /* written before each run */
    PSLD_OP_PARAMETER,      /* dense, by name */
    PSLD_OP_FILL,           /* a constant: fill.value everywhere */
    PSLD_OP_CONV,           /* (x, w): correlation; linear maps are 1x1 ones */
    PSLD_OP_CONV_DX,        /* (dy, w): its adjoint in x; also the transposed convolution */
    PSLD_OP_CONV_DW,        /* (x, dy): its adjoint in w */
    PSLD_OP_PRODUCT,        /* (a, b): the product of two dense matrices, each as it is or transposed */
    PSLD_OP_PICK,           /* (w): some rows of a dense matrix, or numbers of a dense vector */
    PSLD_OP_PICK_DX,        /* (dy): zeros but for these */
    PSLD_OP_BIAS,           /* (x, b): x + b, b dense [c] or one [c] a sample */
    PSLD_OP_CHANNEL_SUM,    /* (x): sum over pixels; dense result: over samples, too */
    PSLD_OP_BROADCAST,      /* (b): b [n][c] at every pixel */
    PSLD_OP_MOMENTS,        /* (x): [n][2c], mean then variance of each channel */
    PSLD_OP_NORMALISE,      /* (x, moments, weight, bias): activation(group normalisation) */
    PSLD_OP_NORMALISE_SUMS, /* (x, moments, weight, bias, dy): [n][2c], gradient by weight then by bias, of a sample */
    PSLD_OP_NORMALISE_DX,   /* (x, moments, weight, bias, dy, sums) */
    PSLD_OP_MODULATE,       /* (x, v): x (1 + scale) + shift, v [n][2c] being a scale, then a shift, for each channel */
    PSLD_OP_MODULATE_DX,    /* (dy, v): dy (1 + scale) */
    PSLD_OP_MODULATE_SUMS,  /* (x, dy): [n][2c], gradient by the scale then by the shift */
    PSLD_OP_ACTIVATE,       /* (x) */
    PSLD_OP_ACTIVATE_DX,    /* (x, dy) */
    PSLD_OP_SUM,            /* (a, b): scale.by (a + b) */
    PSLD_OP_SCALE,          /* (x): scale.by x */
    PSLD_OP_CONCAT,         /* (a, b, ...): along channels */
    PSLD_OP_SLICE,          /* (x): channels slice.first ... */
    PSLD_OP_SLICE_DX,       /* (dy): zeros but for these channels */
    PSLD_OP_RESAMPLE,       /* (x): zeros between pixels, filter, keep every so many; each channel alone */
    PSLD_OP_RESHAPE,        /* (x): the same numbers in the order c, h, w */
    PSLD_OP_POOL,           /* (x): largest or mean of a window; pixels outside do not count */
    PSLD_OP_RESIZE,         /* (x): bilinear to any size, as TensorFlow 1 does */
    PSLD_OP_SCORES,  /* (q, k): S[i][j] = by <q_i, k_j>, i a pixel of q, j a pixel of k, kept as channel j of pixel i */
    PSLD_OP_SOFTMAX, /* (s): along channels */
    PSLD_OP_SOFTMAX_DX, /* (p, dp), p being the result of the softmax */
    PSLD_OP_APPLY,      /* (p, v): o_i = by sum_j p[i][j] v_j */
    PSLD_OP_APPLY_T,    /* (p, y): o_j = by sum_i p[i][j] y_i */
    PSLD_OP_DROPOUT,    /* (x): x / (1 - rate) or 0; its own adjoint */
    PSLD_OP_POSITIONAL, /* (t): sin and cos of t at frequencies 1 ... 1e-4 */
    PSLD_OP_FOURIER,    /* (t, w): sin and cos of 2 pi w log t, or of 2 pi w t */
    PSLD_OP_LOSS,       /* (a, b[, metric]): [n][1], mean of |a - b|^p over a sample */
    PSLD_OP_LOSS_DX,    /* (a, b, dy[, metric]): by a */
    PSLD_OP_ROOT,       /* (x, a): [n][1], sqrt(x + a^2) - a, for x that are not negative */
    PSLD_OP_ROOT_DX,    /* (x, a, dy): by x */
    PSLD_OP_ENTROPY,    /* (logits, label): [n][1], -log softmax(logits)[label] */
    PSLD_OP_ENTROPY_DX, /* (logits, label, dy): by the logits */
    /* (q, k, y[, do, v]): P y or P' y with P = softmax(attend.by q k'); or the same with dS = P (dP - <P, dP>),
     * dP = attend.slope_by do v', for P. Plans alone make it, for backends that have it. */
    PSLD_OP_ATTEND,
    PSLD_OPS
} psld_op;

/* Operations on a convolution's result before it is written: relu((y + bias + vector + residual) by). The input number
 * of an operand does not depend on the presence of the others. */
enum {
    PSLD_FINISH_BIAS = 1,     /* input 2: dense [c] */
    PSLD_FINISH_VECTOR = 2,   /* input 3: [c] a sample */
    PSLD_FINISH_RESIDUAL = 4, /* input 4: the shape of the result */
    PSLD_FINISH_SCALE = 8,
    PSLD_FINISH_RELU = 16,
    PSLD_FINISH_INPUTS = 5
};

typedef enum psld_activation { PSLD_LINEAR = 0, PSLD_SILU, PSLD_RELU, PSLD_ELU, PSLD_LEAKY_RELU } psld_activation;

typedef struct psld_shape {
    int n; /* 0: one for each sample of the batch (batched); > 0: dense */
    int c, h, w;
} psld_shape;

/* The attributes of an operation; the operation says which member is used. */
typedef union psld_attributes {
    struct {
        int kernel[2], stride[2]; /* vertical, horizontal */
        int pad[4];               /* top, left, bottom, right; zeros */
        int transposed;           /* weights are [ci][co][kh][kw] instead of [co][ci][kh][kw] */
        unsigned finish;          /* PSLD_FINISH_...: what a plan has fused into a conv or conv_dx; 0 in graphs */
        double by;                /* with PSLD_FINISH_SCALE */
    } conv;
    struct {
        int transposed[2]; /* of each factor: columns and rows change places */
    } product;
    struct {
        int groups;
        psld_activation activation;
        double eps;
    } norm;
    struct {
        psld_activation kind;
    } activation;
    struct {
        double by;
    } scale; /* sum, scale, scores, apply */
    struct {
        double by, slope_by;
        int transposed, slope;
    } attend;
    struct {
        double value;
    } fill;
    struct {
        int first;
    } slice;
    struct {
        int first, step; /* rows first, first + step, ... */
    } pick;
    struct {
        double shift;  /* positional: frequency i of half is 10000^(-i / (half - shift)) */
        int cos_first; /* cosines before sines */
        int plain;     /* Fourier: t itself, not its logarithm */
    } embedding;
    struct {
        /* y[j] = sum_k tap[k] X[j down + k - pad] along each axis, X[i up] = x[i] and 0 elsewhere */
        int up, down, pad, taps;
        float tap[PSLD_MAX_TAPS];
    } resample;
    struct {
        int kernel[2], stride[2], pad[4]; /* as of a convolution, but for what lies outside */
        int mean;                         /* 0: the largest */
    } pool;
    struct {
        double rate;
        int number; /* number of the dropout in the network: part of the address of its random numbers */
    } dropout;
    struct {
        int power;     /* 1 or 2 */
        int variables; /* of the metric; 0: there is none */
    } loss;
} psld_attributes;

/* What differs between runs, besides the data. */
typedef struct psld_run {
    uint64_t seed, step; /* random numbers of dropout ... */
    uint64_t first;      /* ... and the global index of the first sample of the batch */
    int training;        /* 0: dropout is the identity */
} psld_run;

typedef struct psld_operand {
    void *data;
    psld_shape shape; /* n: samples of this run, or rows of a dense tensor */
    size_t pixel;     /* elements from a pixel to the next; 0: dense */
} psld_operand;

typedef struct psld_call {
    const psld_attributes *attributes;
    const psld_run *run;
    int inputs;
    int threads; /* threads that scratch is made for: the same in the request and in the call */
    int narrow;  /* factors of products may have 16 bits */
    psld_operand in[PSLD_MAX_INPUTS], out; /* an unused input (see finish) has no data */
    void *scratch;                         /* as many bytes as the kernel asked for; holds anything */
    void *packed;                          /* the weights in the kernel's own form */
} psld_call;

/* Work is divided into `tasks` tasks that write disjoint parts of the output and may run in any order, also at the
 * same time. A kernel that divides its work itself has one task, which runs in the calling thread and may use
 * psld_parallel. */
typedef struct psld_op_kernel {
    const char *name;
    size_t (*tasks)(const psld_call *call);
    void (*run)(const psld_call *call, size_t begin, size_t end);
    /* Bytes of scratch for this many samples (no pointers are set); NULL: none. */
    size_t (*scratch)(const psld_call *call);
    unsigned in_place; /* bit i: the output may lie where input i lies, when their shapes are the same */
    unsigned finish;   /* conv, conv_dx: PSLD_FINISH_... operations that it can fuse */
    /* Weights (input 1) in the kernel's own layout: their size in bytes, which must not depend on the number of
     * samples, and the function that makes them, in tasks as above. A plan makes them once and keeps them, or just
     * before each run: the bits are the same. NULL: none. */
    size_t (*packed)(const psld_call *call);
    size_t (*pack_tasks)(const psld_call *call);
    void (*pack)(const psld_call *call, size_t begin, size_t end);
    /* Whether it prefers to work without packed weights (packed is NULL then) if they would be made before each run. */
    int (*in_time)(const psld_call *call);
} psld_op_kernel;

/* The update of training (kernels/adam.h), always on floats. */
typedef struct psld_update_kernels {
    void (*adam)(const psld_adam *adam, size_t count, const float *g, float *w, float *m, float *v, float *average);
    size_t (*square_chunks)(size_t count);
    double (*sum_squares)(size_t count, const float *x, double *scratch);
} psld_update_kernels;

typedef struct psld_backend {
    const char *name;                /* in printed plans: "avx2", "avx2 bf16" */
    const char *isa, *precision;     /* "avx2", "bf16" */
    psld_type type;                  /* of every element: PSLD_F32 or PSLD_F64 */
    int narrow;                      /* factors of products may have 16 bits */
    psld_op_kernel kernel[PSLD_OPS]; /* none for inputs and parameters */
    psld_update_kernels update;
    struct psld_device *device; /* that runs it (device/device.h); NULL: the CPU */
    int half;                   /* batched tensors of a plan are kept in half precision */
} psld_backend;

/* Plain C; sums in double. The backend in double is for finite differences in tests. */
extern const psld_backend psld_backend_reference, psld_backend_reference_f64;

/* Lanes of a pixel with c channels. */
static inline size_t psld_lanes(int c)
{
    return ((size_t)c + PSLD_LANES - 1) / PSLD_LANES * PSLD_LANES;
}

#endif
