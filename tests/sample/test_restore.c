/* Restoration against truth: operators and their adjoints, the exact score of a posterior, and its samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "em_options.h"
#include "process/recipe.h"
#include "sample/inverse/operator.h"
#include "sample/sources/source.h"
#include "sanitized.h"

static const unsigned char some[48] = {1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1};
static double matrix[5 * 48];

static psld_operator *make(const char *name, int rank, size_t c, size_t h, size_t w)
{
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_operator *op;
    task.name = name;
    task.rank = rank;
    task.shape[0] = rank == 1 ? w : c;
    task.shape[1] = h;
    task.shape[2] = w;
    task.factor = 2;
    task.blur = 0.8;
    task.known = some;
    task.matrix = matrix;
    task.rows = 5;
    for (int i = 0; i < 5 * 48; i++) matrix[i] = sin(1 + 7 * i) / 3;
    if (psld_operator_create(&task, &op) != PSLD_OK) fail_msg("%s: %s", name, psld_error_text());
    return op;
}

/* y' A x = x' A' y, and A A' is what turn and squares say. */
static void check_operator(const psld_operator *op)
{
    double x[48], y[48], ax[48], aty[48], aaty[48], turned[48], back[48], work[48], left = 0, right = 0;
    for (int i = 0; i < 48; i++) x[i] = sin(i + 1), y[i] = cos(3 * i);
    psld_operator_forward(op, x, work, ax);
    psld_operator_adjoint(op, y, work, aty);
    for (size_t i = 0; i < op->size; i++) left += y[i] * ax[i];
    for (size_t i = 0; i < op->dim; i++) right += x[i] * aty[i];
    assert_true(fabs(left - right) < 1e-12);
    psld_operator_forward(op, aty, work, aaty);
    psld_operator_rotate(op, 0, y, work, turned);
    for (size_t i = 0; i < op->size; i++) turned[i] *= op->squares[i];
    psld_operator_rotate(op, 1, turned, work, back);
    for (size_t i = 0; i < op->size; i++) assert_true(fabs(back[i] - aaty[i]) < 1e-12);
}

static void operators(void **state)
{
    (void)state;
    const psld_task_info *task;
    for (int i = 0; (task = psld_task_at(i)); i++)
        for (int rank = 1; rank <= 3; rank += 2) {
            if (rank == 1 && task->needs_colour) continue;
            psld_operator *op = rank == 1 ? make(task->name, 1, 1, 1, 12) : make(task->name, 3, 3, 4, 4);
            check_operator(op);
            psld_operator_free(op);
        }
}

