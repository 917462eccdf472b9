/* A locale whose numbers have a comma, as an application may have set one. Where none is installed one is made beside
 * the test's other files, of the sources in Debian's package `locales`; a test that finds neither skips. */
#ifndef PSLD_TESTS_COMMA_H
#define PSLD_TESTS_COMMA_H

#include <locale.h>
#include <stdlib.h>

#include "skip.h"

static inline int set_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i]) && localeconv()->decimal_point[0] == ',') return 1;
    return 0;
}

static inline void without_comma(void)
{
    setlocale(LC_ALL, "C");
}

/* The first thing in a test that wants the comma: it may skip. */
static inline void need_comma(void)
{
    int ended = 0;
    if (!set_comma()) {
        ended = system("mkdir -p locales && localedef -i de_DE -f UTF-8 ./locales/de_DE.UTF-8 >locales/log 2>&1");
        setenv("LOCPATH", "locales", 1);
        if (!set_comma()) skip_for("no locale with a decimal comma, and localedef ended with %d", ended);
    }
    without_comma();
}

/* From here to without_comma. */
static inline void with_comma(void)
{
    assert_true(set_comma());
}

#endif
