/* Processes with formulas: against the recipes of matrices, against quadrature, the converse, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/fourier.h"
#include "process/process.h"
#include "process/process_grid.h"
#include "process/process_scales.h"
#include "recipes.h"
#include "sanitized.h"

enum { PATHS = PSLD_SANITIZED ? 300 : 4000 };

static psld_process *parse(const char *text, int copies)
{
    psld_process *process;
    psld_status status = psld_process_parse(text, "test", copies, &process);
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
    return process;
}

#define QUARTIC                                                                                             \
    "{name: quartic, H: x^4/8 + x^2/4 + m^2/2, D: [[0, 0], [0, 1 + 0.5/(1 + x^2)]], Q: [[0, -1], [1, 0]], " \
    "beta: 6}"
#define CURVED                                                                                           \
    "{name: curved, H: x^4/10 + x*m/3 + m^2, D: [[0.5 + 0.3*sin(x)^2, 0.1], [0.1, 1 + 0.2*tanh(x*m)]], " \
    "Q: [[0, -1 - 0.3*cos(m)], [1 + 0.3*cos(m), 0]], beta: 4}"
#define WELLS                                                                                         \
    "{name: wells, H: (x^2 - 1)^2 + m^2/2 + exp(-x^2), D: [[0.4, 0], [0, 0.6 + 0.1*x^2/(1 + x^2)]], " \
    "Q: [[0, -0.5*x], [0.5*x, 0]], beta: 5}"
#define THERMOSTAT                                                                          \
    "{name: nose-hoover, data: [x], auxiliary: [p, xi], constants: {A: 1, M: 1, mu: 0.5}, " \
    "H: x^2/2 + p^2/(2*M) + mu*(xi - A)^2/2, D: [[0, 0, 0], [0, A*M, 0], [0, 0, 0]], "      \
    "Q: [[0, -1, 0], [1, 0, p/mu], [0, -p/mu, 0]], beta: 8, steps: 1500}"

/* ---- Constant matrices ------------------------------------------------------------------------------------------- */

/* Drift and diffusion are those of the recipe, and so is the noise of networks. */
static void check_matrices(const psld_recipe *recipe, const psld_process *process)
{
    int k = recipe->spec.k;
    double z[PSLD_MAX_K], drift[PSLD_MAX_K], D[PSLD_MATRIX_SIZE], linear[PSLD_MATRIX_SIZE];
    psld_recipe_reverse_drift(recipe, linear); /* (D + Q) P */
    for (double t = 0; t <= 1; t += 0.25) {
        double beta = psld_beta(recipe, t);
        for (int i = 0; i < k; i++) z[i] = 1.5 * sin(1 + 2 * i + 7 * t);
        assert_int_equal(psld_process_drift(process, 1, z, t, drift, D), PSLD_OK);
        for (int i = 0; i < k; i++) {
            double f = 0, size = 0;
            for (int j = 0; j < k; j++) {
                f -= beta * linear[i * k + j] * z[j];
                size += fabs(beta * linear[i * k + j] * z[j]);
                assert_true(fabs(D[i * k + j] - beta * recipe->spec.D[i * k + j]) <= 1e-15 * beta);
            }
            assert_true(fabs(drift[i] - f) <= 1e-14 * (1 + size));
        }
    }
}

static void constant_matrices(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.3", "told", "hold n=5"};
    for (int i = 0; i < 8; i++) {
        psld_recipe *recipe;
        psld_process *process;
        if (i < 5) {
            assert_int_equal(psld_recipe_open(lines[i], &recipe), PSLD_OK);
            assert_int_equal(psld_process_open(lines[i], 1, &process), PSLD_OK);
            assert_non_null(psld_process_recipe(process));
            check_matrices(recipe, process);
            psld_process_free(process);
        } else {
            recipe = random_recipe(2 + i % 3, FULL_NOISE, (uint64_t)i);
        }
        psld_recipe_free(recipe);
    }
}

