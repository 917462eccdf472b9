/* Checks of a process: D and Q over a region, the Fokker-Planck equation by exact derivatives and on grids, and a
 * simulation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/sized.h"
#include "process/process_grid.h"
#include "process/process_run.h"

enum { POINTS = 4096, DRAWS = 2048 };
#define SKEW_TOLERANCE     1e-10 /* of the largest entry */
#define NEGATIVE_TOLERANCE 1e-10
#define EXACT_TOLERANCE    1e-9 /* of the residual's terms */

/* ---- Points ------------------------------------------------------------------------------------------------------ */

/* A lattice for up to three variables, with the corners and the centre; random points for more. */
static size_t lattice_points(int n)
{
    return n == 1 ? POINTS + 1 : n == 2 ? 65 : n == 3 ? 17 : 0;
}

static size_t count_points(int n)
{
    size_t points = lattice_points(n), count = 1;
    for (int i = 0; points && i < n; i++) count *= points;
    return points ? count : POINTS;
}

static void fill_points(int n, const double *low, const double *high, uint64_t seed, double *z)
{
    size_t points = lattice_points(n), count = count_points(n);
    for (size_t i = 0; i < count; i++) {
        double u[PSLD_MAX_VARIABLES];
        size_t rest = i;
        if (!points) psld_random_uniform(seed, PSLD_FOR_EQUILIBRIUM, i, UINT32_MAX, 0, (size_t)n, u);
        for (int a = n - 1; a >= 0; a--) {
            if (points) u[a] = (double)(rest % points) / (double)(points - 1);
            if (points) rest /= points;
            z[i * (size_t)n + (size_t)a] = low[a] + (high[a] - low[a]) * u[a];
        }
    }
}

/* ---- D, Q and the residual over the region ----------------------------------------------------------------------- */

/* The worst of each kind, and where. */
typedef struct findings {
    double largest_D, asymmetry, least_eigenvalue, largest_Q, skewness, residual;
    size_t asymmetry_at, eigenvalue_at, skew_at, residual_at, infinite_at;
    int row, column; /* of the worst entry of Q */
    int infinite;
} findings;

static double least_eigenvalue(size_t n, const double *D)
{
    double a[PSLD_PROCESS_SQUARE], least = (double)INFINITY;
    memcpy(a, D, n * n * sizeof *a);
    for (int sweep = 0; sweep < 30; sweep++)
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++)
                if (a[p * n + q] != 0) psld_matrix_rotate(n, p, q, a, NULL);
    for (size_t i = 0; i < n; i++) least = fmin(least, a[i * n + i]);
    return least;
}

static void look_at(findings *f, size_t n, size_t index, const double *D, const double *Q, double residual,
                    double scale)
{
    double largest = 0;
    int finite = isfinite(residual) && isfinite(scale);
    for (size_t i = 0; i < n * n; i++) {
        double skew = fabs(Q[i] + Q[i % n * n + i / n]);
        finite &= isfinite(D[i]) && isfinite(Q[i]);
        largest = fmax(largest, fabs(D[i]));
        double odd = fabs(D[i] - D[i % n * n + i / n]);
        if (odd > f->asymmetry) f->asymmetry = odd, f->asymmetry_at = index;
        f->largest_Q = fmax(f->largest_Q, fabs(Q[i]));
        if (skew > f->skewness) f->skewness = skew, f->skew_at = index, f->row = (int)(i / n), f->column = (int)(i % n);
    }
    if (!finite && !f->infinite) f->infinite = 1, f->infinite_at = index;
    if (!finite) return;
    f->largest_D = fmax(f->largest_D, largest);
    double least = least_eigenvalue(n, D), relative = scale > 0 ? fabs(residual) / sqrt(scale) : 0;
    if (least < f->least_eigenvalue) f->least_eigenvalue = least, f->eigenvalue_at = index;
    if (relative > f->residual) f->residual = relative, f->residual_at = index;
}

