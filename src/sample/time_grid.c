/* Time grids: the times of the reverse steps, from t = 1 down to t_min.
 *
 * Each grid is a function of the fraction u of steps done. It gives the time t, or the effective noise sigma, which has
 * the same meaning for the data under every recipe. Instead of a name a grid may be the list of times itself:
 * "1,0.5,0.1,0.001". A list may begin below 1 where the states to begin with are given (sample.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "base/text.h"
#include "base/threads.h"
#include "sample/time_grid.h"

typedef struct range {
    double t_min;                /* the last time */
    double sigma_max, sigma_min; /* effective noise at t = 1 and at t_min */
    double rho;
} range;

static double grid_uniform(const range *r, double u)
{
    return 1 - (1 - r->t_min) * u;
}

/* The quadratic schedule of the paper: steps shrink towards the data, the time left is the square of the fraction left. */
static double grid_quadratic(const range *r, double u)
{
    return 1 - (1 - r->t_min) * (1 - (1 - u) * (1 - u));
}

static double grid_square_root(const range *r, double u)
{
    double root = 1 - (1 - sqrt(r->t_min)) * u;
    return root * root;
}

static double grid_logarithmic(const range *r, double u)
{
    return r->sigma_max * pow(r->sigma_min / r->sigma_max, u);
}

/* Karras et al. 2022. */
static double grid_rho_root(const range *r, double u)
{
    double top = pow(r->sigma_max, 1 / r->rho), bottom = pow(r->sigma_min, 1 / r->rho);
    return pow(top + (bottom - top) * u, r->rho);
}

static const struct grid {
    psld_grid_info info; /* with in_sigma `at` gives sigma, otherwise t */
    double (*at)(const range *r, double u);
} table[] = {
    {{.name = "uniform", .summary = "equal steps in t"}, grid_uniform},
    {{.name = "quadratic", .summary = "steps that shrink linearly towards the end"}, grid_quadratic},
    {{.name = "sqrt", .summary = "equal steps in the square root of t"}, grid_square_root},
    {{.name = "log", .summary = "equal steps in the logarithm of the effective noise", .in_sigma = 1},
     grid_logarithmic},
    {{.name = "rho",
      .summary = "equal steps in the rho-th root of the effective noise, as in EDM",
      .in_sigma = 1,
      .uses_rho = 1},
     grid_rho_root},
};
enum { ROWS = sizeof table / sizeof *table };

/* ---- Times as a list --------------------------------------------------------------------------------------------- */

int psld_grid_is_list(const char *grid, int *steps)
{
    *steps = 0;
    for (const char *at = grid; *at; at++) *steps += *at == ',';
    return grid[0] == '.' || (grid[0] >= '0' && grid[0] <= '9');
}

/* Parses the time at `at`. Returns the start of the next one, or NULL if this is not a positive number. */
static const char *read_time(const char *at, double *time)
{
    char text[64] = "";
    at += strspn(at, " ");
    size_t length = strcspn(at, ",");
    if (length >= sizeof text) return NULL;
    memcpy(text, at, length);
    if (!psld_text_number(text, time) || !(*time > 0)) return NULL;
    return at + length + (at[length] == ',');
}

static psld_status parse_time_list(const char *grid, int steps, double *times)
{
    const char *at = grid;
    for (int i = 0; i <= steps; i++) {
        const char *next = read_time(at, &times[i]);
        if (!next || (i == steps && *next))
            return psld_fail(PSLD_BAD_ARGUMENT,
                             "grid: expected positive times with commas between them, found \"%s\" in \"%s\"", at,
                             grid);
        at = next;
    }
    if (times[0] > 1) return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected to begin with 1, found %g", times[0]);
    return PSLD_OK;
}

psld_status psld_grid_list_end(const char *grid, double *t_min)
{
    const char *last = strrchr(grid, ',');
    *t_min = 0;
    if (last && read_time(last + 1, t_min) && *t_min < 1) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected decreasing times from 1 to a positive one, found \"%s\"", grid);
}

/* ---- Times by name ----------------------------------------------------------------------------------------------- */

static psld_status find_grid(const char *name, const struct grid **found)
{
    char names[128] = "", meant[PSLD_SUGGESTION_SIZE];
    const char *list[PSLD_TABLE_ROWS];
    psld_table_names(table, ROWS, sizeof *table, list);
    for (int g = 0; g < ROWS; g++) {
        *found = &table[g];
        if (strcmp(list[g], name) == 0) return PSLD_OK;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s, ", list[g]);
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected %sor times with commas between them, found \"%s\"%s", names,
                     name, psld_text_suggest(name, list, ROWS, meant));
}

typedef struct grid_job {
    const psld_recipe *recipe;
    const struct grid *grid;
    range range;
    int steps;
    double *times;
} grid_job;

static psld_status grid_time(const grid_job *c, size_t i)
{
    double at = c->grid->at(&c->range, (double)i / c->steps);
    c->times[i] = at;
    return c->grid->info.in_sigma ? psld_recipe_time(c->recipe, at, &c->times[i]) : PSLD_OK;
}

static void grid_times_range(void *context, size_t begin, size_t end)
{
    const grid_job *c = context;
    for (size_t i = begin; i < end; i++)
        if (grid_time(c, i + 1) != PSLD_OK) c->times[i + 1] = (double)NAN;
}

static psld_status named_grid_times(const psld_recipe *recipe, const char *name, double rho, int steps, double t_min,
                                    double *times)
{
    grid_job c = {.recipe = recipe, .range = {.t_min = t_min, .rho = rho}, .steps = steps, .times = times};
    PSLD_TRY(find_grid(name, &c.grid));
    if (c.grid->info.in_sigma) {
        PSLD_TRY(psld_recipe_sigma(recipe, 1, &c.range.sigma_max));
        PSLD_TRY(psld_recipe_sigma(recipe, t_min, &c.range.sigma_min));
    }
    times[0] = 1;
    psld_parallel((size_t)steps - 1, 1, grid_times_range, &c);
    for (int i = 1; i < steps; i++)
        if (isnan(times[i])) PSLD_TRY(grid_time(&c, (size_t)i)); /* repeated in this thread, for its error text */
    times[steps] = t_min;
    return PSLD_OK;
}

psld_status psld_grid_times(const psld_recipe *recipe, const char *grid, double rho, int steps, double t_min,
                            double *times)
{
    int commas;
    if (psld_grid_is_list(grid, &commas))
        PSLD_TRY(parse_time_list(grid, steps, times));
    else
        PSLD_TRY(named_grid_times(recipe, grid, rho, steps, t_min, times));
    for (int i = 0; i < steps; i++)
        if (!(times[i + 1] < times[i]))
            return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected decreasing times, found %.9g after %.9g", times[i + 1],
                             times[i]);
    return PSLD_OK;
}

const psld_grid_info *psld_grid_at(int index)
{
    return PSLD_TABLE_AT(table, index);
}

const psld_grid_info *psld_grid_find(const char *name)
{
    return PSLD_TABLE_FIND(table, "grid", name);
}
