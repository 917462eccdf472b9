/* Langevin corrector steps at a fixed time. */
#ifndef PSLD_SAMPLE_CORRECTOR_H
#define PSLD_SAMPLE_CORRECTOR_H

#include "sample/affine.h"

/* The affine map of one Langevin step of this size. It leaves p_t unchanged, to first order in the size. */
psld_status psld_corrector_plan(const psld_recipe *recipe, double t, double size, psld_affine *affine);

#endif
