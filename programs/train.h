/* The parts of psld train. */
#ifndef PSLD_PROGRAMS_TRAIN_H
#define PSLD_PROGRAMS_TRAIN_H

#include "cli.h"

/* Every key of configurations, one per line or as one JSON object. */
int train_print_keys(int json);
/* For the completion. */
void train_complete(const char *word);

#endif
