/* Whether two recipes are equal, and the first difference between them, by the keys that a user writes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "process/recipe.h"

#define TOLERANCE 1e-10

static int same_numbers(const double *a, const double *b, int count)
{
    double largest = 0;
    for (int i = 0; i < count; i++) largest = fmax(largest, fabs(a[i]));
    for (int i = 0; i < count; i++)
        if (!(fabs(a[i] - b[i]) <= TOLERANCE * largest)) return 0;
    return 1;
}

int psld_recipe_same(const psld_recipe *a, const psld_recipe *b)
{
    const psld_recipe_spec *x = &a->spec, *y = &b->spec;
    if (x->k != y->k) return 0;
    return same_numbers(x->D, y->D, x->k * x->k) && same_numbers(x->Q, y->Q, x->k * x->k) &&
           same_numbers(x->mass, y->mass, x->k - 1) && same_numbers(x->init, y->init, x->k - 1) &&
           same_numbers(&x->beta_min, &y->beta_min, 1) && same_numbers(&x->beta_max, &y->beta_max, 1);
}

int psld_recipe_same_eps(const psld_recipe *a, const psld_recipe *b)
{
    return psld_recipe_same(a, b) && a->spec.stabiliser == b->spec.stabiliser && a->spec.mode == b->spec.mode &&
           memcmp(a->order, b->order, (size_t)a->spec.k * sizeof *a->order) == 0;
}

/* ---- Differences ------------------------------------------------------------------------------------------------- */

/* Writes "NAME is 1, not 2" if the numbers differ. Returns whether they do. */
static int compare_number(const char *name, double a, double b, char *text, size_t size)
{
    if (fabs(a - b) <= TOLERANCE * fmax(fabs(a), fabs(b))) return 0;
    char numbers[2][32];
    for (int digits = 6; digits <= 17; digits++) { /* as many digits as are needed to see the difference */
        psld_text_print(numbers[0], sizeof numbers[0], "%.*g", digits, a);
        psld_text_print(numbers[1], sizeof numbers[1], "%.*g", digits, b);
        if (strcmp(numbers[0], numbers[1]) != 0) break;
    }
    snprintf(text, size, "%s is %s, not %s", name, numbers[0], numbers[1]);
    return 1;
}

/* Whether the matrices have the form of the presets cld and psld, whose keys are gamma, nu and m_inv. */
static int is_phase_space(const psld_recipe_spec *s)
{
    return s->k == 2 && s->D[1] == 0 && fabs(s->Q[1]) == 0.5;
}

static int compare_phase_space(const psld_recipe_spec *a, const psld_recipe_spec *b, char *text, size_t size)
{
    return compare_number("gamma", 2 * a->D[0], 2 * b->D[0], text, size) ||
           compare_number("nu", 2 * a->D[3] / a->mass[0], 2 * b->D[3] / b->mass[0], text, size) ||
           compare_number("m_inv", 1 / a->mass[0], 1 / b->mass[0], text, size) ||
           compare_number("Q[1][0]", a->Q[2], b->Q[2], text, size);
}

static int compare_matrices(const psld_recipe_spec *a, const psld_recipe_spec *b, char *text, size_t size)
{
    char name[32];
    for (int i = 0; i < a->k * a->k; i++) {
        snprintf(name, sizeof name, "D[%d][%d]", i / a->k, i % a->k);
        if (compare_number(name, a->D[i], b->D[i], text, size)) return 1;
        snprintf(name, sizeof name, "Q[%d][%d]", i / a->k, i % a->k);
        if (compare_number(name, a->Q[i], b->Q[i], text, size)) return 1;
    }
    for (int i = 0; i < a->k - 1; i++) {
        snprintf(name, sizeof name, "mass[%d]", i);
        if (compare_number(name, a->mass[i], b->mass[i], text, size)) return 1;
    }
    return 0;
}

static int compare_init_and_beta(const psld_recipe_spec *a, const psld_recipe_spec *b, char *text, size_t size)
{
    int constant = a->beta_min == a->beta_max && b->beta_min == b->beta_max;
    char name[32];
    for (int i = 0; i < a->k - 1; i++) {
        snprintf(name, sizeof name, a->k == 2 ? "init" : "init[%d]", i);
        if (compare_number(name, a->init[i], b->init[i], text, size)) return 1;
    }
    return compare_number(constant ? "beta" : "beta_min", a->beta_min, b->beta_min, text, size) ||
           compare_number("beta_max", a->beta_max, b->beta_max, text, size);
}

static const char *factor_word(const psld_recipe_spec *s)
{
    return s->upper ? "upper" : s->natural ? "natural" : "lower";
}

static void compare_eps_meaning(const psld_recipe_spec *a, const psld_recipe_spec *b, char *text, size_t size)
{
    if (compare_number("stabiliser", a->stabiliser, b->stabiliser, text, size)) return;
    if (a->mode != b->mode)
        snprintf(text, size, "kernel (the loss of training) is %s, not %s", a->mode == PSLD_DSM ? "dsm" : "hsm",
                 b->mode == PSLD_DSM ? "dsm" : "hsm");
    else if (strcmp(factor_word(a), factor_word(b)) != 0)
        snprintf(text, size, "factor is %s, not %s", factor_word(a), factor_word(b));
}

void psld_recipe_difference(const psld_recipe *a, const psld_recipe *b, char *text, size_t size)
{
    const psld_recipe_spec *x = &a->spec, *y = &b->spec;
    if (size) *text = 0;
    if (x->k != y->k) {
        snprintf(text, size, "k, the number of variables, is %d, not %d", x->k, y->k);
        return;
    }
    if (is_phase_space(x) && is_phase_space(y) ? compare_phase_space(x, y, text, size)
                                               : compare_matrices(x, y, text, size))
        return;
    if (!compare_init_and_beta(x, y, text, size)) compare_eps_meaning(x, y, text, size);
}
