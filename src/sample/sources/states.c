#include "sample/sources/states.h"

#include <string.h>

psld_status psld_states_read(const psld_states *given, psld_states *states)
{
    if (given->size == 0 || given->size > sizeof *states)
        return psld_fail(PSLD_BAD_ARGUMENT, "states: size is %zu, expected 1 to %zu: make them with PSLD_STATES",
                         given->size, sizeof *states);
    memset(states, 0, sizeof *states);
    memcpy(states, given, given->size);
    states->size = sizeof *states;
    return PSLD_OK;
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
    return part;
}

size_t psld_states_same_time(const psld_states *states, size_t begin)
{
    size_t end = begin + 1;
    while (end < states->n && states->t[end] == states->t[begin]) end++;
    return end;
}
