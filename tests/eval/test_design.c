/* The search of recipes: the evolution strategy, data as a mixture, the source by matrix products, and the order of
 * trials, which follows from what is told. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "eval/empirical.h"
#include "eval/evolution.h"
#include "process/recipe.h"
#include "psld_eval.h"
#include "skip.h"
#include "starve.h"

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* ---- The evolution strategy -------------------------------------------------------------------------------------- */

static double valley(const double *x)
{
    return 100 * (x[0] - x[1]) * (x[0] - x[1]) + (x[1] - 3) * (x[1] - 3) + x[2] * x[2];
}

static double minimise(uint64_t number, int steps)
{
    const double start[3] = {-1, 2, 1};
    psld_evolution *e;
    double least = valley(start);
    must(psld_evolution_create(3, start, least, 0.3, 5, number, &e));
    for (int i = 0; i < steps; i++) {
        double cost = valley(psld_evolution_propose(e));
        psld_evolution_tell(e, i % 7 == 6 ? (double)INFINITY : cost);
        if (i % 7 != 6) least = fmin(least, cost);
    }
    psld_evolution_free(e);
    return least;
}

static void evolution(void **state)
{
    (void)state;
    assert_true(minimise(0, 1500) < 1e-10);
    assert_true(minimise(0, 100) == minimise(0, 100));
    assert_true(minimise(0, 100) != minimise(1, 100));
}

/* ---- Mixtures of data -------------------------------------------------------------------------------------------- */

enum { COMPONENTS = 300, DIM = 64, STATES = 7 };

static psld_mixture *large_mixture(void)
{
    double *m = malloc(COMPONENTS * DIM * sizeof *m), w[COMPONENTS], s[COMPONENTS];
    psld_mixture *mixture;
    psld_random_normal(1, PSLD_FOR_DATA, 0, 0, 0, COMPONENTS * DIM, m);
    for (int c = 0; c < COMPONENTS; c++) w[c] = (c % 2 ? 0.5 : 1.5) / COMPONENTS, s[c] = 0.1;
    must(psld_mixture_create(COMPONENTS, DIM, w, m, s, &mixture));
    free(m);
    return mixture;
}

