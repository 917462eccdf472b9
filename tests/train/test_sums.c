/* Sums over the ranks of MPI, against sums in double. The test starts itself again on several ranks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "psld_ranks.h"
#include "sanitized.h"
#include "skip.h"
#include "train/ranks.h"

/* ---- On one of the ranks ----------------------------------------------------------------------------------------- */

enum { ARRAYS = 7, MOST = 100003, GUARD = 3 };
static const size_t counts[ARRAYS] = {1, 2, 7, 64, 1000, MOST, 5};

static float number_of(int rank, size_t array, size_t i)
{
    return (float)(sin((double)i + 31 * (double)array + 7 * rank) * pow(10, (double)(i % 9) - 4));
}

static void require(int is_so, const char *what)
{
    if (is_so) return;
    fprintf(stderr, "rank %d of %d: %s\n", psld_rank(), psld_rank_count(), what);
    psld_ranks_end(1);
    exit(1);
}

/* Each number within what its roundings allow, and the same bits on all ranks. */
static void check_sum(const psld_distribution *ranks, size_t array, psld_sum_format format, float *found)
{
    static float all[MOST];
    double rounding = format == PSLD_SUM_BF16 ? pow(2, -8) : pow(2, -24) * ranks->count;
    for (size_t i = 0; i < counts[array]; i++) {
        double sum = 0, size = 0;
        for (int r = 0; r < ranks->count; r++) {
            sum += (double)number_of(r, array, i);
            size += fabs((double)number_of(r, array, i));
        }
        require(fabs((double)found[i] - sum) <= 1.01 * rounding * (size + fabs(sum)) + 1e-30, "another sum");
    }
    memcpy(all, found, counts[array] * sizeof *all);
    ranks->merge(all, counts[array] * sizeof *all);
    require(memcmp(all, found, counts[array] * sizeof *all) == 0, "other bits than on another rank");
    for (int i = 0; i < GUARD; i++) require(found[counts[array] + (size_t)i] == -1, "written beyond the end");
}

static void sum_all(const psld_distribution *ranks, psld_sums *sums, psld_sum_format format, float *numbers[ARRAYS])
{
    for (size_t a = 0; a < ARRAYS; a++) {
        for (size_t i = 0; i < counts[a]; i++) numbers[a][i] = number_of(ranks->rank, a, i);
        for (size_t i = 0; i < GUARD; i++) numbers[a][counts[a] + i] = -1;
        ranks->begin_sum(sums, a, numbers[a]);
        ranks->poke_sums(sums);
    }
    ranks->finish_sums(sums);
    ranks->finish_sums(sums); /* nothing is left to wait for */
    for (size_t a = 0; a < ARRAYS; a++) check_sum(ranks, a, format, numbers[a]);
}

/* What is not finite on one rank is not finite in the sum. */
static void sum_not_finite(const psld_distribution *ranks, psld_sums *sums, float *numbers)
{
    for (size_t i = 0; i < counts[4]; i++) numbers[i] = 1;
    if (ranks->rank == ranks->count - 1) numbers[10] = NAN, numbers[999] = INFINITY;
    ranks->begin_sum(sums, 4, numbers);
    ranks->finish_sums(sums);
    require(isnan(numbers[10]) && isinf(numbers[999]) && numbers[11] == (float)ranks->count,
            "not finite becomes finite");
}

static void sum_on_rank(void)
{
    float *numbers[ARRAYS];
    require(psld_ranks_begin() == PSLD_OK, "cannot begin");
    const psld_distribution *ranks = psld_distribution_now();
    for (size_t a = 0; a < ARRAYS; a++) numbers[a] = malloc((counts[a] + GUARD) * sizeof **numbers);
    for (int f = PSLD_SUM_FP32; f <= PSLD_SUM_BF16; f++) {
        psld_sums *sums;
        require(ranks->create_sums(counts, ARRAYS, (psld_sum_format)f, &sums) == PSLD_OK, psld_error_text());
        for (int round = 0; round < 2; round++) sum_all(ranks, sums, (psld_sum_format)f, numbers);
        sum_not_finite(ranks, sums, numbers[4]);
        ranks->free_sums(sums);
    }
    for (size_t a = 0; a < ARRAYS; a++) free(numbers[a]);
    psld_ranks_end(0);
}

/* ---- Starting the ranks ------------------------------------------------------------------------------------------ */

static const char *own_path;

static void sums_on_ranks(void **state)
{
    (void)state;
#ifndef PSLD_MPI
    skip_for("built without MPI");
#endif
    if (PSLD_SANITIZED) skip_for("Open MPI is built without sanitizers");
    if (system("command -v mpirun >/dev/null") != 0) skip_for("no mpirun");
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    for (int count = 1; count <= 5; count += count < 3 ? 1 : 2) {
        char command[4096];
        snprintf(command, sizeof command, "timeout 120 mpirun -n %d '%s' --rank", count, own_path);
        if (system(command) != 0) fail_msg("%d ranks", count);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_on_ranks)};
    own_path = argv[0];
    if (argc == 2 && strcmp(argv[1], "--rank") == 0) {
        sum_on_rank();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
