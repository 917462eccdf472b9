/* Recipes for tests: random valid members of the family, reproducible by their number. */
#ifndef PSLD_TESTS_RECIPES_H
#define PSLD_TESTS_RECIPES_H

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "process/recipe.h"

typedef enum recipe_kind {
    FULL_NOISE,     /* D positive definite and dense, Q dense */
    CHAIN,          /* noise enters the last variable alone and is handed on from neighbour to neighbour */
    RANK_ONE_NOISE, /* D = v v', Q dense */
    RECIPE_KINDS
} recipe_kind;

static inline void fill_random_recipe(int k, recipe_kind kind, uint64_t number, psld_recipe_spec *spec)
{
    double n[4 * PSLD_MATRIX_SIZE], u[4 * PSLD_MAX_K];
    psld_random_normal(number, PSLD_FOR_DATA, (uint64_t)k, (uint64_t)kind, 0, 4 * PSLD_MATRIX_SIZE, n);
    psld_random_uniform(number, PSLD_FOR_DATA, (uint64_t)k, (uint64_t)kind, 4 * PSLD_MATRIX_SIZE, 4 * PSLD_MAX_K, u);
    *spec = (psld_recipe_spec)PSLD_RECIPE_SPEC_DEFAULTS;
    snprintf(spec->name, sizeof spec->name, "random-%d-%d-%d", k, (int)kind, (int)number);
    spec->k = k;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            double d = 0;
            if (kind == CHAIN) d = i == k - 1 && j == k - 1 ? 0.5 + u[0] : 0;
            if (kind == RANK_ONE_NOISE) d = (0.3 + fabs(n[i])) * (0.3 + fabs(n[j]));
            for (int l = 0; kind == FULL_NOISE && l < k + 1; l++)
                d += 0.3 * n[i * PSLD_MAX_K + l] * n[j * PSLD_MAX_K + l] / k;
            spec->D[i * k + j] = d;
            double q = n[PSLD_MATRIX_SIZE + (i > j ? i * k + j : j * k + i)];
            if (kind == CHAIN) q = i - j == 1 || j - i == 1 ? 0.5 + fabs(q) : 0;
            spec->Q[i * k + j] = i > j ? q : i < j ? -q : 0;
        }
    for (int i = 0; i < k - 1; i++) {
        spec->mass[i] = 0.2 + 1.5 * u[PSLD_MAX_K + i];
        spec->init[i] = 0.02 + 0.3 * u[2 * PSLD_MAX_K + i];
    }
    spec->beta_min = 0.2 + 4 * u[1];
    spec->beta_max = spec->beta_min + 8 * u[2];
    spec->stabiliser = k > 1 ? 1e-9 : 0;
}

static inline psld_recipe *random_recipe(int k, recipe_kind kind, uint64_t number)
{
    psld_recipe_spec spec;
    psld_recipe *recipe = NULL;
    fill_random_recipe(k, kind, number, &spec);
    if (psld_recipe_create(&spec, &recipe) != PSLD_OK) printf("%s\n", psld_error_text());
    return recipe;
}

/* Presets, and after these random ones. */
static inline psld_recipe *numbered_recipe(int i)
{
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "told", "psld gamma=0.5 factor=upper"};
    enum { LINES = sizeof lines / sizeof *lines };
    psld_recipe *recipe = NULL;
    if (i >= LINES) return random_recipe(2 + i % 3, (recipe_kind)(i % RECIPE_KINDS), (uint64_t)i);
    if (psld_recipe_open(lines[i], &recipe) != PSLD_OK) fail_msg("%s: %s", lines[i], psld_error_text());
    return recipe;
}

#endif
