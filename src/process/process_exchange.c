/* The converse of the recipe: an exchange Q from drift, D and H.
 *
 * The current F = f p - div(D p) has no divergence. A skew-symmetric Q with div(Q p) = F is, in Fourier space,
 *     (Q p)^_ij = (F^_i k_j - k_i F^_j) / (2 pi i |k|^2),
 * since then sum_j 2 pi i k_j (Q p)^_ij = F^_i - k_i (k . F^) / |k|^2, and k . F^ = 0. The mean of Q p is not determined;
 * it is such that Q p vanishes at the corner of the box, where p does. In two variables this Q is the only one. In three,
 * the curl of anything may be added. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "process/fourier.h"
#include "process/process_grid.h"

/* Arrays [total]. */
typedef struct converse {
    psld_process_grid grid;
    size_t n, total;
    double *current; /* [n][total]: F */
    double *re, *im; /* [n][total]: F^ */
    double *Qp;      /* [pairs][total]: above the diagonal */
    double *work[2];
    double length[PSLD_GRID_AXES]; /* of the box */
} converse;

static const int pair_of[3][2] = {{0, 1}, {0, 2}, {1, 2}};

static size_t pair_count(size_t n)
{
    return n * (n - 1) / 2;
}

static size_t lower_index(size_t i, size_t j)
{
    return i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i;
}

/* F = f p - div(D p) = (f - div D + D grad H) p. */
static void fill_current(converse *c)
{
    const psld_process_grid *g = &c->grid;
    for (size_t i = 0; i < c->n; i++)
        for (size_t x = 0; x < c->total; x++) {
            double sum = g->drift[i * c->total + x] - g->divergence[i * c->total + x];
            for (size_t j = 0; j < c->n; j++)
                sum += g->D[lower_index(i, j) * c->total + x] * g->gradient[j * c->total + x];
            c->current[i * c->total + x] = sum * g->p[x];
        }
}

/* The frequency of an index along an axis; that of Nyquist has no sign and counts as 0. */
static double grid_frequency(const converse *c, size_t index, size_t axis)
{
    size_t points = c->grid.points;
    for (size_t a = c->n; --a > axis;) index /= points;
    index %= points;
    if (2 * index == points) return 0;
    return (2 * index < points ? (double)index : (double)index - (double)points) / c->length[axis];
}

/* (Q p)^ of a pair into c->work. */
static void exchange_of_current(converse *c, const int *pair)
{
    const double turn = 2 * acos(-1);
    size_t i = (size_t)pair[0], j = (size_t)pair[1];
    for (size_t x = 0; x < c->total; x++) {
        double k[PSLD_GRID_AXES], square = 0;
        for (size_t a = 0; a < c->n; a++) {
            k[a] = grid_frequency(c, x, a);
            square += k[a] * k[a];
        }
        double re = c->re[i * c->total + x] * k[j] - k[i] * c->re[j * c->total + x];
        double im = c->im[i * c->total + x] * k[j] - k[i] * c->im[j * c->total + x];
        c->work[0][x] = square > 0 ? im / (turn * square) : 0; /* divided by 2 pi i */
        c->work[1][x] = square > 0 ? -re / (turn * square) : 0;
    }
}

static psld_status solve_exchange(converse *c)
{
    for (size_t i = 0; i < c->n; i++) {
        memcpy(c->re + i * c->total, c->current + i * c->total, c->total * sizeof *c->re);
        PSLD_TRY(psld_fourier((int)c->n, c->grid.points, c->re + i * c->total, c->im + i * c->total, 0));
    }
    for (size_t q = 0; q < pair_count(c->n); q++) {
        exchange_of_current(c, pair_of[q]);
        PSLD_TRY(psld_fourier((int)c->n, c->grid.points, c->work[0], c->work[1], 1));
        for (size_t x = 0; x < c->total; x++) c->Qp[q * c->total + x] = c->work[0][x] - c->work[0][0];
    }
    return PSLD_OK;
}

/* Adds d_j of an array to `to`, with a sign, by Fourier. */
static psld_status add_slope(converse *c, const double *of, size_t axis, double sign, double *to)
{
    const double turn = 2 * acos(-1);
    memcpy(c->work[0], of, c->total * sizeof *of);
    memset(c->work[1], 0, c->total * sizeof *of);
    PSLD_TRY(psld_fourier((int)c->n, c->grid.points, c->work[0], c->work[1], 0));
    for (size_t x = 0; x < c->total; x++) {
        double k = turn * grid_frequency(c, x, axis), re = c->work[0][x];
        c->work[0][x] = -k * c->work[1][x];
        c->work[1][x] = k * re;
    }
    PSLD_TRY(psld_fourier((int)c->n, c->grid.points, c->work[0], c->work[1], 1));
    for (size_t x = 0; x < c->total; x++) to[x] += sign * c->work[0][x];
    return PSLD_OK;
}

/* How well div(Q p) is F. */
static psld_status compare_current(converse *c, double *error)
{
    double worst = 0, largest = 0;
    double *found = c->re; /* F^ is not needed any more */
    memset(found, 0, c->n * c->total * sizeof *found);
    for (size_t q = 0; q < pair_count(c->n); q++) {
        size_t i = (size_t)pair_of[q][0], j = (size_t)pair_of[q][1];
        PSLD_TRY(add_slope(c, c->Qp + q * c->total, j, 1, found + i * c->total));
        PSLD_TRY(add_slope(c, c->Qp + q * c->total, i, -1, found + j * c->total));
    }
    for (size_t x = 0; x < c->n * c->total; x++) {
        worst = fmax(worst, fabs(found[x] - c->current[x]));
        largest = fmax(largest, fabs(c->current[x]));
    }
    *error = largest > 0 ? worst / largest : worst;
    return PSLD_OK;
}

