/* Metrics on features: golden values, closed forms, definitions computed another way, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "eval/linear.h"
#include "eval/mersenne.h"
#include "eval/set.h"
#include "golden.h"
#include "io/tensors/npy.h"
#include "io/tensors/npz.h"
#include "starve.h"

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static void refuses(psld_status status, const char *text)
{
    assert_int_equal(status, PSLD_BAD_INPUT);
    if (!strstr(psld_error_text(), text)) fail_msg("no \"%s\" in: %s", text, psld_error_text());
}

static void is_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance)) fail_msg("%.17g, expected %.17g within %g", found, expected, tolerance);
}

static psld_array *make_rows(psld_type type, size_t n, size_t dim)
{
    psld_array *rows;
    must(psld_array_create(type, 2, (const size_t[]){n, dim}, &rows));
    return rows;
}

/* Float rows of normal numbers times scale[j], plus shift. */
static psld_array *normal_rows(uint64_t seed, size_t n, size_t dim, double scale, double shift)
{
    psld_array *rows = make_rows(PSLD_F32, n, dim);
    double *x = malloc(dim * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        psld_random_normal(seed, PSLD_FOR_DATA, i, 0, 0, dim, x);
        for (size_t j = 0; j < dim; j++)
            ((float *)rows->data)[i * dim + j] = (float)(shift + x[j] * scale * (double)(j + 1));
    }
    free(x);
    return rows;
}

static psld_statistics *statistics_of(const psld_array *rows, size_t piece)
{
    psld_statistics *s;
    size_t dim = rows->shape[1];
    must(psld_statistics_create(dim, &s));
    for (size_t i = 0; i < rows->shape[0]; i += piece) {
        size_t n = rows->shape[0] - i < piece ? rows->shape[0] - i : piece;
        must(psld_statistics_add(s, n, (const float *)rows->data + i * dim));
    }
    must(psld_statistics_finish(s));
    return s;
}

static double frechet(const psld_array *a, const psld_array *b)
{
    psld_statistics *of_a = statistics_of(a, 100), *of_b = statistics_of(b, 100);
    double distance = -1;
    must(psld_frechet_distance(of_a, of_b, &distance));
    psld_statistics_free(of_a);
    psld_statistics_free(of_b);
    return distance;
}

/* Compares with a key of metrics.json, if it has it. */
static void check_metric(const char *folder, const json_t *expected, const char *key, double found, double tolerance)
{
    const json_t *value = json_object_get(expected, key);
    if (value) golden_report(folder, key, fabs(found / golden_number(value) - 1), tolerance);
}

static void check_metrics(const char *folder)
{
    json_t *expected = golden_json(folder, "metrics.json");
    psld_array *a = golden_array(folder, "metric_features_a.npy", PSLD_F32),
               *b = golden_array(folder, "metric_features_b.npy", PSLD_F32),
               *logits = golden_array(folder, "metric_logits.npy", PSLD_F32);
    assert_true(a && b && logits);
    double mean, deviation;
    check_metric(folder, expected, "frechet_distance", frechet(a, b), 1e-6);
    must(psld_inception_score(logits, 10, 0, &mean, &deviation));
    check_metric(folder, expected, "inception_score_mean", mean, 1e-6);
    check_metric(folder, expected, "inception_score_std", deviation, 1e-6);
    must(psld_inception_score(logits, 10, 1, &mean, &deviation)); /* NumPy's own permutation */
    check_metric(folder, expected, "shuffled_inception_score_mean", mean, 1e-9);
    check_metric(folder, expected, "shuffled_inception_score_std", deviation, 1e-9);
    must(psld_kid(a, b, NULL, &mean, &deviation)); /* NumPy's own subsets */
    check_metric(folder, expected, "kid_mean", mean, 1e-9);
    check_metric(folder, expected, "kid_std", deviation, 1e-9);
    must(psld_precision_recall(a, b, 3, &mean, &deviation));
    check_metric(folder, expected, "precision", mean, 1e-12);
    check_metric(folder, expected, "recall", deviation, 1e-12);
    psld_array_free(a);
    psld_array_free(b);
    psld_array_free(logits);
    json_decref(expected);
}

