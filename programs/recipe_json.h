/* What psld recipe --json prints of a recipe, for the server, too. */
#ifndef PSLD_PROGRAMS_RECIPE_JSON_H
#define PSLD_PROGRAMS_RECIPE_JSON_H

#include "cli.h"

/* "x", "m1" ...; with one auxiliary variable "m". */
const char *recipe_variable_name(int k, int i);
/* "lower", "upper" or "natural". */
const char *recipe_factor_name(const psld_recipe_spec *spec);
/* The process, its analysis, and its kernel at `count` times. After a failure *object may be set, too. */
psld_status recipe_json(const psld_recipe *recipe, const double *times, size_t count, psld_mode mode, json_t **object);

#endif
