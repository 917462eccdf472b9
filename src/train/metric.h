/* The distance of samples from the data, measured while a run trains, and the best model by it. */
#ifndef PSLD_TRAIN_METRIC_H
#define PSLD_TRAIN_METRIC_H

#include "base/status.h"
#include "psld_train.h"

/* Whether a run can do what train.metric_every asks; opens what measures. */
psld_status psld_training_metric_open(psld_training *training, const psld_training_metric *metric);
void psld_training_metric_close(psld_training *training);
/* The smallest distance that the run's log has so far. */
psld_status psld_training_metric_resume(psld_training *training);
/* Draws train.metric_count samples and measures; a model that is the best so far becomes best.safetensors. */
psld_status psld_training_metric_measure(psld_training *training, double *distance);

#endif
