/* How a function fails: it writes one line of text and returns a status.
 *
 * The text belongs to the thread; psld_error_text() reads it. It names the file, the key, the value and what was
 * expected, without a trailing full stop or newline. A caller that knows more prefixes it with psld_fail_in. */
#ifndef PSLD_BASE_STATUS_H
#define PSLD_BASE_STATUS_H

#include "psld.h"

#if defined(__GNUC__)
#define PSLD_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define PSLD_PRINTF(text, first)
#endif

/* Sets the error text and returns `status`, so that failing is one statement. */
psld_status psld_fail(psld_status status, const char *format, ...) PSLD_PRINTF(2, 3);

/* Puts "<format>: " before the text of a failure that is on its way up, and returns `status` unchanged. */
psld_status psld_fail_in(psld_status status, const char *format, ...) PSLD_PRINTF(2, 3);

/* Fails with "<path>: cannot <verb>: <what the errno means>". */
psld_status psld_fail_errno(const char *path, const char *verb, int error);

/* Failures in this thread so far. */
uint64_t psld_fail_count(void);

/* Returns the status of a user's callback. If the callback failed and set no error text (the count of failures is
 * still `before`), an older text would be mistaken for its reason: then a text that names the callback is set. */
psld_status psld_fail_callback(const char *name, uint64_t before, psld_status status);

/* Returns from the function if the call fails. Only where nothing has to be released. */
#define PSLD_TRY(call)                                  \
    do {                                                \
        psld_status try_status_ = (call);               \
        if (try_status_ != PSLD_OK) return try_status_; \
    } while (0)

/* Goes to the label that releases if the call fails. Needs a local `psld_status status`. */
#define PSLD_TRY_OR(label, call)           \
    do {                                   \
        status = (call);                   \
        if (status != PSLD_OK) goto label; \
    } while (0)

#endif
