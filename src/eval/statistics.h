/* Mean and covariance, for who computes with them. */
#ifndef PSLD_EVAL_STATISTICS_H
#define PSLD_EVAL_STATISTICS_H

#include "base/status.h"
#include "psld_eval.h"

/* Fails where statistics are not finished: the scatter of some of the rows is no covariance. */
psld_status psld_statistics_check(const psld_statistics *statistics);

#endif
