/* A file of weights for the FID network, made from a formula: see the golden README. */
#ifndef PSLD_TESTS_INCEPTION_WEIGHTS_H
#define PSLD_TESTS_INCEPTION_WEIGHTS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/tensors/tensors.h"
#include "model/networks/inception.h"

typedef struct formula {
    psld_tensors *tensors;
    float *room, *next;
    double number; /* of the next element */
} formula;

static inline void formula_tensor(formula *f, const char *base, const char *part, int rank, const size_t *shape,
                                  double middle, double scale)
{
    char name[512];
    size_t count = 1;
    for (int i = 0; i < rank; i++) count *= shape[i];
    snprintf(name, sizeof name, "%s.%s", base, part);
    for (size_t i = 0; i < count; i++, f->number++) {
        double s = sin(f->number * 12.9898 + 78.233) * 43758.5453, u = s - floor(s);
        f->next[i] = (float)(middle + (2 * u - 1) * scale);
    }
    psld_tensors_add(f->tensors, name, PSLD_ELEMENT_F32, rank, shape, f->next);
    f->next += count;
}

/* In the order of the file that users have, which is that of the graph. */
static inline psld_status write_formula_weights(const char *path, psld_tensor_format format)
{
    static const int64_t tracked = 0;
    psld_graph *graph;
    psld_inception_nodes nodes;
    PSLD_TRY(psld_graph_create(&graph));
    PSLD_TRY(psld_inception_build(graph, psld_graph_input(graph, 3, 299, 299), &nodes));
    formula f = {.room = malloc((2 * graph->parameter_elements + 4096) * sizeof(float))};
    f.next = f.room;
    PSLD_TRY(psld_tensors_create(&f.tensors));
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        size_t shape[4] = {(size_t)p->shape[0], (size_t)p->shape[1], (size_t)p->shape[2], (size_t)p->shape[3]};
        double limit = sqrt(6 / ((double)p->count / p->shape[0]));
        char base[256];
        const char *conv = strstr(p->name, ".conv.weight");
        if (!conv && strcmp(p->name, "fc.weight") != 0) continue;
        snprintf(base, sizeof base, "%.*s", conv ? (int)(conv - p->name) : 2, p->name);
        formula_tensor(&f, base, conv ? "conv.weight" : "weight", p->rank, shape, 0, limit);
        if (!conv) {
            formula_tensor(&f, base, "bias", 1, shape, 0, 0.2);
            continue;
        }
        formula_tensor(&f, base, "bn.weight", 1, shape, 1, 0.25);
        formula_tensor(&f, base, "bn.bias", 1, shape, 0, 0.2);
        formula_tensor(&f, base, "bn.running_mean", 1, shape, 0, 0.2);
        formula_tensor(&f, base, "bn.running_var", 1, shape, 1, 0.25);
        char name[512];
        snprintf(name, sizeof name, "%s.bn.num_batches_tracked", base);
        psld_tensors_add(f.tensors, name, PSLD_ELEMENT_I64, 0, NULL, &tracked);
    }
    psld_status status = psld_tensors_save(f.tensors, format, path);
    psld_tensors_free(f.tensors);
    psld_graph_free(graph);
    free(f.room);
    return status;
}

#endif
