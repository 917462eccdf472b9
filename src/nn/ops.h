/* Operations: what can be recorded in a graph, and the rules for each.
 *
 * One file of nn/ops/ has an operation with its adjoints: builder, shape rule, gradient rule. nn/ops.c has the table.
 * The set is closed under differentiation as far as training and sampling need it: each gradient is a graph of
 * operations of this list. */
#ifndef PSLD_NN_OPS_H
#define PSLD_NN_OPS_H

#include "nn/graph.h"

/* ---- Recording --------------------------------------------------------------------------------------------------- */

/* Correlation of x with weights [co][ci][kh][kw], or [ci][co][kh][kw] if `transposed`. pad: top, left, bottom, right.
 * */
psld_id psld_nn_conv(psld_graph *graph, psld_id x, psld_id w, const int stride[2], const int pad[4], int transposed);
/* The adjoint of a convolution, to `size`: of weights [channels of x][channels of the result][kh][kw]. */
psld_id psld_nn_conv_adjoint(psld_graph *graph, psld_id x, psld_id w, const int stride[2], const int pad[4],
                             const int size[2]);
/* x times a matrix [out][in], or [in][out] if `transposed`: the same for every pixel. */
psld_id psld_nn_linear(psld_graph *graph, psld_id x, psld_id w, int transposed);
/* The product of two matrices that are parameters or computed from parameters, each perhaps transposed: two linear maps
 * become one. */
psld_id psld_nn_product(psld_graph *graph, psld_id a, int a_transposed, psld_id b, int b_transposed);
/* Rows first, first + step, ... of a matrix of the parameters, `count` of them; of a vector, its numbers. */
psld_id psld_nn_pick(psld_graph *graph, psld_id w, int first, int step, int count);
/* x (1 + scale) + shift. `by`, [2c] per sample, has the scales of all channels, then the shifts. */
psld_id psld_nn_modulate(psld_graph *graph, psld_id x, psld_id by);
/* x + b, where b is a parameter vector or one [c] per sample. */
psld_id psld_nn_bias(psld_graph *graph, psld_id x, psld_id b);
/* Sum over pixels, [n][c]; also over samples if `dense`. */
psld_id psld_nn_channel_sum(psld_graph *graph, psld_id x, int dense);
/* Group normalisation, then the activation. */
psld_id psld_nn_group_norm(psld_graph *graph, psld_id x, psld_id weight, psld_id bias, int groups, double eps,
                           psld_activation activation);
psld_id psld_nn_activate(psld_graph *graph, psld_id x, psld_activation kind);
/* (a + b) by */
psld_id psld_nn_sum(psld_graph *graph, psld_id a, psld_id b, double by);
psld_id psld_nn_scale(psld_graph *graph, psld_id x, double by);
psld_id psld_nn_fill(psld_graph *graph, psld_shape shape, double value);
psld_id psld_nn_concat(psld_graph *graph, psld_id a, psld_id b);
/* The same for 2 to PSLD_MAX_INPUTS tensors. */
psld_id psld_nn_concat_all(psld_graph *graph, int count, const psld_id *parts);
psld_id psld_nn_slice(psld_graph *graph, psld_id x, int first, int count);
/* See psld_attributes. `size` is that of the result. */
psld_id psld_nn_resample(psld_graph *graph, psld_id x, int up, int down, int taps, const float *tap, int pad,
                         const int size[2]);
/* The largest number or, with `mean`, the mean of each window; pixels outside do not count. No gradient. */
psld_id psld_nn_pool(psld_graph *graph, psld_id x, const int kernel[2], const int stride[2], const int pad[4],
                     int mean);
