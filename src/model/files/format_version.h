/* The version of the format of model files and checkpoints: a whole number, in a note of the file. A file without the
 * note is of version 1, as psld 0.1 wrote it. */
#ifndef PSLD_MODEL_FORMAT_VERSION_H
#define PSLD_MODEL_FORMAT_VERSION_H

#include "io/tensors/tensors.h"

#define PSLD_FORMAT_VERSION "1"
/* Not part of the checksum, so that psld 0.1 can read the file, too. */
#define PSLD_FORMAT_NOTE "psld.format"

/* Fails if a model file or a checkpoint is of a newer version than this library reads. */
psld_status psld_format_check(const psld_tensors *tensors, const char *path);

#endif
