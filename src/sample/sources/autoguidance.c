/* Autoguidance: guidance by a weaker model of the same data (Karras et al. 2024, "Guiding a diffusion model with a bad
 * version of itself"), eps = weak + scale (base - weak). Both models make similar errors, the weaker one larger ones. So
 * the extrapolation from the weak model through the base reduces the common error. Scale 1 is the base alone. */
#include <math.h>

#include "base/alloc.h"
#include "base/workspace.h"
#include "sample/sources/source.h"

typedef struct autoguidance {
    psld_source *base, *weak;
    double scale;
    size_t k, predicted; /* variables of states and of eps */
    psld_workspaces workspaces;
} autoguidance;

static void release_autoguidance(void *user)
{
    autoguidance *c = user;
    psld_workspaces_release(&c->workspaces);
    psld_release(c);
}

static void extrapolate_from_weak(double scale, size_t count, const double *weak, double *strong)
{
    for (size_t i = 0; i < count; i++) strong[i] = weak[i] + scale * (strong[i] - weak[i]);
}

/* `weight` NULL: eps alone. */
static psld_status evaluate_base_and_weak(autoguidance *c, psld_workspace *memory, const psld_states *states,
                                          const double *weight, double *eps, double *grad_z)
{
    size_t n = states->n, dim = states->dim;
    double *weak_eps, *weak_grad;
    PSLD_TRY(psld_workspace_room(memory, 0, n, c->predicted * dim, sizeof(double), (void **)&weak_eps));
    if (!weight) {
        PSLD_TRY(psld_source_predict(c->base, states, eps));
        PSLD_TRY(psld_source_predict(c->weak, states, weak_eps));
    } else {
        PSLD_TRY(psld_workspace_room(memory, 1, n, c->k * dim, sizeof(double), (void **)&weak_grad));
        PSLD_TRY(psld_source_gradient(c->base, states, weight, eps, grad_z));
        PSLD_TRY(psld_source_gradient(c->weak, states, weight, weak_eps, weak_grad));
        extrapolate_from_weak(c->scale, n * c->k * dim, weak_grad, grad_z);
    }
    if (eps) extrapolate_from_weak(c->scale, n * c->predicted * dim, weak_eps, eps);
    return PSLD_OK;
}

static psld_status differentiate_autoguidance(void *user, const psld_states *states, const double *weight, double *eps,
                                              double *grad_z)
{
    autoguidance *c = user;
    psld_workspace *memory = psld_workspace_take(&c->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    psld_status status = evaluate_base_and_weak(c, memory, states, weight, eps, grad_z);
    psld_workspace_give(&c->workspaces, memory);
    return status;
}

static psld_status predict_autoguidance(void *user, const psld_states *states, double *eps)
{
    return differentiate_autoguidance(user, states, NULL, eps, NULL);
}

psld_status psld_source_autoguide(psld_source *base, psld_source *weak, const psld_recipe *recipe, double scale,
                                  psld_source **source)
{
    *source = NULL;
    if (!isfinite(scale)) return psld_fail(PSLD_BAD_ARGUMENT, "weak scale: expected a finite number, found %g", scale);
    if (base->exact != weak->exact)
        return psld_fail(
            PSLD_BAD_ARGUMENT,
            "autoguidance: expected two networks or two exact scores: eps of a network and of an exact score differ");
    PSLD_TRY(psld_source_check(weak, recipe));
    autoguidance *c = psld_alloc(1, sizeof *c);
    if (!c) return PSLD_NO_MEMORY;
    int order[PSLD_MAX_K];
    *c = (autoguidance){.base = base,
                        .weak = weak,
                        .scale = scale,
                        .predicted = (size_t)psld_recipe_order(recipe, order),
                        .k = (size_t)psld_recipe_get(recipe)->k};
    PSLD_TRY(psld_source_wrap(base, recipe, predict_autoguidance, release_autoguidance, c, source));
    (*source)->earliest = fmax(base->earliest, weak->earliest);
    if (base->gradient && weak->gradient) (*source)->gradient = differentiate_autoguidance;
    return PSLD_OK;
}