static void golden_metrics(void **state)
{
    (void)state;
    const golden_list *list = golden_find("metrics.json");
    for (size_t i = 0; i < list->count; i++) check_metrics(list->folders[i]);
}

/* ---- NumPy's generator ------------------------------------------------------------------------------------------- */

static void permutations_of_numpy(void **state)
{
    static const uint32_t words[4] = {4236026720U, 639299976U, 3751189827U, 2669525622U},
                          twelve[12] = {2, 1, 11, 4, 10, 5, 7, 9, 6, 3, 8, 0}, seven[7] = {4, 3, 1, 2, 5, 6, 0},
                          begin[5] = {1716, 148, 1488, 1207, 1787}, end[5] = {1661, 2139, 2678, 392, 864};
    static uint32_t order[3000];
    psld_mersenne mersenne;
    (void)state;
    psld_mersenne_seed(&mersenne, 2020);
    for (int i = 0; i < 4; i++) assert_int_equal(psld_mersenne_next(&mersenne), words[i]);
    psld_mersenne_seed(&mersenne, 2020);
    psld_mersenne_permutation(&mersenne, 12, order);
    assert_memory_equal(order, twelve, sizeof twelve);
    psld_mersenne_permutation(&mersenne, 7, order);
    assert_memory_equal(order, seven, sizeof seven);
    psld_mersenne_seed(&mersenne, 2020);
    psld_mersenne_permutation(&mersenne, 3000, order);
    assert_memory_equal(order, begin, sizeof begin);
    assert_memory_equal(order + 2995, end, sizeof end);
}

/* ---- Moments and the Frechet distance ---------------------------------------------------------------------------- */

static void moments_by_definition(void **state)
{
    enum { N = 1300, DIM = 5 };
    (void)state;
    psld_array *rows = normal_rows(1, N, DIM, 0.5, 1000);
    psld_statistics *s = statistics_of(rows, N), *pieces = statistics_of(rows, 7);
    const float *x = rows->data;
    assert_int_equal(psld_statistics_count(s), N);
    assert_memory_equal(psld_statistics_mean(s), psld_statistics_mean(pieces), DIM * sizeof(double));
    assert_memory_equal(psld_statistics_cov(s), psld_statistics_cov(pieces), DIM * DIM * sizeof(double));
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            long double mi = 0, mj = 0, sum = 0;
            for (int r = 0; r < N; r++) mi += (long double)x[r * DIM + i] / N, mj += (long double)x[r * DIM + j] / N;
            for (int r = 0; r < N; r++) sum += (x[r * DIM + i] - mi) * (x[r * DIM + j] - mj);
            is_near(psld_statistics_mean(s)[i], (double)mi, 1e-12 * 1000);
            is_near(psld_statistics_cov(s)[i * DIM + j], (double)(sum / (N - 1)), 1e-12 * 10);
        }
    psld_statistics_free(s);
    psld_statistics_free(pieces);
    psld_array_free(rows);
}

/* A set of statistics with given moments, through its file. */
static psld_statistics *statistics_from(size_t dim, double *mean, double *cov)
{
    const char *const names[] = {"mu", "sigma"};
    psld_array mu = {.type = PSLD_F64, .rank = 1, .shape = {dim}, .count = dim, .data = mean};
    psld_array sigma = {.type = PSLD_F64, .rank = 2, .shape = {dim, dim}, .count = dim * dim, .data = cov};
    psld_statistics *s;
    must(psld_npz_save("statistics.npz", 2, names, (const psld_array *const[]){&mu, &sigma}));
    must(psld_statistics_load("statistics.npz", &s));
    return s;
}