/* What operators do, in numbers that can be checked by eye. */
static void operators_by_hand(void **state)
{
    (void)state;
    double y[12], work[12];
    const double ramp[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    psld_operator *op = make("super-resolution", 3, 3, 2, 2);
    psld_operator_forward(op, ramp, work, y);
    assert_true(op->size == 3 && y[0] == 1.5 && y[1] == 5.5 && y[2] == 9.5);
    psld_operator_free(op);
    op = make("colorize", 3, 3, 2, 2);
    psld_operator_forward(op, ramp, work, y);
    assert_true(op->size == 4 && fabs(y[0] - (0.587 * 4 + 0.114 * 8)) < 1e-15);
    psld_operator_free(op);
    op = make("deblur", 1, 1, 1, 12);
    const double spike[12] = {1};
    psld_operator_forward(op, spike, work, y);
    assert_true(fabs(y[1] / y[0] - exp(-1 / (2 * 0.64))) < 1e-12 && y[1] == y[11]);
    double sum = 0;
    for (int i = 0; i < 12; i++) sum += y[i];
    assert_true(fabs(sum - 1) < 1e-14);
    psld_operator_free(op);
}

/* Far below a pixel there is nothing to see, however small the deviation. */
static void small_blurs(void **state)
{
    (void)state;
    static const double deviations[] = {0.01, 1e-160, 1e-200, 5e-324};
    const double picture[12] = {3, 1, -2, 5, 0.5, 7, 8, -1, 0, 2, 4, 6};
    for (size_t d = 0; d < sizeof deviations / sizeof *deviations; d++) {
        double y[12], work[12];
        psld_operator *op;
        psld_task task = PSLD_TASK_DEFAULTS;
        task.name = "deblur";
        task.blur = deviations[d];
        task.rank = 3;
        task.shape[0] = 1, task.shape[1] = 3, task.shape[2] = 4;
        if (psld_operator_create(&task, &op) != PSLD_OK) fail_msg("%s", psld_error_text());
        psld_operator_forward(op, picture, work, y);
        assert_memory_equal(y, picture, sizeof y);
        for (size_t i = 0; i < op->size; i++) assert_true(op->squares[i] == 1);
        psld_operator_free(op);
    }
}

/* ---- The posterior of a Gaussian prior --------------------------------------------------------------------------- */

enum { DIM = 4, ROWS = 2 };
static const double prior_mean[DIM] = {0.3, -0.2, 0.1, 0.5}, prior_scale = 0.6, noise = 0.2;
static const double rows[ROWS * DIM] = {1, 0.5, 0, -0.3, 0.2, -0.8, 0.6, 0.1}, measured[ROWS] = {0.4, -0.9};

/* Solves the ROWS x ROWS system S u = v, S = noise^2 + variance A A'. */
static void solve_two(double variance, const double *v, double *u)
{
    double s[4] = {noise * noise, 0, 0, noise * noise};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int l = 0; l < DIM; l++) s[i * 2 + j] += variance * rows[i * DIM + l] * rows[j * DIM + l];
    double det = s[0] * s[3] - s[1] * s[2];
    u[0] = (s[3] * v[0] - s[1] * v[1]) / det;
    u[1] = (s[0] * v[1] - s[2] * v[0]) / det;
}

/* Posterior mean and covariance of x_0 given y. */
static void posterior(double *mean, double *cov)
{
    double rest[ROWS], u[ROWS], column[ROWS], w[ROWS], v2 = prior_scale * prior_scale;
    for (int r = 0; r < ROWS; r++) {
        rest[r] = measured[r];
        for (int j = 0; j < DIM; j++) rest[r] -= rows[r * DIM + j] * prior_mean[j];
    }
    solve_two(v2, rest, u);
    for (int j = 0; j < DIM; j++) {
        mean[j] = prior_mean[j];
        for (int r = 0; r < ROWS; r++) mean[j] += v2 * rows[r * DIM + j] * u[r], column[r] = rows[r * DIM + j];
        solve_two(v2, column, w);
        for (int i = 0; i < DIM; i++)
            cov[i * DIM + j] = (i == j) * v2 - v2 * v2 * (rows[i] * w[0] + rows[DIM + i] * w[1]);
    }
}

static psld_source *restored_source(psld_source *base, const psld_recipe *recipe, const char *method,
                                    psld_operator **op)
{
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_restore_options options = PSLD_RESTORE_DEFAULTS;
    psld_source *source;
    task.name = "linear";
    task.rank = 1;
    task.shape[0] = DIM;
    task.matrix = rows;
    task.rows = ROWS;
    assert_int_equal(psld_operator_create(&task, op), PSLD_OK);
    options.method = method;
    options.noise = noise;
    options.tolerance = 1e-12;
    if (psld_source_restore(base, recipe, *op, measured, &options, &source) != PSLD_OK)
        fail_msg("%s", psld_error_text());
    return source;
}

/* eps of the exact score of p_t(z | y): z = mu x_0 + L n with x_0 Gaussian with the posterior's mean and covariance, in
 * the basis where that covariance is diagonal; found here as the gradient of the log-density by differences. */
