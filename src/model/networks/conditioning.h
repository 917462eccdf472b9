/* The maps between y = x_0 + sigma n, the sufficient statistic for the clean data, and a network that predicts these
 * data:
 *     u = y / divide,     X = keep u + scale F(u, time),
 * with numbers that depend on sigma alone. Ours are those of precondition.h. Networks of other projects have their own:
 *     edm        as ours, but for the time ln(sigma) / 4 (Karras et al. 2022)
 *     vp         u = y / sqrt(1 + sigma^2), X = y - sigma F, time (steps - 1) t where sigma(t)^2 = exp(beta_d t^2 / 2 +
 *                beta_min t) - 1
 *     ve         u = y, X = y + sigma F, time ln(sigma / 2)
 *     iddpm      as vp, the time being a whole number: which of a table of noises is nearest (Nichol & Dhariwal 2021)
 *     timesteps  u = y / sqrt(1 + sigma^2) is the state at the timestep whose noise is sigma: a table, between whose rows
 *                the logarithm of sigma is linear in the timestep. F is the noise n, the clean data, or
 *                v = (n - sigma x_0) / sqrt(1 + sigma^2)
 * If a network computes its time in float, so does this code: embeddings of large times show the rounding. */
#ifndef PSLD_MODEL_CONDITIONING_H
#define PSLD_MODEL_CONDITIONING_H

#include "io/yaml/yaml.h"

typedef enum psld_conditioning_kind {
    PSLD_CONDITION_OURS,
    PSLD_CONDITION_EDM,
    PSLD_CONDITION_VP,
    PSLD_CONDITION_VE,
    PSLD_CONDITION_IDDPM,
    PSLD_CONDITION_TIMESTEPS
} psld_conditioning_kind;

typedef enum psld_prediction { PSLD_PREDICTS_NOISE, PSLD_PREDICTS_CLEAN, PSLD_PREDICTS_V } psld_prediction;

typedef struct psld_conditioning {
    psld_conditioning_kind kind;
    double deviation;            /* ours, edm: of the data */
    double beta_d, beta_min;     /* vp */
    size_t steps;                /* vp, iddpm, timesteps */
    double sigma_min, sigma_max; /* the range of noise in training */
    psld_prediction predicts;    /* timesteps */
    double *sigma;               /* timesteps, iddpm: [steps], rising */
} psld_conditioning;

typedef struct psld_scaling {
    double divide, keep, scale, time;
} psld_scaling;

/* The conditioning of psld, for data of this deviation. */
psld_conditioning psld_conditioning_ours(double deviation);
/* From a map `denoiser` of a configuration. Clear it after failure, too. */
psld_status psld_conditioning_read(const psld_node *map, psld_conditioning *c);
/* The short form: the name of a kind, or `{timesteps: linear, ...}`; or such a map. */
psld_status psld_conditioning_read_short(const psld_node *node, psld_conditioning *c);
void psld_conditioning_clear(psld_conditioning *c);

/* For a positive sigma. Beyond the ends of tables the time is that of the end. */
void psld_conditioning_at(const psld_conditioning *c, double sigma, psld_scaling *s);
/* The same for sampling, which may need slightly less or more noise than in training. */
void psld_conditioning_within(const psld_conditioning *c, double sigma, psld_scaling *s);
/* The noise at a time of the network. Timesteps need not be whole, but must lie within the table. */
double psld_conditioning_sigma(const psld_conditioning *c, double time);

/* "epsilon", ...; and the name of the kind. */
const char *psld_conditioning_predicts(const psld_conditioning *c);
const char *psld_conditioning_name(const psld_conditioning *c);

#endif
