/* One optimisation step after another on a score network: loss, gradient, clipping, Adam, moving average.
 *
 * The caller draws data, times and noise and forms z_t; the trainer knows neither files nor processes. Weights are
 * updated in the network itself. */
#ifndef PSLD_TRAIN_TRAINER_H
#define PSLD_TRAIN_TRAINER_H

#include "model/network.h"

typedef struct psld_trainer_options {
    const psld_backend *backend;
    int batch;                                 /* samples a step, at most */
    int power;                                 /* of the loss: 2 or 1 */
    double rate, beta1, beta2, epsilon, decay; /* Adam; decay of weights */
    long warmup;                               /* steps over which the rate rises from 0 */
    double clip;                               /* largest norm of the gradient; 0: any */
    double ema;                                /* of the moving average; 0: none is kept */
    uint64_t seed;                             /* of dropout */
} psld_trainer_options;

/* Adam 2e-4, warm-up 5000, clipping 1, average 0.9999: App. C of the paper. */
void psld_trainer_defaults(psld_trainer_options *options);

typedef struct psld_trainer psld_trainer;

/* The network is borrowed; the average starts as a copy of its weights. */
psld_status psld_trainer_create(psld_network *network, const psld_trainer_options *options, psld_trainer **trainer);
void psld_trainer_free(psld_trainer *trainer);

/* One step on n <= batch samples: z [n][in_ch][size][size], t [n], eps as the network's output. `first`: global
 * number of the first sample, for dropout. Gives the mean loss and the norm of the gradient before clipping. */
psld_status psld_trainer_step(psld_trainer *trainer, int n, uint64_t first, const float *z, const float *t,
                              const float *eps, double *loss, double *norm);

/* Steps taken; the moving average (NULL: none), at the offsets of the network's weights; bytes of all buffers. */
long psld_trainer_steps(const psld_trainer *trainer);
const float *psld_trainer_average(const psld_trainer *trainer);
size_t psld_trainer_bytes(const psld_trainer *trainer);

#endif
