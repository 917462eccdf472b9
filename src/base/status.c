#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 1024 };

static _Thread_local char text[TEXT_SIZE];

/* A message is one line on a terminal: bytes of a hostile file that got into it may not move the cursor. */
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

const char *psld_error_text(void)
{
    return text;
}
