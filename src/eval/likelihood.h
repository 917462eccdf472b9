#ifndef PSLD_EVAL_LIKELIHOOD_H
#define PSLD_EVAL_LIKELIHOOD_H

#include "base/status.h"
#include "psld_eval.h"

/* Whether the divergence will be exact for data of `dim` numbers. */
/* The caller's options, with what is unset filled in but for `exact`. */
psld_status psld_likelihood_options_read(const psld_likelihood_options *options, psld_likelihood_options *own);
int psld_likelihood_is_exact(const psld_recipe *recipe, const psld_likelihood_options *options, size_t dim);

#endif
