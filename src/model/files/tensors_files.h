#ifndef PSLD_MODEL_TENSORS_FILES_H
#define PSLD_MODEL_TENSORS_FILES_H

#include "io/tensors/tensors.h"

/* The format of a file to be written, from the end of its name. */
psld_status psld_tensors_format_of(const char *path, psld_tensor_format *format);

#endif
