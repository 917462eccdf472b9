/* How long a step of training takes on this machine. */
#ifndef PSLD_TRAIN_TRAIN_TIME_H
#define PSLD_TRAIN_TRAIN_TIME_H

#include "model/model.h"
#include "train/ranks.h"

/* Seconds of the fastest of some steps on artificial data, for a score network or a classifier; its weights change.
 * With `ranks`, gradients are summed over them, as in a run; NULL: this process works alone. */
psld_status psld_time_training_step(psld_model *model, size_t batch, int repetitions, const psld_distribution *ranks,
                                    double *seconds, size_t *bytes);

#endif
