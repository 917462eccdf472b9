#include "process/learned.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const struct {
    const char *name;
    unsigned bit;
} keys[] = {{"D", PSLD_LEARN_D}, {"Q", PSLD_LEARN_Q}, {"mass", PSLD_LEARN_MASS}, {"beta", PSLD_LEARN_BETA}};
enum { KEYS = sizeof keys / sizeof *keys };

static unsigned key_bit(const char *word)
{
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, word) == 0) return keys[i].bit;
    return 0;
}

psld_status psld_learn_parse(const char *what, const char *text, unsigned *bits)
{
    *bits = 0;
    while (*text) {
        char word[32];
        text += strspn(text, ", ");
        int length = (int)strcspn(text, ", ");
        if (length == 0) break;
        snprintf(word, sizeof word, "%.*s", length, text);
        unsigned bit = key_bit(word);
        if (!bit)
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected some of D, Q, mass, beta, found \"%s\"", what, word);
        *bits |= bit;
        text += length;
    }
    if (*bits) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected some of D, Q, mass, beta, found nothing", what);
}

/* ---- Which parameters there are ---------------------------------------------------------------------------------- */

static int learns_part(const psld_learned *learned, unsigned bit)
{
    return (learned->what & bit) != 0;
}

static int both_matrices(const psld_learned *learned)
{
    return learns_part(learned, PSLD_LEARN_D) && learns_part(learned, PSLD_LEARN_Q);
}

static int has_noise_parameters(const psld_learned *learned, int row)
{
    return !learned->keeps_zeros || learned->spec.D[row * learned->spec.k + row] > 0;
}

static int learns_masses(const psld_learned *learned)
{
    return learns_part(learned, PSLD_LEARN_MASS) && !both_matrices(learned) && learned->spec.k > 1;
}

static double mean_beta(const psld_recipe_spec *spec)
{
    return (spec->beta_min + spec->beta_max) / 2;
}

/* beta(0) and beta(1) of a mean and the logarithm of their ratio. */
static void set_beta(double mean, double log_ratio, double beta[2])
{
    beta[0] = 2 * mean / (1 + exp(log_ratio));
    beta[1] = 2 * mean / (1 + exp(-log_ratio));
}

/* ---- Beginning --------------------------------------------------------------------------------------------------- */

static void begin_matrices(psld_learned *learned, double *parameters)
{
    int k = learned->spec.k;
    double root[PSLD_MATRIX_SIZE];
    psld_matrix_cholesky(k, learned->spec.D, root);
    for (int i = 0; learns_part(learned, PSLD_LEARN_D) && i < k; i++)
        for (int j = 0; has_noise_parameters(learned, i) && j <= i; j++)
            parameters[learned->count++] = root[i * k + j] / learned->unit_a;
    for (int i = 0; learns_part(learned, PSLD_LEARN_Q) && i < k; i++)
        for (int j = 0; j < i; j++) parameters[learned->count++] = learned->spec.Q[i * k + j] / learned->unit_b;
}

static psld_status begin_beta(psld_learned *learned, double *parameters)
{
    const psld_recipe_spec *spec = &learned->spec;
    if (!(spec->beta_min > 0 && spec->beta_max > 0))
        return psld_fail(PSLD_BAD_INPUT, "recipe %s: beta cannot be learned from one that is 0 at t = %d", spec->name,
                         spec->beta_min > 0);
    if (!both_matrices(learned)) parameters[learned->count++] = log(mean_beta(spec));
    parameters[learned->count++] = log(spec->beta_max / spec->beta_min);
    return PSLD_OK;
}

