/* The reverse process, walked by any sampler.
 *
 * A sampler is a row in a table. Fixed-step samplers are given a grid of times: `plan` computes the constants of one
 * step (small matrices, in float64, once for each grid) and `step` applies them to a batch of states. Adaptive
 * samplers get the whole walk. All of them see states, times and a source, and nothing else.
 *
 * Everything a step does to a state is affine with the same k x k matrices for each coordinate, so there is one
 * primitive for it:
 *     z <- base + state z + eps e + noise n,
 * e being the predicted eps and n fresh normal numbers addressed by (seed, purpose, sample, step). */
#ifndef PSLD_SAMPLE_WALK_H
#define PSLD_SAMPLE_WALK_H

#include "base/random.h"
#include "process/recipe.h"
#include "sample/source.h"

typedef struct psld_walk {
    const psld_recipe *recipe;
    psld_source *source;
    const psld_sample_options *options;
    size_t k, predicted, dim;
    uint64_t first;               /* number of the sample that states begin with */
    size_t count;                 /* states in this batch */
    double *z;                    /* [count][k * dim] */
    double *eps;                  /* [count][predicted * dim]: what the source said last */
    double *t;                    /* [count]: scratch for the times of one evaluation */
    double *work;                 /* [count][k * dim] times the sampler's work_states */
    uint64_t evaluations, groups; /* summed over groups of states that step together, to report their mean */
    uint64_t done_before, total;  /* progress: of the batches before, of all */
} psld_walk;

/* Row a of `state` says how z_a depends on all z, and so on. Zero columns of `noise` draw nothing. */
typedef struct psld_affine {
    double state[PSLD_MATRIX_SIZE]; /* k x k */
    double eps[PSLD_MATRIX_SIZE];   /* k x predicted */
    double noise[PSLD_MATRIX_SIZE]; /* k x k */
} psld_affine;

/* out[i] = base[i] + state z[i] + eps walk->eps[i] + noise n, for all states of the batch; out may be z or base;
 * base may be NULL. */
void psld_walk_affine(const psld_walk *walk, const psld_affine *affine, enum psld_purpose purpose, uint64_t step,
                      const double *base, const double *z, double *out);

/* Fills walk->eps for states `z` at time t, in calls of at most options->batch states. */
psld_status psld_walk_predict(psld_walk *walk, const double *z, double t);
/* The same for n states with a time each, in walk->t. */
psld_status psld_walk_predict_each(psld_walk *walk, size_t n, const double *z);

/* Shows an evaluation to who asked to watch: `count` states from state `begin` of the batch, all at time t. */
psld_status psld_walk_watch(const psld_walk *walk, size_t begin, size_t count, double t, const double *z,
                            const double *eps);

/* Reports progress within a batch: `fraction` of it is done. */
psld_status psld_walk_report(const psld_walk *walk, double fraction);

/* affine->eps for a drift that contains weight * score, weight k x k, at time t. */
psld_status psld_affine_score(const psld_recipe *recipe, double t, const double *weight, psld_affine *affine);
/* affine->state = I, all else 0. */
void psld_affine_identity(const psld_recipe *recipe, psld_affine *affine);
/* An Euler step of size dt of the reverse process from time t: its drift, with `score_part` = 2 (stochastic) or 1
 * (probability flow) times D before the score. No noise. */
psld_status psld_affine_euler(const psld_recipe *recipe, double t, double dt, double score_part, psld_affine *affine);

/* The table of samplers that evaluate once, where the step starts, and move on from there; and their step. */
typedef struct psld_single {
    double t;
    psld_affine move;
} psld_single;
psld_status psld_single_take(psld_walk *walk, uint64_t index, const void *table);

typedef struct psld_sampler {
    const char *name, *summary;
    int evaluations;   /* of the score a step */
    int work_states;   /* room for so many more states a sample */
    int deterministic; /* follows the probability flow; so does its last step */
    size_t table_size; /* bytes of a step's constants */
    /* Constants of the step from time t down to u; `truncated`: with one evaluation fewer, as the last may be. */
    psld_status (*plan)(const psld_recipe *recipe, double t, double u, int truncated, void *table);
    psld_status (*step)(psld_walk *walk, uint64_t index, const void *table);
    /* Adaptive samplers: the whole way from t = 1 to options->eps. Then plan and step are NULL. */
    psld_status (*run)(psld_walk *walk);
} psld_sampler;

extern const psld_sampler psld_sampler_em, psld_sampler_sscs, psld_sampler_ode, psld_sampler_euler_ode,
    psld_sampler_heun;

/* NULL, with the error text set, when there is none. */
const psld_sampler *psld_sampler_find(const char *name);

/* As psld_sample without its warning; adds what was evaluated to *cost: for who draws in several calls. */
typedef struct psld_sample_cost {
    uint64_t evaluations, groups; /* of groups of states that step together, the last denoising step left out */
} psld_sample_cost;
psld_status psld_sample_counted(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                                uint64_t first, size_t count, size_t dim, const double *start, double *z,
                                psld_sample_cost *cost);
/* Logs that the walk starts too far from where the process ends, if it does. */
void psld_sample_warn(const psld_recipe *recipe);
/* Evaluations a sample: the mean over groups, rounded up. */
uint64_t psld_sample_nfe(const psld_sample_options *options, const psld_sample_cost *cost);

/* times[0] = 1 > times[1] > ... > times[steps] = end. */
psld_status psld_grid_times(const char *name, int steps, double end, double *times);

/* Langevin steps that leave p_t as it is: constants, and application. */
psld_status psld_corrector_plan(const psld_recipe *recipe, double t, double size, psld_affine *affine);

#endif
