/* The distance of samples from the data, measured while a run trains, and the best model by it. */
#ifndef PSLD_TRAIN_METRIC_H
#define PSLD_TRAIN_METRIC_H

#include "base/status.h"
#include "psld_train.h"

/* Checks that a run can measure as train.metric_every says, and opens the metric. */
psld_status psld_training_metric_open(psld_training *training, const psld_training_metric *metric);
void psld_training_metric_close(psld_training *training);
/* Reads the smallest distance so far from the run's log. */
psld_status psld_training_metric_resume(psld_training *training);
/* Draws train.metric_count samples and measures their distance. If it is the smallest so far, saves the model as
 * best.safetensors. */
psld_status psld_training_metric_measure(psld_training *training, double *distance);

#endif
