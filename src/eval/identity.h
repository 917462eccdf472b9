/* What a path leads to, as a number. */
#ifndef PSLD_EVAL_IDENTITY_H
#define PSLD_EVAL_IDENTITY_H

#include <stdint.h>

#include "base/status.h"

/* A number that changes when what lies at `path` does, whatever it is called: of the size and the time of the last change
 * of a file, or of all files below a folder. Nothing is read: sets of images are too large to be read only to find that
 * nothing has changed. Where there is no file it is of the name: toy sets are known by theirs. */
psld_status psld_path_identity(const char *path, uint64_t *identity);

#endif
