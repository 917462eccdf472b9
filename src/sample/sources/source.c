#include "sample/sources/source.h"

#include "base/alloc.h"

psld_status psld_source_create(const psld_recipe *recipe, psld_score_fn predict, void (*release)(void *), void *user,
                               psld_source **source)
{
    *source = psld_alloc(1, sizeof **source);
    if (!*source) {
        if (release) release(user);
        return PSLD_NO_MEMORY;
    }
    (*source)->predict = predict;
    (*source)->release = release;
    (*source)->user = user;
    (*source)->layout = psld_layout_of(recipe);
    return PSLD_OK;
}

psld_status psld_source_wrap(const psld_source *base, const psld_recipe *recipe, psld_score_fn predict,
                             void (*release)(void *), void *user, psld_source **source)
{
    psld_status status = psld_source_check(base, recipe);
    if (status != PSLD_OK) {
        release(user);
        return status;
    }
    PSLD_TRY(psld_source_create(recipe, predict, release, user, source));
    (*source)->exact = base->exact;
    (*source)->earliest = base->earliest;
    return PSLD_OK;
}

psld_status psld_source_check(const psld_source *source, const psld_recipe *recipe)
{
    return psld_layout_check(&source->layout, "score source", recipe);
}

psld_status psld_source_callback(psld_score_fn predict, void *user, psld_source **source)
{
    return psld_source_callback_gradient(predict, NULL, user, source);
}

psld_status psld_source_callback_gradient(psld_score_fn predict, psld_score_gradient_fn gradient, void *user,
                                          psld_source **source)
{
    *source = NULL;
    if (!predict) return psld_fail(PSLD_BAD_ARGUMENT, "score source: expected a callback, found NULL");
    PSLD_TRY(psld_source_create(NULL, predict, NULL, user, source));
    (*source)->gradient = gradient;
    return PSLD_OK;
}

void psld_source_free(psld_source *source)
{
    if (!source) return;
    if (source->release) source->release(source->user);
    psld_release(source);
}

psld_status psld_source_predict(psld_source *source, size_t n, size_t dim, const double *z, const double *t,
                                double *eps)
{
    uint64_t before = psld_fail_count();
    return psld_fail_callback("score", before, source->predict(source->user, n, dim, z, t, eps));
}

int psld_source_has_gradient(const psld_source *source)
{
    return source->gradient != NULL;
}

psld_status psld_source_gradient(psld_source *source, size_t n, size_t dim, const double *z, const double *t,
                                 const double *weight, double *eps, double *grad_z)
{
    if (!source->gradient) return psld_fail(PSLD_BAD_ARGUMENT, "this score source cannot be differentiated");
    uint64_t before = psld_fail_count();
    return psld_fail_callback("gradient", before, source->gradient(source->user, n, dim, z, t, weight, eps, grad_z));
}
