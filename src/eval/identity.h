/* A number that identifies the contents of a path. */
#ifndef PSLD_EVAL_IDENTITY_H
#define PSLD_EVAL_IDENTITY_H

#include <stdint.h>

#include "base/status.h"

/* The number changes when the contents of `path` change, whatever its name. It is computed from the size and the
 * modification time of a file, or of all files below a folder. Nothing is read: sets of images are too large for
 * that. If there is no file, the number is computed from the name: toy sets are identified by their names. */
psld_status psld_path_identity(const char *path, uint64_t *identity);

#endif
