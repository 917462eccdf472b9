#include "train/microbatch.h"

#include "base/alloc.h"

/* NULL for a size of 0. */
static psld_status allocate_floats(size_t capacity, size_t size, float **array)
{
    *array = size ? psld_alloc(capacity * size, sizeof **array) : NULL;
    return *array || !size ? PSLD_OK : PSLD_NO_MEMORY;
}

psld_status psld_microbatch_allocate(psld_microbatch *b, size_t capacity, const psld_microbatch_sizes *sizes)
{
    *b = (psld_microbatch){.capacity = capacity};
    PSLD_TRY(allocate_floats(capacity, sizes->x, &b->x));
    PSLD_TRY(allocate_floats(capacity, sizes->augment, &b->augment));
    PSLD_TRY(allocate_floats(capacity, sizes->one_hot, &b->one_hot));
    PSLD_TRY(allocate_floats(capacity, 1, &b->time));
    PSLD_TRY(allocate_floats(capacity, sizes->z, &b->z));
    PSLD_TRY(allocate_floats(capacity, sizes->target, &b->target));
    PSLD_TRY(allocate_floats(capacity, sizes->metric, &b->metric));
    PSLD_TRY(allocate_floats(capacity, sizes->other != 0, &b->soft));
    PSLD_TRY(allocate_floats(capacity, sizes->other ? sizes->z : 0, &b->other_z));
    PSLD_TRY(allocate_floats(capacity, sizes->other != 0, &b->other_time));
    PSLD_TRY(allocate_floats(capacity, sizes->other ? sizes->target : 0, &b->other));
    PSLD_TRY(allocate_floats(capacity, sizes->moves ? sizes->z : 0, &b->eps));
    PSLD_TRY(allocate_floats(capacity, sizes->moves ? sizes->z : 0, &b->by_z));
    PSLD_TRY(allocate_floats(capacity, sizes->base != 0, &b->base));
    PSLD_TRY(allocate_floats(capacity, 1, &b->weight));
    PSLD_TRY(allocate_floats(capacity, 1, &b->loss));
    PSLD_TRY(allocate_floats(capacity, sizes->out, &b->out));
    b->label = psld_alloc(capacity, sizeof *b->label);
    b->t = psld_alloc(capacity, sizeof *b->t);
    b->hit = psld_alloc(capacity, sizeof *b->hit);
    return b->label && b->t && b->hit ? PSLD_OK : PSLD_NO_MEMORY;
}

void psld_microbatch_clear(psld_microbatch *b)
{
    void *const arrays[] = {b->x,    b->label,   b->augment,    b->one_hot, b->t,      b->time, b->z,
                            b->eps,  b->by_z,    b->target,     b->metric,  b->soft,   b->base, b->hit,
                            b->loss, b->other_z, b->other_time, b->other,   b->weight, b->out};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) psld_release(arrays[i]);
    *b = (psld_microbatch){0};
}

int psld_microbatch_next(psld_microbatch *b, uint64_t origin, uint64_t *done, uint64_t end)
{
    if (*done >= end) return 0;
    b->n = end - *done < b->capacity ? (size_t)(end - *done) : b->capacity;
    b->in_step = *done;
    b->first = origin + *done;
    *done += b->n;
    b->last = *done == end;
    return 1;
}
