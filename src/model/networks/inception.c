/* The graph. A block is a table: its branches are chains of convolutions and pools that start at the block's input, or
 * at a stage of the branch before, and end side by side in the block's result. */
#include "model/networks/inception.h"

#include <stdio.h>

#include "nn/ops.h"

typedef enum layer_kind { CONV, MEAN_POOL, MAX_POOL } layer_kind;

/* One step of a branch. Padding keeps the size where the stride is 1 and `same` is set. */
typedef struct layer {
    layer_kind kind;
    const char *name; /* of the module, without the block's */
    int channels, kernel[2], stride;
    int same;
} layer;

enum { MAX_CHAIN = 6 };

/* `fork`: it starts where the branch before has its last layer but one, instead of at the block's input. */
typedef struct branch {
    int fork;
    layer layers[MAX_CHAIN]; /* up to the first without channels and name */
} branch;

enum { MAX_BRANCHES = PSLD_MAX_INPUTS };

typedef struct block {
    const char *name;
    branch branches[MAX_BRANCHES];
} block;

/* clang-format off */
#define ONE(name, channels)            {CONV, name, channels, {1, 1}, 1, 1}
#define SQUARE(name, channels, size)   {CONV, name, channels, {size, size}, 1, 1}
#define FLAT(name, channels, size)     {CONV, name, channels, {1, size}, 1, 1}
#define TALL(name, channels, size)     {CONV, name, channels, {size, 1}, 1, 1}
#define HALF(name, channels)           {CONV, name, channels, {3, 3}, 2, 0}
#define HALF_POOL                      {MAX_POOL, "", 0, {3, 3}, 2, 0}
#define MEANS                          {MEAN_POOL, "", 0, {3, 3}, 1, 1}
#define LARGEST                        {MAX_POOL, "", 0, {3, 3}, 1, 1}

#define BLOCK_A(name, pooled) {name, { \
    {0, {ONE("branch1x1", 64)}}, \
    {0, {ONE("branch5x5_1", 48), SQUARE("branch5x5_2", 64, 5)}}, \
    {0, {ONE("branch3x3dbl_1", 64), SQUARE("branch3x3dbl_2", 96, 3), SQUARE("branch3x3dbl_3", 96, 3)}}, \
    {0, {MEANS, ONE("branch_pool", pooled)}}}}

#define BLOCK_B(name) {name, { \
    {0, {HALF("branch3x3", 384)}}, \
    {0, {ONE("branch3x3dbl_1", 64), SQUARE("branch3x3dbl_2", 96, 3), HALF("branch3x3dbl_3", 96)}}, \
    {0, {HALF_POOL}}}}

#define BLOCK_C(name, width) {name, { \
    {0, {ONE("branch1x1", 192)}}, \
    {0, {ONE("branch7x7_1", width), FLAT("branch7x7_2", width, 7), TALL("branch7x7_3", 192, 7)}}, \
    {0, {ONE("branch7x7dbl_1", width), TALL("branch7x7dbl_2", width, 7), FLAT("branch7x7dbl_3", width, 7), \
         TALL("branch7x7dbl_4", width, 7), FLAT("branch7x7dbl_5", 192, 7)}}, \
    {0, {MEANS, ONE("branch_pool", 192)}}}}

#define BLOCK_D(name) {name, { \
    {0, {ONE("branch3x3_1", 192), HALF("branch3x3_2", 320)}}, \
    {0, {ONE("branch7x7x3_1", 192), FLAT("branch7x7x3_2", 192, 7), TALL("branch7x7x3_3", 192, 7), \
         HALF("branch7x7x3_4", 192)}}, \
    {0, {HALF_POOL}}}}

#define BLOCK_E(name, pool) {name, { \
    {0, {ONE("branch1x1", 320)}}, \
    {0, {ONE("branch3x3_1", 384), FLAT("branch3x3_2a", 384, 3)}}, \
    {1, {TALL("branch3x3_2b", 384, 3)}}, \
    {0, {ONE("branch3x3dbl_1", 448), SQUARE("branch3x3dbl_2", 384, 3), FLAT("branch3x3dbl_3a", 384, 3)}}, \
    {1, {TALL("branch3x3dbl_3b", 384, 3)}}, \
    {0, {pool, ONE("branch_pool", 192)}}}}