static psld_status look_at_all(const psld_process *p, size_t count, const double *z, findings *f)
{
    size_t n = (size_t)p->variables;
    double lanes[PSLD_MAX_VARIABLES * PSLD_TERM_LANES], D[PSLD_PROCESS_SQUARE], Q[PSLD_PROCESS_SQUARE];
    double *scratch = psld_alloc(psld_formulas_scratch(p->checks), sizeof *scratch);
    if (!scratch) return PSLD_NO_MEMORY;
    *f = (findings){.least_eigenvalue = (double)INFINITY};
    psld_formulas_prepare(p->checks, scratch);
    for (size_t first = 0; first < count; first += PSLD_TERM_LANES) {
        size_t here = count - first < PSLD_TERM_LANES ? count - first : PSLD_TERM_LANES;
        psld_lanes_load(n, here, z + first * n, lanes);
        psld_formulas_run(p->checks, lanes, scratch);
        for (size_t l = 0; l < here; l++) {
            for (size_t i = 0; i < n * n; i++) {
                D[i] = psld_formulas_output(p->checks, scratch, i)[l];
                Q[i] = psld_formulas_output(p->checks, scratch, n * n + i)[l];
            }
            look_at(f, n, first + l, D, Q, psld_formulas_output(p->checks, scratch, 2 * n * n)[l],
                    psld_formulas_output(p->checks, scratch, 2 * n * n + 1)[l]);
        }
    }
    psld_release(scratch);
    return PSLD_OK;
}

static psld_status judge_findings(const psld_process *p, const double *z, const findings *f)
{
    char place[PSLD_PLACE_SIZE];
    size_t n = (size_t)p->variables;
    if (f->infinite)
        return psld_fail(PSLD_BAD_INPUT, "recipe %s: a formula is not finite at %s", p->name,
                         psld_process_place(p, z + f->infinite_at * n, place));
    if (f->asymmetry > SKEW_TOLERANCE * f->largest_D)
        return psld_fail(PSLD_BAD_INPUT, "recipe %s: D is not symmetric: off by %.4g at %s", p->name, f->asymmetry,
                         psld_process_place(p, z + f->asymmetry_at * n, place));
    if (f->least_eigenvalue < -NEGATIVE_TOLERANCE * f->largest_D)
        return psld_fail(PSLD_BAD_INPUT, "recipe %s: D is not positive semidefinite: eigenvalue %.4g at %s", p->name,
                         f->least_eigenvalue, psld_process_place(p, z + f->eigenvalue_at * n, place));
    if (f->skewness > SKEW_TOLERANCE * f->largest_Q)
        return psld_fail(PSLD_BAD_INPUT, "recipe %s: Q is not skew-symmetric: Q[%d][%d] + Q[%d][%d] = %.4g at %s",
                         p->name, f->row, f->column, f->column, f->row, f->skewness,
                         psld_process_place(p, z + f->skew_at * n, place));
    if (f->residual > EXACT_TOLERANCE)
        return psld_fail(
            PSLD_BAD_INPUT,
            "recipe %s: exp(-H) is not stationary: the residual of the Fokker-Planck equation is %.3g of its "
            "terms at %s",
            p->name, f->residual, psld_process_place(p, z + f->residual_at * n, place));
    return PSLD_OK;
}

static psld_status check_region(const psld_process *p, uint64_t seed, psld_process_report *r)
{
    size_t n = (size_t)p->variables, count = count_points(p->variables);
    findings f;
    double *z = psld_alloc((count + DRAWS) * n, sizeof *z);
    if (!z) return PSLD_NO_MEMORY;
    fill_points(p->variables, r->low, r->high, seed, z);
    psld_status status = psld_process_draw(p, seed, 0, DRAWS, z + count * n);
    if (status == PSLD_OK) status = look_at_all(p, count + DRAWS, z, &f);
    if (status == PSLD_OK) status = judge_findings(p, z, &f);
    psld_release(z);
    if (status != PSLD_OK) return status;
    r->least_eigenvalue = f.largest_D > 0 ? f.least_eigenvalue / f.largest_D : 0;
    r->skewness = f.largest_Q > 0 ? f.skewness / f.largest_Q : 0;
    r->residual = f.residual;
    return PSLD_OK;
}

/* ---- The residual by finite differences -------------------------------------------------------------------------- */

