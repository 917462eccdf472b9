/* The perturbation kernel against 60-digit truth, against the moment ODEs in extended precision, and against closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "golden.h"
#include "process/recipe.h"

static psld_recipe *recipe_of_row(const json_t *row)
{
    psld_recipe *recipe = NULL;
    psld_recipe_spec spec;
    const char *process = golden_text(row, "process");
    double beta[2];
    golden_numbers(json_object_get(row, "beta"), beta);
    if (json_object_get(row, "D")) {
        psld_recipe_spec_defaults(&spec);
        spec.k = (int)json_array_size(json_object_get(row, "D"));
        golden_numbers(json_object_get(row, "D"), spec.D);
        golden_numbers(json_object_get(row, "Q"), spec.Q);
        golden_numbers(json_object_get(row, "mass"), spec.mass);
        golden_numbers(json_object_get(row, "init"), spec.init);
        spec.beta_min = beta[0];
        spec.beta_max = beta[1];
        assert_int_equal(psld_recipe_create(&spec, &recipe), PSLD_OK);
        return recipe;
    }
    char line[256];
    if (strcmp(process, "vpsde") == 0)
        snprintf(line, sizeof line, "vp beta=[%.17g, %.17g]", beta[0], beta[1]);
    else
        snprintf(line, sizeof line, "psld gamma=%s nu=%s m_inv=%s kappa=%s beta=[%.17g, %.17g]",
                 golden_text(row, "gamma"), golden_text(row, "nu"), golden_text(row, "m_inv"),
                 golden_text(row, "kappa"), beta[0], beta[1]);
    assert_int_equal(psld_recipe_open(line, &recipe), PSLD_OK);
    return recipe;
}

/* Largest error of the entries relative to themselves; an entry that passes through zero is measured against 1e-3 of the geometric mean of its
 * diagonal entries. */
static double relative_error(int k, const double *found, const double *truth)
{
    double worst = 0;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            double t = truth[i * k + j];
            double scale = fmax(fabs(t), 1e-3 * sqrt(fabs(truth[i * k + i] * truth[j * k + j])));
            if (found[i * k + j] != t) worst = fmax(worst, fabs(found[i * k + j] - t) / scale);
        }
    return worst;
}

static void golden_kernels(void **state)
{
    (void)state;
    json_t *rows = golden_json("kernels.json");
    if (!rows) skip();
    double worst[3] = {0};
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *row = json_array_get(rows, r);
        psld_recipe *recipe = recipe_of_row(row);
        int k = psld_recipe_get(recipe)->k;
        psld_mode mode = strcmp(golden_text(row, "mode"), "dsm") == 0 ? PSLD_DSM : PSLD_HSM;
        double found[3][PSLD_MATRIX_SIZE], truth[PSLD_MATRIX_SIZE], t = golden_number(json_object_get(row, "t"));
        assert_int_equal(psld_recipe_kernel(recipe, t, mode, found[0], found[1], found[2]), PSLD_OK);
        static const char *const names[3] = {"mean", "cov", "chol"};
        for (int i = 0; i < 3; i++) {
            golden_numbers(json_object_get(row, names[i]), truth);
            double error = relative_error(k, found[i], truth), limit = i == 2 && k > 3 ? 1e-10 : 1e-12;
            worst[i] = fmax(worst[i], error);
            if (!(error <= limit))
                fail_msg("row %zu (%s, t = %g): %s off by %g, at most %g", r, golden_text(row, "process"), t, names[i],
                         error, limit);
        }
        psld_recipe_free(recipe);
    }
    printf("kernels.json: %zu rows, largest relative error: mean %.2g, cov %.2g, chol %.2g (1e-12)\n",
           json_array_size(rows), worst[0], worst[1], worst[2]);
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
