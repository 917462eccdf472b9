#include "train/ranks.h"
#include "psld_ranks.h"

static psld_status create_sums_alone(const size_t *counts, size_t arrays, psld_sum_format format, psld_sums **sums)
{
    (void)counts, (void)arrays, (void)format;
    *sums = NULL;
    return PSLD_OK;
}

static void leave_sums_alone(psld_sums *sums)
{
    (void)sums;
}

static void begin_alone(psld_sums *sums, size_t i, float *numbers)
{
    (void)sums, (void)i, (void)numbers;
}

static void sum_alone(double *numbers, size_t count)
{
    (void)numbers, (void)count;
}

static void share_alone(void *bytes, size_t size)
{
    (void)bytes, (void)size;
}

static const psld_distribution none = {.count = 1,
                                       .create_sums = create_sums_alone,
                                       .free_sums = leave_sums_alone,
                                       .begin_sum = begin_alone,
                                       .poke_sums = leave_sums_alone,
                                       .finish_sums = leave_sums_alone,
                                       .sum = sum_alone,
                                       .broadcast = share_alone,
                                       .merge = share_alone};
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
