/* Time grids: the times of the reverse steps, from t = 1 down to t_min.
 *
 * Each grid is a function of the fraction u of steps done. It gives the time t, or the effective noise sigma, which has
 * the same meaning for the data under every recipe. Instead of a name a grid may be the list of times itself:
 * "1,0.5,0.1,0.001". A list may begin below 1 where the states to begin with are given (sample.c). Or it is a list of
 * noise levels, those of the times after 1: "sigma:5,1,0.3". */
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

/* Steps grow with the noise, faster than it: most of them are where there is little. */
static double grid_inverse_root(const range *r, double u)
{
    double top = 1 / sqrt(r->sigma_max), bottom = 1 / sqrt(r->sigma_min), root = top + (bottom - top) * u;
    return 1 / (root * root);
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
    {{.name = "inverse", .summary = "equal steps in one over the root of the effective noise", .in_sigma = 1},
     grid_inverse_root},
};
enum { ROWS = sizeof table / sizeof *table };

/* ---- Times as a list --------------------------------------------------------------------------------------------- */

static const char levels_prefix[] = "sigma:";

/* The levels of a list of them; NULL for other grids. */
static const char *levels_of(const char *grid)
{
    size_t length = sizeof levels_prefix - 1;
    return strncmp(grid, levels_prefix, length) == 0 ? grid + length : NULL;
}

int psld_grid_is_list(const char *grid, int *steps)
{
    *steps = levels_of(grid) != NULL; /* t = 1 is not in that list */
    for (const char *at = grid; *at; at++) *steps += *at == ',';
    return levels_of(grid) || grid[0] == '.' || (grid[0] >= '0' && grid[0] <= '9');
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

static psld_status level_time(const psld_recipe *recipe, double sigma, double *time)
{
    double most;
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &most));
    if (sigma < most) return psld_recipe_time(recipe, sigma, time);
    return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected noise below %.4g, that of recipe %s at t = 1, found %g", most,
                     recipe->spec.name, sigma);
}

static psld_status parse_level_list(const psld_recipe *recipe, const char *levels, int steps, double *times)
{
    const char *at = levels;
    double sigma = 0;
    for (int i = 1; i <= steps; i++) {
        const char *next = read_time(at, &sigma);
        if (!next || (i == steps && *next))
            return psld_fail(PSLD_BAD_ARGUMENT,
                             "grid: expected positive noise levels with commas between them, found \"%s\" in \"%s%s\"",
                             at, levels_prefix, levels);
        PSLD_TRY(level_time(recipe, sigma, &times[i]));
        at = next;
    }
    return PSLD_OK;
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

psld_status psld_grid_list_end(const psld_recipe *recipe, const char *grid, double *t_min)
{
    const char *last = strrchr(grid, ','), *levels = levels_of(grid);
    double sigma;
    *t_min = 0;
    if (levels && read_time(last ? last + 1 : levels, &sigma)) return level_time(recipe, sigma, t_min);
    if (levels)
        return psld_fail(PSLD_BAD_ARGUMENT, "grid: expected falling noise levels, as in sigma:5,1,0.3, found \"%s\"",
                         grid);
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
    return psld_fail(PSLD_BAD_ARGUMENT,
                     "grid: expected %stimes with commas between them, or sigma: and noise levels, found \"%s\"%s",
                     names, name, psld_text_suggest(name, list, ROWS, meant));
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
    times[0] = 1;
    if (steps == 0) return PSLD_OK;
    if (levels_of(grid))
        PSLD_TRY(parse_level_list(recipe, levels_of(grid), steps, times));
    else if (psld_grid_is_list(grid, &commas))
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
