#include "sample/source.h"

#include "base/alloc.h"

psld_status psld_source_create(psld_score_fn predict, void (*release)(void *), void *user, psld_source **source)
{
    *source = psld_alloc(1, sizeof **source);
    if (!*source) {
        if (release) release(user);
        return PSLD_NO_MEMORY;
    }
    (*source)->predict = predict;
    (*source)->release = release;
    (*source)->user = user;
    return PSLD_OK;
}

psld_status psld_source_callback(psld_score_fn predict, void *user, psld_source **source)
{
    return psld_source_create(predict, NULL, user, source);
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
    return source->predict(source->user, n, dim, z, t, eps);
}
