/* Presets and their rules, recipes from YAML, what validation refuses and says, and the analysis. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recipes.h"

static psld_recipe *open_recipe(const char *line)
{
    psld_recipe *recipe;
    if (psld_recipe_open(line, &recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    return recipe;
}

/* ---- Presets ----------------------------------------------------------------------------------------------------- */

static void check_phase_space(const char *line, double gamma, double nu, double m_inv)
{
    psld_recipe *recipe = open_recipe(line);
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    assert_int_equal(spec->k, 2);
    assert_true(fabs(spec->D[0] - gamma / 2) < 1e-15);
    assert_true(fabs(spec->D[3] - nu / m_inv / 2) < 1e-15);
    assert_true(spec->D[1] == 0 && spec->D[2] == 0);
    assert_true(spec->Q[1] == -0.5 && spec->Q[2] == 0.5);
    assert_true(fabs(spec->mass[0] - 1 / m_inv) < 1e-15);
    assert_true(spec->init[0] == 0.04 && spec->stabiliser == 1e-9);
    assert_true(spec->beta_min == 8 && spec->beta_max == 8);
    psld_recipe_free(recipe);
}

static void presets(void **state)
{
    (void)state;
    check_phase_space("cld", 0, 4, 4);
    check_phase_space("psld", 0.01, 4.01, 4);
    check_phase_space("psld gamma=0.02", 0.02, 4.02, 4);
    check_phase_space("psld-cifar10", 0.02, 4.02, 4);
    check_phase_space("psld-celeba64", 0.005, 4.005, 4);
    check_phase_space("psld-afhqv2", 0.01, 4.01, 4);
    check_phase_space("psld gamma=4 nu=0", 4, 0, 4);
    check_phase_space("psld gamma=0.5 nu=2.5", 0.5, 2.5, 1);
    check_phase_space("psld gamma=0.1 nu=2 m_inv=4", 0.1, 2, 4);
    check_phase_space("  psld   gamma=1 nu=1 m_inv=2", 1, 1, 2);
    for (int i = 0; psld_preset_at(i); i++) psld_recipe_free(open_recipe(psld_preset_at(i)->name));
}

static void overrides(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("told beta=[0.5, 11] kappa=0.1 stabiliser=0 name=mine");
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    assert_true(spec->beta_min == 0.5 && spec->beta_max == 11 && spec->stabiliser == 0);
    assert_true(spec->init[0] == 0.1 && spec->init[1] == 0.1);
    assert_string_equal(spec->name, "mine");
    psld_recipe_free(recipe);
    recipe = open_recipe("told init=[0.1, 0.2] beta=4");
    assert_true(psld_recipe_get(recipe)->init[1] == 0.2 && psld_recipe_get(recipe)->beta_max == 4);
    psld_recipe_free(recipe);
    recipe = open_recipe("vp beta_min=0.2 beta_max=10");
    assert_true(psld_recipe_get(recipe)->beta_min == 0.2 && psld_recipe_get(recipe)->beta_max == 10);
    assert_true(psld_recipe_get(recipe)->stabiliser == 0);
    psld_recipe_free(recipe);
}

/* ---- YAML -------------------------------------------------------------------------------------------------------- */