/* In one basis, turned by a reflection I - 2 v v': sum of (m1 - m2)^2 + (sqrt l1 - sqrt l2)^2. With `zeros` the last
 * eigenvalues of the one, and the first of the other, are 0. */
static void closed_form(size_t dim, size_t zeros)
{
    double *cov[2], *mean[2], *v = malloc(dim * sizeof *v), expected = 0, length = 0, distance;
    psld_statistics *s[2];
    psld_random_normal(3, PSLD_FOR_DATA, 0, 0, 0, dim, v);
    for (size_t i = 0; i < dim; i++) length += v[i] * v[i];
    for (size_t i = 0; i < dim; i++) v[i] /= sqrt(length);
    for (int which = 0; which < 2; which++) {
        cov[which] = calloc(dim * dim, sizeof(double));
        mean[which] = calloc(dim, sizeof(double));
        for (size_t e = 0; e < dim; e++) {
            double value =
                which ? (e < zeros ? 0 : 0.3 + (double)(e % 7)) : (e + zeros >= dim ? 0 : 1.0 / (double)(e + 1));
            mean[which][e] = which ? 0.1 * (double)e : 0;
            for (size_t i = 0; i < dim; i++)
                for (size_t j = 0; j < dim; j++) /* column e of the reflection */
                    cov[which][i * dim + j] += value * ((i == e) - 2 * v[i] * v[e]) * ((j == e) - 2 * v[j] * v[e]);
        }
        s[which] = statistics_from(dim, mean[which], cov[which]);
    }
    for (size_t e = 0; e < dim; e++) {
        double one = e + zeros >= dim ? 0 : 1.0 / (double)(e + 1), other = e < zeros ? 0 : 0.3 + (double)(e % 7);
        expected += pow(0.1 * (double)e, 2) + pow(sqrt(one) - sqrt(other), 2);
    }
    must(psld_frechet_distance(s[0], s[1], &distance));
    is_near(distance, expected, 1e-12 * expected * (double)dim);
    for (int which = 0; which < 2; which++) {
        must(psld_frechet_distance(s[which], s[which], &distance));
        assert_true(distance >= 0 && distance <= 1e-12 * (double)dim);
        psld_statistics_free(s[which]);
        free(cov[which]);
        free(mean[which]);
    }
    free(v);
}

static void gaussians_in_closed_form(void **state)
{
    (void)state;
    closed_form(1, 0);
    closed_form(10, 0);
    closed_form(60, 0);
    closed_form(60, 25);
    closed_form(60, 60); /* point masses */
}

/* Fewer rows than dimensions: the covariance is singular. */
static void few_samples(void **state)
{
    (void)state;
    psld_array *a = normal_rows(1, 20, 64, 0.3, 0), *b = normal_rows(1, 20, 64, 0.3, 2),
               *c = normal_rows(2, 20, 64, 0.3, 0);
    assert_true(frechet(a, a) <= 1e-6);
    is_near(frechet(a, b), 64 * 4, 1e-3); /* float rows of the same numbers, moved by 2 */
    double there = frechet(a, c), back = frechet(c, a);
    is_near(there, back, 1e-9 * there);
    psld_array_free(a);
    psld_array_free(b);
    psld_array_free(c);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    psld_array *a = normal_rows(1, 600, 200, 0.1, 0), *b = normal_rows(2, 700, 200, 0.1, 0.1);
    psld_threads_set(1);
    double one = frechet(a, b);
    psld_threads_set(3);
    double three = frechet(a, b);
    psld_threads_set(0);
    is_near(one, three, 1e-10 * one);
    psld_array_free(a);
    psld_array_free(b);
}

/* ---- Other metrics ----------------------------------------------------------------------------------------------- */

