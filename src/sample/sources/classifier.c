#include "sample/sources/classifier.h"

#include "base/alloc.h"
#include "sample/sources/states.h"

psld_status psld_classifier_create(const psld_recipe *recipe, psld_classify_fn classify, void (*release)(void *),
                                   void *user, size_t classes, psld_classifier **classifier)
{
    *classifier = psld_alloc(1, sizeof **classifier);
    if (!*classifier) {
        if (release) release(user);
        return PSLD_NO_MEMORY;
    }
    **classifier = (psld_classifier){classify, release, user, classes, psld_layout_of(recipe)};
    (*classifier)->layout.predicted = 0;
    return PSLD_OK;
}

psld_status psld_classifier_callback(psld_classify_fn classify, void *user, size_t classes,
                                     psld_classifier **classifier)
{
    *classifier = NULL;
    if (!classify) return psld_fail(PSLD_BAD_ARGUMENT, "classifier: expected a callback, found NULL");
    return psld_classifier_create(NULL, classify, NULL, user, classes, classifier);
}

void psld_classifier_free(psld_classifier *classifier)
{
    if (!classifier) return;
    if (classifier->release) classifier->release(classifier->user);
    psld_release(classifier);
}

size_t psld_classifier_classes(const psld_classifier *classifier)
{
    return classifier->classes;
}

psld_status psld_classifier_evaluate(psld_classifier *classifier, const psld_states *states, const int32_t *label,
                                     double *log_p, double *grad_z)
{
    psld_states own;
    PSLD_TRY(psld_states_read(states, &own));
    for (size_t i = 0; i < own.n; i++)
        if (label[i] < 0 || (size_t)label[i] >= classifier->classes)
            return psld_fail(PSLD_BAD_ARGUMENT, "label: expected 0 to %zu, found %ld", classifier->classes - 1,
                             (long)label[i]);
    uint64_t before = psld_fail_count();
    return psld_fail_callback("classifier", before, classifier->classify(classifier->user, &own, label, log_p, grad_z));
}
