/* Grids of times: where the steps of a walk from t = 1 down to its end lie. A grid maps the fraction u of steps
 * taken to the fraction of the way gone; later grids may need the recipe as well. */
#include <string.h>

#include "sample/walk.h"

static double uniform(double u)
{
    return u;
}

/* Steps shrink towards the data: the remaining way is the square of the remaining fraction. */
static double quadratic(double u)
{
    return 1 - (1 - u) * (1 - u);
}

static const struct grid {
    const char *name, *summary;
    double (*gone)(double u);
} table[] = {
    {"uniform", "equal steps in t", uniform},
    {"quadratic", "steps that shrink linearly towards t = 0", quadratic},
};
enum { ROWS = sizeof table / sizeof *table };

psld_status psld_grid_times(const char *name, int steps, double end, double *times)
{
    for (int g = 0; g < ROWS; g++) {
        if (strcmp(table[g].name, name) != 0) continue;
        for (int i = 0; i <= steps; i++) times[i] = 1 - (1 - end) * table[g].gone((double)i / steps);
        times[steps] = end;
        return PSLD_OK;
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected uniform or quadratic, found \"%s\"", name);
}

const char *psld_grid_name(int index)
{
    return index >= 0 && index < ROWS ? table[index].name : NULL;
}

const char *psld_grid_summary(int index)
{
    return index >= 0 && index < ROWS ? table[index].summary : NULL;
}
