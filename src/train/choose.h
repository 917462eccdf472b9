/* Chooses a network and settings for data without a configuration, and as many steps as a time budget allows. */
#ifndef PSLD_TRAIN_CHOOSE_H
#define PSLD_TRAIN_CHOOSE_H

#include "base/status.h"
#include "io/yaml/yaml.h"

/* Size of the text of reasons. */
enum { PSLD_REASONS = 1024 };

typedef struct psld_choice {
    int rank;            /* of the data: 1 vectors, 3 images */
    const size_t *shape; /* channels, height, width; or the length of vectors */
    uint64_t items;
    size_t classes;             /* above 0: choose a classifier of so many classes */
    double seconds;             /* the time budget of training */
    int ranks;                  /* processes that share each batch */
    char reasons[PSLD_REASONS]; /* output: the reasons for network and steps, a line each */
} psld_choice;

/* Adds to the document what is missing: process, model, and settings whose best value depends on the data and on the
 * time. Speed is measured on this machine with a few steps of each candidate. Images get data.size: the size in `shape`
 * if the network can take it, otherwise a slightly smaller one. */
psld_status psld_choose(psld_yaml *yaml, psld_choice *choice);

/* Adds a line, which ends in a line break, to the reasons. */
void psld_choice_add_reason(psld_choice *choice, const char *format, ...) PSLD_PRINTF(2, 3);

/* For a document that has a network: sets train.steps to as many as the time allows, and replaces a given number. */
psld_status psld_choose_steps(psld_yaml *yaml, psld_choice *choice);

#endif
