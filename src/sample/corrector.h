/* Langevin steps at a fixed time. */
#ifndef PSLD_SAMPLE_CORRECTOR_H
#define PSLD_SAMPLE_CORRECTOR_H

#include "sample/affine.h"

/* The map of a Langevin step of this size, which leaves p_t as it is. */
psld_status psld_corrector_plan(const psld_recipe *recipe, double t, double size, psld_affine *affine);

#endif
