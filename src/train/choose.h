/* A network and settings for data that come without a configuration. */
#ifndef PSLD_TRAIN_CHOOSE_H
#define PSLD_TRAIN_CHOOSE_H

#include "io/yaml.h"

/* Puts in what the document does not say: process, model, and those settings whose best value depends on the data.
 * `shape` is that of the data, rank 1 (vectors) or 3 (images: channels, height, width). `classes` > 0: a classifier.
 * Images get data.size, which is `shape`'s where the network can take it and somewhat less where not. */
psld_status psld_choose(psld_yaml *yaml, int rank, const size_t *shape, size_t classes);

#endif
