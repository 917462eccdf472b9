/* Paths of single coordinates, to look at a process in phase space. */
#ifndef PSLD_PROGRAMS_SERVE_PATHS_H
#define PSLD_PROGRAMS_SERVE_PATHS_H

#include "cli.h"

enum { SERVE_PATHS = 16, SERVE_PATH_POINTS = 240 };

/* Adds `paths` to the answer on a recipe: forward from data at 1 and -1, and back from noise by their exact score. */
psld_status serve_paths_add(const psld_recipe *recipe, size_t count, uint64_t seed, json_t *answer);

#endif
