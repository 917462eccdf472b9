#include "process/process_grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "process/process_run.h"

const char *psld_process_place(const psld_process *process, const double *z, char text[PSLD_PLACE_SIZE])
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < process->variables; i++)
        used += (size_t)psld_text_print(text + used, PSLD_PLACE_SIZE - used, "%s%s = %.4g", i ? ", " : "",
                                        process->variable[i], z[i]);
    return text;
}

/* ---- The box ----------------------------------------------------------------------------------------------------- */

enum { DRAWS = 512, FACE = 25, MOST_PUSHES = 2000 };
#define FALLEN 37 /* exp(-37) is 1e-16 */

typedef struct box {
    const psld_process *process;
    int n;
    double *low, *high, least; /* the smallest H so far */
} box;

/* The smallest H on the face of the box where variable `axis` is at `at`. */
static psld_status face_energy(box *b, int axis, double at, double *least)
{
    static const size_t sizes[] = {1, FACE, FACE * FACE};
    size_t count = sizes[b->n - 1];
    double z[FACE * FACE * PSLD_GRID_AXES] = {0}, H[FACE * FACE];
    for (size_t i = 0; i < count; i++) {
        size_t rest = i;
        for (int a = 0; a < b->n; a++) {
            if (a == axis) {
                z[i * (size_t)b->n + (size_t)a] = at;
                continue;
            }
            z[i * (size_t)b->n + (size_t)a] = b->low[a] + (b->high[a] - b->low[a]) * (double)(rest % FACE) / (FACE - 1);
            rest /= FACE;
        }
    }
    PSLD_TRY(psld_process_energy(b->process, count, z, H, NULL));
    *least = (double)INFINITY;
    for (size_t i = 0; i < count; i++)
        if (isfinite(H[i])) *least = fmin(*least, H[i]);
    b->least = fmin(b->least, *least);
    return PSLD_OK;
}

/* Moves the faces out, one after the other, until exp(-H) has fallen off on all of them. */
static psld_status push_faces(box *b)
{
    int still = 0;
    for (int push = 0; still < 2 * b->n; push++) {
        int axis = push / 2 % b->n, upper = push % 2;
        double *face = upper ? &b->high[axis] : &b->low[axis], width = b->high[axis] - b->low[axis], H;
        PSLD_TRY(face_energy(b, axis, *face, &H));
        if (H - b->least >= FALLEN) {
            still++;
            continue;
        }
        still = 0;
        *face += (upper ? 0.03 : -0.03) * width;
        if (push > MOST_PUSHES || !isfinite(*face) || width > 1e6)
            return psld_fail(PSLD_BAD_INPUT,
                             "recipe %s: exp(-H) does not fall off in %s: H = %.4g at %.4g, with %.4g as its least",
                             b->process->name, b->process->variable[axis], H, *face, b->least);
    }
    return PSLD_OK;
}

/* From draws: their range, or for many variables mean and deviations. */
static void box_of_draws(box *b, const double *z)
{
    size_t n = (size_t)b->n;
    for (size_t i = 0; i < n; i++) {
        double sum = 0, squares = 0;
        b->low[i] = (double)INFINITY, b->high[i] = -(double)INFINITY;
        for (size_t d = 0; d < DRAWS; d++) {
            double x = z[d * n + i];
            sum += x / DRAWS;
            b->low[i] = fmin(b->low[i], x);
            b->high[i] = fmax(b->high[i], x);
        }
        for (size_t d = 0; d < DRAWS; d++) squares += (z[d * n + i] - sum) * (z[d * n + i] - sum) / DRAWS;
        if (n <= PSLD_GRID_AXES) continue;
        b->low[i] = sum - 5 * sqrt(squares);
        b->high[i] = sum + 5 * sqrt(squares);
    }
}

psld_status psld_process_box(const psld_process *process, uint64_t seed, double *low, double *high)
{
    size_t n = (size_t)process->variables;
    box b = {process, process->variables, low, high, (double)INFINITY};
    double *z = psld_alloc(DRAWS * n, sizeof *z), *H = z ? psld_alloc(DRAWS, sizeof *H) : NULL;
    psld_status status = H ? psld_process_draw(process, seed, 0, DRAWS, z) : PSLD_NO_MEMORY;
    if (status == PSLD_OK) status = psld_process_energy(process, DRAWS, z, H, NULL);
    if (status == PSLD_OK) {
        for (size_t i = 0; i < DRAWS; i++) b.least = fmin(b.least, H[i]);
        box_of_draws(&b, z);
        if (n <= PSLD_GRID_AXES) status = push_faces(&b);
    }
    psld_release(z);
    psld_release(H);
    return status;
}

/* ---- Grids ------------------------------------------------------------------------------------------------------- */

