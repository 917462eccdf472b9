/* Reading log.jsonl of a run. */
#ifndef PSLD_TRAIN_LOG_READ_H
#define PSLD_TRAIN_LOG_READ_H

#include <jansson.h>

#include "base/status.h"

/* Calls for the JSON object of each line, in order. Damaged lines are skipped; a log that cannot be opened counts as
 * empty. */
typedef void psld_log_entry_fn(void *user, json_t *entry);
psld_status psld_log_read(const char *path, psld_log_entry_fn *entry, void *user);

#endif