static void from_yaml(void **state)
{
    (void)state;
    psld_recipe *recipe;
    const char *yaml = "name: my-process\nD: [[0.005, 0], [0, 0.50125]]\nQ: [[0, -0.5], [0.5, 0]]\n"
                       "mass: [0.25]\nbeta: 8\ninit: [0.04]\nstabiliser: 1e-9\n";
    assert_int_equal(psld_recipe_parse(yaml, "text", &recipe), PSLD_OK);
    psld_recipe *preset = open_recipe("psld gamma=0.01 name=my-process");
    const psld_recipe_spec *a = psld_recipe_get(recipe), *b = psld_recipe_get(preset);
    assert_string_equal(a->name, b->name);
    for (int i = 0; i < 4; i++) assert_true(fabs(a->D[i] - b->D[i]) < 1e-15 && a->Q[i] == b->Q[i]);
    psld_recipe_free(recipe);
    psld_recipe_free(preset);
    assert_int_equal(psld_recipe_parse("{preset: psld, gamma: 0.02}", "text", &recipe), PSLD_OK);
    assert_true(fabs(psld_recipe_get(recipe)->D[0] - 0.01) < 1e-15);
    psld_recipe_free(recipe);
    assert_int_equal(psld_recipe_parse("{D: [[1]], Q: [[0]]}", "text", &recipe), PSLD_OK);
    assert_true(psld_recipe_get(recipe)->stabiliser == 0);
    psld_recipe_free(recipe);
}

/* dz = beta F z + sqrt(beta) G dw of CLD gives CLD's D and Q back. */
static void from_drift_and_noise(void **state)
{
    (void)state;
    psld_recipe *recipe, *cld = open_recipe("cld");
    const char *yaml = "drift: [[0, 2], [-0.5, -2]]\nnoise: [[0, 0], [0, 1]]\nmass: [0.25]\n";
    assert_int_equal(psld_recipe_parse(yaml, "text", &recipe), PSLD_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(psld_recipe_get(recipe)->D[i] - psld_recipe_get(cld)->D[i]) < 1e-15);
        assert_true(fabs(psld_recipe_get(recipe)->Q[i] - psld_recipe_get(cld)->Q[i]) < 1e-15);
    }
    psld_recipe_free(recipe);
    psld_recipe_free(cld);
}

/* ---- Validation -------------------------------------------------------------------------------------------------- */

/* The text must be refused with a message that contains all of the words, separated by '|'. */
static void check_refused(const char *yaml, const char *words)
{
    psld_recipe *recipe = (psld_recipe *)8;
    psld_status status = psld_recipe_parse(yaml, "test.yaml", &recipe);
    if (status != PSLD_BAD_INPUT) fail_msg("taken, or another status (%d): %s", status, yaml);
    assert_null(recipe);
    char list[256];
    snprintf(list, sizeof list, "%s", words);
    for (char *word = strtok(list, "|"); word; word = strtok(NULL, "|"))
        if (!strstr(psld_error_text(), word)) fail_msg("%s\nsaid: %s\nwithout: %s", yaml, psld_error_text(), word);
    assert_null(strchr(psld_error_text(), '\n'));
}

