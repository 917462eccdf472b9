#ifndef PSLD_MODEL_POSED_H
#define PSLD_MODEL_POSED_H

#include "model/model.h"

/* Input and output of such a network: u and out [n][dim], its own times. weight and by_u NULL: no gradient of
 * sum(weight out). */
typedef struct psld_posed_batch {
    size_t n;
    const float *u, *time;
    const int32_t *label; /* -1 or NULL: none */
    const float *weight;
    float *out, *by_u;
} psld_posed_batch;

psld_status psld_posed_run(const psld_model *model, const psld_posed_batch *batch);

#endif
