#ifndef PSLD_EVAL_LIKELIHOOD_H
#define PSLD_EVAL_LIKELIHOOD_H

#include "base/status.h"
#include "psld_eval.h"

/* Whether the divergence will be exact for data of `dim` numbers. */
/* Completes the caller's options by the defaults, except for `exact`. */
psld_status psld_likelihood_options_read(const psld_likelihood_options *options, psld_likelihood_options *own);
int psld_likelihood_is_exact(const psld_recipe *recipe, const psld_likelihood_options *options, size_t dim);

#endif
