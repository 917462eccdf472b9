/* A score source predicts eps from states and times. Networks and exact mixtures are score sources; so are the wrappers
 * around another source (guidance, restoration, ...). */
#ifndef PSLD_SAMPLE_SOURCE_H
#define PSLD_SAMPLE_SOURCE_H

#include "sample/sources/layout.h"
#include "sample/sources/states.h"

/* The clean data of a source: their mean given the state for a score, or one sample of them for a consistency
 * function. */
typedef enum psld_source_kind { PSLD_SOURCE_ANY, PSLD_SOURCE_MEAN, PSLD_SOURCE_SAMPLE } psld_source_kind;

struct psld_source {
    psld_score_fn predict;
    psld_score_gradient_fn gradient; /* NULL: none */
    void (*release)(void *user);     /* NULL: `user` is borrowed */
    void *user;
    /* 1: the score is exact, and the stabiliser enters only the factor that converts it to eps. 0: eps is the noise of the
     * stabilised kernel, as a network learns it. Wrappers copy the value of their base. */
    int exact;
    psld_layout layout;    /* of the states it was made for */
    double earliest;       /* the smallest time at which it can be evaluated; 0: any. Wrappers copy it, too */
    size_t classes;        /* of the labels that it takes; 0: none. Wrappers copy it, and */
    int needs_label;       /* 1: it cannot predict without a label */
    psld_source_kind kind; /* ANY: unknown, as for callbacks. Wrappers copy it, too */
    int is_foreign;        /* 1: a user's function, which may need the processors for itself. Wrappers copy it, too */
};

/* A source for states of `recipe` (NULL: any). Set its gradient afterwards. Owns `user`, which is released on failure,
 * too. */
psld_status psld_source_create(const psld_recipe *recipe, psld_score_fn predict, void (*release)(void *), void *user,
                               psld_source **source);
/* A wrapper around `base`, a source of the same recipe. Copies what is true of both. */
psld_status psld_source_wrap(const psld_source *base, const psld_recipe *recipe, psld_score_fn predict,
                             void (*release)(void *), void *user, psld_source **source);
/* Makes a source take the labels that `base` takes. */
void psld_source_take_labels(psld_source *source, const psld_source *base);
/* Fails if a source cannot be evaluated for states of `recipe`. */
psld_status psld_source_check(const psld_source *source, const psld_recipe *recipe);

#endif