/* Neighbours of a point along axes: index shifts. */
static double shifted_index(const psld_process_grid *g, const double *array, size_t index, const ptrdiff_t *by,
                            size_t axis, int steps)
{
    size_t at = (size_t)((ptrdiff_t)index + steps * by[axis]);
    return array[at] * g->p[at];
}

static double mixed_difference(const psld_process_grid *g, const double *D, size_t x, const ptrdiff_t *by, size_t i,
                               size_t j)
{
    double sum = 0;
    for (int a = -1; a <= 1; a += 2)
        for (int b = -1; b <= 1; b += 2) {
            size_t at = (size_t)((ptrdiff_t)x + a * by[i] + b * by[j]);
            sum += a * b * D[at] * g->p[at];
        }
    return sum / (4 * g->step[i] * g->step[j]);
}

/* -sum d_i (f_i p) + sum d_i d_j (D_ij p) at a point by central differences, and the sum of the sizes of its terms. */
static double difference_residual(const psld_process_grid *g, size_t x, const ptrdiff_t *by, double *size)
{
    size_t n = (size_t)g->process->variables;
    double residual = 0;
    *size = 0;
    for (size_t i = 0; i < n; i++) {
        const double *f = g->drift + i * g->total;
        double slope = (shifted_index(g, f, x, by, i, 1) - shifted_index(g, f, x, by, i, -1)) / (2 * g->step[i]);
        residual -= slope;
        *size += fabs(slope);
        for (size_t j = 0; j <= i; j++) {
            const double *D = g->D + (i * (i + 1) / 2 + j) * g->total;
            double part = i == j ? (shifted_index(g, D, x, by, i, 1) - 2 * shifted_index(g, D, x, by, i, 0) +
                                    shifted_index(g, D, x, by, i, -1)) /
                                       (g->step[i] * g->step[i])
                                 : 2 * mixed_difference(g, D, x, by, i, j);
            residual += part;
            *size += fabs(part);
        }
    }
    return residual;
}

static int is_inside(const psld_process_grid *g, size_t index)
{
    for (int a = 0; a < g->process->variables; a++, index /= g->points)
        if (index % g->points == 0 || index % g->points == g->points - 1) return 0;
    return 1;
}

static psld_status grid_residual(const psld_process *p, const double *low, const double *high, size_t points,
                                 double *residual)
{
    psld_process_grid g;
    ptrdiff_t by[PSLD_GRID_AXES], stride = 1;
    double worst = 0, largest = 0, size;
    PSLD_TRY(psld_process_grid_create(p, low, high, points, &g));
    for (int a = p->variables - 1; a >= 0; a--, stride *= (ptrdiff_t)points) by[a] = stride;
    for (size_t x = 0; x < g.total; x++) {
        if (!is_inside(&g, x)) continue;
        worst = fmax(worst, fabs(difference_residual(&g, x, by, &size)));
        largest = fmax(largest, size);
    }
    psld_process_grid_clear(&g);
    *residual = largest > 0 ? worst / largest : 0;
    return PSLD_OK;
}

static psld_status check_grids(const psld_process *p, const double *low, const double *high, psld_process_report *r)
{
    static const size_t first[] = {64, 32, 16};
    r->grids = p->variables < 3 ? 4 : 3;
    for (int i = 0; i < r->grids; i++) {
        size_t points = first[p->variables - 1] << i;
        r->points[i] = (double)points;
        PSLD_TRY(grid_residual(p, low, high, points, &r->grid_residual[i]));
        r->rate[i] = i && r->grid_residual[i] > 0 ? log2(r->grid_residual[i - 1] / r->grid_residual[i]) : 0;
    }
    return PSLD_OK;
}

/* ---- Simulation -------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov's distance of two sets of DRAWS numbers, which are sorted on the way. */
static double kolmogorov_distance(double *a, double *b)
{
    double most = 0;
    qsort(a, DRAWS, sizeof *a, compare_numbers);
    qsort(b, DRAWS, sizeof *b, compare_numbers);
    for (size_t i = 0, j = 0; i < DRAWS && j < DRAWS;) {
        double at = a[i] <= b[j] ? a[i] : b[j];
        while (i < DRAWS && a[i] <= at) i++;
        while (j < DRAWS && b[j] <= at) j++;
        most = fmax(most, fabs((double)i - (double)j) / DRAWS);
    }
    return most;
}

