/* The parts of psld design: cmd_design.c has the options and runs the trials, design_report.c shows what was found. Rows
 * are JSON objects: stage, name, error, distance, factors, total (null: it cannot be sampled) and the recipe as YAML. */
#ifndef PSLD_PROGRAMS_DESIGN_H
#define PSLD_PROGRAMS_DESIGN_H

#include "cli.h"

/* A number of a row; infinite for null. */
double design_number(const json_t *row, const char *name);

/* The criteria that recipes are compared by: at most two of those that the text names, the second being "distance" where it
 * names one alone (or "factors", if that is the one). */
typedef struct design_axes {
    const char *first, *second;
} design_axes;
design_axes design_axes_of(const char *criterion);

/* The rows of trials that no other is better than in both, by the second axis. */
json_t *design_front(const json_t *rows, design_axes axes);

/* Writes best.yaml, front-1.yaml ..., front.csv and front.svg into the folder. */
psld_status design_write(const char *folder, const json_t *rows, const json_t *front, design_axes axes,
                         const json_t *best);
/* The front, and the final comparison with the recipes that the search began from. */
void design_print(const json_t *rows, const json_t *front, design_axes axes, const json_t *best, double floor);

#endif
