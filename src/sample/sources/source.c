#include "sample/sources/source.h"

#include "base/alloc.h"
#include "base/threads.h"

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
    (*source)->kind = base->kind;
    (*source)->is_foreign = base->is_foreign;
    psld_source_take_labels(*source, base);
    return PSLD_OK;
}

void psld_source_take_labels(psld_source *source, const psld_source *base)
{
    source->classes = base->classes;
    source->needs_label = base->needs_label;
}

size_t psld_source_classes(const psld_source *source)
{
    return source->classes;
}

int psld_source_needs_label(const psld_source *source)
{
    return source->needs_label;
}

psld_status psld_source_check(const psld_source *source, const psld_recipe *recipe)
{
    return psld_layout_check(&source->layout, "score source", recipe);
}

void psld_source_free(psld_source *source)
{
    if (!source) return;
    if (source->release) source->release(source->user);
    psld_release(source);
}

/* A source without classes takes no notice of labels: an unconditional model may guide a conditional one. */
static psld_status check_labels(const psld_source *source, const psld_states *states)
{
    for (size_t i = 0; i < states->n && source->classes > 0; i++) {
        int32_t label = states->label ? states->label[i] : -1;
        if (label < -1 || (label >= 0 && (size_t)label >= source->classes))
            return psld_fail(PSLD_BAD_ARGUMENT, "label: expected a class from 0 to %zu, or -1 for none, found %d",
                             source->classes - 1, (int)label);
        if (label < 0 && source->needs_label)
            return psld_fail(PSLD_BAD_ARGUMENT,
                             "label: this model cannot predict without a label; expected a class from 0 to %zu",
                             source->classes - 1);
    }
    return PSLD_OK;
}

static psld_status read_states(const psld_source *source, const psld_states *states, psld_states *own)
{
    PSLD_TRY(psld_states_read(states, own));
    return check_labels(source, own);
}

psld_status psld_source_predict(psld_source *source, const psld_states *states, double *eps)
{
    psld_states own;
    PSLD_TRY(read_states(source, states, &own));
    uint64_t before = psld_fail_count();
    if (source->is_foreign) psld_threads_rest();
    return psld_fail_callback("score", before, source->predict(source->user, &own, eps));
}

int psld_source_has_gradient(const psld_source *source)
{
    return source->gradient != NULL;
}

psld_status psld_source_gradient(psld_source *source, const psld_states *states, const double *weight, double *eps,
                                 double *grad_z)
{
    psld_states own;
    if (!source->gradient)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "score source: it has no gradient: use a network, a mixture, or a callback with one");
    PSLD_TRY(read_states(source, states, &own));
    uint64_t before = psld_fail_count();
    if (source->is_foreign) psld_threads_rest();
    return psld_fail_callback("gradient", before, source->gradient(source->user, &own, weight, eps, grad_z));
}