static double log_posterior_density(const psld_recipe *recipe, double t, const double *z, const double *mean,
                                    const double *cov)
{
    enum { LARGEST = DIM * 3 };
    int k = recipe->spec.k, n = DIM * k;
    double a[LARGEST * LARGEST], v[LARGEST], sum = 0;
    psld_gaussian kernel;
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    for (int i = 0; i < n; i++) {
        v[i] = z[i] - kernel.mean[(i / DIM) * k] * mean[i % DIM];
        for (int j = 0; j < n; j++)
            a[i * n + j] = kernel.mean[(i / DIM) * k] * kernel.mean[(j / DIM) * k] * cov[(i % DIM) * DIM + j % DIM] +
                           (i % DIM == j % DIM ? kernel.cov[(i / DIM) * k + j / DIM] : 0);
    }
    for (int i = 0; i < n; i++) { /* Cholesky, and forward substitution along with it */
        for (int j = 0; j < i; j++) {
            for (int l = 0; l < j; l++) a[i * n + j] -= a[i * n + l] * a[j * n + l];
            a[i * n + j] /= a[j * n + j];
            a[i * n + i] -= a[i * n + j] * a[i * n + j];
            v[i] -= a[i * n + j] * v[j];
        }
        a[i * n + i] = sqrt(a[i * n + i]);
        v[i] /= a[i * n + i];
        sum -= v[i] * v[i] / 2;
    }
    return sum;
}

static void posterior_method_is_exact(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
    const double one = 1;
    double mean[DIM], cov[DIM * DIM];
    psld_mixture *mixture;
    posterior(mean, cov);
    assert_int_equal(psld_mixture_create(1, DIM, &one, prior_mean, &prior_scale, &mixture), PSLD_OK);
    for (int p = 0; p < 4; p++) {
        psld_recipe *recipe;
        psld_source *base, *source;
        psld_operator *op;
        assert_int_equal(psld_recipe_open(lines[p], &recipe), PSLD_OK);
        assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
        source = restored_source(base, recipe, "posterior", &op);
        int k = recipe->spec.k, predicted = recipe->predicted;
        for (double t = 0.05; t <= 1; t *= 4) {
            double z[DIM * 3], eps[DIM * 3], inverse[PSLD_MATRIX_SIZE];
            for (int i = 0; i < DIM * k; i++) z[i] = 0.7 * sin(1 + 3 * i) * recipe->deviation[i / DIM];
            assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, DIM, z, &t), eps), PSLD_OK);
            assert_int_equal(psld_recipe_factor(recipe, t, PSLD_HSM, NULL, inverse), PSLD_OK);
            for (int c = 0; c < predicted; c++)
                for (int j = 0; j < DIM; j++) {
                    int a = recipe->order[k - predicted + c];
                    double score = 0, kept = z[a * DIM + j], h = 1e-4 * recipe->deviation[a];
                    for (int b = 0; b < predicted; b++)
                        score -= inverse[recipe->order[k - predicted + b] * k + a] * eps[b * DIM + j];
                    z[a * DIM + j] = kept + h;
                    double up = log_posterior_density(recipe, t, z, mean, cov);
                    z[a * DIM + j] = kept - h;
                    double down = log_posterior_density(recipe, t, z, mean, cov);
                    z[a * DIM + j] = kept;
                    double numeric = (up - down) / (2 * h);
                    if (!(fabs(score - numeric) < 1e-5 * (1 + fabs(numeric))))
                        fail_msg("%s, t = %g: score %.10g, by differences %.10g", lines[p], t, score, numeric);
                }
        }
        psld_source_free(source);
        psld_source_free(base);
        psld_operator_free(op);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* ---- Samples of the posterior ------------------------------------------------------------------------------------ */

/* Inverts the symmetric positive definite a [DIM][DIM] in place by elimination. */
static void invert(double *a)
{
    for (int p = 0; p < DIM; p++) {
        double pivot = a[p * DIM + p];
        a[p * DIM + p] = 1;
        for (int j = 0; j < DIM; j++) a[p * DIM + j] /= pivot;
        for (int i = 0; i < DIM; i++) {
            double factor = a[i * DIM + p];
            if (i == p) continue;
            a[i * DIM + p] = 0;
            for (int j = 0; j < DIM; j++) a[i * DIM + j] -= factor * a[p * DIM + j];
        }
    }
}

