/* Sampling with the auxiliary variables integrated out: see collapsed.c. */
#ifndef PSLD_SAMPLE_COLLAPSED_H
#define PSLD_SAMPLE_COLLAPSED_H

#include "sample/samplers/multistep.h"

/* Constants of a multistep step of the collapsed flow (a psld_multistep_fn). */
psld_status psld_collapsed_plan(const psld_discretisation *grid, const psld_multistep_window *window,
                                psld_multistep *table);

#endif
