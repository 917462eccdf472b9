#include "train/ranks.h"
#include "psld_ranks.h"

static void begin_alone(float *numbers, size_t count)
{
    (void)numbers, (void)count;
}

static void do_nothing_alone(void) {}

static void sum_alone(double *numbers, size_t count)
{
    (void)numbers, (void)count;
}

static void share_alone(void *bytes, size_t size)
{
    (void)bytes, (void)size;
}

static const psld_distribution none = {0,         1,           begin_alone, do_nothing_alone, do_nothing_alone,
                                       sum_alone, share_alone, share_alone};
static const psld_distribution *now = &none;

const psld_distribution *psld_distribution_now(void)
{
    return now;
}

void psld_distribution_share(const psld_distribution *ranks, uint64_t total, uint64_t *begin, uint64_t *end)
{
    uint64_t rank = (uint64_t)ranks->rank, count = (uint64_t)ranks->count;
    *begin = total * rank / count;
    *end = total * (rank + 1) / count;
}

psld_status psld_ranks_begin(void)
{
    return now == &none ? psld_mpi_begin(&now) : PSLD_OK;
}

void psld_ranks_end(int failed)
{
    if (now != &none) psld_mpi_end(failed);
    now = &none;
}

int psld_rank(void)
{
    return now->rank;
}

int psld_rank_count(void)
{
    return now->count;
}

void psld_ranks_merge(void *bytes, size_t size)
{
    now->merge(bytes, size);
}
