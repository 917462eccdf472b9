/* Reading the golden numbers: those of tests/golden, which are part of the project, and a second, larger set where
 * there is one. Tests ask for every folder that has a file of some name, and check whatever they find there. */
#ifndef PSLD_TESTS_GOLDEN_H
#define PSLD_TESTS_GOLDEN_H

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "psld.h"
#include "skip.h"

enum { GOLDEN_PATH = 1024, GOLDEN_FOLDERS = 256, GOLDEN_ROOTS = 2 };

typedef struct golden_list {
    size_t count;
    char folders[GOLDEN_FOLDERS][GOLDEN_PATH];
} golden_list;

/* Where golden folders may be: in the project, and where PSLD_GOLDEN says or beside the project. */
static inline void golden_roots(char roots[GOLDEN_ROOTS][GOLDEN_PATH])
{
    const char *source = getenv("PSLD_SOURCE"), *more = getenv("PSLD_GOLDEN");
    if (!source || !*source) source = ".";
    snprintf(roots[0], GOLDEN_PATH, "%s/tests/golden", source);
    if (more && *more)
        snprintf(roots[1], GOLDEN_PATH, "%s", more);
    else
        snprintf(roots[1], GOLDEN_PATH, "%s/../shared/golden", source);
}

/* The path of a file of a folder; returns whether it is there. */
static inline int golden_path(const char *folder, const char *name, char path[GOLDEN_PATH])
{
    assert_true(snprintf(path, GOLDEN_PATH, "%s/%s", folder, name) < GOLDEN_PATH);
    return access(path, R_OK) == 0;
}

static inline void golden_add(golden_list *list, const char *folder, const char *name)
{
    char path[GOLDEN_PATH];
    if (list->count < GOLDEN_FOLDERS && golden_path(folder, name, path))
        memcpy(list->folders[list->count++], folder, strlen(folder) + 1);
}

/* All golden folders that have the file `name`: the golden folders themselves and those below them, sorted. Skips the
 * test where there is none. */
static inline const golden_list *golden_find(const char *name)
{
    static golden_list list;
    char roots[GOLDEN_ROOTS][GOLDEN_PATH];
    golden_roots(roots);
    list.count = 0;
    for (int r = 0; r < GOLDEN_ROOTS; r++) {
        struct dirent **entries;
        int count = scandir(roots[r], &entries, NULL, alphasort);
        for (int i = 0; i < count; i++) {
            char folder[GOLDEN_PATH];
            int below = entries[i]->d_name[0] != '.';
            if (below) golden_path(roots[r], entries[i]->d_name, folder);
            if (below) golden_add(&list, folder, name);
            if (strcmp(entries[i]->d_name, ".") == 0) golden_add(&list, roots[r], name);
            free(entries[i]);
        }
        if (count >= 0) free(entries);
    }
    if (!list.count) skip_for("neither %s nor %s has a folder with %s", roots[0], roots[1], name);
    return &list;
}

/* The last part of a folder's path. */
static inline const char *golden_name(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash ? slash + 1 : folder;
}

/* NULL when the file is not there. */
static inline json_t *golden_json(const char *folder, const char *name)
{
    char path[GOLDEN_PATH];
    json_error_t error;
    if (!golden_path(folder, name, path)) return NULL;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) fail_msg("%s: %s", path, error.text);
    return json;
}

/* NULL when the file is not there. */
static inline psld_array *golden_array(const char *folder, const char *name, psld_type type)
{
    char path[GOLDEN_PATH];
    psld_array *array = NULL, *numbers = NULL;
    if (!golden_path(folder, name, path)) return NULL;
    if (psld_array_load(path, &array) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(psld_array_convert(array, type, &numbers), PSLD_OK);
    psld_array_free(array);
    return numbers;
}

/* One line for each thing that is compared. */
static inline void golden_report(const char *folder, const char *what, double error, double tolerance)
{
    printf("%s: %s: error %.2g, tolerance %.2g\n", folder, what, error, tolerance);
    if (!(error <= tolerance)) fail_msg("%s: %s is off by %g, at most %g", folder, what, error, tolerance);
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
    *spec = (psld_recipe_spec)PSLD_RECIPE_SPEC_DEFAULTS;
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
