#include "sample/sources/layout.h"

#include <stdio.h>

psld_layout psld_layout_of(const psld_recipe *recipe)
{
    psld_layout layout = {0};
    if (!recipe) return layout;
    snprintf(layout.recipe, sizeof layout.recipe, "%s", recipe->spec.name);
    layout.k = recipe->spec.k;
    layout.predicted = recipe->predicted;
    return layout;
}

psld_status psld_layout_check(const psld_layout *layout, const char *what, const psld_recipe *recipe)
{
    if (layout->k && layout->k != recipe->spec.k)
        return psld_fail(PSLD_BAD_ARGUMENT, "the %s is of recipe %s with k = %d, not of recipe %s with k = %d", what,
                         layout->recipe, layout->k, recipe->spec.name, recipe->spec.k);
    if (layout->predicted && layout->predicted != recipe->predicted)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "the %s is of recipe %s and predicts eps of %d of its variables, not of recipe %s, which has "
                         "%d predicted",
                         what, layout->recipe, layout->predicted, recipe->spec.name, recipe->predicted);
    return PSLD_OK;
}
