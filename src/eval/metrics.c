/* The table of metrics. */
#include "eval/metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/table.h"

static const psld_metric_info table[] = {
    {.name = "fid", .summary = "Frechet distance of features", .bit = PSLD_FRECHET, .needs_pair = 1},
    {.name = "is", .summary = "inception score", .bit = PSLD_INCEPTION_SCORE, .needs_classes = 1},
    {.name = "kid", .summary = "kernel distance of features", .bit = PSLD_KID, .needs_pair = 1, .needs_rows = 1},
    {.name = "prc", .summary = "precision and recall", .bit = PSLD_PRECISION_RECALL, .needs_pair = 1, .needs_rows = 1},
    {.name = "swd",
     .summary = "sliced Wasserstein distance of points",
     .bit = PSLD_SLICED,
     .needs_pair = 1,
     .needs_rows = 1},
};
enum { ROWS = sizeof table / sizeof *table };

const psld_metric_info *psld_metric_at(int index)
{
    return PSLD_TABLE_AT(table, index);
}

const psld_metric_info *psld_metric_find(const char *name)
{
    return PSLD_TABLE_FIND(table, "metric", name);
}

unsigned psld_metrics_that(int (*have)(const psld_metric_info *metric))
{
    unsigned bits = 0;
    for (int i = 0; i < ROWS; i++)
        if (have(&table[i])) bits |= table[i].bit;
    return bits;
}

int psld_metric_needs_rows(const psld_metric_info *metric)
{
    return metric->needs_rows;
}

int psld_metric_needs_pair(const psld_metric_info *metric)
{
    return metric->needs_pair;
}

static psld_status fail_unknown(const char *name, size_t length)
{
    char names[128] = "";
    for (int i = 0; i < ROWS; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", table[i].name);
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "metric: expected some of %s, found \"%.*s\"", names,
                     (int)(length < 60 ? length : 60), name);
}

psld_status psld_metrics_parse(const char *names, unsigned *metrics)
{
    *metrics = 0;
    for (const char *at = names;; at++) {
        size_t length = strcspn(at, ",");
        int i = 0;
        while (i < ROWS && (strlen(table[i].name) != length || strncmp(table[i].name, at, length) != 0)) i++;
        if (i == ROWS) return fail_unknown(at, length);
        *metrics |= table[i].bit;
        at += length;
        if (!*at) return PSLD_OK;
    }
}
