#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static psld_log_fn log_fn;
static void *log_user;

void psld_log_to(psld_log_fn log, void *user)
{
    log_fn = log;
    log_user = user;
}

void psld_log(psld_log_level level, const char *format, ...)
{
    if (!log_fn) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    /* Reader threads log too: one line at a time. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    log_fn(log_user, level, line);
    pthread_mutex_unlock(&lock);
}

psld_status psld_progress(psld_progress_fn progress, void *user, uint64_t done, uint64_t total)
{
    if (progress && progress(user, done, total)) return psld_fail(PSLD_CANCELLED, "cancelled");
    return PSLD_OK;
}