/* The largest of all variables. `columns` [2][DRAWS]. */
static double compare_sets(size_t n, const double *a, const double *b, double *columns)
{
    double most = 0;
    for (size_t v = 0; v < n; v++) {
        for (size_t i = 0; i < DRAWS; i++) {
            columns[i] = a[i * n + v];
            columns[DRAWS + i] = b[i * n + v];
        }
        most = fmax(most, kolmogorov_distance(columns, columns + DRAWS));
    }
    return most;
}

void psld_process_begin(const psld_process *p, uint64_t seed, uint64_t sample, uint64_t phase, double *z)
{
    size_t data = (size_t)p->data, n = (size_t)p->variables;
    psld_random_normal(seed, PSLD_FOR_MOMENTUM, sample, phase, data, n - data, z + data);
    for (size_t i = data; i < n; i++) z[i] *= sqrt(p->init[i]);
}

static psld_status simulate_sets(const psld_process *p, uint64_t seed, double *moved, double *fresh, double *columns,
                                 psld_process_report *r)
{
    size_t n = (size_t)p->variables;
    PSLD_TRY(psld_process_draw(p, seed, 0, DRAWS, moved));
    PSLD_TRY(psld_process_draw(p, seed, DRAWS, DRAWS, fresh));
    PSLD_TRY(psld_process_simulate(p, seed, 0, DRAWS, 0, 1, 0, moved));
    r->drift_away = compare_sets(n, moved, fresh, columns);
    memset(moved, 0, DRAWS * n * sizeof *moved);
    for (size_t i = 0; i < DRAWS; i++) psld_process_begin(p, seed, i, 0, moved + i * n);
    PSLD_TRY(psld_process_simulate(p, seed, DRAWS, DRAWS, 0, 1, 0, moved));
    r->mixing = compare_sets(n, moved, fresh, columns);
    r->chance = sqrt(-0.5 * log(0.01 / (2 * (double)n))) * sqrt(2.0 / DRAWS);
    if (r->drift_away <= r->chance + 0.03) return PSLD_OK;
    return psld_fail(
        PSLD_BAD_INPUT,
        "recipe %s: a simulation does not stay in exp(-H): Kolmogorov's distance %.3g after t = 1, where chance "
        "gives %.3g; more steps may help",
        p->name, r->drift_away, r->chance);
}

static psld_status check_simulation(const psld_process *p, uint64_t seed, psld_process_report *r)
{
    size_t n = (size_t)p->variables;
    double *memory = psld_alloc(DRAWS * (2 * n + 2), sizeof *memory);
    if (!memory) return PSLD_NO_MEMORY;
    psld_status status = simulate_sets(p, seed, memory, memory + DRAWS * n, memory + 2 * DRAWS * n, r);
    psld_release(memory);
    return status;
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

psld_status psld_process_check(const psld_process *process, uint64_t seed, psld_process_report *report)
{
    psld_process_report own = PSLD_PROCESS_REPORT_EMPTY;
    double low[PSLD_MAX_VARIABLES], high[PSLD_MAX_VARIABLES];
    PSLD_TRY(psld_sized_check(report, sizeof own, "PSLD_PROCESS_REPORT_EMPTY"));
    PSLD_TRY(psld_process_box(process, seed, low, high));
    for (int i = 0; i < process->variables; i++) {
        own.low[i] = process->has_region ? process->region[i][0] : low[i];
        own.high[i] = process->has_region ? process->region[i][1] : high[i];
    }
    PSLD_TRY(check_region(process, seed, &own));
    if (process->variables <= PSLD_GRID_AXES) PSLD_TRY(check_grids(process, low, high, &own));
    PSLD_TRY(check_simulation(process, seed, &own));
    own.size = report->size;
    psld_sized_write(report, &own);
    return PSLD_OK;
}