/* Mean and covariance of x_0 given y for any operator, by its columns: precisions add. */
static void posterior_of(const psld_operator *op, const double *y, double *mean, double *cov)
{
    double columns[DIM * DIM], work[DIM], right[DIM], precision = 1 / (prior_scale * prior_scale);
    for (int j = 0; j < DIM; j++) {
        double unit[DIM] = {0};
        unit[j] = 1;
        psld_operator_forward(op, unit, work, columns + j * DIM);
    }
    for (int i = 0; i < DIM; i++) {
        right[i] = precision * prior_mean[i];
        for (size_t l = 0; l < op->size; l++) right[i] += columns[i * DIM + (int)l] * y[l] / (noise * noise);
        for (int j = 0; j < DIM; j++) {
            cov[i * DIM + j] = (i == j) * precision;
            for (size_t l = 0; l < op->size; l++)
                cov[i * DIM + j] += columns[i * DIM + (int)l] * columns[j * DIM + (int)l] / (noise * noise);
        }
    }
    invert(cov);
    for (int i = 0; i < DIM; i++) {
        mean[i] = 0;
        for (int j = 0; j < DIM; j++) mean[i] += cov[i * DIM + j] * right[j];
    }
}

/* Largest deviation of the means and covariances of positions from p_eps of the posterior, in standard errors. */
static double worst_deviation(const psld_recipe *recipe, double eps, size_t n, const double *z, const double *mean,
                              const double *cov)
{
    int k = recipe->spec.k;
    double worst = 0, root = sqrt((double)n), m, truth[DIM * DIM];
    psld_gaussian kernel;
    psld_kernel(recipe, eps, PSLD_HSM, 0, &kernel);
    m = kernel.mean[0];
    for (int i = 0; i < DIM * DIM; i++) truth[i] = m * m * cov[i] + (i / DIM == i % DIM) * kernel.cov[0];
    for (int i = 0; i < DIM; i++) {
        double sum = 0;
        for (size_t s = 0; s < n; s++) sum += z[s * (size_t)(k * DIM) + (size_t)i] - m * mean[i];
        worst = fmax(worst, fabs(sum) / root / sqrt(truth[i * DIM + i]));
        for (int j = 0; j <= i; j++) {
            double size = truth[i * DIM + i] * truth[j * DIM + j] + truth[i * DIM + j] * truth[i * DIM + j];
            sum = 0;
            for (size_t s = 0; s < n; s++) {
                const double *at = z + s * (size_t)(k * DIM);
                sum += (at[i] - m * mean[i]) * (at[j] - m * mean[j]) - truth[i * DIM + j];
            }
            worst = fmax(worst, fabs(sum) / root / sqrt(size));
        }
    }
    return worst;
}

static psld_operator *four_dimensional(const char *name)
{
    static const unsigned char first_and_last[DIM] = {1, 0, 0, 1};
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_operator *op;
    task.name = name;
    task.rank = 1;
    task.shape[0] = DIM;
    task.factor = 2;
    task.blur = 0.7;
    task.known = first_and_last;
    task.matrix = rows;
    task.rows = ROWS;
    if (psld_operator_create(&task, &op) != PSLD_OK) fail_msg("%s: %s", name, psld_error_text());
    return op;
}

