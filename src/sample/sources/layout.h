/* The shape of the states that a source or a classifier was made for. With states of another shape it would read and write
 * beyond their arrays. */
#ifndef PSLD_SAMPLE_LAYOUT_H
#define PSLD_SAMPLE_LAYOUT_H

#include "process/recipe.h"

typedef struct psld_layout {
    char recipe[PSLD_NAME_SIZE];
    int k;         /* variables of a state; 0: any, as for a user's callback */
    int predicted; /* 0: any, as for a classifier */
} psld_layout;

/* The layout of a recipe; NULL: any. */
psld_layout psld_layout_of(const psld_recipe *recipe);
/* Fails if `what` was made for states of another shape than those of `recipe`. The message names both recipes. */
psld_status psld_layout_check(const psld_layout *layout, const char *what, const psld_recipe *recipe);

#endif
