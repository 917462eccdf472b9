/* Options of sampling for tests of one thing at a time: nothing is left to a quality. */
#ifndef PSLD_TESTS_EM_OPTIONS_H
#define PSLD_TESTS_EM_OPTIONS_H

#include "psld.h"

/* Euler-Maruyama to t = 1e-3, in batches that no test fills. */
static inline psld_sample_options em_options(void)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = "em";
    options.eps = 1e-3;
    options.batch = 1024;
    return options;
}

#endif
