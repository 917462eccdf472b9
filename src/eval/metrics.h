/* What each metric needs. */
#ifndef PSLD_EVAL_METRICS_H
#define PSLD_EVAL_METRICS_H

#include "base/status.h"
#include "psld_eval.h"

/* The bits of all metrics with this property. */
unsigned psld_metrics_that(int (*have)(const psld_metric_info *metric));
int psld_metric_needs_rows(const psld_metric_info *metric);
int psld_metric_needs_pair(const psld_metric_info *metric);

#endif
