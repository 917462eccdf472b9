/* A locale whose numbers have a comma, as an application may have set one. Where none is installed one is made beside
 * the test's other files; a test that finds neither skips. */
#ifndef PSLD_TESTS_COMMA_H
#define PSLD_TESTS_COMMA_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

static inline int has_comma(const char *name)
{
    return setlocale(LC_ALL, name) && localeconv()->decimal_point[0] == ',';
}

/* From here to without_comma. */
static inline void with_comma(void)
{
    static const char *const installed[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (has_comma(installed[i])) return;
    int made = system("mkdir -p locales && localedef -i de_DE -f UTF-8 ./locales/de_DE.UTF-8 >locales/log 2>&1");
    setenv("LOCPATH", "locales", 1);
    if (has_comma("de_DE.UTF-8")) return;
    setlocale(LC_ALL, "C");
    printf("skipped: no locale with a decimal comma, and localedef ended with %d\n", made);
    skip();
}

static inline void without_comma(void)
{
    setlocale(LC_ALL, "C");
}

#endif
