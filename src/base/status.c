#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 1024 };

static _Thread_local char text[TEXT_SIZE];
static _Thread_local uint64_t failures;

/* A message is one line on a terminal. It may quote bytes of a hostile file; these must not move the cursor. */
static void make_printable(char *s)
{
    for (; *s; s++) {
        int is_c1 = (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] < 0xa0;
        if ((unsigned char)*s < 0x20 || *s == 0x7f || is_c1) *s = '?';
    }
}

psld_status psld_fail(psld_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_printable(text);
    failures++;
    return status;
}

psld_status psld_fail_in(psld_status status, const char *format, ...)
{
    char context[TEXT_SIZE / 2], reason[TEXT_SIZE / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, text);
    return psld_fail(status, "%s: %s", context, reason);
}

psld_status psld_fail_errno(const char *path, const char *verb, int error)
{
    char reason[128] = "";
    if (strerror_r(error, reason, sizeof reason) != 0) snprintf(reason, sizeof reason, "error %d", error);
    return psld_fail(PSLD_IO, "%s: cannot %s: %s", path, verb, reason);
}

uint64_t psld_fail_count(void)
{
    return failures;
}

static const char *status_name(psld_status status)
{
    static const char *const words[] = {
        [PSLD_NO_MEMORY] = "no memory",        [PSLD_BAD_ARGUMENT] = "bad argument", [PSLD_BAD_INPUT] = "bad input",
        [PSLD_IO] = "input or output",         [PSLD_CANCELLED] = "cancelled",       [PSLD_NOT_FINITE] = "not finite",
        [PSLD_DEVICE_FAILED] = "device failed"};
    size_t index = (size_t)status;
    return index < sizeof words / sizeof *words ? words[index] : "not a psld status";
}

psld_status psld_fail_callback(const char *name, uint64_t before, psld_status status)
{
    if (status == PSLD_OK || failures != before) return status;
    return psld_fail(status, "the %s callback returned status %d (%s)", name, (int)status, status_name(status));
}

const char *psld_error_text(void)
{
    return text;
}
