/* A score source: something that predicts eps from states and times. Networks, exact mixtures and the wrappers
 * around other sources (guidance, inpainting, ...) are all this. */
#ifndef PSLD_SAMPLE_SOURCE_H
#define PSLD_SAMPLE_SOURCE_H

#include "sample/sources/layout.h"
#include "sample/sources/states.h"

struct psld_source {
    psld_score_fn predict;
    psld_score_gradient_fn gradient; /* NULL: it has none */
    void (*release)(void *user);     /* NULL: `user` belongs to somebody else */
    void *user;
    /* 1: eps comes from a score that is exact, the stabiliser having no part in it but in its units; 0: it is the noise
     * of the stabilised kernel, as a network learns it. A wrapper takes over the value of what it wraps. */
    int exact;
    psld_layout layout; /* of the states it was made for */
    double earliest;    /* times below it cannot be asked for; 0: all can. Also taken over by wrappers */
};

/* A source of eps for states of `recipe` (NULL: any), without a gradient: set it afterwards. Takes over `user`: on
 * failure, too, it is released. */
psld_status psld_source_create(const psld_recipe *recipe, psld_score_fn predict, void (*release)(void *), void *user,
                               psld_source **source);
/* The same around another source of that recipe, whose `exact` and `earliest` it takes over. */
psld_status psld_source_wrap(const psld_source *base, const psld_recipe *recipe, psld_score_fn predict,
                             void (*release)(void *), void *user, psld_source **source);
/* Fails where a source cannot be asked about states of `recipe`. */
psld_status psld_source_check(const psld_source *source, const psld_recipe *recipe);

#endif