static void refused(void **state)
{
    (void)state;
    check_refused("{D: [[1, 0.2], [0, 1]], Q: [[0, 1], [-1, 0]]}", "test.yaml|not symmetric|0.2");
    check_refused("{D: [[1, 0], [0, 1]], Q: [[0, 1], [1, 0]]}", "not skew-symmetric|Q[1][0]|off by 2");
    check_refused("{D: [[1, 0], [0, 1]], Q: [[0.5, 1], [-1, 0]]}", "not skew-symmetric|Q[0][0]");
    check_refused("{D: [[1, 0], [0, -0.3]], Q: [[0, 1], [-1, 0]]}", "not positive semidefinite|-0.3");
    check_refused("{D: [[0, 0], [0, 1]], Q: [[0, 0], [0, 0]]}", "noise does not reach|1 of 2|variable 0");
    check_refused("{D: [[0]], Q: [[0]]}", "noise does not reach|0 of 1");
    check_refused("{D: [[0, 0, 0], [0, 1, 0], [0, 0, 0]], Q: [[0, 1, 0], [-1, 0, 0], [0, 0, 0]]}", "2 of 3|variable 2");
    check_refused("{D: [[1, 0], [0, 1]], Q: [[0, 1], [-1, 0]], mass: [-1]}", "mass|positive|-1");
    check_refused("{D: [[1, 0], [0, 1]], Q: [[0, 1], [-1, 0]], mass: [1, 2]}", "mass");
    check_refused("{D: [[1, 0], [0, 1]], Q: [[0, 1], [-1, 0]], init: [-0.1]}", "init|at least 0");
    check_refused("{D: [[1, 0], [0, 1]], Q: [[0, 1, 2], [-1, 0, 2]]}", "Q");
    check_refused("{D: [[1, 0], [0]], Q: [[0, 1], [-1, 0]]}", "D[1]");
    check_refused("{D: [[.nan]], Q: [[0]]}", "D[0][0]|number");
    check_refused("{D: [[inf]], Q: [[0]]}", "D[0][0]");
    check_refused("{D: [[1e200, 0], [0, 1e200]], Q: [[0, 1], [-1, 0]]}", "D + Q|1e+200|row 0|beta");
    check_refused("{D: [[1, 0], [0, 1e60]], Q: [[0, 1], [-1, 0]], mass: [1e-60]}", "1e+120|row 1, column 1");
    check_refused("{D: [[1e308]], Q: [[0]]}", "D + Q|1e+100");
    check_refused("{D: [[1]], Q: [[0]], beta: 0}", "beta");
    check_refused("{D: [[1]], Q: [[0]], beta: -2}", "beta|at least 0");
    check_refused("{D: [[1]], Q: [[0]], beta: [1, 2, 3]}", "beta");
    check_refused("{D: [[1]], Q: [[0]], stabiliser: -1}", "stabiliser");
    check_refused("{D: [[1]], Q: [[0]], colour: red}", "colour|stabiliser");
    check_refused("{D: [[1]]}", "D and Q|drift and noise");
    check_refused("{D: [[1]], Q: [[0]], drift: [[1]]}", "D and Q");
    check_refused("{D: 3, Q: [[0]]}", "D|matrix");
    check_refused("{D: [[1]], Q: [[0]], factor: sideways}", "factor|lower, upper or natural");
    check_refused("[1, 2]", "test.yaml");
    check_refused("psld", "test.yaml"); /* a file that only names something is no recipe: it could name itself */
    check_refused("{preset: nonsense}", "nonsense|cld");
    check_refused("{preset: vp, gamma: 1}", "gamma");
    check_refused("{preset: psld, gamma: 2, nu: 2}", "gamma = nu|m_inv");
    check_refused("{preset: psld, gamma: -1}", "gamma");
    check_refused("{preset: psld, m_inv: 0}", "m_inv");
    /* the variance-exploding SDE is the textbook process outside the family */
    check_refused("{drift: [[0]], noise: [[1]]}", "stationary|not skew-symmetric|off by 1");
}

static void refused_lines(void **state)
{
    (void)state;
    psld_recipe *recipe;
    assert_int_equal(psld_recipe_open("nonsense", &recipe), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "neither a preset"));
    FILE *file = fopen("mine", "w"); /* a file all the same: what is wrong in it is said */
    assert_non_null(file);
    assert_true(fputs("D: [[1]]\nQ: [[0]\nbeta: 1\n", file) >= 0 && fclose(file) == 0);
    assert_int_equal(psld_recipe_open("mine", &recipe), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "mine:3"));
    assert_int_equal(psld_recipe_open("./no-such-file.yaml", &recipe), PSLD_IO);
    assert_non_null(strstr(psld_error_text(), "no-such-file.yaml"));
    assert_int_equal(psld_recipe_open("psld gamma=abc", &recipe), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "gamma"));
    assert_int_equal(psld_recipe_open("psld delta=1", &recipe), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "delta"));
    assert_int_equal(psld_recipe_open("", &recipe), PSLD_BAD_INPUT);
}

