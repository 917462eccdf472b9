#include "sample/sources/states.h"

#include "base/sized.h"

psld_status psld_states_read(const psld_states *given, psld_states *states)
{
    *states = PSLD_STATES(0, 0, NULL, NULL);
    PSLD_TRY(psld_sized_check(given, sizeof *states, "PSLD_STATES"));
    PSLD_TRY(psld_sized_copy(given, states, sizeof *states, "PSLD_STATES"));
    if (states->n == 0 || (states->z && states->t)) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "states: %s is NULL: make them with PSLD_STATES", states->z ? "t" : "z");
}

psld_states psld_states_replace(const psld_states *states, const double *z, const double *t)
{
    psld_states other = *states;
    other.z = z;
    other.t = t;
    return other;
}

psld_states psld_states_part(const psld_states *states, size_t begin, size_t end, size_t width)
{
    psld_states part = *states;
    part.n = end - begin;
    part.z += begin * width;
    part.t += begin;
    if (part.sample) part.sample += begin;
    if (part.label) part.label += begin;
    return part;
}

size_t psld_states_same_time(const psld_states *states, size_t begin)
{
    size_t end = begin + 1;
    while (end < states->n && states->t[end] == states->t[begin]) end++;
    return end;
}
