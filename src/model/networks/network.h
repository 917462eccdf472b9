/* Networks: their configuration, graph and weights, and running them.
 *
 * There are three kinds, all functions of (z, t): the NCSN++/DDPM++ U-Net (z [c][size][size] -> eps), the
 * time-dependent classifier on its encoder (-> logits), and an MLP for data that is a vector. */
#ifndef PSLD_MODEL_NETWORK_H
#define PSLD_MODEL_NETWORK_H

#include "io/tensors/tensors.h"
#include "io/yaml/yaml.h"
#include "nn/graph.h"

enum {
    PSLD_MAX_LEVELS = 8,
    PSLD_MAX_BLOCKS = 64,
    PSLD_AUGMENT_INPUTS = 10,
    PSLD_MAX_CHANNELS = 1 << 16,
    PSLD_MAX_IMAGE = 1 << 12
};

typedef enum psld_network_kind {
    PSLD_NET_UNET,
    PSLD_NET_CLASSIFIER,
    PSLD_NET_MLP,
    PSLD_NET_SONGUNET, /* U-Nets of other projects: see ncsnpp.h */
    PSLD_NET_ADM,
    PSLD_NET_UNET2D
} psld_network_kind;
typedef enum psld_block { PSLD_BLOCK_DDPM, PSLD_BLOCK_BIGGAN } psld_block;
typedef enum psld_progressive {
    PSLD_PROGRESSIVE_NONE,
    PSLD_PROGRESSIVE_SKIP, /* output_skip, input_skip */
    PSLD_PROGRESSIVE_RESIDUAL,
} psld_progressive;
typedef enum psld_combine { PSLD_COMBINE_SUM, PSLD_COMBINE_CAT } psld_combine;
/* eps of the noisy variables from z, or clean data from the sufficient statistic of z: precondition.h */
typedef enum psld_network_output { PSLD_OUTPUT_EPS, PSLD_OUTPUT_DATA } psld_network_output;
typedef enum psld_embedding { PSLD_EMBED_POSITIONAL, PSLD_EMBED_FOURIER } psld_embedding;
/* How UNet2DModel takes labels: a vector for each, or an embedding like that of time. */
typedef enum psld_class_embedding { PSLD_CLASS_TABLE, PSLD_CLASS_TIMESTEP } psld_class_embedding;

/* The keys of the configuration, with the names of the reference implementation; network_keys.c describes each. */
typedef struct psld_network_config {
    psld_network_kind kind; /* name: ncsnpp, ncsnpp_clf, mlp */
    int image_size;         /* height and width; 1 for vectors */
    int in_ch;  /* of z: variables times channels of the data; with PSLD_OUTPUT_DATA only channels of the data */
    int out_ch; /* of the prediction; classes of a classifier (n_cls) */
    psld_network_output predicts;
    double data_deviation;        /* see precondition.h */
    psld_activation nonlinearity; /* swish, relu, elu, lrelu */
    int nf;                       /* channels of the first level are nf ch_mult[0]; width of an MLP */
    int patch;                    /* pixels per side that become one position of the first level */
    int levels, ch_mult[PSLD_MAX_LEVELS];
    int num_res_blocks; /* per level; blocks of an MLP */
    int attn_count, attn_resolutions[PSLD_MAX_LEVELS];
    double dropout;
    int resamp_with_conv; /* ddpm blocks: change size by a convolution */
    int noise_cond;       /* the network sees t */
    int fir;              /* change size by the filter fir_kernel, not by nearest pixels and means */
    int fir_taps;
    double fir_kernel[PSLD_MAX_TAPS];
    int skip_rescale; /* sums of two branches are divided by sqrt 2 */
    psld_block resblock_type;
    psld_progressive progressive, progressive_input;
    psld_combine progressive_combine;
    psld_embedding embedding_type;
    double init_scale; /* of the last convolution in each branch; 0 means 1e-10 */
    double fourier_scale;
    int augment; /* in training it gets the augmentation of its data as an input (data/augment.h) */
    int classes; /* classes of the labels of a score network; 0: no labels */
    /* U-Nets of other projects */
    int embedding_channels, time_channels; /* before and after the two maps that the embedding of time goes through */
    int augment_inputs;                    /* inputs of a map like that of `augment`, unused in sampling */
    int head_channels;                     /* of attention; 0: one head */
    int attn_down_count, attn_down[PSLD_MAX_LEVELS];   /* levels with attention, the first being 1, going down ... */
    int attn_up_count, attn_up[PSLD_MAX_LEVELS];       /* ... and up */
    int block_down_count, block_down[PSLD_MAX_LEVELS]; /* levels that a residual block leads out of, ... */
    int block_up_count, block_up[PSLD_MAX_LEVELS];     /* ... where the others have convolutions */
    int norm_groups;                                   /* 0: one for four channels, at most 32 */
    double norm_eps;
    int scale_shift, down_pad;
    double freq_shift;
    int cos_first, centre_input, learned_variance;
    int without_middle, without_mid_attention;
    int mid_attn_groups; /* of the normalisation before the attention in the middle; 0: as elsewhere, -1: none */
    double mid_scale;    /* divisor of sums there; 0: none */
    psld_class_embedding class_embedding;
} psld_network_config;

/* Reads a configuration of ours (`model`, `data`, and `process` where in_ch and out_ch are not given) or of published
 * models (model.score_fn or model.clf_fn, and data, at the top or under `diffusion` or `clf`; values "???" count as
 * absent). Published files may contain a score network and a classifier: `part`, "score_fn" or "clf_fn", chooses one;
 * NULL takes the score network, or the classifier if it is the only one. */