static void spec_checks(void **state)
{
    (void)state;
    psld_recipe_spec spec = PSLD_RECIPE_SPEC_DEFAULTS;
    psld_recipe *recipe;
    spec.k = 9;
    assert_int_equal(psld_recipe_create(&spec, &recipe), PSLD_BAD_INPUT);
    spec.k = 0;
    assert_int_equal(psld_recipe_create(&spec, &recipe), PSLD_BAD_INPUT);
    spec = (psld_recipe_spec)PSLD_RECIPE_SPEC_DEFAULTS;
    spec.D[0] = NAN;
    assert_int_equal(psld_recipe_create(&spec, &recipe), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "D"));
    for (int k = 1; k <= PSLD_MAX_K; k++)
        for (int kind = 0; kind < RECIPE_KINDS; kind++) {
            recipe = random_recipe(k, (recipe_kind)kind, 3);
            assert_non_null(recipe);
            psld_recipe_free(recipe);
        }
    psld_recipe_free(NULL);
}

/* A copy is as long as the caller's struct, which the library cannot know: it must say so itself. */
static void copies_of_a_spec_need_a_size(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("psld gamma=0.02"), *copy;
    psld_recipe_spec spec = *psld_recipe_get(recipe);
    assert_int_equal(psld_recipe_create(&spec, &copy), PSLD_BAD_ARGUMENT);
    assert_non_null(strstr(psld_error_text(), "PSLD_RECIPE_SPEC_DEFAULTS"));
    spec.size = sizeof spec + 8;
    assert_int_equal(psld_recipe_create(&spec, &copy), PSLD_BAD_ARGUMENT);
    spec.size = sizeof spec;
    assert_int_equal(psld_recipe_create(&spec, &copy), PSLD_OK);
    assert_true(psld_recipe_same(recipe, copy));
    psld_recipe_free(copy);
    psld_recipe_free(recipe);
}

static void times_are_checked(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("cld");
    double a[4], b[4];
    assert_int_equal(psld_recipe_kernel(recipe, -0.1, PSLD_HSM, a, NULL, NULL), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_recipe_kernel(recipe, NAN, PSLD_HSM, a, NULL, NULL), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_recipe_kernel(recipe, 0, PSLD_HSM, a, b, NULL), PSLD_OK);
    assert_true(a[0] == 1 && a[1] == 0 && b[0] == 0 && b[3] == 0.01);
    assert_int_equal(psld_recipe_factor(recipe, 0, PSLD_HSM, a, b), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_recipe_sigma(recipe, 0, a), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_recipe_distance(recipe, 1.5, a), PSLD_BAD_ARGUMENT);
    assert_int_equal(psld_recipe_error_factors(recipe, 0, a, b), PSLD_BAD_ARGUMENT);
    psld_recipe_free(recipe);
}

/* ---- What is predicted ------------------------------------------------------------------------------------------- */

static void check_order(const char *line, int predicted, int first, int last)
{
    psld_recipe *recipe = open_recipe(line);
    int order[PSLD_MAX_K], k = psld_recipe_get(recipe)->k;
    assert_int_equal(psld_recipe_order(recipe, order), predicted);
    assert_int_equal(order[0], first);
    assert_int_equal(order[k - 1], last);
    psld_recipe_free(recipe);
}

static void predicted_variables(void **state)
{
    (void)state;
    check_order("vp", 1, 0, 0);
    check_order("cld", 1, 0, 1);               /* momentum */
    check_order("psld", 2, 0, 1);              /* both */
    check_order("psld gamma=4 nu=0", 1, 1, 0); /* position: the momentum is quiet and comes first */
    check_order("told", 1, 0, 2);
    check_order("psld factor=upper", 2, 1, 0);
    check_order("psld gamma=4 nu=0 factor=upper", 1, 1, 0);
    check_order("cld factor=upper", 2, 1, 0); /* the momentum's score then needs both */
}

/* ---- Analysis ---------------------------------------------------------------------------------------------------- */

static psld_analysis analyse(const char *line)
{
    psld_analysis analysis = PSLD_ANALYSIS_EMPTY;
    psld_recipe *recipe = open_recipe(line);
    assert_int_equal(psld_recipe_analyse(recipe, &analysis), PSLD_OK);
    psld_recipe_free(recipe);
    return analysis;
}

