/* Recipes and presets as users write them: read from YAML. */
#ifndef PSLD_PROCESS_RECIPE_READ_H
#define PSLD_PROCESS_RECIPE_READ_H

#include "io/yaml/yaml.h"
#include "process/recipe.h"

/* A recipe written in YAML: a map (D and Q, drift and noise, or `preset` with overrides) or a line "psld
 * gamma=0.02". */
psld_status psld_recipe_read(const psld_node *node, psld_recipe **recipe);
/* A preset, with overrides from a map (NULL: none). */
psld_status psld_preset_read(const char *name, const psld_node *overrides, psld_recipe **recipe);
/* Reads the keys that presets and files share: name, beta, init, stabiliser, factor, kernel. Sets their defaults first.
 * spec->k must be set. NULL: defaults only. */
psld_status psld_recipe_read_common(const psld_node *map, psld_recipe_spec *spec);
/* Name and beta alone, where the map has them. */
psld_status psld_recipe_read_named(const psld_node *map, psld_recipe_spec *spec);
/* The document that a line such as psld_recipe_open takes stands for, with its overrides; that of a preset has nothing
 * else. */
psld_status psld_recipe_open_document(const char *text, psld_yaml **document);
int psld_preset_exists(const char *name);
/* All names in one line, for messages. */
const char *psld_preset_names(void);
/* The error of a name that is neither a preset nor a file. Suggests a preset of similar name. */
psld_status psld_preset_unknown(const char *name);

/* Help texts of keys that recipes and presets share. */
#define PSLD_HELP_GAMMA "noise of the position (psld)"
#define PSLD_HELP_NU    "noise of the momentum; default gamma + 4"
#define PSLD_HELP_M_INV "1 / mass; default: critical damping"
#define PSLD_HELP_N     "number of variables, 2 to 8 (hold)"
#define PSLD_HELP_BETA  "constant, or [at t = 0, at t = 1]; vp has [0.1, 20]"
#define PSLD_HELP_INIT  "variance of each auxiliary variable at t = 0, in units of its mass"

/* Kinds of recipes, which differ in the keys they may have: given by matrices, the presets, given by formulas. */
enum {
    PSLD_KEYS_MATRICES = 1,
    PSLD_KEYS_VP = 2,
    PSLD_KEYS_PHASE = 4,
    PSLD_KEYS_THIRD = 8,
    PSLD_KEYS_HOLD = 16,
    PSLD_KEYS_FORMULAS = 32
};
psld_status psld_recipe_check_keys(const psld_node *map, unsigned where);
/* Key number `index`, from 0; returns 0 past the last. */
int psld_recipe_key(int index, psld_key *key);

#endif
