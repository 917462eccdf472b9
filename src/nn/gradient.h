/* Differentiation, graph to graph. */
#ifndef PSLD_NN_GRADIENT_H
#define PSLD_NN_GRADIENT_H

#include "nn/graph.h"

/* Appends what computes the gradients of sum(seed * output) with respect to `count` nodes `by` (parameters, inputs or
 * anything else), and nothing that none of them needs; gradient[i] gets the shape of by[i]. `seed` has the shape of
 * `output`. A node on which the output does not depend gets zeros. The results are distinct nodes. */
psld_status psld_gradient(psld_graph *graph, psld_id output, psld_id seed, const psld_id *by, size_t count,
                          psld_id *gradient);

#endif
