/* A sampler of the reverse process: a row in a table (table.c).
 *
 * Fixed-step samplers are given a grid of times. `plan_step` computes the constants of one step (small matrices, in
 * float64, once per grid), or `plan_steps` those of all steps where they depend on each other, and `step` applies them
 * to a batch of states. Adaptive samplers integrate from t = 1 to the end by themselves. */
#ifndef PSLD_SAMPLE_SAMPLER_H
#define PSLD_SAMPLE_SAMPLER_H

#include "sample/reverse.h"

/* What the constants of all steps depend on. */
typedef struct psld_discretisation {
    const psld_recipe *recipe;
    const psld_sample_options *options;
    int exact;           /* see psld_source */
    const double *times; /* [steps + 1], falling; or rising, for reversible samplers */
    int steps;
    int truncated; /* the last step has one evaluation fewer */
} psld_discretisation;

typedef struct psld_sampler {
    psld_sampler_info info; /* what it can do: options, help, refusals and tests follow from it */
    int work_states;        /* room for so many more states per sample */
    size_t table_size;      /* bytes of the constants of a step */
    /* Constants of the step from time t down to u; `truncated`: with one evaluation fewer, as the last may be. */
    psld_status (*plan_step)(const psld_recipe *recipe, double t, double u, int truncated, void *table);
    /* Instead of plan_step: the constants of all steps, [steps][table_size]. */
    psld_status (*plan_steps)(const psld_discretisation *grid, void *tables);
    psld_status (*step)(psld_reverse *reverse, uint64_t index, const void *table);
    /* Adaptive samplers: from t = 1 to options->eps. Then plan_step, plan_steps and step are NULL. */
    psld_status (*integrate)(psld_reverse *reverse);
} psld_sampler;

/* NULL, with the error text set, when there is none of that name. */
const psld_sampler *psld_sampler_row(const char *name);

/* The constants and the step of samplers that evaluate once, where the step starts, and move on from there. */
typedef struct psld_explicit_step {
    double t;
    psld_affine move;
} psld_explicit_step;
psld_status psld_explicit_step_take(psld_reverse *reverse, uint64_t index, const void *table);

#endif
