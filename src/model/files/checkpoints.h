/* The names of a run's checkpoints: step-<number>.safetensors, in one folder. */
#ifndef PSLD_MODEL_CHECKPOINTS_H
#define PSLD_MODEL_CHECKPOINTS_H

#include <stddef.h>

#include "base/status.h"

enum { PSLD_CHECKPOINT_PATH = 4096 };

psld_status psld_checkpoints_path(const char *folder, long step, char path[PSLD_CHECKPOINT_PATH]);

/* The prefix of the second and further averages of weights, before that of weights ("score_fn."): "ema2_", ... The
 * first average has the published prefix "ema_". */
#define PSLD_AVERAGE_FORMAT "ema%zu_"

/* The steps of all checkpoints in the folder, newest first; none if there is no folder. Release with psld_release. */
psld_status psld_checkpoints_list(const char *folder, long **steps, size_t *count);

#endif