static void damping(void **state)
{
    (void)state;
    assert_int_equal(analyse("vp").damping, PSLD_OVERDAMPED);
    assert_int_equal(analyse("cld").damping, PSLD_CRITICAL);
    for (double gamma = 0; gamma < 3; gamma += 0.37) {
        char line[64];
        snprintf(line, sizeof line, "psld gamma=%.17g", gamma);
        psld_analysis a = analyse(line);
        assert_int_equal(a.damping, PSLD_CRITICAL);
        for (int i = 0; i < 2; i++)
            assert_true(fabs(a.eigenvalue_re[i] + (2 * gamma + 4) / 4) < 1e-13 && a.eigenvalue_im[i] == 0);
    }
    psld_analysis under = analyse("psld gamma=0.1 nu=2 m_inv=4"), over = analyse("psld gamma=0.05 nu=8 m_inv=4");
    assert_int_equal(under.damping, PSLD_UNDERDAMPED);
    assert_true(fabs(under.eigenvalue_re[0] + 2.1 / 4) < 1e-14 &&
                fabs(fabs(under.eigenvalue_im[0]) - sqrt(16 - 1.9 * 1.9) / 4) < 1e-14);
    assert_true(under.eigenvalue_im[0] == -under.eigenvalue_im[1]);
    assert_int_equal(over.damping, PSLD_OVERDAMPED);
    psld_analysis told = analyse("told");
    assert_int_equal(told.damping, PSLD_CRITICAL);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(told.eigenvalue_re[i] + sqrt(3.0) / 2) < 1e-12 && told.eigenvalue_im[i] == 0);
    psld_recipe *plain; /* equal eigenvalues, but diagonal: not critical */
    assert_int_equal(psld_recipe_parse("{D: [[0.5, 0], [0, 0.5]], Q: [[0, 0], [0, 0]]}", "text", &plain), PSLD_OK);
    psld_analysis a = PSLD_ANALYSIS_EMPTY;
    assert_int_equal(psld_recipe_analyse(plain, &a), PSLD_OK);
    assert_int_equal(a.damping, PSLD_OVERDAMPED);
    psld_recipe_free(plain);
    assert_string_equal(psld_damping_name(PSLD_CRITICAL), "critical");
}

/* Chains of every length: all eigenvalues are -1 and defective, sigma is 100 at t = 1, and n = 2 and 3 are the ratios of
 * cld and told. */
static void chains_of_any_order(void **state)
{
    (void)state;
    for (int n = 2; n <= PSLD_MAX_K; n++) {
        char line[64];
        double sigma;
        snprintf(line, sizeof line, "hold n=%d", n);
        psld_recipe *recipe = open_recipe(line);
        psld_analysis a = analyse(line);
        assert_int_equal(recipe->spec.k, n);
        assert_int_equal(recipe->predicted, 1);
        assert_int_equal(a.damping, PSLD_CRITICAL);
        for (int i = 0; i < n; i++) assert_true(fabs(a.eigenvalue_re[i] + 1) < 1e-10 && a.eigenvalue_im[i] == 0);
        assert_int_equal(psld_recipe_sigma(recipe, 1, &sigma), PSLD_OK);
        assert_true(fabs(sigma / 100 - 1) < 1e-3);
        assert_true(a.long_enough);
        psld_recipe_free(recipe);
    }
    psld_recipe *chain = open_recipe("hold n=3"), *third = open_recipe("told");
    for (int i = 0; i < 9; i++) {
        double speed = third->spec.D[8] / chain->spec.D[8];
        assert_true(fabs(third->spec.Q[i] - speed * chain->spec.Q[i]) < 1e-14);
        assert_true(fabs(third->spec.D[i] - speed * chain->spec.D[i]) < 1e-14);
    }
    psld_recipe_free(chain);
    psld_recipe_free(third);
    chain = open_recipe("hold n=5 beta=20 init=0.1");
    assert_true(chain->spec.beta_min == 20 && chain->spec.beta_max == 20 && chain->spec.init[3] == 0.1);
    psld_recipe_free(chain);
    assert_int_equal(psld_recipe_open("hold n=9", &chain), PSLD_BAD_INPUT);
    assert_non_null(strstr(psld_error_text(), "from 2 to 8"));
    assert_int_equal(psld_recipe_open("cld n=3", &chain), PSLD_BAD_INPUT);
}

