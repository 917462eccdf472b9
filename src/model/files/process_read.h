#ifndef PSLD_MODEL_PROCESS_READ_H
#define PSLD_MODEL_PROCESS_READ_H

#include "io/yaml/yaml.h"
#include "process/recipe.h"

/* Whether a configuration names a process at all. */
int psld_process_named(const psld_node *root);
/* The recipe of a configuration, ours or published; fails when it names none. */
psld_status psld_process_read(const psld_node *root, psld_recipe **recipe);
/* Sets all of `process` in a configuration, so that nothing else is needed to make the same recipe. */
psld_status psld_process_set(psld_yaml *yaml, const psld_recipe_spec *spec);
/* `process` from the text of a file. */
psld_status psld_process_set_text(psld_yaml *yaml, const char *text);
/* A recipe written as a line becomes a map with the same keys. */
psld_status psld_process_spread(psld_yaml *yaml);
/* A recipe that lies in a file becomes part of the configuration: a model must not need the file. */
psld_status psld_process_embed(psld_yaml *yaml);

#endif
