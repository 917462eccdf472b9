/* mpirun -n N bench_ranks [PARAMETERS]: how long the ranks need to sum the gradients of so many parameters (39.4 million
 * where none are given), in buckets of a megabyte as training does it, with nothing else to do meanwhile. Beside the
 * seconds a step that `psld train` writes to its log this says what communication costs: docs/cluster.md. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "train/distribution.h"

enum { BUCKET = 1 << 18, ROUNDS = 5 };

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : 39400000;
    if (psld_ranks_begin() != PSLD_OK) {
        printf("%s\n", psld_error_text());
        return 0;
    }
    const psld_distribution *ranks = psld_distribution_now();
    float *gradients = calloc(count, sizeof *gradients);
    if (!gradients) return 1;
    double best = 1e9, start = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ranks->sum(&start, 1); /* all begin together */
        double began = psld_seconds();
        for (size_t done = 0; done < count; done += BUCKET)
            ranks->begin_sum(gradients + done, count - done < BUCKET ? count - done : BUCKET);
        ranks->finish();
        double seconds = psld_seconds() - began;
        if (seconds < best) best = seconds;
    }
    if (ranks->rank == 0)
        printf("%d ranks: %.0f MB of gradients summed in %.3f s, %.2f GB/s\n", ranks->count, 4e-6 * (double)count, best,
               4e-9 * (double)count / best);
    free(gradients);
    psld_ranks_end(0);
    return 0;
}