psld_status psld_learned_begin(const psld_recipe *recipe, unsigned what, int keeps_zeros, psld_learned *learned,
                               double parameters[PSLD_LEARNED_SIZE])
{
    *learned = (psld_learned){.spec = recipe->spec, .what = what, .keeps_zeros = keeps_zeros};
    int k = learned->spec.k;
    double largest_d = psld_matrix_largest(k, learned->spec.D), largest_q = psld_matrix_largest(k, learned->spec.Q);
    learned->spec.size = sizeof learned->spec;
    learned->unit_a = sqrt(largest_d);
    learned->unit_b = fmax(largest_d, largest_q);
    begin_matrices(learned, parameters);
    for (int i = 0; learns_masses(learned) && i < k - 1; i++) parameters[learned->count++] = log(learned->spec.mass[i]);
    if (learns_part(learned, PSLD_LEARN_BETA)) PSLD_TRY(begin_beta(learned, parameters));
    if (learned->count) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "recipe %s: with one variable it has nothing of what is to be learned",
                     recipe->spec.name);
}

/* ---- Values and gradients ---------------------------------------------------------------------------------------- */

/* A, from the parameters at its place. */
static const double *read_root(const psld_learned *learned, const double *at, double *root)
{
    int k = learned->spec.k;
    memset(root, 0, (size_t)(k * k) * sizeof *root);
    for (int i = 0; i < k; i++)
        for (int j = 0; has_noise_parameters(learned, i) && j <= i; j++) root[i * k + j] = *at++ * learned->unit_a;
    return at;
}

void psld_learned_spec(const psld_learned *learned, const double *parameters, psld_recipe_spec *spec)
{
    const double *at = parameters;
    *spec = learned->spec;
    int k = spec->k;
    if (learns_part(learned, PSLD_LEARN_D)) {
        double root[PSLD_MATRIX_SIZE];
        at = read_root(learned, at, root);
        psld_matrix_multiply_t(k, root, root, spec->D);
    }
    for (int i = 0; learns_part(learned, PSLD_LEARN_Q) && i < k; i++)
        for (int j = 0; j < i; j++) {
            spec->Q[i * k + j] = *at++ * learned->unit_b;
            spec->Q[j * k + i] = -spec->Q[i * k + j];
        }
    for (int i = 0; learns_masses(learned) && i < k - 1; i++) spec->mass[i] = exp(*at++);
    if (learns_part(learned, PSLD_LEARN_BETA)) {
        double beta[2], mean = both_matrices(learned) ? mean_beta(spec) : exp(*at++);
        set_beta(mean, *at, beta);
        spec->beta_min = beta[0];
        spec->beta_max = beta[1];
    }
}

/* D = A A': by A = 2 (by D) A. */
static double *differentiate_root(const psld_learned *learned, const double *root, const double *by_d, double *to)
{
    int k = learned->spec.k;
    for (int i = 0; i < k; i++)
        for (int j = 0; has_noise_parameters(learned, i) && j <= i; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += by_d[i * k + l] * root[l * k + j];
            *to++ = 2 * sum * learned->unit_a;
        }
    return to;
}

static void differentiate_beta(const psld_learned *learned, const double *at, const double by_beta[2], double *to)
{
    double beta[2], mean = both_matrices(learned) ? mean_beta(&learned->spec) : exp(*at++);
    set_beta(mean, *at, beta);
    if (!both_matrices(learned)) *to++ = by_beta[0] * beta[0] + by_beta[1] * beta[1];
    *to = (by_beta[1] - by_beta[0]) * beta[0] * beta[1] / (2 * mean);
}

void psld_learned_differentiate(const psld_learned *learned, const double *parameters,
                                const psld_recipe_gradient *gradient, double *by_parameters)
{
    const double *at = parameters;
    double *to = by_parameters;
    int k = learned->spec.k;
    if (learns_part(learned, PSLD_LEARN_D)) {
        double root[PSLD_MATRIX_SIZE];
        at = read_root(learned, at, root);
        to = differentiate_root(learned, root, gradient->D, to);
    }
    for (int i = 0; learns_part(learned, PSLD_LEARN_Q) && i < k; i++)
        for (int j = 0; j < i; j++, at++) *to++ = (gradient->Q[i * k + j] - gradient->Q[j * k + i]) * learned->unit_b;
    for (int i = 0; learns_masses(learned) && i < k - 1; i++) *to++ = gradient->mass[i] * exp(*at++);
    if (learns_part(learned, PSLD_LEARN_BETA)) differentiate_beta(learned, at, gradient->beta, to);
}
