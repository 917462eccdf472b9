/* A classifier of states: log p(label | z_t, t) with its gradient by z. Networks are one, the components of a mixture
 * another, and users may bring their own. */
#ifndef PSLD_SAMPLE_CLASSIFIER_H
#define PSLD_SAMPLE_CLASSIFIER_H

#include "sample/sources/layout.h"

struct psld_classifier {
    psld_classify_fn classify;
    void (*release)(void *user); /* NULL: `user` belongs to somebody else */
    void *user;
    size_t classes;
    psld_layout layout; /* of the states it was made for */
};

/* For states of `recipe` (NULL: any). Takes over `user`: on failure, too, it is released. */
psld_status psld_classifier_create(const psld_recipe *recipe, psld_classify_fn classify, void (*release)(void *),
                                   void *user, size_t classes, psld_classifier **classifier);

#endif
