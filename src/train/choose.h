/* A network and settings for data that come without a configuration, and as many steps as a time budget has room for. */
#ifndef PSLD_TRAIN_CHOOSE_H
#define PSLD_TRAIN_CHOOSE_H

#include "base/status.h"
#include "io/yaml/yaml.h"

/* Room for what a choice says of itself. */
enum { PSLD_REASONS = 1024 };

typedef struct psld_choice {
    int rank;            /* of the data: 1 vectors, 3 images */
    const size_t *shape; /* channels, height, width; or the length of vectors */
    uint64_t items;
    size_t classes;             /* above 0: a classifier of so many classes is wanted */
    double seconds;             /* that training may take */
    int ranks;                  /* processes that share each batch */
    char reasons[PSLD_REASONS]; /* filled: why this network and so many steps, a line each */
} psld_choice;

/* Puts in what the document does not say: process, model, and those settings whose best value depends on the data and on
 * the time. Speed is measured on this machine with a few steps of each network that may do. Images get data.size, which
 * is `shape`'s where the network can take it and somewhat less where not. */
psld_status psld_choose(psld_yaml *yaml, psld_choice *choice);

/* Adds a line, which ends in a line break, to the reasons. */
void psld_choice_add_reason(psld_choice *choice, const char *format, ...) PSLD_PRINTF(2, 3);

/* For a document that has a network: sets train.steps to what the time has room for, whatever it says of them. */
psld_status psld_choose_steps(psld_yaml *yaml, psld_choice *choice);

#endif