/* Simulated paths have the moments of the kernel, and the scales are its deviations. */
static void paths_of_matrices(void **state)
{
    (void)state;
    psld_process *process = parse("{H: x^2/2 + 2*m^2, D: [[0.15, 0], [0, 0.5375]], Q: [[0, -0.5], [0.5, 0]], beta: 4, "
                                  "init: 0.01, steps: 1000}",
                                  1);
    psld_recipe *recipe;
    psld_process_scales *scales;
    double mean[4], cov[4], deviation[2];
    static double z[2 * PATHS];
    assert_int_equal(psld_recipe_open("psld gamma=0.3 beta=4", &recipe), PSLD_OK);
    assert_int_equal(psld_recipe_kernel(recipe, 1, PSLD_HSM, mean, cov, NULL), PSLD_OK);
    for (size_t i = 0; i < PATHS; i++) {
        z[2 * i] = 0.8;
        psld_process_begin(process, 3, i, 0, z + 2 * i);
    }
    assert_int_equal(psld_process_simulate(process, 3, 0, PATHS, 0, 1, 0, z), PSLD_OK);
    for (int v = 0; v < 2; v++) {
        double sum = 0, squares = 0, wanted = mean[2 * v] * 0.8;
        for (size_t i = 0; i < PATHS; i++) sum += z[2 * i + (size_t)v] / PATHS;
        for (size_t i = 0; i < PATHS; i++) squares += pow(z[2 * i + (size_t)v] - sum, 2) / PATHS;
        assert_true(fabs(sum - wanted) < 4 * sqrt(cov[3 * v] / PATHS) + 0.01);
        assert_true(fabs(squares / cov[3 * v] - 1) < 5 / sqrt(PATHS / 2) + 0.02);
    }
    assert_int_equal(psld_process_scales_create(process, &scales), PSLD_OK);
    for (double t = 0.01; t <= 1; t *= 3) {
        assert_int_equal(psld_recipe_kernel(recipe, t, PSLD_HSM, NULL, cov, NULL), PSLD_OK);
        psld_process_scales_at(scales, t, deviation);
        for (int v = 0; v < 2; v++) assert_true(fabs(deviation[v] / sqrt(cov[3 * v]) - 1) < 0.12);
    }
    psld_process_scales_free(scales);
    psld_recipe_free(recipe);
    psld_process_free(process);
}

/* Copies do not see each other. */
static void copies(void **state)
{
    (void)state;
    psld_process *one = parse(CURVED, 1), *three = parse(CURVED, 3);
    double z[6], f[6], pair[2], alone[2];
    assert_int_equal(psld_process_variables(three), 6);
    assert_int_equal(psld_process_data(three), 3);
    assert_string_equal(psld_process_variable(three, 4), "m_2");
    for (int i = 0; i < 6; i++) z[i] = sin(1 + 2 * i);
    assert_int_equal(psld_process_drift(three, 1, z, 0.5, f, NULL), PSLD_OK);
    for (int c = 0; c < 3; c++) {
        pair[0] = z[c], pair[1] = z[3 + c];
        assert_int_equal(psld_process_drift(one, 1, pair, 0.5, alone, NULL), PSLD_OK);
        assert_true(alone[0] == f[c] && alone[1] == f[3 + c]);
    }
    psld_process_free(one);
    psld_process_free(three);
}

/* ---- Stationarity ------------------------------------------------------------------------------------------------ */

static void stationary(void **state)
{
    (void)state;
    static const char *const texts[] = {QUARTIC, CURVED, WELLS, THERMOSTAT};
    for (int i = 0; i < (PSLD_SANITIZED ? 1 : 4); i++) {
        psld_process *process = parse(texts[i], 1);
        psld_process_report r = PSLD_PROCESS_REPORT_EMPTY;
        psld_status status = psld_process_check(process, 0, &r);
        if (status != PSLD_OK) fail_msg("%s", psld_error_text());
        int last = r.grids - 1;
        printf("%s: residual %.2g; by differences %.3g, rate %.2f; away %.3g, chance %.3g, mixing %.3g\n",
               psld_process_name(process), r.residual, r.grid_residual[last], r.rate[last], r.drift_away, r.chance,
               r.mixing);
        assert_true(r.residual < 1e-12);
        assert_true(r.rate[last] > 1.8 && r.rate[last] < 2.3);
        assert_true(r.grid_residual[last] < 0.02 && r.skewness == 0 && r.least_eigenvalue >= 0);
        psld_process_free(process);
    }
}