/* Numbers computed independently (60-digit arithmetic, rounded). */
static void noise_levels(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double at_1, at_1e_3;
    } rows[] = {{"vp", 152, 0.0105}, {"cld", 248, 0.0007}, {"psld gamma=0.02", 268, 0.0127}, {"told", 22.3, 2e-6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        psld_recipe *recipe = open_recipe(rows[i].line);
        double high, low;
        assert_int_equal(psld_recipe_sigma(recipe, 1, &high), PSLD_OK);
        assert_int_equal(psld_recipe_sigma(recipe, 1e-3, &low), PSLD_OK);
        assert_true(fabs(high / rows[i].at_1 - 1) < 0.01);
        assert_true(fabs(low / rows[i].at_1e_3 - 1) < 0.15); /* given with one or two digits */
        psld_recipe_free(recipe);
    }
}

/* The distance by its definition, tr - k - log det + |mu|^2, where that does not cancel; and it falls. */
static void distance_to_stationarity(void **state)
{
    (void)state;
    psld_recipe *recipe = open_recipe("psld");
    double previous = INFINITY;
    for (double t = 0.001; t <= 1; t *= 1.5) {
        double mean[4], cov[4], found;
        assert_int_equal(psld_recipe_kernel(recipe, t, PSLD_HSM, mean, cov, NULL), PSLD_OK);
        assert_int_equal(psld_recipe_distance(recipe, t, &found), PSLD_OK);
        double det = (cov[0] * cov[3] - cov[1] * cov[2]) / 0.25, trace = cov[0] + cov[3] / 0.25;
        double expected = (trace - 2 - log(det) + mean[0] * mean[0] + mean[2] * mean[2] / 0.25) / 2;
        assert_true(fabs(found - expected) < 1e-10 + 1e-9 * expected);
        assert_true(found < previous);
        previous = found;
    }
    psld_recipe_free(recipe);
    assert_true(analyse("vp").long_enough && analyse("cld").long_enough && analyse("told").long_enough);
    assert_false(analyse("vp beta=1").long_enough);
}

/* Far from stationarity and near it, by its definition in 120-digit arithmetic. */
static void distance_keeps_its_digits(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double t, distance;
    } rows[] = {
        {"vp beta=1e-300", 1, 345.387763949106853},  {"vp beta=8", 1e-12, 12.7757897871263562},
        {"vp beta=8", 0.1, 0.298308839594487707},    {"vp beta=8", 1, 0.000167759454038410087},
        {"vp beta=100", 1, 1.86003798801041798e-44}, {"cld", 1e-12, 39.3129662375066384},
        {"cld", 0.1, 0.977937927696808942},          {"cld", 1, 8.15900358977666058e-6},
        {"cld beta=40", 1, 2.96085870176040359e-32}, {"cld beta=40 kappa=100", 0.3, 5.90832497149242696e-9},
        {"psld", 1e-5, 8.14508445869219162},         {"psld gamma=0 nu=1e-9 m_inv=4", 1e-5, 26.1906028608167628},
        {"told", 1e-5, 26.861111448936854},          {"told", 0.3, 0.780203094497746385},
        {"told", 1, 0.00101436740821034077},         {"told kappa=0", 1e-12, 116.042309365546186},
        {"told kappa=0", 1e-5, 43.5111906618453459}, {"told beta=60", 1, 1.85898355824258643e-39},
    };
    double worst = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        psld_recipe *recipe = open_recipe(rows[i].line);
        double found;
        assert_int_equal(psld_recipe_distance(recipe, rows[i].t, &found), PSLD_OK);
        worst = fmax(worst, fabs(found / rows[i].distance - 1));
        psld_recipe_free(recipe);
    }
    printf("distance from stationarity: off by %.2g at most\n", worst);
    assert_true(worst < 1e-12);
}

