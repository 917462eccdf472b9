/* Improved precision and recall (Kynkaanniemi et al. 2019). The manifold of a set is the union of balls, one around
 * each of its points, that reach to the point's k-th nearest neighbour in the set. Precision is the share of generated
 * points on the manifold of the real ones, recall the share of real points on that of the generated ones.
 *
 * Distances come from products, |x|^2 + |y|^2 - 2 x'y, in blocks. Where so little remains that rounding errors matter,
 * the squared differences are summed instead, so that equal points have distance 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/linear.h"
#include "eval/rows.h"
#include "psld_eval.h"

enum { BLOCK_ROWS = 512, MAX_NEIGHBOURS = 16 };

#define TOO_CLOSE 1e-6 /* of the squared norms: below this share the differences are summed */

typedef struct set {
    const psld_array *rows;
    size_t count;
    double *squares; /* [count]: |x|^2 */
    double *radii;   /* [count]: squared distance to the k-th neighbour */
} set;

typedef struct blocks {
    size_t dim;
    double *x, *y;    /* [BLOCK_ROWS][dim] */
    double *distance; /* [BLOCK_ROWS][BLOCK_ROWS], squared */
} blocks;

static size_t block_count(size_t count, size_t first)
{
    return count - first < BLOCK_ROWS ? count - first : BLOCK_ROWS;
}

static double squared_norm(size_t dim, const double *x, const double *y)
{
    double sum = 0;
    for (size_t j = 0; j < dim; j++) sum += (x[j] - (y ? y[j] : 0)) * (x[j] - (y ? y[j] : 0));
    return sum;
}

/* Fills b->distance for a block of points of `from`, which b->x holds already, and a block of `to`. */
static psld_status measure_distances(blocks *b, const set *from, size_t first, size_t n, const set *to, size_t second,
                                     size_t m)
{
    psld_rows_get(to->rows, NULL, second, m, b->y);
    PSLD_TRY(psld_linear_products(b->dim, n, b->x, m, b->y, b->distance));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            double scale = from->squares[first + i] + to->squares[second + j];
            double *d = &b->distance[i * m + j];
            *d = scale - 2 * *d;
            if (!(*d > TOO_CLOSE * scale)) *d = squared_norm(b->dim, b->x + i * b->dim, b->y + j * b->dim);
        }
    return PSLD_OK;
}

/* Keeps the k smallest numbers, ascending. */
static void keep_smallest(double *smallest, size_t k, double value)
{
    if (!(value < smallest[k - 1])) return;
    size_t at = k - 1;
    for (; at > 0 && smallest[at - 1] > value; at--) smallest[at] = smallest[at - 1];
    smallest[at] = value;
}

static psld_status find_radii(blocks *b, const set *s, size_t k)
{
    double nearest[BLOCK_ROWS][MAX_NEIGHBOURS];
    for (size_t first = 0; first < s->count; first += BLOCK_ROWS) {
        size_t n = block_count(s->count, first);
        psld_rows_get(s->rows, NULL, first, n, b->x);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < k; j++) nearest[i][j] = INFINITY;
        for (size_t second = 0; second < s->count; second += BLOCK_ROWS) {
            size_t m = block_count(s->count, second);
            PSLD_TRY(measure_distances(b, s, first, n, s, second, m));
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < m; j++)
                    if (first + i != second + j) keep_smallest(nearest[i], k, b->distance[i * m + j]);
        }
        for (size_t i = 0; i < n; i++) s->radii[first + i] = nearest[i][k - 1];
    }
    return PSLD_OK;
}

/* Share of the points that lie within a ball of `manifold`. */
static psld_status share_inside(blocks *b, const set *points, const set *manifold, double *share)
{
    size_t inside = 0;
    for (size_t first = 0; first < points->count; first += BLOCK_ROWS) {
        size_t n = block_count(points->count, first);
        char found[BLOCK_ROWS] = {0};
        psld_rows_get(points->rows, NULL, first, n, b->x);
        for (size_t second = 0; second < manifold->count; second += BLOCK_ROWS) {
            size_t m = block_count(manifold->count, second);
            PSLD_TRY(measure_distances(b, points, first, n, manifold, second, m));
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < m && !found[i]; j++)
                    found[i] = b->distance[i * m + j] <= manifold->radii[second + j];
        }
        for (size_t i = 0; i < n; i++) inside += found[i] != 0;
    }
    *share = (double)inside / (double)points->count;
    return PSLD_OK;
}

static psld_status prepare_points(blocks *b, set *s, const psld_array *rows)
{
    s->rows = rows;
    s->count = rows->shape[0];
    s->squares = psld_alloc(2 * s->count, sizeof *s->squares);
    if (!s->squares) return PSLD_NO_MEMORY;
    s->radii = s->squares + s->count;
    for (size_t i = 0; i < s->count; i++) {
        psld_rows_get(rows, NULL, i, 1, b->x);
        s->squares[i] = squared_norm(b->dim, b->x, NULL);
    }
    return PSLD_OK;
}

psld_status psld_precision_recall(const psld_array *generated, const psld_array *real, size_t neighbours,
                                  double *precision, double *recall)
{
    if (neighbours < 1 || neighbours > MAX_NEIGHBOURS)
        return psld_fail(PSLD_BAD_ARGUMENT, "precision and recall: expected 1 to %d neighbours, found %zu",
                         MAX_NEIGHBOURS, neighbours);
    PSLD_TRY(psld_rows_check_pair(generated, real, "precision and recall", neighbours + 1));
    blocks b = {.dim = generated->shape[1]};
    set of_generated = {0}, of_real = {0};
    double *room = psld_alloc(BLOCK_ROWS, (2 * b.dim + BLOCK_ROWS) * sizeof *room);
    psld_status status = room ? PSLD_OK : PSLD_NO_MEMORY;
    b.x = room;
    b.y = room ? b.x + BLOCK_ROWS * b.dim : NULL;
    b.distance = room ? b.y + BLOCK_ROWS * b.dim : NULL;
    if (status == PSLD_OK) status = prepare_points(&b, &of_generated, generated);
    if (status == PSLD_OK) status = prepare_points(&b, &of_real, real);
    if (status == PSLD_OK) status = find_radii(&b, &of_real, neighbours);
    if (status == PSLD_OK) status = find_radii(&b, &of_generated, neighbours);
    if (status == PSLD_OK) status = share_inside(&b, &of_generated, &of_real, precision);
    if (status == PSLD_OK) status = share_inside(&b, &of_real, &of_generated, recall);
    psld_release(of_generated.squares);
    psld_release(of_real.squares);
    psld_release(room);
    return status;
}