psld_status psld_network_config_read(const psld_node *root, const char *part, psld_network_config *config);
/* The keys of `model` that networks of psld have, 0 <= index; returns 0 past the last. */
int psld_network_key(int index, psld_key *key);

/* Whether a key of `model` has an effect on networks of this kind; 0 also for unknown keys. */
int psld_network_uses_key(psld_network_kind kind, const char *key);
/* Fails with the first key of a psld configuration that has no effect on its network. Not for model files: earlier
 * versions may have written such keys. */
psld_status psld_network_config_check(const psld_node *root);

/* The inputs of a network per sample. PSLD_NONE for `label` or `augment` means zeros; the weights of these inputs exist
 * in any case. */
typedef struct psld_network_inputs {
    psld_id z;       /* [in_ch][size][size] */
    psld_id t;       /* [1] */
    psld_id label;   /* [classes]: 1 at the class, 0 elsewhere; zeros: no label. Or [1], the number of the class */
    psld_id augment; /* [PSLD_AUGMENT_INPUTS]: parameters of the augmentation */
} psld_network_inputs;

/* The length of the input for the label of one sample: 1 if it is the number of the class itself, 0 without labels. */
int psld_network_label_width(const psld_network_config *config);
/* Adds the inputs of a network to a graph, without `augment`, which is for training only. */
psld_network_inputs psld_network_add_inputs(const psld_network_config *config, psld_graph *graph);

/* Appends the network to a graph. *out: [out_ch][size][size], or [classes] of a classifier. Parameters get the names and
 * the order of a PyTorch state_dict. */
psld_status psld_network_build(const psld_network_config *config, psld_graph *graph, const psld_network_inputs *inputs,
                               psld_id *out);

/* A network with its weights in float: either all in one buffer, in the order and at the offsets of graph->parameters,
 * or borrowed from where they were found, and then read-only. */
typedef struct psld_network {
    psld_network_config config;
    psld_graph *graph; /* only inputs and `out` */
    psld_network_inputs inputs;
    psld_id out;
    float *weights;   /* [graph->parameter_elements]; NULL: borrowed */
    const float **at; /* [graph->parameter_count]: address of each parameter */
    float *copies;    /* copies of parameters that could not be borrowed; NULL: none */
} psld_network;

/* With all weights 0. */
psld_status psld_network_create(const psld_network_config *config, psld_network **network);
void psld_network_free(psld_network *network);

/* Number of all weights. */
size_t psld_network_size(const psld_graph *graph);

/* Initial weights for training: a function of the seed. */
void psld_network_initialise(psld_network *network, uint64_t seed);

/* Weights from a file of tensors, their names with `prefix` before them. Fails with the first that is missing or has
 * another shape, or that the network does not have. */
psld_status psld_network_load(psld_network *network, const psld_tensors *tensors, const char *prefix);
/* The same, but large tensors that can be used in place, as in a mapped file, are not copied: their owner must exist as
 * long as the network. New memory would cost more than everything else in opening a file. */
psld_status psld_network_borrow(psld_network *network, const psld_tensors *tensors, const char *prefix);
/* Copies all weights to their offsets in a buffer of [graph->parameter_elements]. */
void psld_network_gather(const psld_network *network, float *weights);
/* Copies borrowed weights, so that all are in network->weights and can be changed. */
psld_status psld_network_own(psld_network *network);

/* ---- Running ----------------------------------------------------------------------------------------------------- */

/* What a runner computes, in addition to the output. */
enum {
    PSLD_WANT_GRADIENT_Z = 1,          /* of sum(output * grad_out) by z */
    PSLD_WANT_GRADIENT_PARAMETERS = 2, /* of the same by the parameters */
    PSLD_WANT_LOG_P = 4,               /* classifiers: the gradient of log p(label) instead */
};

typedef struct psld_runner psld_runner;

typedef struct psld_runner_options {
    const psld_backend *backend;
    int batch;     /* samples at a time */
    unsigned want; /* PSLD_WANT_... */
    size_t store;  /* bytes for packed weights, see psld_plan_options */
    int poison;    /* see psld_exec_create */
} psld_runner_options;

/* The network is borrowed. Call psld_runner_changed after changing its weights. */
psld_status psld_runner_open(const psld_network *network, const psld_runner_options *options, psld_runner **runner);
void psld_runner_changed(psld_runner *runner);
/* See psld_exec_time. */
void psld_runner_time(psld_runner *runner, double *seconds);
void psld_runner_free(psld_runner *runner);

/* All arrays are of `type`, PSLD_F32 or PSLD_F64: z [n][in_ch][size][size], t [n], one_hot [n][classes] for a network
 * with labels, grad_out as the output or, with PSLD_WANT_LOG_P, label [n]; out and grad_z are filled (NULL: not
 * wanted). Larger calls are divided into batches; the gradients of parameters need n <= batch. */
typedef struct psld_runner_data {
    psld_type type;
    const void *z, *t, *one_hot, *grad_out, *label;
    void *out, *grad_z;
} psld_runner_data;

psld_status psld_runner_run(psld_runner *runner, size_t n, const psld_runner_data *data);

/* Gradients of the last run at the offsets of the parameters, in the backend's type; NULL if they are not computed. */
const void *psld_runner_gradients(const psld_runner *runner);
size_t psld_runner_faults(const psld_runner *runner);
/* Of memory on its device. */
uint64_t psld_runner_bytes(const psld_runner *runner);
const struct psld_plan *psld_runner_plan(const psld_runner *runner);

#endif
