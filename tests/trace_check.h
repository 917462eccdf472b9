/* The training steps of a golden folder on one backend. */
#ifndef PSLD_TESTS_TRACE_CHECK_H
#define PSLD_TESTS_TRACE_CHECK_H

#include "kernels/kernels.h"

/* Losses within `tolerance` of theirs, norms of gradients within five times that, and weights and their average where
 * those went. */
void trace_check(const char *folder, const psld_backend *backend, double tolerance);

#endif
