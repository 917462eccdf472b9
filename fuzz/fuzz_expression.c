/* The input is an expression. What parses is differentiated and evaluated. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "process/terms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(psld_status status)
{
    const char *text = psld_error_text();
    if (status == PSLD_OK) return;
    if (status != PSLD_BAD_INPUT || !*text || strchr(text, '\n')) abort();
}

static void evaluate(const psld_terms *terms, size_t count, const psld_term *outputs)
{
    psld_formulas *formulas;
    double variables[2 * PSLD_TERM_LANES];
    if (psld_formulas_create(terms, count, outputs, &formulas) != PSLD_OK) abort();
    double *scratch = psld_alloc(psld_formulas_scratch(formulas), sizeof *scratch);
    if (!scratch) abort();
    for (int i = 0; i < 2 * PSLD_TERM_LANES; i++) variables[i] = 0.1 * i - 2;
    psld_formulas_prepare(formulas, scratch);
    psld_formulas_run(formulas, variables, scratch);
    psld_release(scratch);
    psld_formulas_free(formulas);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const variables[] = {"x", "m"}, *const constants[] = {"a"};
    static const double values[] = {1.5};
    const psld_term_names names = {2, 1, variables, NULL, constants, values};
    psld_terms *terms;
    psld_term term[3];
    char *text = malloc(size + 1);
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = 0;
    if (psld_terms_create(&terms) != PSLD_OK) abort();
    psld_status status = psld_terms_parse(terms, text, &names, &term[0]);
    check_failure(status);
    for (int v = 0; v < 2 && status == PSLD_OK; v++) {
        status = psld_terms_derive(terms, v, 1, &term[0], &term[1 + v]);
        check_failure(status);
    }
    if (status == PSLD_OK) evaluate(terms, 3, term);
    psld_terms_free(terms);
    free(text);
    if (psld_alloc_live() != 0) abort();
    return 0;
}
