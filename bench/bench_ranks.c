/* mpirun -n N bench_ranks [CONFIG [BATCH]]: what training on several ranks costs. Each rank computes steps of BATCH samples
 * (1) of the network of CONFIG on one thread, first for itself, then with the gradients summed over all ranks as the
 * backward pass makes them; and sums as many numbers with nothing else to do. Results: docs/measurements/ranks.md. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "psld_ranks.h"
#include "psld_train.h"
#include "train/ranks.h"

enum { BUCKET = 1 << 18, ROUNDS = 3 };

static void must(psld_status status)
{
    if (status == PSLD_OK) return;
    fprintf(stderr, "bench_ranks: %s\n", psld_error_text());
    exit(1);
}

/* Seconds to sum `count` numbers, a megabyte at a time as training does it. */
static double time_sum(const psld_distribution *ranks, size_t count)
{
    float *numbers = calloc(count, sizeof *numbers);
    double best = 1e9, together = 0;
    if (!numbers) exit(1);
    for (int round = 0; round < ROUNDS; round++) {
        ranks->sum(&together, 1); /* all begin at once */
        double began = psld_seconds();
        for (size_t done = 0; done < count; done += BUCKET)
            ranks->begin_sum(numbers + done, count - done < BUCKET ? count - done : BUCKET);
        ranks->finish();
        double seconds = psld_seconds() - began;
        if (seconds < best) best = seconds;
    }
    free(numbers);
    return best;
}

int main(int argc, char **argv)
{
    if (argc < 2 || !getenv("OMPI_COMM_WORLD_SIZE")) {
        printf("bench_ranks: to be run as mpirun -n 2 bench_ranks CONFIG [BATCH]\n");
        return 0;
    }
    size_t batch = argc > 2 ? (size_t)strtoull(argv[2], NULL, 10) : 1, bytes;
    double alone, with_sums;
    psld_model *model;
    psld_threads_set(1);
    must(psld_model_create(argv[1], NULL, 0, &model));
    must(psld_model_time_training(model, batch, ROUNDS, &alone, &bytes));
    must(psld_ranks_begin());
    const psld_distribution *ranks = psld_distribution_now();
    must(psld_model_time_training(model, batch, ROUNDS, &with_sums, &bytes));
    size_t parameters = psld_model_parameters(model);
    double sum = time_sum(ranks, parameters);
    if (ranks->rank == 0)
        printf("%d ranks, %zu samples each: %.3f s a step alone, %.3f s with sums; %.0f MB of gradients alone %.3f s\n",
               ranks->count, batch, alone, with_sums, 4e-6 * (double)parameters, sum);
    psld_model_free(model);
    psld_ranks_end(0);
    return 0;
}