static const layer stem[] = {
    HALF("Conv2d_1a_3x3", 32), {CONV, "Conv2d_2a_3x3", 32, {3, 3}, 1, 0}, SQUARE("Conv2d_2b_3x3", 64, 3), HALF_POOL,
    ONE("Conv2d_3b_1x1", 80), {CONV, "Conv2d_4a_3x3", 192, {3, 3}, 1, 0}, HALF_POOL,
};
enum { STEM = sizeof stem / sizeof *stem, EARLY = 3 }; /* the layer whose means are the 64 early features */

static const block blocks[] = {
    BLOCK_A("Mixed_5b", 32), BLOCK_A("Mixed_5c", 64), BLOCK_A("Mixed_5d", 64), BLOCK_B("Mixed_6a"),
    BLOCK_C("Mixed_6b", 128), BLOCK_C("Mixed_6c", 160), BLOCK_C("Mixed_6d", 160), BLOCK_C("Mixed_6e", 192),
    BLOCK_D("Mixed_7a"), BLOCK_E("Mixed_7b", MEANS), BLOCK_E("Mixed_7c", LARGEST),
};
enum { BLOCKS = sizeof blocks / sizeof *blocks };
/* clang-format on */

static psld_id add_convolution(psld_graph *graph, const char *prefix, const layer *l, psld_id x, const int pad[4])
{
    char name[PSLD_PARAMETER_NAME];
    int shape[4] = {l->channels, psld_graph_shape(graph, x).c, l->kernel[0], l->kernel[1]};
    const int stride[2] = {l->stride, l->stride};
    snprintf(name, sizeof name, "%s%s.conv.weight", prefix, l->name);
    psld_id w = psld_graph_parameter(graph, name, 4, shape, PSLD_INIT_ZEROS, 1);
    snprintf(name, sizeof name, "%s%s.bias", prefix, l->name);
    psld_id b = psld_graph_parameter(graph, name, 1, shape, PSLD_INIT_ZEROS, 1);
    return psld_nn_activate(graph, psld_nn_bias(graph, psld_nn_conv(graph, x, w, stride, pad, 0), b), PSLD_RELU);
}

static psld_id add_layer(psld_graph *graph, const char *prefix, const layer *l, psld_id x)
{
    const int stride[2] = {l->stride, l->stride}, down = l->same ? l->kernel[0] / 2 : 0,
              across = l->same ? l->kernel[1] / 2 : 0, pad[4] = {down, across, down, across};
    if (l->kind == CONV) return add_convolution(graph, prefix, l, x, pad);
    return psld_nn_pool(graph, x, l->kernel, stride, pad, l->kind == MEAN_POOL);
}

static psld_id add_block(psld_graph *graph, const block *b, psld_id x)
{
    char prefix[PSLD_PARAMETER_NAME];
    psld_id ends[MAX_BRANCHES], before_last = x;
    int count = 0;
    snprintf(prefix, sizeof prefix, "%s.", b->name);
    for (; count < MAX_BRANCHES && b->branches[count].layers[0].name; count++) {
        const branch *chain = &b->branches[count];
        psld_id h = chain->fork ? before_last : x;
        for (const layer *l = chain->layers; l < chain->layers + MAX_CHAIN && l->name; l++) {
            before_last = h;
            h = add_layer(graph, prefix, l, h);
        }
        ends[count] = h;
    }
    return psld_nn_concat_all(graph, count, ends);
}

static psld_id add_mean(psld_graph *graph, psld_id x)
{
    psld_shape s = psld_graph_shape(graph, x);
    return psld_nn_scale(graph, psld_nn_channel_sum(graph, x, 0), 1.0 / ((double)s.h * s.w));
}

psld_status psld_inception_build(psld_graph *graph, psld_id x, psld_inception_nodes *nodes)
{
    static const int fc[2] = {PSLD_INCEPTION_LOGITS, PSLD_INCEPTION_FEATURES};
    for (int i = 0; i < STEM; i++) {
        x = add_layer(graph, "", &stem[i], x);
        if (i == EARLY) nodes->early = add_mean(graph, x);
    }
    for (int i = 0; i < BLOCKS; i++) x = add_block(graph, &blocks[i], x);
    nodes->features = add_mean(graph, x);
    nodes->logits =
        psld_nn_linear(graph, nodes->features, psld_graph_parameter(graph, "fc.weight", 2, fc, PSLD_INIT_ZEROS, 1), 0);
    return psld_graph_status(graph);
}
