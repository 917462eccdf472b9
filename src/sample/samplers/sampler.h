/* A sampler of the reverse process: one file each, one row in the table (table.c).
 *
 * Samplers with fixed steps are given a time grid. `plan_step` computes the constants of one step: small matrices, in
 * double, once per grid. Where the steps depend on each other, `plan_steps` computes the constants of all. `step` applies
 * them to a batch of states. Adaptive samplers integrate from t = 1 to the end by themselves. */
#ifndef PSLD_SAMPLE_SAMPLER_H
#define PSLD_SAMPLE_SAMPLER_H

#include "sample/reverse.h"

/* A time grid with everything else that the constants of its steps depend on. */
typedef struct psld_discretisation {
    const psld_recipe *recipe;
    const psld_sample_options *options;
    int exact;           /* see psld_source */
    const double *times; /* [steps + 1], decreasing; increasing when a reversible sampler encodes data */
    int steps;
    int truncated; /* the last step has one evaluation fewer */
} psld_discretisation;

typedef struct psld_sampler {
    psld_sampler_info info; /* its capabilities: options, help, error messages and tests follow from them */
    int work_states;        /* states of memory that it needs per sample */
    size_t table_size;      /* bytes of the constants of one step */
    /* Constants of the reverse step from t to u. `truncated`: with one evaluation fewer, as the last step may be. */
    psld_status (*plan_step)(const psld_recipe *recipe, double t, double u, int truncated, void *table);
    /* Instead of plan_step: the constants of all steps, [steps][table_size]. */
    psld_status (*plan_steps)(const psld_discretisation *grid, void *tables);
    /* `visit` counts the steps taken so far, repeated ones included: the address of the noise. */
    psld_status (*step)(psld_reverse *reverse, uint64_t visit, const void *table);
    /* Adaptive samplers: from t = 1 to options->eps. Then plan_step, plan_steps and step are NULL. */
    psld_status (*integrate)(psld_reverse *reverse);
} psld_sampler;

/* NULL, with the error text set, if there is no sampler of that name. */
const psld_sampler *psld_sampler_row(const char *name);

/* The step of explicit one-stage samplers: one evaluation at its start time t, then an affine map. */
typedef struct psld_explicit_step {
    double t;
    psld_affine map;
} psld_explicit_step;
psld_status psld_explicit_step_apply(psld_reverse *reverse, uint64_t visit, const void *table);

#endif
