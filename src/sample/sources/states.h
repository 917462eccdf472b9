/* Helpers for psld_states: copies, parts of a batch, and states of equal time. */
#ifndef PSLD_SAMPLE_STATES_H
#define PSLD_SAMPLE_STATES_H

#include "base/status.h"

/* Copies the caller's struct into one of this version. Fails if `size` was not set. */
psld_status psld_states_read(const psld_states *given, psld_states *states);

/* The same samples, with other states or times. */
psld_states psld_states_replace(const psld_states *states, const double *z, const double *t);

/* States begin ... end - 1, `width` numbers of z each. */
psld_states psld_states_part(const psld_states *states, size_t begin, size_t end, size_t width);

/* The end of the run of states from `begin` on that have the same time. Constants are computed once per time. */
size_t psld_states_same_time(const psld_states *states, size_t begin);

#endif