/* All images alike: 1. Each sure of another class: the number of classes. */
static void inception_scores_at_the_ends(void **state)
{
    enum { N = 100, CLASSES = 5 };
    double mean, deviation;
    (void)state;
    psld_array *logits = make_rows(PSLD_F32, N, CLASSES);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        memset(logits->data, 0, N * CLASSES * sizeof(float));
        for (int i = 0; i < N; i++) ((float *)logits->data)[i * CLASSES] = 3;
        must(psld_inception_score(logits, 10, shuffle, &mean, &deviation));
        is_near(mean, 1, 1e-12);
        is_near(deviation, 0, 1e-12);
    }
    for (int i = 0; i < N; i++) /* 200 apart: p is 0 or 1 in double */
        for (int c = 0; c < CLASSES; c++) ((float *)logits->data)[i * CLASSES + c] = c == i % CLASSES ? 0 : -2000;
    must(psld_inception_score(logits, 10, 0, &mean, &deviation));
    is_near(mean, CLASSES, 1e-12);
    psld_array_free(logits);
}

static void kid_of_one_law(void **state)
{
    double mean, deviation;
    const psld_kid_options options = {sizeof(psld_kid_options), 20, 200, 1};
    (void)state;
    psld_array *a = normal_rows(1, 500, 8, 0.2, 0), *b = normal_rows(2, 400, 8, 0.2, 0),
               *c = normal_rows(2, 400, 8, 0.2, 0.5);
    must(psld_kid(a, b, &options, &mean, &deviation));
    assert_true(fabs(mean) < 4 * deviation / sqrt(20) + 4 * deviation / sqrt(2)); /* unbiased: near 0, either sign */
    must(psld_kid(a, c, &options, &mean, &deviation));
    assert_true(mean > 5 * deviation);
    psld_array_free(a);
    psld_array_free(b);
    psld_array_free(c);
}

static double brute_distance(const float *x, const float *y, size_t dim)
{
    double sum = 0;
    for (size_t j = 0; j < dim; j++) sum += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
    return sum;
}

/* Third nearest other point, by looking for how many are nearer. */
static double brute_radius(const psld_array *rows, size_t i)
{
    size_t dim = rows->shape[1], n = rows->shape[0];
    const float *x = rows->data;
    for (size_t j = 0; j < n; j++) {
        double d = brute_distance(x + i * dim, x + j * dim, dim);
        size_t nearer = 0, same = 0;
        for (size_t other = 0; other < n; other++) {
            double e = brute_distance(x + i * dim, x + other * dim, dim);
            nearer += other != i && e < d;
            same += other != i && e == d;
        }
        if (j != i && nearer < 3 && nearer + same >= 3) return d;
    }
    return -1;
}

static double brute_share(const psld_array *points, const psld_array *manifold)
{
    size_t dim = points->shape[1], inside = 0;
    double *radius = malloc(manifold->shape[0] * sizeof *radius);
    for (size_t j = 0; j < manifold->shape[0]; j++) radius[j] = brute_radius(manifold, j);
    for (size_t i = 0; i < points->shape[0]; i++)
        for (size_t j = 0; j < manifold->shape[0]; j++)
            if (brute_distance((const float *)points->data + i * dim, (const float *)manifold->data + j * dim, dim) <=
                radius[j]) {
                inside++;
                break;
            }
    free(radius);
    return (double)inside / (double)points->shape[0];
}

