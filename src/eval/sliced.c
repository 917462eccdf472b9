/* Sliced Wasserstein distance: the mean, over random directions, of the Wasserstein-1 distance between the projections
 * of two point sets. In one dimension that distance is the area between the quantile functions, so sorting is all that
 * it needs. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/threads.h"
#include "psld_eval.h"

typedef struct slices {
    size_t dim, n, m;
    const double *a, *b;
    uint64_t seed;
    double *room;      /* [directions][n + m] */
    double *distances; /* [directions] */
} slices;

static int compare_doubles(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Area between the quantile functions of two sorted sets: both are steps, of width 1/n and 1/m. */
static double quantile_area(size_t n, const double *a, size_t m, const double *b)
{
    double area = 0, reached = 0;
    for (size_t i = 0, j = 0; i < n && j < m;) {
        double end_a = (double)(i + 1) / (double)n, end_b = (double)(j + 1) / (double)m, end = fmin(end_a, end_b);
        area += (end - reached) * fabs(a[i] - b[j]);
        reached = end;
        i += end_a <= end;
        j += end_b <= end;
    }
    return area;
}

static void project_points(size_t dim, const double *direction, size_t n, const double *points, double *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = 0;
        for (size_t j = 0; j < dim; j++) out[i] += direction[j] * points[i * dim + j];
    }
    qsort(out, n, sizeof *out, compare_doubles);
}

static void measure_slices(void *context, size_t begin, size_t end)
{
    const slices *s = context;
    for (size_t d = begin; d < end; d++) {
        double *direction = s->room + d * (s->dim + s->n + s->m), *a = direction + s->dim, *b = a + s->n, length = 0;
        psld_random_normal(s->seed, PSLD_FOR_DIRECTION, d, 0, 0, s->dim, direction);
        for (size_t j = 0; j < s->dim; j++) length += direction[j] * direction[j];
        for (size_t j = 0; j < s->dim; j++) direction[j] /= sqrt(length);
        project_points(s->dim, direction, s->n, s->a, a);
        project_points(s->dim, direction, s->m, s->b, b);
        s->distances[d] = quantile_area(s->n, a, s->m, b);
    }
}

psld_status psld_sliced_wasserstein(size_t dim, size_t n, const double *a, size_t m, const double *b, size_t directions,
                                    uint64_t seed, double *distance)
{
    if (dim < 1 || n < 1 || m < 1 || directions < 1)
        return psld_fail(PSLD_BAD_ARGUMENT, "sliced distance: expected points in both sets and at least one direction");
    PSLD_TRY(psld_check_doubles("sliced distance", n, dim, 1));
    PSLD_TRY(psld_check_doubles("sliced distance", m, dim, 1));
    slices s = {.dim = dim, .n = n, .m = m, .a = a, .b = b, .seed = seed};
    s.room = psld_alloc(directions, (dim + n + m) * sizeof(double));
    s.distances = s.room ? psld_alloc(directions, sizeof(double)) : NULL;
    if (s.distances) {
        psld_parallel(directions, 1, measure_slices, &s);
        *distance = 0;
        for (size_t d = 0; d < directions; d++) *distance += s.distances[d] / (double)directions;
    }
    psld_status status = s.distances ? PSLD_OK : PSLD_NO_MEMORY;
    psld_release(s.distances);
    psld_release(s.room);
    return status;
}