/* lambda1 = Gamma^2 l_xx, lambda2 = Gamma^2 l_xm - nu l_mm, and the first-order terms Gamma (l_xx, l_xm). */
static void error_factors(void **state)
{
    (void)state;
    double gamma = 0.25, nu = 4.25;
    psld_recipe *recipe = open_recipe("psld gamma=0.25");
    for (double t = 1e-4; t <= 1; t *= 10) {
        double cov[4], first[2], second[2];
        assert_int_equal(psld_recipe_kernel(recipe, t, PSLD_HSM, NULL, cov, NULL), PSLD_OK);
        assert_int_equal(psld_recipe_error_factors(recipe, t, first, second), PSLD_OK);
        double det = cov[0] * cov[3] - cov[1] * cov[1];
        double xx = 1 / sqrt(cov[0]), xm = -cov[1] / sqrt(cov[0] * det), mm = sqrt(cov[0] / det);
        assert_true(fabs(second[0] / (gamma * gamma * xx) - 1) < 1e-12);
        assert_true(fabs(second[1] / (gamma * gamma * xm - nu * mm) - 1) < 1e-9);
        assert_true(fabs(first[0] / (gamma * xx) - 1) < 1e-12);
        assert_true(fabs(first[1] - gamma * xm) < 1e-9 * fabs(gamma * xx));
    }
    psld_recipe_free(recipe);
}

/* Factors far below 1, whose inverse double cannot hold. */
static void kernels_beyond_the_range(void **state)
{
    (void)state;
    double chol[9], first[3], second[3], value;
    psld_recipe *recipe = open_recipe("cld beta=1e-300");
    assert_int_equal(psld_recipe_kernel(recipe, 1, PSLD_HSM, NULL, NULL, chol), PSLD_OK);
    assert_int_equal(psld_recipe_error_factors(recipe, 1, first, second), PSLD_OK);
    assert_true(first[0] == 0 && first[1] == 0 && second[0] == 0);
    assert_true(fabs(second[1] * chol[3] / -4 - 1) < 1e-15);
    psld_recipe_free(recipe);
    recipe = open_recipe("told beta=1e-300 kappa=0");
    assert_int_equal(psld_recipe_distance(recipe, 1, &value), PSLD_NOT_FINITE);
    assert_non_null(strstr(psld_error_text(), "recipe told: the kernel covariance at t = 1 is singular"));
    assert_int_equal(psld_recipe_sigma(recipe, 1, &value), PSLD_NOT_FINITE);
    assert_int_equal(psld_recipe_error_factors(recipe, 1, first, second), PSLD_NOT_FINITE);
    psld_recipe_free(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets),
        cmocka_unit_test(overrides),
        cmocka_unit_test(from_yaml),
        cmocka_unit_test(from_drift_and_noise),
        cmocka_unit_test(refused),
        cmocka_unit_test(refused_lines),
        cmocka_unit_test(spec_checks),
        cmocka_unit_test(copies_of_a_spec_need_a_size),
        cmocka_unit_test(times_are_checked),
        cmocka_unit_test(damping),
        cmocka_unit_test(predicted_variables),
        cmocka_unit_test(chains_of_any_order),
        cmocka_unit_test(noise_levels),
        cmocka_unit_test(distance_to_stationarity),
        cmocka_unit_test(error_factors),
        cmocka_unit_test(distance_keeps_its_digits),
        cmocka_unit_test(kernels_beyond_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
