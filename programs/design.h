/* The parts of psld design: cmd_design.c has the options and runs the trials, design_report.c shows the results. Rows
 * are JSON objects: stage, name, error, distance, factors, total (null: it cannot be sampled) and the recipe as
 * YAML. */
#ifndef PSLD_PROGRAMS_DESIGN_H
#define PSLD_PROGRAMS_DESIGN_H

#include "cli.h"

/* A number of a row; infinite for null. */
double design_number(const json_t *row, const char *name);

/* The two criteria of the front: the first two that the text names. If it names one, the second is "distance", or
 * "factors" if the first is "distance". */
typedef struct design_axes {
    const char *first, *second;
} design_axes;
design_axes design_axes_of(const char *criterion);

/* The rows of trials for which no other is better in both, sorted by the second criterion. */
json_t *design_front(const json_t *rows, design_axes axes);

/* Writes best.yaml, front-1.yaml ..., front.csv and front.svg into the folder. */
psld_status design_write(const char *folder, const json_t *rows, const json_t *front, design_axes axes,
                         const json_t *best);
/* The front, and the final comparison with the recipes that the search began from. */
void design_print(const json_t *rows, const json_t *front, design_axes axes, const json_t *best, double floor);

#endif