#define SHOWN 1e-12 /* of the density: below it Q is rounding over nearly nothing */
#define KNOWN 1e-6

static double exchange_entry(const converse *c, size_t x, size_t i, size_t j)
{
    if (i == j) return 0;
    for (size_t q = 0; q < pair_count(c->n); q++) {
        if ((size_t)pair_of[q][0] == i && (size_t)pair_of[q][1] == j) return c->Qp[q * c->total + x] / c->grid.p[x];
        if ((size_t)pair_of[q][0] == j && (size_t)pair_of[q][1] == i) return -c->Qp[q * c->total + x] / c->grid.p[x];
    }
    return 0;
}

/* Stores Q in the result, and how far it is from skew-symmetric. */
static void store_exchange(const converse *c, psld_exchange *e)
{
    size_t n = c->n;
    double off = 0, largest = 0;
    for (size_t x = 0; x < c->total; x++) {
        double Q[9] = {0};
        for (size_t i = 0; c->grid.p[x] > SHOWN && i < n * n; i++) Q[i] = exchange_entry(c, x, i / n, i % n);
        for (size_t i = 0; i < n * n; i++) {
            largest = fmax(largest, fabs(Q[i]) * c->grid.p[x]);
            off = fmax(off, fabs(Q[i] + Q[i % n * n + i / n]) * c->grid.p[x]);
        }
        if (e->Q) memcpy(e->Q + x * n * n, Q, n * n * sizeof *Q);
        if (e->density) e->density[x] = c->grid.p[x];
    }
    e->skewness = largest > 0 ? off / largest : 0;
}

/* Against the Q of the file. */
static psld_status compare_known(const converse *c, double *known)
{
    const psld_process *p = c->grid.process;
    size_t n = c->n;
    double worst = 0, largest = 0;
    double *scratch = psld_alloc(psld_formulas_scratch(p->checks), sizeof *scratch);
    if (!scratch) return PSLD_NO_MEMORY;
    psld_formulas_prepare(p->checks, scratch);
    for (size_t x = 0; x < c->total; x++) {
        double z[PSLD_GRID_AXES], lanes[PSLD_GRID_AXES * PSLD_TERM_LANES];
        if (c->grid.p[x] <= KNOWN) continue;
        psld_process_grid_place(&c->grid, x, z);
        for (size_t i = 0; i < n * PSLD_TERM_LANES; i++) lanes[i] = z[i / PSLD_TERM_LANES];
        psld_formulas_run(p->checks, lanes, scratch);
        for (size_t i = 0; i < n * n; i++) {
            double Q = *psld_formulas_output(p->checks, scratch, n * n + i);
            worst = fmax(worst, fabs(exchange_entry(c, x, i / n, i % n) - Q));
            largest = fmax(largest, fabs(Q));
        }
    }
    psld_release(scratch);
    *known = largest > 0 ? worst / largest : worst;
    return PSLD_OK;
}

static psld_status allocate_converse(converse *c)
{
    size_t n = c->n, arrays = 3 * n + pair_count(n) + 2;
    double *memory = psld_alloc(arrays * c->total, sizeof *memory);
    if (!memory) return PSLD_NO_MEMORY;
    c->current = memory;
    c->re = c->current + n * c->total;
    c->im = c->re + n * c->total;
    c->Qp = c->im + n * c->total;
    c->work[0] = c->Qp + pair_count(n) * c->total;
    c->work[1] = c->work[0] + c->total;
    return PSLD_OK;
}

static psld_status find_exchange(converse *c, psld_exchange *e)
{
    fill_current(c);
    PSLD_TRY(solve_exchange(c));
    PSLD_TRY(compare_current(c, &e->current));
    store_exchange(c, e);
    e->known = PSLD_UNSET;
    return c->grid.process->has_drift ? PSLD_OK : compare_known(c, &e->known);
}

psld_status psld_process_exchange(const psld_process *process, int points, psld_exchange *exchange)
{
    psld_exchange own;
    converse c = {.n = (size_t)process->variables};
    PSLD_TRY(PSLD_SIZED_READ(psld_exchange, exchange, &own, PSLD_EXCHANGE_EMPTY));
    if (c.n < 2 || c.n > PSLD_GRID_AXES)
        return psld_fail(PSLD_BAD_ARGUMENT, "recipe %s has %zu variables; the exchange is found for two or three",
                         process->name, c.n);
    if (points < 8 || points > (c.n == 2 ? 2048 : 256) || (points & (points - 1)))
        return psld_fail(PSLD_BAD_ARGUMENT, "points: expected a power of two from 8 to %d, found %d",
                         c.n == 2 ? 2048 : 256, points);
    PSLD_TRY(psld_process_box(process, 0, own.low, own.high));
    PSLD_TRY(psld_process_grid_create(process, own.low, own.high, (size_t)points, &c.grid));
    c.total = c.grid.total;
    for (size_t i = 0; i < c.n; i++) c.length[i] = own.high[i] - own.low[i];
    psld_status status = allocate_converse(&c);
    if (status == PSLD_OK) status = find_exchange(&c, &own);
    psld_release(c.current);
    psld_process_grid_clear(&c.grid);
    if (status == PSLD_OK) psld_sized_write(exchange, &own);
    return status;
}
