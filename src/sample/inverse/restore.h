/* The parts of restoration: restore.c has the source and its options, restore_diffused.c and restore_denoiser.c the
 * methods. The derivation is in restore.c. */
#ifndef PSLD_SAMPLE_RESTORE_H
#define PSLD_SAMPLE_RESTORE_H

#include "sample/inverse/operator.h"
#include "sample/sources/denoiser.h"

/* Constants of one time. */
typedef struct psld_restore_constants {
    double t;
    double mu[PSLD_MAX_K], cov[PSLD_MATRIX_SIZE];
    double sigma2;    /* of the effective observation of x_0 */
    double isotropic; /* v */
    psld_denoiser denoiser;
} psld_restore_constants;

struct psld_restore_call;
typedef psld_status (*psld_restore_fn)(struct psld_restore_call *r, const psld_restore_constants *at,
                                       const psld_states *states, const double *eps);

typedef struct psld_restore_method {
    psld_restore_method_info info;
    psld_restore_fn restore;
} psld_restore_method;

/* One call. */
typedef struct psld_restore_call {
    psld_source *base;
    const psld_recipe *recipe;
    const psld_operator *op;
    const psld_restore_method *method;
    psld_restore_options options;
    const double *y;
    double *gradient; /* [n][k * dim]: the result */
    double *clean;    /* [n][dim]: X, then A' p */
    double *weight;   /* [n][predicted * dim] */
    double *product;  /* [n][k * dim]: a vector-Jacobian product */
    double *residual; /* [n][size]: y - A X */
    double *solved;   /* [n][size]: C^-1 (y - A X) */
    double *cg[5];    /* [n][size] each: residual, residual divided, direction, product with it, solution */
    double *least;    /* [n]: smallest squared residual so far */
    double *goals;    /* [n]: squared residual to reach; below 0 when the state is finished */
    double *work;     /* [n][work_size] */
    size_t work_size;
} psld_restore_call;

/* The methods: each fills r->gradient for states of one time. */
psld_status psld_restore_diffused(psld_restore_call *r, const psld_restore_constants *at, const psld_states *states,
                                  const double *eps);
psld_status psld_restore_reconstruction(psld_restore_call *r, const psld_restore_constants *at,
                                        const psld_states *states, const double *eps);
psld_status psld_restore_isotropic(psld_restore_call *r, const psld_restore_constants *at, const psld_states *states,
                                   const double *eps);
psld_status psld_restore_posterior(psld_restore_call *r, const psld_restore_constants *at, const psld_states *states,
                                   const double *eps);

#endif
