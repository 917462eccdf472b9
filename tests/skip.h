/* Skipping aloud. A test that cannot run says why before it allocates anything; tools/run-tests counts these and lists
 * the reasons. A program of which no test can run ends with SKIPPED_PROGRAM, which ctest shows as skipped. */
#ifndef PSLD_TESTS_SKIP_H
#define PSLD_TESTS_SKIP_H

#include <stdio.h>

enum { SKIPPED_PROGRAM = 77 }; /* SKIP_RETURN_CODE in CMakeLists.txt */

/* skip_for("no %s", path): leaves the test. */
#define skip_for(...)        \
    do {                     \
        printf("skipped: "); \
        printf(__VA_ARGS__); \
        printf("\n");        \
        skip();              \
    } while (0)

#endif
