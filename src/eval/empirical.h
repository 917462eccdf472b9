/* Data as a mixture, and its score by matrix products. */
#ifndef PSLD_EVAL_EMPIRICAL_H
#define PSLD_EVAL_EMPIRICAL_H

#include "psld_data.h"
#include "sample/sources/mixture.h"

/* Makes a mixture of the first `components` items (all, if there are fewer): equally likely Gaussians of deviation
 * `scale`. */
psld_status psld_empirical_mixture(psld_data *data, size_t components, double scale, psld_mixture **mixture);

/* As psld_source_mixture. Large mixtures of one scale are evaluated by OpenBLAS: results differ by rounding, also
 * between numbers of threads. Borrows the mixture. */
psld_status psld_empirical_source(const psld_mixture *mixture, const psld_recipe *recipe, psld_source **source);

#endif
