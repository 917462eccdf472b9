/* Letting each allocation of a call fail in turn: it must say so, and leak nothing. */
#ifndef PSLD_TESTS_STARVE_H
#define PSLD_TESTS_STARVE_H

#include <string.h>

#include "base/alloc.h"

/* `call` makes and releases all it needs. */
static inline void starve(psld_status (*call)(void))
{
    for (long n = 1;; n++) {
        long live = psld_alloc_live();
        psld_alloc_fail_at(n);
        psld_status status = call();
        int failed = psld_alloc_failed();
        psld_alloc_fail_at(0);
        assert_int_equal(psld_alloc_live(), live);
        assert_int_equal(status, failed ? PSLD_NO_MEMORY : PSLD_OK);
        if (!failed) break;
        assert_non_null(strstr(psld_error_text(), "memory"));
    }
}

#endif
