/* A recipe as a YAML file that reads back as the same process, to the bit. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/yaml/yaml.h"
#include "process/recipe.h"

/* Two matrices of numbers, and some lines. */
enum { ROOM = 2 * PSLD_MATRIX_SIZE * (PSLD_NUMBER_SIZE + 2) + 64 * PSLD_NUMBER_SIZE };

typedef struct recipe_writer {
    char *text;
    size_t used;
} recipe_writer;

static void put_text(recipe_writer *w, const char *text)
{
    size_t length = strlen(text);
    memcpy(w->text + w->used, text, length + 1);
    w->used += length;
}

static void put_numbers(recipe_writer *w, const double *numbers, int count)
{
    char number[PSLD_NUMBER_SIZE];
    put_text(w, "[");
    for (int i = 0; i < count; i++) {
        put_text(w, i ? ", " : "");
        put_text(w, psld_text_shortest(numbers[i], number));
    }
    put_text(w, "]");
}

static void put_line(recipe_writer *w, const char *key, const double *numbers, int count)
{
    put_text(w, key);
    put_numbers(w, numbers, count);
    put_text(w, "\n");
}

static void put_matrix(recipe_writer *w, const char *key, int k, const double *matrix)
{
    put_text(w, key);
    for (int i = 0; i < k; i++) {
        put_text(w, i ? ", " : "[");
        put_numbers(w, matrix + i * k, k);
    }
    put_text(w, "]\n");
}

static void put_recipe(recipe_writer *w, const psld_recipe_spec *spec)
{
    char name[4 * PSLD_NAME_SIZE + 4], number[PSLD_NUMBER_SIZE];
    double beta[2] = {spec->beta_min, spec->beta_max};
    psld_yaml_put_scalar(spec->name, name);
    put_text(w, "name: ");
    put_text(w, name);
    put_text(w, "\n");
    put_matrix(w, "D: ", spec->k, spec->D);
    put_matrix(w, "Q: ", spec->k, spec->Q);
    if (spec->k > 1) {
        put_line(w, "mass: ", spec->mass, spec->k - 1);
        put_line(w, "init: ", spec->init, spec->k - 1);
    }
    put_line(w, "beta: ", beta, 2);
    put_text(w, "stabiliser: ");
    put_text(w, psld_text_shortest(spec->stabiliser, number));
    put_text(w, "\n");
    if (spec->upper || spec->natural) put_text(w, spec->upper ? "factor: upper\n" : "factor: natural\n");
    if (spec->mode == PSLD_DSM) put_text(w, "kernel: dsm\n");
}

psld_status psld_recipe_text(const psld_recipe *recipe, char **text)
{
    recipe_writer w = {psld_alloc(1, ROOM), 0};
    *text = w.text;
    if (!w.text) return PSLD_NO_MEMORY;
    put_recipe(&w, &recipe->spec);
    return PSLD_OK;
}
