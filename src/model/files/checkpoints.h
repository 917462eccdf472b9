/* The names of a run's checkpoints: step-<number>.safetensors, in one folder. */
#ifndef PSLD_MODEL_CHECKPOINTS_H
#define PSLD_MODEL_CHECKPOINTS_H

#include <stddef.h>

#include "base/status.h"

enum { PSLD_CHECKPOINT_PATH = 4096 };

psld_status psld_checkpoints_path(const char *folder, long step, char path[PSLD_CHECKPOINT_PATH]);

/* What stands before the prefix of weights ("score_fn.") in the names of averages of weights after the first, which has
 * the published "ema_": the second is "ema2_". */
#define PSLD_AVERAGE_FORMAT "ema%zu_"

/* The steps that there are checkpoints of, newest first; none where there is no folder. Release with psld_release. */
psld_status psld_checkpoints_list(const char *folder, long **steps, size_t *count);

#endif