/* Every task that vectors can have, under every recipe, with samplers of each kind; all pairs with PSLD_TEST_SAMPLES. */
static void samples_follow_the_posterior(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
    static const char *const tasks[] = {"linear", "denoise", "inpaint", "super-resolution", "deblur"};
    static const struct {
        const char *name;
        int nfe;
    } samplers[] = {{"collapsed", 40}, {"ancestral", 100}, {"dpm", 60}, {"ode", 0}, {"heun", 80}, {"sscs", 300}};
    enum { SAMPLERS = sizeof samplers / sizeof *samplers };
    const char *text = getenv("PSLD_TEST_SAMPLES");
    size_t asked = text ? (size_t)strtoull(text, NULL, 10) : 0, n = asked ? asked : PSLD_SANITIZED ? 40 : 300;
    const double one = 1, y[DIM] = {0.4, -0.9, 0.2, 0.6};
    double mean[DIM], cov[DIM * DIM], *z = malloc(n * DIM * 3 * sizeof *z);
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(1, DIM, &one, prior_mean, &prior_scale, &mixture), PSLD_OK);
    for (int c = 0; c < 4 * 5 * SAMPLERS; c++) {
        int p = c / SAMPLERS % 4, t = c / SAMPLERS / 4, s = c % SAMPLERS;
        if (!asked && s != (p + t) % SAMPLERS) continue;
        psld_recipe *recipe;
        psld_source *base, *source;
        psld_operator *op = four_dimensional(tasks[t]);
        psld_restore_options restore = PSLD_RESTORE_DEFAULTS;
        psld_sample_options options = em_options();
        restore.noise = noise;
        options.sampler = samplers[s].name;
        options.nfe = (int)(samplers[s].nfe * (asked ? sqrt((double)n / 300) : 1)); /* the error falls as 1 / nfe */
        options.denoise = 0;
        assert_int_equal(psld_recipe_open(lines[p], &recipe), PSLD_OK);
        assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
        assert_int_equal(psld_source_restore(base, recipe, op, y, &restore, &source), PSLD_OK);
        if (psld_sample(recipe, source, &options, 0, n, DIM, NULL, z, NULL) != PSLD_OK)
            fail_msg("%s, %s, %s: %s", lines[p], tasks[t], options.sampler, psld_error_text());
        posterior_of(op, y, mean, cov);
        double worst = worst_deviation(recipe, options.eps, n, z, mean, cov);
        printf("%-16s %-16s %-10s at most %.2f standard errors off\n", lines[p], tasks[t], options.sampler, worst);
        assert_true(worst < 4.5);
        psld_source_free(source);
        psld_source_free(base);
        psld_operator_free(op);
        psld_recipe_free(recipe);
    }
    free(z);
    psld_mixture_free(mixture);
}

/* Samples: the error of each method's mean, in deviations of the posterior. */
static double error_of_mean(const char *method)
{
    enum { N = 2000 };
    const double one = 1;
    double mean[DIM], cov[DIM * DIM], *z = malloc(N * DIM * 2 * sizeof *z), worst = 0;
    psld_recipe *recipe;
    psld_mixture *mixture;
    psld_source *base, *source;
    psld_operator *op;
    psld_sample_options options = em_options();
    posterior(mean, cov);
    assert_int_equal(psld_mixture_create(1, DIM, &one, prior_mean, &prior_scale, &mixture), PSLD_OK);
    assert_int_equal(psld_recipe_open("psld", &recipe), PSLD_OK);
    assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
    source = restored_source(base, recipe, method, &op);
    options.sampler = "sscs";
    options.nfe = 60;
    if (psld_sample(recipe, source, &options, 0, N, DIM, NULL, z, NULL) != PSLD_OK)
        fail_msg("%s: %s", method, psld_error_text());
    for (int j = 0; j < DIM; j++) {
        double sum = 0;
        for (int i = 0; i < N; i++) sum += z[i * DIM * 2 + j] / N;
        worst = fmax(worst, fabs(sum - mean[j]) / sqrt(cov[j * DIM + j]));
    }
    free(z);
    psld_source_free(source);
    psld_source_free(base);
    psld_operator_free(op);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
    return worst;
}

static void methods_compared(void **state)
{
    (void)state;
    const psld_restore_method_info *method;
    for (int i = 0; (method = psld_restore_method_at(i)); i++) {
        double error = error_of_mean(method->name);
        printf("%-15s mean off by %.3f deviations\n", method->name, error);
        assert_true(error < (i == 0 ? 0.12 : 1.0)); /* the prior's own mean is off by two */
    }
}

/* ---- Derivatives that are wrong ---------------------------------------------------------------------------------- */

static psld_status predict_truly(void *user, const psld_states *states, double *eps)
{
    return psld_source_predict(user, states, eps);
}

