/* The reverse process, walked by any sampler.
 *
 * A sampler is a row in a table. Fixed-step samplers are given a grid of times: `plan` computes the constants of one
 * step (small matrices, in float64, once for each grid), or `prepare` those of all steps where they depend on each
 * other, and `step` applies them to a batch of states. Adaptive samplers get the whole walk. All of them see states,
 * times and a source, and nothing else.
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
    int step, run;                /* multistep samplers: the last step taken, and how many have followed each other */
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
/* The slope -dz/dt = beta [(D + Q) P z + D score] of the probability flow at time t. */
psld_status psld_affine_flow(const psld_recipe *recipe, double t, psld_affine *affine);

/* The table of samplers that evaluate once, where the step starts, and move on from there; and their step. */
typedef struct psld_single {
    double t;
    psld_affine move;
} psld_single;
psld_status psld_single_take(psld_walk *walk, uint64_t index, const void *table);

/* What the constants of a whole grid depend on. */
typedef struct psld_path {
    const psld_recipe *recipe;
    const psld_sample_options *options;
    int exact;           /* see psld_source */
    const double *times; /* [steps + 1], falling; or rising, for samplers that are reversible */
    int steps;
    int truncated; /* the last step has one evaluation fewer */
} psld_path;

typedef struct psld_sampler {
    const char *name, *summary;
    const char *grid;  /* the grid and */
    int nfe;           /* the evaluations it takes when none are asked for */
    int order;         /* and the order, up to */
    int most_order;    /* this; 0: it has no choice */
    double detail;     /* see psld_sample_options, for those with a choice of order */
    int evaluations;   /* of the score a step */
    int work_states;   /* room for so many more states a sample */
    int deterministic; /* follows the probability flow; so does its last step */
    int predicts_data; /* steps are made of clean data: its last step returns them */
    int reversible;    /* can walk upwards in time too, from data to noise */
    size_t table_size; /* bytes of a step's constants */
    /* Constants of the step from time t down to u; `truncated`: with one evaluation fewer, as the last may be. */
    psld_status (*plan)(const psld_recipe *recipe, double t, double u, int truncated, void *table);
    /* Instead of plan: those of all steps, [path->steps][table_size]. */
    psld_status (*prepare)(const psld_path *path, void *tables);
    psld_status (*step)(psld_walk *walk, uint64_t index, const void *table);
    /* Adaptive samplers: the whole way from t = 1 to options->eps. Then plan, prepare and step are NULL. */
    psld_status (*run)(psld_walk *walk);
} psld_sampler;

extern const psld_sampler psld_sampler_em, psld_sampler_sscs, psld_sampler_ode, psld_sampler_euler_ode,
    psld_sampler_heun, psld_sampler_dpm, psld_sampler_collapsed, psld_sampler_collapsed_heun, psld_sampler_ancestral;

/* NULL, with the error text set, when there is none. */
const psld_sampler *psld_sampler_find(const char *name);
/* A sampler and what goes with it, "NAME [key=value ...]", into options, which keep all that it does not say. */
psld_status psld_sample_words(const char *text, psld_sample_options *options);

/* How many of `count` samples to take at once: about `batch`, and whole groups of `group`, so that these are the same
 * whatever the batch. However large or small what is asked for is, 1 to `count`. */
size_t psld_walk_batch(size_t count, size_t batch, size_t group);

/* As psld_sample without its warning; adds what was evaluated to *cost: for who draws in several calls. */
typedef struct psld_sample_cost {
    uint64_t evaluations, groups; /* of groups of states that step together, the last denoising step left out */
} psld_sample_cost;
psld_status psld_sample_counted(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                                uint64_t first, size_t count, size_t dim, const double *start, double *z,
                                psld_sample_cost *cost);
/* Whether there is such a walk: plans it as psld_sample_counted does, and takes none of its steps. */
psld_status psld_sample_check(const psld_recipe *recipe, const psld_source *source, const psld_sample_options *options);
/* Logs that the walk starts too far from where the process ends, if it does. */
void psld_sample_warn(const psld_recipe *recipe);
/* Evaluations a sample: the mean over groups, rounded up. */
uint64_t psld_sample_nfe(const psld_sample_options *options, const psld_sample_cost *cost);

/* Checks options and fills in what they leave open: sampler, order, detail, grid, evaluations, and eps by
 * end_sigma. */
psld_status psld_sample_resolve(const psld_recipe *recipe, const psld_sample_options *options,
                                const psld_sampler **sampler, psld_sample_options *resolved);

/* times[0] = 1 > times[1] > ... > times[steps] = end, by the name of a grid or as the list of times that `grid` is. */
psld_status psld_grid_times(const psld_recipe *recipe, const char *grid, double rho, int steps, double end,
                            double *times);
/* Whether a grid is a list, and then its steps and where it ends. */
int psld_grid_is_list(const char *grid, int *steps);
psld_status psld_grid_list_end(const char *grid, double *end);

/* The last step of samplers that predict data, from time t: the clean data as position and the mean of the auxiliary
 * variables at t = 0, given those and z. */
psld_status psld_affine_clean(const psld_recipe *recipe, int exact, double t, psld_affine *affine);

/* Langevin steps that leave p_t as it is: constants, and application. */
psld_status psld_corrector_plan(const psld_recipe *recipe, double t, double size, psld_affine *affine);

#endif
