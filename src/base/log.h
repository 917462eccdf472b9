/* Log lines and progress reports to the caller. */
#ifndef PSLD_BASE_LOG_H
#define PSLD_BASE_LOG_H

#include "base/status.h"

void psld_log(psld_log_level level, const char *format, ...) PSLD_PRINTF(2, 3);

/* Reports progress to a callback that may be NULL; PSLD_CANCELLED when it asks to stop. */
psld_status psld_progress(psld_progress_fn progress, void *user, uint64_t done, uint64_t total);

#endif
