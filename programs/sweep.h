/* Rows of a sweep, JSON objects, as tables and as a plot. */
#ifndef PSLD_PROGRAMS_SWEEP_H
#define PSLD_PROGRAMS_SWEEP_H

#include "cli.h"

/* Puts the metrics of a result into its row. */
void sweep_put_metrics(json_t *row, unsigned metrics, const psld_sweep_result *result);

/* One row for each set of rows that differ in their seed alone: means, and where there are several seeds their standard
 * deviations as NAME_spread and their number as `seeds`. */
json_t *sweep_means(const json_t *rows);

/* Columns that no row has are left out. */
void sweep_print_table(const json_t *rows);
psld_status sweep_save_table(const char *path, const json_t *rows); /* CSV, all digits */
psld_status sweep_save_json(const char *path, const json_t *rows);

/* The first metric against evaluations, a curve for each model, recipe, sampler and grid. */
psld_status sweep_plot(const char *title, const json_t *rows, const char *path);

#endif