/* As if eps did not depend on z: X then has the derivative of z itself, and near t = 1 a covariance of hundreds. */
static psld_status differentiate_wrongly(void *user, const psld_states *states, const double *weight, double *eps,
                                         double *grad_z)
{
    size_t n = states->n, dim = states->dim;
    (void)weight;
    memset(grad_z, 0, n * dim * 2 * sizeof *grad_z);
    return eps ? psld_source_predict(user, states, eps) : PSLD_OK;
}

/* What is predicted moves towards the measurement and not beyond it, whatever the derivatives are. */
static void no_pull_goes_too_far(void **state)
{
    (void)state;
    const double one = 1, y[DIM] = {0.4, -0.9, 0.2, 0.6}, z[2 * DIM] = {0.3, -1.2, 0.8, 0.1, -0.2, 0.4, 0.3, -0.5};
    psld_recipe *recipe;
    psld_mixture *mixture;
    psld_source *base, *wrong, *source;
    psld_operator *op = four_dimensional("denoise");
    psld_restore_options options = PSLD_RESTORE_DEFAULTS;
    assert_int_equal(psld_mixture_create(1, DIM, &one, prior_mean, &prior_scale, &mixture), PSLD_OK);
    assert_int_equal(psld_recipe_open("psld", &recipe), PSLD_OK);
    assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
    assert_int_equal(psld_source_callback(&(psld_callback){.size = sizeof(psld_callback),
                                                           .predict = predict_truly,
                                                           .gradient = differentiate_wrongly,
                                                           .user = base},
                                          &wrong),
                     PSLD_OK);
    options.noise = noise;
    const psld_restore_method_info *method;
    for (int m = 0; (method = psld_restore_method_at(m)); m++)
        for (double t = 1; t > 1e-3; t *= 0.3) {
            double before[DIM], after[DIM], moved = 0, distance = 0;
            if (!method->needs_gradient) continue;
            options.method = method->name;
            assert_int_equal(psld_source_restore(wrong, recipe, op, y, &options, &source), PSLD_OK);
            assert_int_equal(psld_source_denoise(wrong, recipe, &PSLD_STATES(1, DIM, z, &t), before), PSLD_OK);
            assert_int_equal(psld_source_denoise(source, recipe, &PSLD_STATES(1, DIM, z, &t), after), PSLD_OK);
            for (int j = 0; j < DIM; j++) {
                moved += (after[j] - before[j]) * (y[j] - before[j]);
                distance += (y[j] - before[j]) * (y[j] - before[j]);
            }
            printf("%-15s t = %-6.2g goes %.4f of the way\n", options.method, t, moved / distance);
            assert_true(moved > 0 && moved < distance * (1 + 1e-9));
            psld_source_free(source);
        }
    psld_source_free(wrong);
    psld_source_free(base);
    psld_operator_free(op);
    psld_recipe_free(recipe);
    psld_mixture_free(mixture);
}

static void bad_tasks(void **state)
{
    (void)state;
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_operator *op;
    task.rank = 3;
    task.shape[0] = 1, task.shape[1] = task.shape[2] = 6;
    assert_int_equal(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "super-resolution: factor: expected one that divides 6 x 6, found 4");
    task.name = "colorize";
    assert_int_equal(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT);
    task.name = "deblur";
    task.blur = (double)NAN;
    assert_int_equal(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT);
    task.name = "inpaint";
    assert_int_equal(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT);
    unsigned char none[36] = {0};
    task.known = none;
    assert_int_equal(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(), "inpaint: known: expected at least one known element, found none");
    task.name = "linear";
    assert_int_equal(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT);
    task.name = "rotate";
    assert_int_equal(psld_operator_create(&task, &op), PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(),
                        "task: expected one of super-resolution, deblur, colorize, denoise, inpaint, linear, found "
                        "\"rotate\"");
    assert_null(op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators),
                                       cmocka_unit_test(operators_by_hand),
                                       cmocka_unit_test(small_blurs),
                                       cmocka_unit_test(posterior_method_is_exact),
                                       cmocka_unit_test(samples_follow_the_posterior),
                                       cmocka_unit_test(methods_compared),
                                       cmocka_unit_test(no_pull_goes_too_far),
                                       cmocka_unit_test(bad_tasks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
