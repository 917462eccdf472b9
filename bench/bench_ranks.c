/* mpirun -n N bench_ranks CONFIG [BATCH [ROUNDS [LABEL]]]: the cost of training on several ranks. Each rank takes steps
 * of BATCH samples (1) of the network of CONFIG on one thread. A round is a step of each rank for itself, one with the
 * gradients summed over all ranks while the backward pass makes them, and the sums with nothing else to do; the last
 * two in fp32 and in bf16. All begin each of these together, and the slowest rank counts. Prints rows of a table,
 * medians of ROUNDS (3) rounds; `bench_ranks --heading` prints what stands above them. docs/measurements/ranks.md
 * explains the columns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/model.h"
#include "psld_ranks.h"
#include "psld_train.h"
#include "train/trainer.h"

enum { FORMATS = 2, MAX_ROUNDS = 1000, MAX_RANKS = 1024, MAX_ARRAYS = 4096 };

static const char *const format_names[FORMATS] = {"fp32", "bf16"};

static void must(psld_status status)
{
    if (status == PSLD_OK) return;
    fprintf(stderr, "bench_ranks: %s\n", psld_error_text());
    exit(1);
}

static void *must_have(void *block)
{
    must(block ? PSLD_OK : PSLD_NO_MEMORY);
    return block;
}

/* ---- A distribution that can be switched off, and says how long a step waits ------------------------------------- */

static struct {
    const psld_distribution *ranks; /* the ranks underneath */
    int on;
    double waited; /* seconds in finish_sums */
} watched;

static void begin_watched(psld_sums *sums, size_t i, float *numbers)
{
    if (watched.on) watched.ranks->begin_sum(sums, i, numbers);
}

static void poke_watched(psld_sums *sums)
{
    if (watched.on) watched.ranks->poke_sums(sums);
}

static void finish_watched(psld_sums *sums)
{
    double began = psld_seconds();
    if (watched.on) watched.ranks->finish_sums(sums);
    watched.waited = psld_seconds() - began;
}

/* ---- What is measured -------------------------------------------------------------------------------------------- */

typedef struct bench {
    const psld_distribution *ranks;
    psld_model *model;
    psld_trainer *trainer[FORMATS];
    psld_sums *sums[FORMATS]; /* of the parameters, in arrays as large as a trainer's */
    size_t arrays, counts[MAX_ARRAYS];
    float *numbers, *z, *t, *target;
    int batch;
} bench;

typedef struct bench_round {
    double alone;
    double with_sums[FORMATS], waited[FORMATS], sums_alone[FORMATS];
} bench_round;

static void make_trainers(bench *b, psld_distribution *switched)
{
    psld_trainer_options options;
    must(psld_model_own(b->model));
    psld_trainer_defaults(&options);
    options.backend = b->model->backend;
    options.batch = b->batch;
    options.ranks = switched;
    for (int f = 0; f < FORMATS; f++) {
        options.format = (psld_sum_format)f;
        must(psld_trainer_create(b->model->network, &options, &b->trainer[f]));
    }
}

static void make_sums(bench *b)
{
    enum { ARRAY = 1 << 18 };
    size_t count = psld_model_parameters(b->model);
    b->numbers = must_have(calloc(count, sizeof *b->numbers));
    for (size_t left = count; left > 0 && b->arrays < sizeof b->counts / sizeof *b->counts;
         left -= b->counts[b->arrays++])
        b->counts[b->arrays] = left < ARRAY ? left : ARRAY;
    for (int f = 0; f < FORMATS; f++)
        must(b->ranks->create_sums(b->counts, b->arrays, (psld_sum_format)f, &b->sums[f]));
}

static void make_states(bench *b)
{
    const psld_network_config *c = &b->model->network->config;
    size_t n = (size_t)b->batch, pixels = (size_t)c->image_size * (size_t)c->image_size * n;
    size_t in = (size_t)c->in_ch * pixels, out = (size_t)c->out_ch * pixels;
    b->z = must_have(calloc(in + out + n, sizeof *b->z));
    b->target = b->z + in;
    b->t = b->target + out;
    for (size_t i = 0; i < in; i++) b->z[i] = sinf((float)i);
    for (size_t i = 0; i < out; i++) b->target[i] = cosf((float)i);
    for (size_t i = 0; i < n; i++) b->t[i] = 0.5f;
}

/* A step of all ranks at once: seconds of the slowest. */
static double step_together(bench *b, int format, int on)
{
    double loss, norm, together = 0;
    watched.on = on;
    b->ranks->sum(&together, 1);
    double began = psld_seconds();
    must(psld_trainer_step(b->trainer[format], b->batch, 0, b->z, b->t, b->target, &loss, &norm));
    return psld_seconds() - began;
}