static void refuse_process(const char *text, const char *wanted)
{
    psld_process *process = NULL;
    psld_process_report r = PSLD_PROCESS_REPORT_EMPTY;
    psld_status status = psld_process_parse(text, "test", 1, &process);
    if (status == PSLD_OK) status = psld_process_check(process, 0, &r);
    assert_int_equal(status, PSLD_BAD_INPUT);
    if (!strstr(psld_error_text(), wanted)) fail_msg("no \"%s\" in: %s", wanted, psld_error_text());
    assert_null(strchr(psld_error_text(), '\n'));
    psld_process_free(process);
}

#define BASE "name: bad, H: x^2/2 + m^2/2, "

static void refusals(void **state)
{
    (void)state;
    refuse_process("{" BASE "D: [[1, 0], [0, 1]], drift: [-x + m, -m + x]}",
                   "residual of the Fokker-Planck equation is");
    refuse_process("{" BASE "D: [[1, 0], [0, 1]], drift: [-x + m, -m + x]}", " of its terms at x = ");
    refuse_process("{" BASE "D: [[0, 0], [0, 1 + x^2]], drift: [m, -m*(1 + m^2) - x]}", "is not stationary");
    refuse_process("{" BASE "D: [[0, 0], [0, 1]], Q: [[0, -1], [1 + 0.1*x, 0]]}", "Q is not skew-symmetric");
    refuse_process("{" BASE "D: [[0, 0], [0, 1 - x^2]], Q: [[0, -1], [1, 0]]}", "D is not positive semidefinite");
    refuse_process("{" BASE "D: [[1, x], [0, 1]], Q: [[0, -1], [1, 0]]}", "D is not symmetric");
    refuse_process("{" BASE "D: [[1, 0], [0, 1/x^2]], Q: [[0, -1], [1, 0]], region: [-2, 2]}",
                   "is not finite at x = 0");
    refuse_process("{name: flat, H: x^2/2, D: [[1, 0], [0, 1]], Q: [[0, -1], [1, 0]]}", "does not fall off in m");
    refuse_process("{name: up, H: -x^2/2 + m^2/2, D: [[1, 0], [0, 1]], Q: [[0, 0], [0, 0]]}", "recipe up: ");
    refuse_process("{" BASE "D: [[1, 0], [0, 1/0]], Q: [[0, -1], [1, 0]]}", "test:1: D[1][1]: it divides by zero");
    refuse_process("{" BASE "D: [[1, 0], [0, y]], Q: [[0, -1], [1, 0]]}",
                   "D[1][1]: \"y\" at character 1 is no variable");
    refuse_process("{" BASE "D: [[0, 0], [0, 0]], Q: [[0, -1], [1, 0]]}", "D is 0");
    refuse_process("{" BASE "D: [[1, 0], [0, 1]]}", "Q is missing");
    refuse_process("{" BASE "auxiliary: [m], D: [[1, 0]], Q: [[0, -1], [1, 0]]}", "D: expected 2 rows of 2 formulas");
    refuse_process("{" BASE "D: [[1, 0], [0, 1]], Q: [[0, 0], [0, 0]], drift: [-x, -m]}", "Q or drift, not both");
    refuse_process("{" BASE "D: [[1, 0], [0, 1]], Q: [[0, 0], [0, 0]], speed: 3}", "speed");
    refuse_process("{data: [sin], H: sin^2, D: [[1]], Q: [[0]]}", "expected a name");
    refuse_process("{data: [x, x], H: x^2, D: [[1]], Q: [[0]]}", "name of two variables");
}

/* A drift of one's own that is right: with the same current, and Q comes out of it. */
static void given_drift(void **state)
{
    (void)state;
    enum { POINTS = 128 };
    static double Q[POINTS * POINTS * 4], p[POINTS * POINTS];
    psld_process *process =
        parse("{name: given, beta: 1, steps: 2000, H: x^4/8 + m^2/2, D: [[0, 0], [0, 1]], "
              "drift: [m*(1 + m^2/4) - m/2, -m - x^3/2*(1 + m^2/4)]}", /* Q = [[0, -q], [q, 0]], q = 1 + m^2/4 */
              1);
    psld_process_report r = PSLD_PROCESS_REPORT_EMPTY;
    psld_exchange e = PSLD_EXCHANGE_EMPTY;
    psld_status status = psld_process_check(process, 0, &r);
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
    e.Q = Q;
    e.density = p;
    assert_int_equal(psld_process_exchange(process, POINTS, &e), PSLD_OK);
    assert_true(e.known < 0);
    double worst = 0;
    for (size_t i = 0; i < POINTS * POINTS; i++) {
        double m = e.low[1] + (e.high[1] - e.low[1]) * (double)(i % POINTS) / POINTS, q = 1 + m * m / 4;
        if (p[i] <= 1e-6) continue;
        worst = fmax(worst, fmax(fabs(Q[4 * i + 1] + q), fabs(Q[4 * i + 2] - q)));
        assert_true(Q[4 * i] == 0 && Q[4 * i + 3] == 0);
    }
    printf("Q from a given drift: off by %.2g\n", worst);
    assert_true(worst < 1e-6);
    psld_process_free(process);
}

