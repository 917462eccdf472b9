/* Weights from a formula, so that a network of any size can be compared with others: see the golden README. */
#ifndef PSLD_TESTS_FORMULA_H
#define PSLD_TESTS_FORMULA_H

#include <math.h>
#include <string.h>

#include "model/networks/network.h"

/* Elements are numbered through all parameters in the order of the state_dict. */
static inline void formula_weights(psld_network *network)
{
    const psld_graph *graph = network->graph;
    double number = 0;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        double size = (double)p->count, scale = 0.2, middle = 0;
        if (p->rank > 1) scale = sqrt(3 / ((size / p->shape[0] + size / p->shape[1]) / 2));
        if (p->init == PSLD_INIT_ONES) scale = 0.25, middle = 1;
        if (p->init == PSLD_INIT_NORMAL) scale = 16;
        for (size_t j = 0; j < p->count; j++, number++) {
            double s = sin(number * 12.9898 + 78.233) * 43758.5453, u = s - floor(s);
            network->weights[p->offset + j] = (float)(middle + (2 * u - 1) * scale);
        }
    }
}

#endif
