/* Mean and covariance, for code that computes with them. */
#ifndef PSLD_EVAL_STATISTICS_H
#define PSLD_EVAL_STATISTICS_H

#include "base/status.h"
#include "psld_eval.h"

/* Fails if the statistics are not finished: before that, the matrix is a scatter and not a covariance. */
psld_status psld_statistics_check(const psld_statistics *statistics);

#endif