static void precision_and_recall_by_definition(void **state)
{
    double precision, recall;
    (void)state;
    psld_array *a = normal_rows(1, 90, 4, 0.3, 0), *b = normal_rows(2, 80, 4, 0.4, 0.5);
    must(psld_precision_recall(a, b, 3, &precision, &recall));
    is_near(precision, brute_share(a, b), 1e-12);
    is_near(recall, brute_share(b, a), 1e-12);
    assert_true(precision > 0.2 && precision < 1 && recall > 0.1 && recall < 1); /* a case that says something */
    must(psld_precision_recall(a, a, 3, &precision, &recall));
    assert_true(precision == 1 && recall == 1);
    psld_array_free(a);
    psld_array_free(b);
    a = make_rows(PSLD_F32, 600, 3), b = make_rows(PSLD_F32, 5, 3); /* equal points: balls of radius 0 */
    for (size_t i = 0; i < a->count; i++) ((float *)a->data)[i] = 1e3F + (float)(i % 3) / 7;
    for (size_t i = 0; i < b->count; i++) ((float *)b->data)[i] = 1e3F + (float)(i % 3) / 7;
    must(psld_precision_recall(a, b, 3, &precision, &recall));
    assert_true(precision == 1 && recall == 1);
    ((float *)b->data)[0] += 1;
    must(psld_precision_recall(b, a, 3, &precision, &recall));
    is_near(precision, 0.8, 1e-12);
    psld_array_free(a);
    psld_array_free(b);
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static void bad_features(void **state)
{
    double x, y;
    psld_statistics *s, *t;
    (void)state;
    psld_array *a = normal_rows(1, 30, 4, 1, 0), *b = normal_rows(2, 30, 5, 1, 0);
    const psld_kid_options small = {sizeof(psld_kid_options), 2, 10, 1};
    refuses(psld_kid(a, b, &small, &x, &y), "kid: the features of the first set have 4 numbers, those of the second 5");
    refuses(psld_kid(a, a, NULL, &x, &y), "kid: needs at least 1000 images in each set, found 30");
    refuses(psld_precision_recall(a, b, 3, &x, &y), "precision and recall: the features of the first set have 4");
    refuses(psld_inception_score(a, 31, 0, &x, &y), "needs at least 31 images");
    s = statistics_of(a, 30), t = statistics_of(b, 30);
    refuses(psld_frechet_distance(s, t, &x), "first set have 4 numbers, those of the second 5");
    psld_statistics_free(s);
    psld_statistics_free(t);
    ((float *)a->data)[4 * 7 + 2] = NAN;
    refuses(psld_kid(a, a, &small, &x, &y), "number 2 of row 7 is not finite");
    refuses(psld_inception_score(a, 2, 0, &x, &y), "number 2 of row 7 is not finite");
    must(psld_statistics_create(4, &s));
    refuses(psld_statistics_add(s, 30, a->data), "number 2 of row 7 is not finite");
    psld_statistics_free(s);
    must(psld_statistics_create(4, &s));
    refuses(psld_statistics_finish(s), "at least 2 images, found 0");
    psld_statistics_free(s);
    a->shape[0] = 3, a->count = 12;
    refuses(psld_precision_recall(a, a, 3, &x, &y), "needs at least 4 images in each set, found 3");
    psld_array_free(a);
    psld_array_free(b);
}

static void save_npz(size_t count, const char *const *names, const psld_array *const *arrays)
{
    must(psld_npz_save("bad.npz", count, names, arrays));
}

static void bad_statistics(void **state)
{
    psld_statistics *s;
    double numbers[16] = {1, 2, 3, 4};
    psld_array mu = {.type = PSLD_F64, .rank = 1, .shape = {2}, .count = 2, .data = numbers},
               sigma = {.type = PSLD_F64, .rank = 2, .shape = {2, 2}, .count = 4, .data = numbers};
    (void)state;
    save_npz(1, (const char *const[]){"mu"}, (const psld_array *const[]){&mu});
    refuses(psld_statistics_load("bad.npz", &s), "sigma");
    assert_null(s);
    assert_non_null(strstr(psld_error_text(), "bad.npz"));
    const char *const both[] = {"mu", "sigma"};
    const psld_array *const arrays[] = {&mu, &sigma};
    save_npz(2, both, arrays);
    refuses(psld_statistics_load("bad.npz", &s), "sigma: not symmetric");
    numbers[1] = numbers[2] = 0.5;
    mu.shape[0] = mu.count = 3;
    save_npz(2, both, arrays);
    refuses(psld_statistics_load("bad.npz", &s), "sigma: expected [3, 3]");
    mu.shape[0] = mu.count = 2;
    numbers[3] = INFINITY;
    save_npz(2, both, arrays);
    refuses(psld_statistics_load("bad.npz", &s), "sigma: number 3 is not finite");
    numbers[3] = -1;
    save_npz(2, both, arrays);
    refuses(psld_statistics_load("bad.npz", &s), "negative");
    numbers[3] = 2;
    save_npz(2, both, arrays);
    must(psld_statistics_load("bad.npz", &s));
    must(psld_statistics_save(s, "again.npz"));
    psld_statistics_free(s);
    must(psld_statistics_load("again.npz", &s));
    assert_memory_equal(psld_statistics_cov(s), numbers, 4 * sizeof(double));
    psld_statistics_free(s);
}

/* ---- Running out of memory --------------------------------------------------------------------------------------- */

static psld_array *starved_rows;

static psld_status starved_frechet(void)
{
    psld_statistics *s = NULL, *loaded = NULL;
    double distance;
    psld_status status = psld_statistics_create(4, &s);
    if (status == PSLD_OK) status = psld_statistics_add(s, 30, starved_rows->data);
    if (status == PSLD_OK) status = psld_statistics_finish(s);
    if (status == PSLD_OK) status = psld_statistics_save(s, "starved.npz");
    if (status == PSLD_OK) status = psld_statistics_load("starved.npz", &loaded);
    if (status == PSLD_OK) status = psld_frechet_distance(s, loaded, &distance);
    psld_statistics_free(s);
    psld_statistics_free(loaded);
    return status;
}

static psld_status starved_score(void)
{
    double x, y;
    return psld_inception_score(starved_rows, 3, 1, &x, &y);
}

static psld_status starved_kid(void)
{
    const psld_kid_options options = {sizeof(psld_kid_options), 2, 10, 1};
    double x, y;
    return psld_kid(starved_rows, starved_rows, &options, &x, &y);
}

static psld_status starved_precision(void)
{
    double x, y;
    return psld_precision_recall(starved_rows, starved_rows, 3, &x, &y);
}

static void starving(void **state)
{
    (void)state;
    starved_rows = normal_rows(1, 30, 4, 1, 0);
    starve(starved_frechet);
    starve(starved_score);
    starve(starved_kid);
    starve(starved_precision);
    psld_array_free(starved_rows);
}

/* A file is not memory: one with a hole of 256 GiB is opened, and its first rows are read. */
static void sets_larger_than_memory(void **state)
{
    (void)state;
    enum { DIM = 4 };
    const psld_array about = {.type = PSLD_F32, .rank = 2, .shape = {(size_t)1 << 34, DIM}, .count = (size_t)1 << 36};
    char header[PSLD_NPY_HEADER];
    float rows[2 * DIM];
    psld_set *set;
    psld_array found;
    size_t length = psld_npy_header(&about, header);
    FILE *file = fopen("huge.npy", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, length, file), length);
    fclose(file);
    if (truncate("huge.npy", (off_t)(length + about.count * sizeof(float))) != 0) skip_for("files have no holes here");
    must(psld_array_inspect("huge.npy", &found));
    must(psld_set_open("huge.npy", 2, &set));
    unlink("huge.npy");
    assert_true(found.type == PSLD_F32 && found.rank == 2 && found.shape[0] == about.shape[0] && !found.data);
    assert_int_equal(psld_set_count(set), 2);
    must(psld_set_read_rows(set, 0, 2, rows));
    for (int i = 0; i < 2 * DIM; i++) assert_true(rows[i] == 0);
    psld_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_larger_than_memory),
        cmocka_unit_test(golden_metrics),
        cmocka_unit_test(permutations_of_numpy),
        cmocka_unit_test(moments_by_definition),
        cmocka_unit_test(gaussians_in_closed_form),
        cmocka_unit_test(few_samples),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(inception_scores_at_the_ends),
        cmocka_unit_test(kid_of_one_law),
        cmocka_unit_test(precision_and_recall_by_definition),
        cmocka_unit_test(bad_features),
        cmocka_unit_test(bad_statistics),
        cmocka_unit_test(starving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
