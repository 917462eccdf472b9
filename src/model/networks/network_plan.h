/* The graph of a network and its plan, for running it (network_run.c) and for training it (train/trainer.c):
 *     psld_network_plan_begin    the network's graph with its inputs
 *     the caller                 adds what is to be differentiated, and its inputs
 *     psld_network_plan_finish   differentiates and plans */
#ifndef PSLD_MODEL_NETWORK_PLAN_H
#define PSLD_MODEL_NETWORK_PLAN_H

#include "model/networks/network.h"
#include "nn/plan.h"

typedef struct psld_network_plan {
    psld_graph *graph;
    psld_network_inputs inputs;
    psld_id out;
    psld_id grad_z; /* PSLD_NONE: not wanted */
    psld_plan *plan;
} psld_network_plan;

/* `training`: with dropout, and with the input `augment` where the network has one. Clear after failure, too. */
psld_status psld_network_plan_begin(const psld_network_config *config, int training, psld_network_plan *plan);
void psld_network_plan_clear(psld_network_plan *plan);

typedef struct psld_network_plan_options {
    const psld_backend *backend;
    int batch;
    size_t store;      /* bytes for packed weights, see psld_plan_options */
    unsigned want;     /* PSLD_WANT_GRADIENT_...: of sum(weight * objective); 0: none, the next three do not count */
    psld_id objective; /* node that is differentiated, */
    psld_id weight;    /* and the weights of its elements */
    int keeps_value;   /* the objective can also be read after a run */
} psld_network_plan_options;

psld_status psld_network_plan_finish(psld_network_plan *plan, const psld_network_plan_options *options);

#endif
