/* The adaptive stepper by itself: known solutions in both directions of time, groups that know nothing of each other,
 * and how it gives up. SciPy's counts are in test_samplers.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sample/samplers/dormand_prince.h"

enum { ROWS = 10, WIDTH = 2 };

/* dy/dt = rate (y - cos t) - sin t, whose solution is cos t + (y_0 - cos t_0) exp(rate (t - t_0)); the first number of a
 * row is its rate. */
typedef struct flow {
    double sign; /* of the way gone in t */
    double least, most;
    double bad; /* from here upwards slopes are not finite */
    double fraction;
} flow;

static psld_status slopes_of(void *user, size_t count, const psld_dp_group *groups, double *states, double *slopes)
{
    flow *f = user;
    for (size_t a = 0; a < count; a++) {
        const psld_dp_group *g = &groups[a];
        f->least = fmin(f->least, g->t);
        f->most = fmax(f->most, g->t);
        for (size_t i = 0; i < g->count; i++) {
            const double *y = states + (g->packed + i) * WIDTH;
            double *slope = slopes + (g->begin + i) * WIDTH;
            slope[0] = 0;
            slope[1] = f->sign * (y[0] * (y[1] - cos(g->t)) - sin(g->t));
            if (g->t >= f->bad) slope[1] = (double)NAN;
        }
    }
    return PSLD_OK;
}

static psld_status take_fraction(void *user, double fraction)
{
    flow *f = user;
    assert_true(fraction >= f->fraction && fraction <= 1);
    f->fraction = fraction;
    return PSLD_OK;
}

static double rate(size_t row)
{
    return (double)row - 6;
}

/* Rows `first` and on. */
static psld_status solve(flow *f, double from, double to, size_t first, size_t rows, size_t group, double *y,
                         uint64_t *evaluations)
{
    static double work[PSLD_DP_WORK * ROWS * WIDTH];
    psld_dp problem = {"test", from, to, 1e-6, rows, WIDTH, group, y, work, slopes_of, take_fraction, f};
    f->sign = to > from ? 1 : -1;
    f->least = INFINITY;
    f->most = -INFINITY;
    f->fraction = 0;
    *evaluations = 0;
    for (size_t i = 0; i < rows; i++) {
        y[i * WIDTH] = rate(first + i);
        y[i * WIDTH + 1] = cos(from) + 0.5;
    }
    return psld_dp_solve(&problem, evaluations);
}

static void known_solutions(void **state)
{
    (void)state;
    static const double ways[][2] = {{1e-5, 1}, {1, 1e-5}, {0.3, 0.7}, {1, 0.1}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        flow f = {.bad = INFINITY};
        double y[ROWS * WIDTH], from = ways[w][0], to = ways[w][1];
        uint64_t evaluations;
        assert_int_equal(solve(&f, from, to, 0, ROWS, 1, y, &evaluations), PSLD_OK);
        for (size_t i = 0; i < ROWS; i++) {
            double left = 0.5 * exp(rate(i) * (to - from)), exact = cos(to) + left;
            assert_true(fabs(y[i * WIDTH + 1] - exact) < 1e-4 * (1 + left));
        }
        assert_true(evaluations > ROWS * 8 && evaluations < ROWS * 500);
        assert_true(f.fraction == 1);
        assert_true(f.least >= fmin(from, to) && f.most <= fmax(from, to));
    }
}

static void groups_are_strangers(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 3, ROWS, 2 * ROWS, SIZE_MAX};
    flow f = {.bad = INFINITY};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double together[ROWS * WIDTH], alone[ROWS * WIDTH];
        uint64_t evaluations, sum = 0;
        size_t size = sizes[s], groups = 0;
        assert_int_equal(solve(&f, 1, 0.1, 0, ROWS, size, together, &evaluations), PSLD_OK);
        for (size_t begin = 0, n; begin < ROWS; begin += n, groups++) {
            uint64_t own;
            n = ROWS - begin < size ? ROWS - begin : size;
            assert_int_equal(solve(&f, 1, 0.1, begin, n, n, alone + begin * WIDTH, &own), PSLD_OK);
            sum += own;
        }
        assert_memory_equal(together, alone, sizeof alone);
        assert_int_equal(evaluations, sum);
        assert_int_equal(psld_dp_groups(ROWS, size), groups);
    }
}

/* Wherever slopes cease to be finite, also at the very beginning: after some tens of tries, and saying where. */
static void gives_up(void **state)
{
    (void)state;
    static const struct {
        double from, to, bad;
        const char *place;
    } rows[] = {{1, 0.1, -1, "test: the step became too small at t = 1:"},
                {1e-5, 1, -1, "test: the step became too small at t = 1e-05:"},
                {0.1, 1, 0.5, "test: the step became too small at t = 0.5:"}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        flow f = {.bad = rows[r].bad};
        double y[ROWS * WIDTH];
        uint64_t evaluations;
        assert_int_equal(solve(&f, rows[r].from, rows[r].to, 0, ROWS, ROWS, y, &evaluations), PSLD_NOT_FINITE);
        if (!strstr(psld_error_text(), rows[r].place)) fail_msg("%s", psld_error_text());
        assert_true(evaluations < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_solutions), cmocka_unit_test(groups_are_strangers),
                                       cmocka_unit_test(gives_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
