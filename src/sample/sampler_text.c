/* A sampler and its options as text, as used in lists of samplers: "ancestral order=1 eta=0.5 grid=log". */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sample/options.h"

static const struct option {
    const char *key;
    size_t offset;
    int whole; /* an int, not a double */
} table[] = {
    {"nfe", offsetof(psld_sample_options, nfe), 1},
    {"order", offsetof(psld_sample_options, order), 1},
    {"eta", offsetof(psld_sample_options, eta), 0},
    {"detail", offsetof(psld_sample_options, detail), 0},
    {"rho", offsetof(psld_sample_options, rho), 0},
    {"eps", offsetof(psld_sample_options, eps), 0},
    {"end_sigma", offsetof(psld_sample_options, end_sigma), 0},
    {"clip", offsetof(psld_sample_options, clip), 0},
    {"threshold", offsetof(psld_sample_options, threshold), 0},
    {"corrector", offsetof(psld_sample_options, corrector), 1},
};
enum { ROWS = sizeof table / sizeof *table };

static psld_status parse_sampler_grid(const char *name, psld_sample_options *options)
{
    const psld_grid_info *grid = psld_grid_find(name);
    if (grid) options->grid = grid->name;
    return grid ? PSLD_OK : PSLD_BAD_ARGUMENT;
}

static psld_status parse_sampler_option(const char *key, const char *value, psld_sample_options *options)
{
    if (strcmp(key, "grid") == 0) return parse_sampler_grid(value, options);
    for (int w = 0; w < ROWS; w++) {
        char *field = (char *)options + table[w].offset;
        int64_t whole;
        double number;
        if (strcmp(table[w].key, key) != 0) continue;
        if (table[w].whole && psld_text_integer(value, &whole) && whole >= 0 && whole <= INT32_MAX) {
            *(int *)(void *)field = (int)whole;
            return PSLD_OK;
        }
        if (!table[w].whole && psld_text_number(value, &number)) {
            *(double *)(void *)field = number;
            return PSLD_OK;
        }
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected a %snumber, found \"%s\"", key,
                         table[w].whole ? "whole " : "", value);
    }
    char meant[PSLD_SUGGESTION_SIZE];
    const char *names[ROWS + 1] = {"grid"};
    for (int w = 0; w < ROWS; w++) names[w + 1] = table[w].key;
    return psld_fail(PSLD_BAD_ARGUMENT, "sampler: no option \"%s\"%s", key,
                     psld_text_suggest(key, names, ROWS + 1, meant));
}

psld_status psld_sample_options_parse(const char *text, psld_sample_options *options)
{
    char copy[256], *rest = NULL;
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return psld_fail(PSLD_BAD_ARGUMENT, "sampler: expected less than 256 characters, found \"%s\"", text);
    const char *name = strtok_r(copy, " ", &rest);
    const psld_sampler *sampler = psld_sampler_row(name ? name : "");
    if (!sampler) return PSLD_BAD_ARGUMENT;
    options->sampler = sampler->info.name;
    for (char *option; (option = strtok_r(NULL, " ", &rest));) {
        char *equals = strchr(option, '=');
        if (!equals) return psld_fail(PSLD_BAD_ARGUMENT, "sampler: expected key=value, found \"%s\"", option);
        *equals = 0;
        PSLD_TRY(parse_sampler_option(option, equals + 1, options));
    }
    return PSLD_OK;
}