void psld_process_grid_place(const psld_process_grid *grid, size_t index, double *z)
{
    for (int a = grid->process->variables - 1; a >= 0; a--) {
        z[a] = grid->low[a] + grid->step[a] * (double)(index % grid->points);
        index /= grid->points;
    }
}

static psld_status fill_lanes(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    psld_process_grid *g = user;
    const psld_process *p = g->process;
    size_t n = (size_t)p->variables, numbers = n * (n + 1) / 2;
    double z[PSLD_GRID_AXES];
    for (size_t l = 0; l < PSLD_TERM_LANES; l++) {
        psld_process_grid_place(g, first + (l < count ? l : count - 1), z);
        for (size_t i = 0; i < n; i++) lanes->array[0][i * PSLD_TERM_LANES + l] = z[i];
    }
    psld_formulas_run(p->motion, lanes->array[0], lanes->scratch);
    for (size_t i = 0; i < 2 * n + numbers; i++) { /* drift, divergence and D lie one behind the other */
        const double *from = psld_formulas_output(p->motion, lanes->scratch, i);
        memcpy(g->drift + i * g->total + first, from, count * sizeof *from);
    }
    return PSLD_OK;
}

/* Gives H in p first. */
static psld_status fill_energy_lanes(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    psld_process_grid *g = user;
    const psld_process *p = g->process;
    size_t n = (size_t)p->variables;
    double z[PSLD_GRID_AXES];
    for (size_t l = 0; l < PSLD_TERM_LANES; l++) {
        psld_process_grid_place(g, first + (l < count ? l : count - 1), z);
        for (size_t i = 0; i < n; i++) lanes->array[0][i * PSLD_TERM_LANES + l] = z[i];
    }
    psld_formulas_run(p->energy, lanes->array[0], lanes->scratch);
    memcpy(g->p + first, psld_formulas_output(p->energy, lanes->scratch, 0), count * sizeof *g->p);
    for (size_t i = 0; i < n; i++)
        memcpy(g->gradient + i * g->total + first, psld_formulas_output(p->energy, lanes->scratch, 1 + i),
               count * sizeof *g->p);
    return PSLD_OK;
}

static psld_status fail_infinite(const psld_process_grid *g, size_t index)
{
    double z[PSLD_GRID_AXES];
    char place[PSLD_PLACE_SIZE];
    psld_process_grid_place(g, index, z);
    return psld_fail(PSLD_BAD_INPUT, "recipe %s: a formula is not finite at %s", g->process->name,
                     psld_process_place(g->process, z, place));
}

static psld_status normalise(psld_process_grid *g)
{
    size_t n = (size_t)g->process->variables, arrays = 3 * n + n * (n + 1) / 2;
    double least = (double)INFINITY;
    for (size_t i = 0; i < g->total; i++) {
        least = fmin(least, g->p[i]);
        for (size_t a = 0; a < arrays; a++) /* all arrays but p are one block */
            if (!isfinite(g->drift[a * g->total + i])) return fail_infinite(g, i);
        if (!isfinite(g->p[i])) return fail_infinite(g, i);
    }
    for (size_t i = 0; i < g->total; i++) g->p[i] = exp(least - g->p[i]);
    return PSLD_OK;
}

psld_status psld_process_grid_create(const psld_process *process, const double *low, const double *high, size_t points,
                                     psld_process_grid *grid)
{
    size_t n = (size_t)process->variables, square = n * (n + 1) / 2;
    *grid = (psld_process_grid){.process = process, .points = points, .total = 1};
    for (size_t i = 0; i < n; i++) {
        grid->total *= points;
        grid->low[i] = low[i];
        grid->step[i] = (high[i] - low[i]) / (double)points;
    }
    grid->p = psld_alloc(grid->total, sizeof *grid->p);
    grid->drift = grid->p ? psld_alloc(grid->total * (3 * n + square), sizeof *grid->p) : NULL;
    if (!grid->drift) {
        psld_process_grid_clear(grid);
        return PSLD_NO_MEMORY;
    }
    grid->divergence = grid->drift + n * grid->total;
    grid->D = grid->divergence + n * grid->total;
    grid->gradient = grid->D + square * grid->total;
    psld_status status = psld_lanes_run(process, process->motion, grid->total, fill_lanes, grid);
    if (status == PSLD_OK) status = psld_lanes_run(process, process->energy, grid->total, fill_energy_lanes, grid);
    status = status == PSLD_OK ? normalise(grid) : psld_fail(status, "out of memory");
    if (status != PSLD_OK) psld_process_grid_clear(grid);
    return status;
}

void psld_process_grid_clear(psld_process_grid *grid)
{
    psld_release(grid->p);
    psld_release(grid->drift);
    *grid = (psld_process_grid){0};
}
