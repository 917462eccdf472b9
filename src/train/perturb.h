/* Training samples: states z_t drawn from the kernel at random times, and the targets of the network.
 *
 * Everything is a function of (seed, phase, sample number): it depends neither on batches nor on ranks, and a run that
 * was stopped needs to remember nothing but how many samples it has seen. */
#ifndef PSLD_TRAIN_PERTURB_H
#define PSLD_TRAIN_PERTURB_H

#include "process/process_scales.h"
#include "process/recipe.h"
#include "train/microbatch.h"

/* Held-out samples are measured in each bin of time: their phase is PSLD_PHASE_HELD_OUT + bin. */
typedef enum psld_phase { PSLD_PHASE_TRAIN = 0, PSLD_PHASE_HELD_OUT = 1 } psld_phase;

/* The weight of squared errors of eps: 1, that of the bound on the likelihood, or that of the error in clean data. */
typedef enum psld_weighting { PSLD_WEIGH_EPS, PSLD_WEIGH_LIKELIHOOD, PSLD_WEIGH_DATA } psld_weighting;

enum { PSLD_NOISE_NODES = 256, PSLD_TRACE_NODES = 128 };

/* The consistency loss: see objective_consistency.c. */
typedef struct psld_consistency {
    double deviation;      /* of the data */
    double q;              /* factor by which the gap between both sides shrinks per stage */
    int64_t stages;        /* number of stages in `steps` */
    double huber;          /* c of the loss, per root of the dimension */
    uint64_t batch, steps; /* of the run */
} psld_consistency;

typedef struct psld_perturbation {
    const psld_recipe *recipe;
    /* Of a model with formulas: then recipe is NULL, and of the following fields only seed is used. */
    const psld_process *process;
    const psld_process_scales *scales;
    psld_mode mode;
    size_t dim;          /* numbers of x_0 */
    double t_min;        /* times are uniform in [t_min, 1], */
    double by_noise;     /* except for this fraction: their sigma is log-normal, */
    double noise_middle; /* with this median */
    double noise_spread; /* and this deviation of its logarithm */
    int by_trace;        /* or all of them by what they count in the bound on the likelihood: the trace of its metric */
    int weighting;       /* psld_weighting */
    double data_deviation; /* networks of clean data: see precondition.h; 0: of eps */
    double cell;           /* of the bound: data are whole multiples of it; 0: any numbers */
    size_t classes;        /* classes of the network's labels; 0: none */
    double label_dropout;  /* fraction of training samples without their label */
    int clean;             /* z is (x_0, 0) and t = 0: for classifiers of clean data */
    uint64_t seed;
    psld_consistency consistency;
    double noise_at[PSLD_NOISE_NODES]; /* log sigma at times that are even in log t, from t_min to 1 */
    /* by_trace: at times that are even in log t, the density of log t, and the part of the times before it */
    double trace_at[PSLD_TRACE_NODES], trace_before[PSLD_TRACE_NODES];
} psld_perturbation;

/* Fills noise_at, which drawing by noise needs. */
psld_status psld_perturbation_tabulate(psld_perturbation *how);
/* Fills trace_at and trace_before: again when the recipe has changed. */
psld_status psld_perturbation_tabulate_trace(psld_perturbation *how);

/* The fraction of training times in a bin (bins.h). Held-out samples get a time of the bin of their phase, by the law
 * of training times there, so that the mean loss of the bins, weighted by these fractions, is that of training. */
double psld_perturbation_share(const psld_perturbation *how, int bin);

/* Density of uniform times over that of the times drawn. */
double psld_perturbation_time_weight(const psld_perturbation *how, double t);

/* The time of a sample. */
double psld_perturbation_time(const psld_perturbation *how, uint64_t sample, psld_phase phase);

/* Fills a micro-batch (its n samples from number `first`): from x it makes t, `time`, which is t for the network, z
 * [n][k dim] and, where they are not NULL, `target`, which is eps of the predicted variables [n][predicted dim], eps of
 * all of them [n][k dim], and the metric [n][predicted^2] of the weighting. Likelihood:
 *     M = L^-1 2 beta D L^-T,  so that  (eps - eps*)' M (eps - eps*) = (s - s*)' 2 beta D (s - s*),  s = -L^-T eps,
 * times the ratio of the densities of uniform and of drawn times, so that its mean is the bound for every law of the
 * times. Data: an error of eps moves the clean data by sigma as much; with deviation 1/2 of these and 1 of the noise,
 *     M = 1 + (2 min(sigma, 2.5))^2.
 * For networks that predict clean data, z [n][dim] is their input, `target` [n][dim] what they should predict, `metric`
 * [n] the number gain' M gain, and `time` [n] is theirs. */
psld_status psld_perturb(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch);

#endif
