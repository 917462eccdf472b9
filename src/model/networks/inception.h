/* The FID network: Inception-v3 as it was trained in TensorFlow in 2015, in the PyTorch conversion that the projects
 * pytorch-fid and torch-fidelity publish (pt_inception-2015-12-05-6726825d.pth). It differs from other Inception-v3
 * networks: it has 1008 classes, mean pools that do not count padding, a max pool in the last block, and the resizing
 * of TensorFlow 1. All of this is part of the definition of FID.
 *
 * Batch normalisation is folded into the convolutions on loading. */
#ifndef PSLD_MODEL_INCEPTION_H
#define PSLD_MODEL_INCEPTION_H

#include "kernels/kernels.h"
#include "nn/graph.h"

enum { PSLD_INCEPTION_FEATURES = 2048, PSLD_INCEPTION_LOGITS = 1008, PSLD_INCEPTION_EARLY = 64 };

typedef struct psld_inception psld_inception;

/* From weights under the names of that file: a PyTorch checkpoint of either format, or safetensors. */
psld_status psld_inception_open(const char *path, const psld_backend *backend, psld_inception **inception);
void psld_inception_free(psld_inception *inception);

/* Evaluates n images: x is [n][3][height][width] with values (v - 128) / 128, v from 0 to 255. Results (NULL: not
 * wanted): the 2048 features, the logits without their bias, and the means of the 64 channels after the first pool.
 * They do not depend on the number of images. */
typedef struct psld_inception_result {
    float *features, *logits, *early;
} psld_inception_result;

psld_status psld_inception_run(psld_inception *inception, size_t n, size_t height, size_t width, const float *x,
                               const psld_inception_result *result);

/* The network as a graph: x [3][299][299] to the three results. Parameters are NAME.conv.weight and NAME.bias, folded,
 * and fc.weight. */
typedef struct psld_inception_nodes {
    psld_id features, logits, early;
} psld_inception_nodes;

psld_status psld_inception_build(psld_graph *graph, psld_id x, psld_inception_nodes *nodes);

#endif