static double sums_alone(bench *b, int format)
{
    double together = 0;
    float *numbers = b->numbers;
    b->ranks->sum(&together, 1);
    double began = psld_seconds();
    for (size_t i = 0; i < b->arrays; numbers += b->counts[i++]) b->ranks->begin_sum(b->sums[format], i, numbers);
    b->ranks->finish_sums(b->sums[format]);
    return psld_seconds() - began;
}

/* The largest and the smallest over the ranks: each fills a place of its own. */
static void extremes(const bench *b, double own, double *largest, double *smallest)
{
    double all[MAX_RANKS] = {0};
    all[b->ranks->rank] = own;
    b->ranks->sum(all, (size_t)b->ranks->count);
    *largest = *smallest = own;
    for (int r = 0; r < b->ranks->count; r++) {
        *largest = fmax(*largest, all[r]);
        *smallest = fmin(*smallest, all[r]);
    }
}

static bench_round measure(bench *b)
{
    bench_round m;
    double unused;
    extremes(b, step_together(b, 0, 0), &m.alone, &unused);
    for (int f = 0; f < FORMATS; f++) {
        extremes(b, step_together(b, f, 1), &m.with_sums[f], &unused);
        extremes(b, watched.waited, &unused, &m.waited[f]); /* the last rank waits only for the network */
        extremes(b, sums_alone(b, f), &m.sums_alone[f], &unused);
    }
    return m;
}

/* ---- What is printed --------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *numbers, int count)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, numbers, (size_t)count * sizeof *numbers);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_numbers);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static void print_heading(void)
{
    printf("| network | samples a rank | numbers | alone | with sums | waits at the end | sums alone | hidden | "
           "efficiency "
           "(range) |\n|---|---|---|---|---|---|---|---|---|\n");
}

static void print_row(const bench *b, const bench_round *rounds, int count, int f, const char *label)
{
    double alone[MAX_ROUNDS], with[MAX_ROUNDS], waited[MAX_ROUNDS], sums[MAX_ROUNDS], hidden[MAX_ROUNDS],
        efficiency[MAX_ROUNDS], least = 1e9, most = 0;
    for (int i = 0; i < count; i++) {
        const bench_round *m = &rounds[i];
        alone[i] = m->alone, with[i] = m->with_sums[f], waited[i] = m->waited[f], sums[i] = m->sums_alone[f];
        hidden[i] = 1 - waited[i] / sums[i];
        efficiency[i] = alone[i] / with[i];
        least = fmin(least, efficiency[i]), most = fmax(most, efficiency[i]);
    }
    printf("| %s | %d | %s | %.3f s | %.3f s | %.3f s | %.3f s | %.0f %% | %.0f %% (%.0f to %.0f) |\n", label, b->batch,
           format_names[f], median(alone, count), median(with, count), median(waited, count), median(sums, count),
           100 * median(hidden, count), 100 * median(efficiency, count), 100 * least, 100 * most);
}

static void run_bench(bench *b, int count, const char *label)
{
    static bench_round rounds[MAX_ROUNDS];
    (void)measure(b); /* warms up */
    for (int i = 0; i < count; i++) rounds[i] = measure(b);
    for (int f = 0; f < FORMATS && b->ranks->rank == 0; f++) print_row(b, rounds, count, f, label);
}

int main(int argc, char **argv)
{
    static bench b;
    if (argc == 2 && strcmp(argv[1], "--heading") == 0) {
        print_heading();
        return 0;
    }
    if (argc < 2 || !getenv("OMPI_COMM_WORLD_SIZE")) {
        printf("bench_ranks: to be run as mpirun -n 2 bench_ranks CONFIG [BATCH [ROUNDS [LABEL]]]\n");
        return 0;
    }
    int count = argc > 3 ? atoi(argv[3]) : 3;
    b.batch = argc > 2 ? atoi(argv[2]) : 1;
    if (b.batch < 1 || count < 1 || count > MAX_ROUNDS) {
        fprintf(stderr, "bench_ranks: expected a batch above 0 and 1 to %d rounds\n", MAX_ROUNDS);
        return 2;
    }
    psld_threads_set(1);
    must(psld_model_create(argv[1], NULL, 0, &b.model));
    must(psld_ranks_begin());
    watched.ranks = b.ranks = psld_distribution_now();
    if (b.ranks->count > MAX_RANKS) return 2;
    psld_distribution switched = *b.ranks;
    switched.begin_sum = begin_watched;
    switched.poke_sums = poke_watched;
    switched.finish_sums = finish_watched;
    make_trainers(&b, &switched);
    make_sums(&b);
    make_states(&b);
    run_bench(&b, count, argc > 4 ? argv[4] : "this");
    for (int f = 0; f < FORMATS; f++) {
        b.ranks->free_sums(b.sums[f]);
        psld_trainer_free(b.trainer[f]);
    }
    free(b.z);
    free(b.numbers);
    psld_model_free(b.model);
    psld_ranks_end(0);
    return 0;
}
