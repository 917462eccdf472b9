/* A sampler in words, as lists of samplers have it: "ancestral order=1 eta=0.5 grid=log". */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sample/walk.h"

static const struct word {
    const char *key;
    size_t offset;
    int whole; /* an int, not a double */
} words[] = {
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
enum { WORDS = sizeof words / sizeof *words };

static psld_status read_grid(const char *name, psld_sample_options *options)
{
    for (int g = 0; (options->grid = psld_grid_name(g)); g++)
        if (strcmp(options->grid, name) == 0) return PSLD_OK;
    char meant[PSLD_MEANT];
    const char *names[16];
    size_t count = 0;
    for (; count < sizeof names / sizeof *names && psld_grid_name((int)count); count++)
        names[count] = psld_grid_name((int)count);
    return psld_fail(PSLD_BAD_ARGUMENT, "grid: there is none named \"%s\"%s", name,
                     psld_text_meant(name, names, count, meant));
}

static psld_status read_word(const char *key, const char *value, psld_sample_options *options)
{
    if (strcmp(key, "grid") == 0) return read_grid(value, options);
    for (int w = 0; w < WORDS; w++) {
        char *field = (char *)options + words[w].offset;
        int64_t whole;
        double number;
        if (strcmp(words[w].key, key) != 0) continue;
        if (words[w].whole && psld_text_integer(value, &whole) && whole >= 0 && whole <= INT32_MAX) {
            *(int *)(void *)field = (int)whole;
            return PSLD_OK;
        }
        if (!words[w].whole && psld_text_number(value, &number)) {
            *(double *)(void *)field = number;
            return PSLD_OK;
        }
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected a %snumber, found \"%s\"", key,
                         words[w].whole ? "whole " : "", value);
    }
    char meant[PSLD_MEANT];
    const char *names[WORDS + 1] = {"grid"};
    for (int w = 0; w < WORDS; w++) names[w + 1] = words[w].key;
    return psld_fail(PSLD_BAD_ARGUMENT, "a sampler has no \"%s\"%s", key,
                     psld_text_meant(key, names, WORDS + 1, meant));
}

psld_status psld_sample_words(const char *text, psld_sample_options *options)
{
    char copy[256], *rest = NULL;
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return psld_fail(PSLD_BAD_ARGUMENT, "sampler: too many words in \"%s\"", text);
    const char *name = strtok_r(copy, " ", &rest);
    const psld_sampler *sampler = psld_sampler_find(name ? name : "");
    if (!sampler) return PSLD_BAD_ARGUMENT;
    options->sampler = sampler->name;
    for (char *word; (word = strtok_r(NULL, " ", &rest));) {
        char *equals = strchr(word, '=');
        if (!equals) return psld_fail(PSLD_BAD_ARGUMENT, "sampler: expected key=value, found \"%s\"", word);
        *equals = 0;
        PSLD_TRY(read_word(word, equals + 1, options));
    }
    return PSLD_OK;
}
