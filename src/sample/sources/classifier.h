/* A classifier of states: log p(label | z_t, t) and its gradient by z. It may be a network, the exact classifier of a
 * mixture's components, or a user's callback. */
#ifndef PSLD_SAMPLE_CLASSIFIER_H
#define PSLD_SAMPLE_CLASSIFIER_H

#include "sample/sources/layout.h"

struct psld_classifier {
    psld_classify_fn classify;
    void (*release)(void *user); /* NULL: `user` is borrowed */
    void *user;
    size_t classes;
    psld_layout layout; /* of the states it was made for */
};

/* For states of `recipe` (NULL: any). Owns `user`, which is released on failure, too. */
psld_status psld_classifier_create(const psld_recipe *recipe, psld_classify_fn classify, void (*release)(void *),
                                   void *user, size_t classes, psld_classifier **classifier);

#endif