/* Bilinear, to height x width: pixel j lies at j in / out, without the half-pixel offset. No gradient. */
psld_id psld_nn_resize(psld_graph *graph, psld_id x, int height, int width);
/* The same numbers, in the order c, h, w, in another shape. */
psld_id psld_nn_reshape(psld_graph *graph, psld_id x, int c, int h, int w);
/* softmax(q k' / sqrt(c)) v, one head. */
psld_id psld_nn_attention(psld_graph *graph, psld_id q, psld_id k, psld_id v);
/* Along channels, any number of tensors, at least one; `parts` is used up. */
psld_id psld_nn_join(psld_graph *graph, int count, psld_id *parts);
psld_id psld_nn_softmax(psld_graph *graph, psld_id x);
psld_id psld_nn_dropout(psld_graph *graph, psld_id x, double rate);
/* Embeddings of times [n][1]: `channels` of them, or twice as many as the vector w has. No gradient. */
psld_id psld_nn_positional(psld_graph *graph, psld_id t, int channels);
psld_id psld_nn_fourier(psld_graph *graph, psld_id t, psld_id w);
/* The embeddings of other networks: frequency i of half is 10000^(-i / (half - shift)), and cosines may come first; and
 * sines and cosines of 2 pi w t. */
psld_id psld_nn_positional_shifted(psld_graph *graph, psld_id t, int channels, double shift, int cos_first);
psld_id psld_nn_fourier_plain(psld_graph *graph, psld_id t, psld_id w);
/* Mean over a sample of |a - b|^power, power 1 or 2: [n][1]. With a metric [n][p * p] (or PSLD_NONE) the channels are
 * those of p variables, one after the other, and the squared error e of the variables at a pixel is e' M e. No gradient
 * by the metric. */
psld_id psld_nn_loss(psld_graph *graph, psld_id a, psld_id b, psld_id metric, int power);
/* sqrt(x + a^2) - a of x [n][1], such as a loss, and a [n][1]: near 0 it is x / 2a, far from it sqrt(x). No gradient by a;
 * where x and a are 0, none by x. */
psld_id psld_nn_root(psld_graph *graph, psld_id x, psld_id a);
/* -log softmax(logits)[label]: [n][1]; labels [n][1] hold whole numbers. */
psld_id psld_nn_entropy(psld_graph *graph, psld_id logits, psld_id label);

/* ---- Rules ------------------------------------------------------------------------------------------------------- */

typedef struct psld_op_rule {
    const char *name;
    int min_inputs, max_inputs;
    /* Checks the inputs and completes node->shape. The caller has set what the rule cannot know. */
    psld_status (*shape)(const psld_graph *graph, psld_graph_node *node);
    /* Appends nodes that compute the gradients dx[i] of the inputs with want[i] from the gradient of the result.
     * PSLD_NONE: no gradient. NULL: not differentiable. */
    void (*gradient)(psld_graph *graph, psld_id node, psld_id dy, const int *want, psld_id *dx);
    /* Multiplications and additions per sample, for the printed plan; NULL: negligible. */
    double (*flops)(const psld_shape *in, psld_shape out, const psld_attributes *attributes);
} psld_op_rule;

const psld_op_rule *psld_op_rule_of(psld_op op);

/* Used by rules: shape of input i, and failures that name the operation. */
psld_shape psld_rule_in(const psld_graph *graph, const psld_graph_node *node, int i);
psld_status psld_rule_fail(const psld_graph_node *node, const char *format, ...) PSLD_PRINTF(2, 3);
/* The result has the shape of input 0, and so have all other inputs. */
psld_status psld_rule_same(const psld_graph *graph, psld_graph_node *node);

extern const psld_op_rule psld_rule_conv, psld_rule_conv_dx, psld_rule_conv_dw, psld_rule_bias, psld_rule_channel_sum,
    psld_rule_broadcast, psld_rule_moments, psld_rule_normalise, psld_rule_normalise_sums, psld_rule_normalise_dx,
    psld_rule_activate, psld_rule_activate_dx, psld_rule_sum, psld_rule_scale, psld_rule_fill, psld_rule_concat,
    psld_rule_slice, psld_rule_slice_dx, psld_rule_resample, psld_rule_reshape, psld_rule_scores, psld_rule_softmax,
    psld_rule_softmax_dx, psld_rule_apply, psld_rule_apply_t, psld_rule_attend, psld_rule_dropout, psld_rule_positional,
    psld_rule_fourier, psld_rule_loss, psld_rule_loss_dx, psld_rule_root, psld_rule_root_dx, psld_rule_entropy,
    psld_rule_entropy_dx, psld_rule_pool, psld_rule_resize, psld_rule_product, psld_rule_pick, psld_rule_pick_dx,
    psld_rule_modulate, psld_rule_modulate_dx, psld_rule_modulate_sums;

#endif
