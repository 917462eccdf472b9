/* What follows from the formulas of a recipe: drift, divergences and residuals as formulas. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "process/process.h"

/* Formulas on the way. All matrices are n x n. */
typedef struct builder {
    const psld_process_terms *given;
    psld_terms *g;
    int n;
    psld_term gradient[PSLD_MAX_VARIABLES], hessian[PSLD_PROCESS_SQUARE];
    psld_term drift[PSLD_MAX_VARIABLES];
    psld_term D_by[PSLD_MAX_VARIABLES][PSLD_PROCESS_SQUARE]; /* derivatives of D by each variable */
    psld_term divergence[PSLD_MAX_VARIABLES];                /* (div D)_i = sum_j d_j D_ij */
    psld_term residual, scale;
} builder;

static psld_status derive_energy(builder *b)
{
    for (int i = 0; i < b->n; i++) PSLD_TRY(psld_terms_derive(b->g, i, 1, &b->given->H, &b->gradient[i]));
    for (int j = 0; j < b->n; j++) {
        psld_term column[PSLD_MAX_VARIABLES];
        PSLD_TRY(psld_terms_derive(b->g, j, (size_t)b->n, b->gradient, column));
        for (int i = 0; i < b->n; i++) b->hessian[i * b->n + j] = column[i];
    }
    return PSLD_OK;
}

/* f = -(D + Q) grad H + tau, or the given f. */
static psld_status make_drift(builder *b)
{
    const psld_process_terms *t = b->given;
    int n = b->n;
    psld_term Q_by[PSLD_PROCESS_SQUARE];
    for (int j = 0; j < n; j++) {
        PSLD_TRY(psld_terms_derive(b->g, j, (size_t)(n * n), t->D, b->D_by[j]));
        PSLD_TRY(psld_terms_derive(b->g, j, (size_t)(n * n), t->Q, Q_by));
        for (int i = 0; i < n; i++) {
            b->divergence[i] = psld_term_add(b->g, b->divergence[i], b->D_by[j][i * n + j]);
            psld_term tau = psld_term_add(b->g, b->D_by[j][i * n + j], Q_by[i * n + j]);
            psld_term both = psld_term_add(b->g, t->D[i * n + j], t->Q[i * n + j]);
            psld_term part = psld_term_subtract(b->g, tau, psld_term_multiply(b->g, both, b->gradient[j]));
            b->drift[i] = psld_term_add(b->g, b->drift[i], part);
        }
    }
    if (t->has_drift) memcpy(b->drift, t->drift, sizeof b->drift);
    return psld_terms_status(b->g);
}

/* Adds a part of the residual, and its square to the scale. */
static void add_part(builder *b, psld_term part)
{
    b->residual = psld_term_add(b->g, b->residual, part);
    b->scale = psld_term_add(b->g, b->scale, psld_term_multiply(b->g, part, part));
}

/* r = sum_i (f_i H_i - d_i f_i) + sum_ij (d_i d_j D_ij - d_i D_ij H_j - d_j D_ij H_i + D_ij (H_i H_j - H_ij)). */
static psld_status make_residual(builder *b)
{
    int n = b->n;
    psld_terms *g = b->g;
    for (int i = 0; i < n; i++) {
        psld_term slope, second[PSLD_MAX_VARIABLES];
        PSLD_TRY(psld_terms_derive(g, i, 1, &b->drift[i], &slope));
        add_part(b, psld_term_subtract(g, 0, slope));
        add_part(b, psld_term_multiply(g, b->drift[i], b->gradient[i]));
        for (int j = 0; j < n; j++) PSLD_TRY(psld_terms_derive(g, j, 1, &b->D_by[i][i * n + j], &second[j]));
        for (int j = 0; j < n; j++) {
            psld_term D = b->given->D[i * n + j], HH = psld_term_multiply(g, b->gradient[i], b->gradient[j]);
            add_part(b, second[j]);
            add_part(b, psld_term_subtract(g, 0, psld_term_multiply(g, b->D_by[i][i * n + j], b->gradient[j])));
            add_part(b, psld_term_subtract(g, 0, psld_term_multiply(g, b->D_by[j][i * n + j], b->gradient[i])));
            add_part(b, psld_term_multiply(g, D, psld_term_subtract(g, HH, b->hessian[i * n + j])));
        }
    }
    return psld_terms_status(g);
}

static void find_noisy(const builder *b, psld_process *p)
{
    for (int i = 0; i < b->n; i++) {
        int noise = 0;
        for (int j = 0; j < b->n; j++) noise |= b->given->D[i * b->n + j] != 0 || b->given->D[j * b->n + i] != 0;
        if (noise) p->noisy[p->noisy_count++] = i;
    }
}

static psld_status make_formulas(const builder *b, psld_process *p)
{
    const psld_process_terms *t = b->given;
    psld_term out[2 * PSLD_PROCESS_SQUARE + 2 * PSLD_MAX_VARIABLES + 2];
    size_t n = (size_t)b->n, count = 0;
    for (size_t i = 0; i < n; i++) out[count++] = b->drift[i];
    for (size_t i = 0; i < n; i++) out[count++] = b->divergence[i];
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) out[count++] = t->D[i * n + j];
    PSLD_TRY(psld_formulas_create(b->g, count, out, &p->motion));
    out[0] = t->H;
    memcpy(out + 1, b->gradient, n * sizeof *out);
    PSLD_TRY(psld_formulas_create(b->g, n + 1, out, &p->energy));
    memcpy(out, t->D, n * n * sizeof *out);
    memcpy(out + n * n, t->Q, n * n * sizeof *out);
    out[2 * n * n] = b->residual;
    out[2 * n * n + 1] = b->scale;
    return psld_formulas_create(b->g, 2 * n * n + 2, out, &p->checks);
}

static psld_status build_all(builder *b, psld_process *p)
{
    PSLD_TRY(psld_terms_status(b->g));
    PSLD_TRY(derive_energy(b));
    PSLD_TRY(make_drift(b));
    PSLD_TRY(make_residual(b));
    find_noisy(b, p);
    if (p->noisy_count == 0) return psld_fail(PSLD_BAD_INPUT, "D is 0: without noise there is nothing to reverse");
    return make_formulas(b, p);
}

psld_status psld_process_build(const psld_process_terms *terms, psld_process *process)
{
    builder *b = psld_alloc(1, sizeof *b);
    if (!b) return PSLD_NO_MEMORY;
    b->given = terms;
    b->g = terms->graph;
    b->n = process->variables;
    process->has_drift = terms->has_drift;
    psld_status status = build_all(b, process);
    psld_release(b);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "recipe %s", process->name) : status;
}
