/* What a plan is made from: the nodes of a graph as they are to be computed, which passes may change. */
#ifndef PSLD_NN_WORK_H
#define PSLD_NN_WORK_H

#include "nn/plan.h"

/* One per node, under its id. Passes do not change shapes: a node's result stays the same. */
typedef struct psld_plan_node {
    psld_op op;
    int inputs;
    psld_id from[PSLD_MAX_INPUTS]; /* PSLD_NONE: an unused input */
    psld_attributes attributes;
    char live;   /* some output depends on it */
    char pinned; /* it is an output */
} psld_plan_node;

/* Marks everything that the pinned nodes depend on. */
void psld_plan_nodes_mark(psld_plan_node *work, size_t count);

psld_status psld_plan_nodes_fuse(const psld_graph *graph, const psld_backend *backend, psld_plan_node *work);

/* Attention by parts, on backends that have it. */
void psld_plan_nodes_attend(const psld_graph *graph, const psld_backend *backend, psld_plan_node *work);

#endif
