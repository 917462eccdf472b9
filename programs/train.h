/* The parts of psld train, which psld tune shares. */
#ifndef PSLD_PROGRAMS_TRAIN_H
#define PSLD_PROGRAMS_TRAIN_H

#include "cli.h"

/* What was asked for. */
typedef struct train_request {
    psld_training_options options;
    const char *run;
    int clean, estimate, json, keys, verbose;
} train_request;

/* Trains, or says how long that would take; returns what to exit with. */
int train_model(const train_request *request);
/* Every key of configurations, one per line or as one JSON object. */
int train_print_keys(int json);
/* For the completion. */
void train_complete(const char *word);

#endif