/* Both sources of a mixture predict the same eps. */
static void source_by_products(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
    psld_mixture *mixture = large_mixture();
    for (size_t l = 0; l < 4; l++) {
        psld_recipe *recipe;
        psld_source *exact, *fast;
        const double t[STATES] = {0.001, 0.001, 0.02, 0.1, 0.1, 0.6, 1};
        must(psld_recipe_open(lines[l], &recipe));
        size_t k = (size_t)psld_recipe_get(recipe)->k, size = STATES * k * DIM;
        double *z = malloc(3 * size * sizeof *z), *a = z + size, *b = a + size, worst = 0;
        for (int i = 0; i < STATES; i++)
            must(psld_mixture_draw(mixture, recipe, t[i], 3, (uint64_t)i, 1, z + (size_t)i * k * DIM));
        must(psld_source_mixture(mixture, recipe, &exact));
        must(psld_empirical_source(mixture, recipe, &fast));
        psld_states states = PSLD_STATES(STATES, DIM, z, t);
        must(psld_source_predict(exact, &states, a));
        if (psld_source_predict(fast, &states, b) != PSLD_OK) {
            printf("%s\n", psld_error_text()); /* no OpenBLAS */
        } else {
            for (size_t i = 0; i < STATES * (size_t)recipe->predicted * DIM; i++)
                worst = fmax(worst, fabs(a[i] - b[i]));
            printf("%-16s eps by products: off by %.1e\n", lines[l], worst);
            assert_true(worst < 1e-7);
        }
        free(z);
        psld_source_free(exact);
        psld_source_free(fast);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

static void data_as_mixture(void **state)
{
    (void)state;
    psld_data *data;
    psld_mixture *mixture;
    float x[2];
    double mean[2], cov[4], middle[2] = {0, 0};
    must(psld_data_open("toy:moons", NULL, &data));
    must(psld_empirical_mixture(data, 20, 0.3, &mixture));
    for (uint64_t i = 0; i < 20; i++) {
        must(psld_data_read(data, 1, &i, x, NULL));
        for (int j = 0; j < 2; j++) middle[j] += (double)x[j] / 20;
    }
    psld_mixture_moments(mixture, mean, cov);
    assert_true(fabs(mean[0] - middle[0]) < 1e-12 && fabs(mean[1] - middle[1]) < 1e-12);
    psld_mixture_free(mixture);
    psld_data_free(data);
}

/* ---- Recipes as text --------------------------------------------------------------------------------------------- */

static void recipes_as_text(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "told", "psld gamma=0.5 factor=upper name=\"a: b\"",
                                        "cld factor=natural kernel=dsm beta=[0.1,20]"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        psld_recipe *recipe, *same;
        char *text;
        must(psld_recipe_open(lines[i], &recipe));
        must(psld_recipe_text(recipe, &text));
        must(psld_recipe_parse(text, "text", &same));
        assert_memory_equal(recipe->spec.D, same->spec.D, sizeof same->spec.D);
        assert_memory_equal(recipe->spec.Q, same->spec.Q, sizeof same->spec.Q);
        assert_memory_equal(recipe->spec.mass, same->spec.mass, sizeof same->spec.mass);
        assert_memory_equal(recipe->spec.init, same->spec.init, sizeof same->spec.init);
        assert_string_equal(recipe->spec.name, same->spec.name);
        assert_true(psld_recipe_same_eps(recipe, same));
        psld_text_free(text);
        psld_recipe_free(recipe);
        psld_recipe_free(same);
    }
}

/* ---- Designs ----------------------------------------------------------------------------------------------------- */

static const char two[] =
    "mixture: {weights: [0.25, 0.75], means: [[-1, 0.5], [1, -0.5]], scales: [0.1, 0.2]}\nprocess: vp\n";

static psld_design_options small(void)
{
    static const char *const starts[] = {"vp", "psld"};
    psld_design_options o = PSLD_DESIGN_DEFAULTS;
    o.starts = starts;
    o.start_count = 2;
    o.trials = 12;
    o.number = 200;
    o.final_number = 100;
    o.directions = 16;
    o.nfe = 5;
    return o;
}

typedef struct record {
    psld_design_stage stage;
    psld_design_costs costs;
    double d; /* of the recipe */
} record;

/* Runs a design; trials before `known` are told from `before` instead of being measured. */
static int run_design(const psld_design_options *options, record *records, const record *before, int known)
{
    psld_design *design;
    int count = 0;
    must(psld_design_create("two.yaml", options, &design));
    for (;; count++) {
        psld_design_trial trial = PSLD_DESIGN_TRIAL_EMPTY;
        psld_design_costs costs = PSLD_DESIGN_COSTS_EMPTY;
        must(psld_design_next(design, &trial));
        if (!trial.recipe) break;
        if (count < known)
            costs = before[count].costs;
        else
            must(psld_design_measure(design, NULL, NULL, &costs));
        must(psld_design_tell(design, &costs));
        records[count] = (record){trial.stage, costs, psld_recipe_get(trial.recipe)->D[0]};
    }
    psld_design_free(design);
    return count;
}

static void trials_follow_from_what_was_told(void **state)
{
    (void)state;
    record whole[32], again[32];
    psld_design_options o = small();
    int count = run_design(&o, whole, NULL, 0);
    assert_int_equal(count, 2 + 12 + 3);
    assert_int_equal(whole[1].stage, PSLD_DESIGN_START);
    assert_int_equal(whole[2].stage, PSLD_DESIGN_SEARCH);
    assert_int_equal(whole[14].stage, PSLD_DESIGN_FINAL);
    assert_int_equal(run_design(&o, again, whole, 8), count);
    for (int i = 0; i < count; i++) {
        assert_true(whole[i].d == again[i].d);
        assert_true(whole[i].costs.error == again[i].costs.error && whole[i].costs.total == again[i].costs.total);
        assert_true(whole[i].costs.error > 0 && whole[i].costs.distance > 0);
    }
    o.seed = 1;
    run_design(&o, again, NULL, 0);
    assert_true(again[2].d != whole[2].d && again[0].costs.error != whole[0].costs.error);
}

/* The distance from stationarity alone needs no samples; the search finds better ones, and a limit is kept. */
static void sums_and_limits(void **state)
{
    (void)state;
    static record records[256];
    double start = INFINITY, found = INFINITY;
    psld_design_options o = small();
    o.criterion = "distance";
    o.trials = 100;
    int count = run_design(&o, records, NULL, 0);
    assert_int_equal(count, 102);
    for (int i = 0; i < count; i++) {
        double *least = i < 2 ? &start : &found;
        *least = fmin(*least, records[i].costs.distance);
        assert_true(records[i].costs.total == records[i].costs.distance && records[i].costs.error == 0);
    }
    printf("distance %.2e, found %.2e\n", start, found);
    assert_true(found < start / 10);
    o.criterion = "distance=2,factors=0.5";
    o.limits = "factors=0.001";
    o.trials = 1;
    run_design(&o, records, NULL, 0);
    assert_true(records[0].costs.total >= 1e6);
    o.limits = NULL;
    run_design(&o, records, NULL, 0);
    assert_true(fabs(records[0].costs.total - 2 * records[0].costs.distance - 0.5 * records[0].costs.factors) < 1e-12);
}

/* A factor of D and Q that is moved into beta leaves the process what it was, and so its factors. */
static void factors_do_not_depend_on_the_gauge(void **state)
{
    (void)state;
    static const char *const starts[] = {"whole.yaml", "half.yaml"};
    record records[8];
    psld_design_options o = small();
    write_text("whole.yaml", "D: [[0.25, 0], [0, 0.5]]\nQ: [[0, -0.5], [0.5, 0]]\nmass: 0.25\nbeta: 4\n");
    write_text("half.yaml", "D: [[0.125, 0], [0, 0.25]]\nQ: [[0, -0.25], [0.25, 0]]\nmass: 0.25\nbeta: 8\n");
    o.starts = starts;
    o.criterion = "factors";
    o.trials = 0;
    assert_int_equal(run_design(&o, records, NULL, 0), 2);
    assert_true(fabs(records[0].costs.factors / records[1].costs.factors - 1) < 1e-9);
    assert_true(fabs(records[0].costs.distance / records[1].costs.distance - 1) < 1e-9);
}

static void check_refused(const psld_design_options *o, const char *path, const char *text)
{
    psld_design *design;
    assert_int_not_equal(psld_design_create(path, o, &design), PSLD_OK);
    assert_null(design);
    if (!strstr(psld_error_text(), text)) fail_msg("said: %s\nwithout: %s", psld_error_text(), text);
}

static void refusals(void **state)
{
    (void)state;
    psld_design_options o = small();
    o.learn = "D,colour";
    check_refused(&o, "two.yaml", "learn: expected some of D, Q, mass, beta, found \"colour\"");
    o = small();
    o.criterion = "beauty";
    check_refused(&o, "two.yaml", "criterion: expected one of error, distance, factors, found \"beauty\"");
    o.criterion = "error=-1";
    check_refused(&o, "two.yaml", "expected a number above 0, found \"-1\"");
    o.criterion = ",";
    check_refused(&o, "two.yaml", "found nothing");
    o = small();
    o.limits = "factors";
    check_refused(&o, "two.yaml", "limit: expected NAME=NUMBER");
    o = small();
    o.sampler = "ode";
    check_refused(&o, "two.yaml", "adaptive");
    o = small();
    o.number = 1;
    check_refused(&o, "two.yaml", "number: expected a whole number from 2");
    o = small();
    check_refused(&o, "none.yaml", "none.yaml");
    write_text("half-model.yaml", "process: vp\n");
    check_refused(&o, "half-model.yaml", "half-model.yaml");
}

static psld_status starved_design(void)
{
    psld_design *design;
    psld_design_options o = small();
    double error;
    o.trials = 2;
    o.number = o.final_number = 4;
    PSLD_TRY(psld_design_create("two.yaml", &o, &design));
    psld_status status = PSLD_OK;
    while (status == PSLD_OK) {
        psld_design_trial trial = PSLD_DESIGN_TRIAL_EMPTY;
        psld_design_costs costs = PSLD_DESIGN_COSTS_EMPTY;
        status = psld_design_next(design, &trial);
        if (status != PSLD_OK || !trial.recipe) break;
        status = psld_design_measure(design, NULL, NULL, &costs);
        if (status == PSLD_OK) status = psld_design_tell(design, &costs);
    }
    if (status == PSLD_OK) status = psld_design_floor(design, &error);
    psld_design_free(design);
    return status;
}

static void starving(void **state)
{
    (void)state;
    psld_threads_set(1);
    starve(starved_design);
    psld_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evolution),
        cmocka_unit_test(source_by_products),
        cmocka_unit_test(data_as_mixture),
        cmocka_unit_test(recipes_as_text),
        cmocka_unit_test(trials_follow_from_what_was_told),
        cmocka_unit_test(sums_and_limits),
        cmocka_unit_test(factors_do_not_depend_on_the_gauge),
        cmocka_unit_test(refusals),
        cmocka_unit_test(starving),
    };
    write_text("two.yaml", two);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
