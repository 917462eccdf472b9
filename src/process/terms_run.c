/* Values of terms: one loop over the lanes for each term, in order. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "process/terms.h"

typedef struct step {
    psld_term_kind kind;
    int a, b; /* registers; of VARIABLE its number; of REPEATED the power in b */
    double number;
} step;

struct psld_formulas {
    step *steps; /* step i fills register i */
    size_t count;
    int *output; /* registers */
};

/* Marks the terms that are needed and numbers them. */
static size_t number_steps(const psld_terms *terms, size_t count, const psld_term *outputs, int all, char *needed,
                           int *number)
{
    size_t steps = 0;
    for (size_t i = 0; i < count; i++) needed[outputs[i]] = 1;
    psld_terms_mark(terms, all, needed);
    for (psld_term i = 0; i < all; i++)
        if (needed[i]) number[i] = (int)steps++;
    return steps;
}

static void fill_steps(const psld_terms *terms, int all, const char *needed, const int *number, step *steps)
{
    for (psld_term i = 0; i < all; i++) {
        if (!needed[i]) continue;
        const psld_term_node *node = psld_terms_node(terms, i);
        int first = node->kind >= PSLD_TERM_ADD, second = first && node->kind < PSLD_TERM_REPEATED;
        *steps++ =
            (step){node->kind, first ? number[node->a] : node->a, second ? number[node->b] : node->b, node->number};
    }
}

psld_status psld_formulas_create(const psld_terms *terms, size_t count, const psld_term *outputs,
                                 psld_formulas **formulas)
{
    int all = psld_terms_count(terms);
    *formulas = NULL;
    PSLD_TRY(psld_terms_status(terms));
    int *number = psld_alloc((size_t)all, sizeof *number);
    char *needed = number ? psld_alloc((size_t)all, 1) : NULL;
    psld_formulas *made = needed ? psld_alloc(1, sizeof *made) : NULL;
    if (made) {
        made->count = number_steps(terms, count, outputs, all, needed, number);
        made->steps = psld_alloc(made->count, sizeof *made->steps);
        made->output = made->steps ? psld_alloc(count, sizeof *made->output) : NULL;
    }
    if (made && made->output) {
        fill_steps(terms, all, needed, number, made->steps);
        for (size_t i = 0; i < count; i++) made->output[i] = number[outputs[i]];
        *formulas = made;
    } else {
        psld_formulas_free(made);
    }
    psld_release(number);
    psld_release(needed);
    return *formulas ? PSLD_OK : PSLD_NO_MEMORY;
}

void psld_formulas_free(psld_formulas *formulas)
{
    if (!formulas) return;
    psld_release(formulas->steps);
    psld_release(formulas->output);
    psld_release(formulas);
}

size_t psld_formulas_scratch(const psld_formulas *formulas)
{
    return formulas->count * PSLD_TERM_LANES;
}

const double *psld_formulas_output(const psld_formulas *formulas, const double *scratch, size_t index)
{
    return scratch + (size_t)formulas->output[index] * PSLD_TERM_LANES;
}

void psld_formulas_prepare(const psld_formulas *formulas, double *scratch)
{
    for (size_t i = 0; i < formulas->count; i++)
        for (size_t l = 0; l < PSLD_TERM_LANES; l++) scratch[i * PSLD_TERM_LANES + l] = formulas->steps[i].number;
}

static void repeated_power(const double *a, int power, double *out)
{
    double square[PSLD_TERM_LANES];
    memcpy(square, a, sizeof square);
    for (size_t l = 0; l < PSLD_TERM_LANES; l++) out[l] = 1;
    for (; power; power >>= 1) {
        for (size_t l = 0; power & 1 && l < PSLD_TERM_LANES; l++) out[l] *= square[l];
        for (size_t l = 0; l < PSLD_TERM_LANES; l++) square[l] *= square[l];
    }
}

void psld_formulas_run(const psld_formulas *formulas, const double *variables, double *scratch)
{
    for (size_t i = 0; i < formulas->count; i++) {
        const step *s = &formulas->steps[i];
        if (s->kind == PSLD_TERM_NUMBER) continue;
        double *out = scratch + i * PSLD_TERM_LANES;
        const double *a = s->kind == PSLD_TERM_VARIABLE ? variables : scratch, *b = scratch;
        a += (size_t)s->a * PSLD_TERM_LANES;
        if (s->kind != PSLD_TERM_REPEATED) b += (size_t)s->b * PSLD_TERM_LANES;
        switch (s->kind) {
        case PSLD_TERM_VARIABLE:
            memcpy(out, a, PSLD_TERM_LANES * sizeof *out);
            break;
        case PSLD_TERM_ADD:
            for (size_t l = 0; l < PSLD_TERM_LANES; l++) out[l] = a[l] + b[l];
            break;
        case PSLD_TERM_SUBTRACT:
            for (size_t l = 0; l < PSLD_TERM_LANES; l++) out[l] = a[l] - b[l];
            break;
        case PSLD_TERM_MULTIPLY:
            for (size_t l = 0; l < PSLD_TERM_LANES; l++) out[l] = a[l] * b[l];
            break;
        case PSLD_TERM_DIVIDE:
            for (size_t l = 0; l < PSLD_TERM_LANES; l++) out[l] = a[l] / b[l];
            break;
        case PSLD_TERM_REPEATED:
            repeated_power(a, s->b, out);
            break;
        default:
            for (size_t l = 0; l < PSLD_TERM_LANES; l++) out[l] = psld_term_value(s->kind, a[l], b[l]);
        }
    }
}
