/* Classifier guidance (Sec. 4.4 of the paper): the score of a base source plus scale times grad log p(label | z_t, t). With
 * the exact classifier and scale 1 this is the exact score of the class. The classifier is given the same forward time t
 * as the base. */
#include <math.h>

#include "base/alloc.h"
#include "base/workspace.h"
#include "sample/sources/add_gradient.h"
#include "sample/sources/classifier.h"
#include "sample/sources/source.h"

typedef struct guided_source {
    psld_source *base;
    psld_classifier *classifier;
    psld_recipe recipe; /* a copy of its own */
    int32_t label;
    double scale;
    psld_workspaces workspaces;
} guided_source;

static void release_guided(void *user)
{
    guided_source *g = user;
    psld_workspaces_release(&g->workspaces);
    psld_release(g);
}

static psld_status predict_with_guidance(guided_source *g, psld_workspace *memory, const psld_states *states,
                                         double *eps)
{
    size_t n = states->n, dim = states->dim;
    double *gradient; /* [n][k * dim] */
    int32_t *labels;  /* [n] */
    PSLD_TRY(psld_workspace_room(memory, 0, n, (size_t)g->recipe.spec.k * dim, sizeof *gradient, (void **)&gradient));
    PSLD_TRY(psld_workspace_room(memory, 1, n, 1, sizeof *labels, (void **)&labels));
    for (size_t i = 0; i < n; i++) labels[i] = g->label;
    PSLD_TRY(psld_source_predict(g->base, states, eps));
    PSLD_TRY(psld_classifier_evaluate(g->classifier, states, labels, NULL, gradient));
    return psld_eps_add_gradient(&g->recipe, states, g->scale, gradient, eps);
}

static psld_status predict_guided(void *user, const psld_states *states, double *eps)
{
    guided_source *g = user;
    psld_workspace *memory = psld_workspace_take(&g->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    psld_status status = predict_with_guidance(g, memory, states, eps);
    psld_workspace_give(&g->workspaces, memory);
    return status;
}

psld_status psld_source_guide(psld_source *base, const psld_recipe *recipe, psld_classifier *classifier, size_t label,
                              double scale, psld_source **source)
{
    *source = NULL;
    if (label >= classifier->classes)
        return psld_fail(PSLD_BAD_ARGUMENT, "label: expected 0 to %zu, found %zu", classifier->classes - 1, label);
    if (!isfinite(scale)) return psld_fail(PSLD_BAD_ARGUMENT, "scale: expected a finite number, found %g", scale);
    PSLD_TRY(psld_layout_check(&classifier->layout, "classifier", recipe));
    guided_source *g = psld_alloc(1, sizeof *g);
    if (!g) return PSLD_NO_MEMORY;
    *g = (guided_source){
        .base = base, .classifier = classifier, .recipe = *recipe, .label = (int32_t)label, .scale = scale};
    return psld_source_wrap(base, recipe, predict_guided, release_guided, g, source);
}