static void converse(void **state)
{
    (void)state;
    static const char *const texts[] = {QUARTIC, CURVED, WELLS, THERMOSTAT};
    for (int i = 0; i < 4; i++) {
        psld_process *process = parse(texts[i], 1);
        psld_exchange e = PSLD_EXCHANGE_EMPTY;
        assert_int_equal(psld_process_exchange(process, i < 3 ? 128 : PSLD_SANITIZED ? 32 : 64, &e), PSLD_OK);
        printf("%s: current %.2g, skew %.2g, known %.2g\n", psld_process_name(process), e.current, e.skewness, e.known);
        assert_true(e.skewness == 0);
        assert_true(e.current < (PSLD_SANITIZED ? 1e-4 : 1e-10));
        if (i < 3) assert_true(e.known >= 0 && e.known < 1e-6);
        psld_process_free(process);
    }
    psld_process *line = parse("{H: x^2, D: [[1]], Q: [[0]]}", 1);
    assert_int_equal(psld_process_exchange(line, 64, &(psld_exchange)PSLD_EXCHANGE_EMPTY), PSLD_BAD_ARGUMENT);
    psld_process_free(line);
}

/* The transform against its definition. */
static void fourier(void **state)
{
    (void)state;
    enum { N = 8 };
    double re[N * N], im[N * N], was[N * N], found[2 * N * N];
    const double turn = 2 * acos(-1);
    for (int i = 0; i < N * N; i++) was[i] = re[i] = sin(3.7 * i), im[i] = 0;
    for (int k = 0; k < N * N; k++) {
        double sum[2] = {0, 0};
        for (int x = 0; x < N * N; x++) {
            double angle = turn * (k / N * (x / N) + k % N * (x % N)) / N;
            sum[0] += was[x] * cos(angle);
            sum[1] -= was[x] * sin(angle);
        }
        found[2 * k] = sum[0], found[2 * k + 1] = sum[1];
    }
    assert_int_equal(psld_fourier(2, N, re, im, 0), PSLD_OK);
    for (int k = 0; k < N * N; k++)
        assert_true(fabs(re[k] - found[2 * k]) < 1e-12 && fabs(im[k] - found[2 * k + 1]) < 1e-12);
    assert_int_equal(psld_fourier(2, N, re, im, 1), PSLD_OK);
    for (int k = 0; k < N * N; k++) assert_true(fabs(re[k] - was[k]) < 1e-14 && fabs(im[k]) < 1e-14);
}

/* ---- Draws ------------------------------------------------------------------------------------------------------- */

/* Moments of draws against quadrature on a grid. */
static void draws(void **state)
{
    (void)state;
    static const char *const texts[] = {QUARTIC, CURVED, WELLS};
    static double z[2 * PATHS];
    for (int i = 0; i < 3; i++) {
        psld_process *process = parse(texts[i], 1);
        psld_process_grid grid;
        double low[2], high[2], mass = 0, moment[2][3] = {{0}}, found[2][3] = {{0}};
        assert_int_equal(psld_process_box(process, 0, low, high), PSLD_OK);
        assert_int_equal(psld_process_grid_create(process, low, high, 128, &grid), PSLD_OK);
        for (size_t g = 0; g < grid.total; g++) {
            double at[2];
            psld_process_grid_place(&grid, g, at);
            mass += grid.p[g];
            for (int v = 0; v < 2; v++)
                for (int m = 0; m < 3; m++) moment[v][m] += grid.p[g] * pow(at[v], m == 0 ? 1 : 2 * m);
        }
        psld_process_grid_clear(&grid);
        assert_int_equal(psld_process_draw(process, 7, 0, PATHS, z), PSLD_OK);
        for (size_t d = 0; d < PATHS; d++)
            for (int v = 0; v < 2; v++)
                for (int m = 0; m < 3; m++) found[v][m] += pow(z[2 * d + (size_t)v], m == 0 ? 1 : 2 * m) / PATHS;
        for (int v = 0; v < 2; v++)
            for (int m = 0; m < 3; m++)
                assert_true(fabs(found[v][m] - moment[v][m] / mass) < 6 * (1 + moment[v][2] / mass) / sqrt(PATHS));
        psld_process_free(process);
    }
}

