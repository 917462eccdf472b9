/* Reading the golden numbers. They lie outside the project; a test that needs them skips where they are absent. */
#ifndef PSLD_TESTS_GOLDEN_H
#define PSLD_TESTS_GOLDEN_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "psld.h"
#include "skip.h"

static inline const char *golden_folder(void)
{
    const char *folder = getenv("PSLD_GOLDEN");
    return folder && *folder ? folder : "../shared/golden";
}

/* NULL, with a line that says so, when the file is not there. */
static inline json_t *golden_json(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", golden_folder(), name);
    json_t *json = json_load_file(path, 0, NULL);
    if (!json) printf("skipped: no %s\n", path);
    return json;
}

/* Numbers stand there as decimal strings, so that no digit is lost, or plainly. */
static inline double golden_number(const json_t *value)
{
    return json_is_string(value) ? strtod(json_string_value(value), NULL) : json_number_value(value);
}

/* Flattens nested lists; returns how many numbers there were. */
static inline size_t golden_numbers(const json_t *value, double *out)
{
    if (!json_is_array(value)) {
        *out = golden_number(value);
        return 1;
    }
    size_t used = 0;
    for (size_t i = 0; i < json_array_size(value); i++) used += golden_numbers(json_array_get(value, i), out + used);
    return used;
}

static inline const char *golden_text(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

/* A recipe that is written out. */
static inline void golden_spec(const json_t *row, psld_recipe_spec *spec)
{
    double beta[2];
    psld_recipe_spec_defaults(spec);
    spec->k = (int)json_array_size(json_object_get(row, "D"));
    golden_numbers(json_object_get(row, "D"), spec->D);
    golden_numbers(json_object_get(row, "Q"), spec->Q);
    golden_numbers(json_object_get(row, "mass"), spec->mass);
    golden_numbers(json_object_get(row, "init"), spec->init);
    golden_numbers(json_object_get(row, "beta"), beta);
    spec->beta_min = beta[0];
    spec->beta_max = beta[1];
}

#endif
