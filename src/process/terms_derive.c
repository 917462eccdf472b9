/* Exact derivatives, term after term in the order of their numbers, so that operands are done first: each gives a few new
 * terms, however deep the formula is. */
#include <string.h>

#include "base/alloc.h"
#include "process/terms.h"

/* a^b: b a^(b-1) a' for a number b, else a^b (b' log a + b a' / a). */
static psld_term derive_power(psld_terms *t, psld_term self, psld_term a, psld_term b, psld_term da, psld_term db)
{
    if (db == 0) {
        psld_term less = psld_term_subtract(t, b, psld_term_number(t, 1));
        return psld_term_multiply(t, psld_term_multiply(t, b, psld_term_power(t, a, less)), da);
    }
    psld_term first = psld_term_multiply(t, db, psld_term_function(t, PSLD_TERM_LOG, a));
    psld_term second = psld_term_multiply(t, b, psld_term_divide(t, da, a));
    return psld_term_multiply(t, self, psld_term_add(t, first, second));
}

/* f'(a) of a function of one argument. */
static psld_term slope_of(psld_terms *t, psld_term_kind kind, psld_term self, psld_term a)
{
    psld_term one = psld_term_number(t, 1), two = psld_term_number(t, 2);
    switch (kind) {
    case PSLD_TERM_SQRT:
        return psld_term_divide(t, psld_term_number(t, 0.5), self);
    case PSLD_TERM_EXP:
        return self;
    case PSLD_TERM_LOG:
        return psld_term_divide(t, one, a);
    case PSLD_TERM_SIN:
        return psld_term_function(t, PSLD_TERM_COS, a);
    case PSLD_TERM_COS:
        return psld_term_subtract(t, 0, psld_term_function(t, PSLD_TERM_SIN, a));
    case PSLD_TERM_TANH:
        return psld_term_subtract(t, one, psld_term_power(t, self, two));
    case PSLD_TERM_ATAN:
        return psld_term_divide(t, one, psld_term_add(t, one, psld_term_power(t, a, two)));
    case PSLD_TERM_SINH:
        return psld_term_function(t, PSLD_TERM_COSH, a);
    default:
        return psld_term_function(t, PSLD_TERM_SINH, a);
    }
}

/* `known`: the derivatives of all terms before. The node is a copy: new terms move the table. */
static psld_term derive_term(psld_terms *t, int variable, psld_term self, const psld_term *known)
{
    const psld_term_node node = *psld_terms_node(t, self);
    psld_term a = node.a, b = node.b;
    if (node.kind == PSLD_TERM_NUMBER) return 0;
    if (node.kind == PSLD_TERM_VARIABLE) return psld_term_number(t, a == variable);
    psld_term da = known[a];
    switch (node.kind) {
    case PSLD_TERM_ADD:
        return psld_term_add(t, da, known[b]);
    case PSLD_TERM_SUBTRACT:
        return psld_term_subtract(t, da, known[b]);
    case PSLD_TERM_MULTIPLY:
        return psld_term_add(t, psld_term_multiply(t, da, b), psld_term_multiply(t, a, known[b]));
    case PSLD_TERM_DIVIDE:
        return psld_term_divide(t, psld_term_subtract(t, da, psld_term_multiply(t, self, known[b])), b);
    case PSLD_TERM_POWER:
        return derive_power(t, self, a, b, da, known[b]);
    case PSLD_TERM_REPEATED:
        return derive_power(t, self, a, psld_term_number(t, b), da, 0);
    default:
        return da == 0 ? 0 : psld_term_multiply(t, slope_of(t, node.kind, self, a), da);
    }
}

void psld_terms_mark(const psld_terms *t, int count, char *marked)
{
    for (psld_term i = count - 1; i >= 0; i--) {
        const psld_term_node *node = psld_terms_node(t, i);
        if (!marked[i] || node->kind < PSLD_TERM_ADD) continue;
        marked[node->a] = 1;
        if (node->kind < PSLD_TERM_REPEATED) marked[node->b] = 1;
    }
}

psld_status psld_terms_derive(psld_terms *terms, int variable, size_t count, const psld_term *of, psld_term *derivative)
{
    PSLD_TRY(psld_terms_status(terms));
    int all = psld_terms_count(terms);
    char *marked = psld_alloc((size_t)all, 1);
    psld_term *known = marked ? psld_alloc((size_t)all, sizeof *known) : NULL;
    int made = known != NULL;
    if (made) {
        for (size_t i = 0; i < count; i++) marked[of[i]] = 1;
        psld_terms_mark(terms, all, marked);
        for (psld_term i = 0; i < all; i++)
            if (marked[i]) known[i] = derive_term(terms, variable, i, known);
        for (size_t i = 0; i < count; i++) derivative[i] = known[of[i]];
    }
    psld_release(marked);
    psld_release(known);
    return made ? psld_terms_status(terms) : PSLD_NO_MEMORY;
}