/* ---- Sampling with an exact score -------------------------------------------------------------------------------- */

/* Data of N(0.6, 0.2^2) under the recipe of paths_of_matrices: p_t is normal, with the kernel's moments. */
static psld_status normal_score(void *user, const psld_states *states, double *score)
{
    const psld_recipe *recipe = user;
    for (size_t i = 0; i < states->n; i++) {
        double mean[4], cov[4];
        if (psld_recipe_kernel(recipe, states->t[i], PSLD_HSM, mean, cov, NULL) != PSLD_OK) return PSLD_NOT_FINITE;
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 2; b++) cov[2 * a + b] += 0.04 * mean[2 * a] * mean[2 * b];
        double away[2] = {states->z[2 * i] - 0.6 * mean[0], states->z[2 * i + 1] - 0.6 * mean[2]};
        double det = cov[0] * cov[3] - cov[1] * cov[2];
        score[2 * i] = -(cov[3] * away[0] - cov[1] * away[1]) / det;
        score[2 * i + 1] = -(cov[0] * away[1] - cov[2] * away[0]) / det;
    }
    return PSLD_OK;
}

static void exact_scores(void **state)
{
    (void)state;
    static double z[2 * PATHS], again[2 * PATHS];
    static const char *const samplers[] = {"em", "ode"};
    psld_process *process;
    psld_recipe *recipe;
    assert_int_equal(psld_process_open("psld gamma=0.3 beta=8", 1, &process), PSLD_OK);
    assert_int_equal(psld_recipe_open("psld gamma=0.3 beta=8", &recipe), PSLD_OK);
    for (int s = 0; s < 2; s++) {
        psld_sample_options o = PSLD_SAMPLE_DEFAULTS;
        uint64_t nfe;
        double mean = 0, square = 0;
        o.sampler = samplers[s];
        o.nfe = 400;
        o.seed = 5;
        o.batch = PATHS;
        assert_int_equal(psld_process_sample(process, normal_score, recipe, &o, 0, PATHS, NULL, z, &nfe), PSLD_OK);
        for (size_t i = 0; i < PATHS; i++) mean += z[2 * i] / PATHS;
        for (size_t i = 0; i < PATHS; i++) square += pow(z[2 * i] - mean, 2) / PATHS;
        printf("%s: mean %.4f of 0.6, deviation %.4f of 0.2, %d evaluations\n", samplers[s], mean, sqrt(square),
               (int)nfe);
        assert_true(fabs(mean - 0.6) < 4 * 0.2 / sqrt(PATHS) + 0.01);
        assert_true(fabs(sqrt(square) / 0.2 - 1) < 0.05 + 3 / sqrt(2.0 * PATHS));
        if (s == 0) assert_int_equal(nfe, 400);
        o.batch = 48; /* and two parts, the second of which begins with a whole group */
        size_t half = PATHS / 32 * 16;
        assert_int_equal(psld_process_sample(process, normal_score, recipe, &o, 0, half, NULL, again, NULL), PSLD_OK);
        assert_int_equal(
            psld_process_sample(process, normal_score, recipe, &o, half, PATHS - half, NULL, again + 2 * half, NULL),
            PSLD_OK);
        assert_memory_equal(z, again, sizeof z);
    }
    psld_sample_options o = PSLD_SAMPLE_DEFAULTS;
    o.sampler = "sscs";
    assert_int_equal(psld_process_sample(process, normal_score, recipe, &o, 0, 4, NULL, z, NULL), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "expected em or ode"));
    psld_recipe_free(recipe);
    psld_process_free(process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_matrices), cmocka_unit_test(paths_of_matrices), cmocka_unit_test(copies),
        cmocka_unit_test(stationary),        cmocka_unit_test(refusals),          cmocka_unit_test(given_drift),
        cmocka_unit_test(converse),          cmocka_unit_test(fourier),           cmocka_unit_test(draws),
        cmocka_unit_test(exact_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
