#ifndef PSLD_MODEL_PROCESS_READ_H
#define PSLD_MODEL_PROCESS_READ_H

#include "io/yaml/yaml.h"
#include "process/recipe.h"

/* Whether a configuration names a process. */
int psld_process_named(const psld_node *root);
/* The recipe of a configuration, ours or published; fails when it names none. */
psld_status psld_process_read(const psld_node *root, psld_recipe **recipe);
/* Writes the complete `process` into a configuration: it needs no other file. */
psld_status psld_process_set(psld_yaml *yaml, const psld_recipe_spec *spec);
/* `process` from the text of a file. */
psld_status psld_process_set_text(psld_yaml *yaml, const char *text);
/* A recipe written as a line becomes a map with the same keys. */
psld_status psld_process_spread(psld_yaml *yaml);
/* Copies a recipe from its file into the configuration: a model must not need another file. */
psld_status psld_process_embed(psld_yaml *yaml);

#endif
