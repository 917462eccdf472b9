/* Sums of arrays over the ranks of MPI in the background.
 *
 * An array is cut into as many shares as there are ranks. First every rank sends each other rank that one's share
 * (MPI_Ialltoallv) and adds up what arrives for its own; then the sums go to all (MPI_Iallgatherv). So with n ranks each
 * sends and receives 2 (n - 1) / n times the array. MPI_Iallreduce in place would be a tree in Open MPI, whose root
 * receives and sends the whole array log2(n) times.
 *
 * All ranks must call the collectives of a communicator in the same order. What arrives first differs from rank to rank,
 * so the second halves begin in the order of the first ones, on a communicator of their own.
 *
 * In bfloat16 a number is rounded when it is sent: once before it is added, and the sum once more. The own share is added
 * unrounded, and its sum is rounded like the others, so that all ranks get the same bits. */
#include "train/ranks.h"

#ifdef PSLD_MPI

#include <limits.h>
#include <mpi.h>

#include "base/alloc.h"
#include "base/bf16.h"
#include "base/threads.h"

enum { GRAIN = 1 << 14 };

typedef struct array_sum {
    float *numbers; /* the caller's array, while the sum is under way */
    size_t count;
    size_t first, share;                /* the share of this rank */
    int *send_counts, *send_firsts;     /* [ranks]: which numbers are sent to which rank */
    int *arrive_counts, *arrive_firsts; /* [ranks]: where their numbers for this rank's share arrive */
    int *share_counts;                  /* [ranks] */
    void *arrived;                      /* [ranks - 1][share] */
    uint16_t *halves;                   /* [count], bfloat16: what is sent, then the sums; NULL in fp32 */
    enum { SCATTERS, ARRIVED, GATHERS } stage;
} array_sum;

struct psld_sums {
    int rank, ranks;
    MPI_Comm scatter, gather;
    size_t arrays;
    array_sum *array;
    MPI_Request *requests; /* [arrays]: what each waits for, or MPI_REQUEST_NULL */
    int *ready;            /* [arrays] */
    size_t *order;         /* [arrays]: those that have begun */
    size_t begun, gathered;
};

/* ---- The numbers ------------------------------------------------------------------------------------------------- */

typedef struct convert_job {
    float *numbers;
    uint16_t *halves;
} convert_job;

static void halve_range(void *context, size_t begin, size_t end)
{
    const convert_job *job = context;
    for (size_t i = begin; i < end; i++) job->halves[i] = psld_bf16_from(job->numbers[i]);
}

static void widen_range(void *context, size_t begin, size_t end)
{
    const convert_job *job = context;
    for (size_t i = begin; i < end; i++) job->numbers[i] = psld_bf16_value(job->halves[i]);
}

typedef struct add_arrived_job {
    float *sum;
    const void *arrived;
    size_t share;
    int others;
} add_arrived_job;

static void add_floats_range(void *context, size_t begin, size_t end)
{
    const add_arrived_job *job = context;
    for (int r = 0; r < job->others; r++) {
        const float *from = (const float *)job->arrived + (size_t)r * job->share;
        for (size_t i = begin; i < end; i++) job->sum[i] += from[i];
    }
}

static void add_halves_range(void *context, size_t begin, size_t end)
{
    const add_arrived_job *job = context;
    for (int r = 0; r < job->others; r++) {
        const uint16_t *from = (const uint16_t *)job->arrived + (size_t)r * job->share;
        for (size_t i = begin; i < end; i++) job->sum[i] += psld_bf16_value(from[i]);
    }
}

/* ---- The two halves of a sum ------------------------------------------------------------------------------------- */

static void scatter(psld_sums *sums, size_t i)
{
    array_sum *a = &sums->array[i];
    MPI_Datatype type = a->halves ? MPI_UINT16_T : MPI_FLOAT;
    convert_job job = {a->numbers, a->halves};
    if (a->halves) psld_parallel(a->count, GRAIN, halve_range, &job);
    a->stage = SCATTERS;
    MPI_Ialltoallv(a->halves ? (void *)a->halves : a->numbers, a->send_counts, a->send_firsts, type, a->arrived,
                   a->arrive_counts, a->arrive_firsts, type, sums->scatter, &sums->requests[i]);
}

static void gather(psld_sums *sums, size_t i)
{
    array_sum *a = &sums->array[i];
    add_arrived_job job = {a->numbers + a->first, a->arrived, a->share, sums->ranks - 1};
    convert_job own = {a->numbers + a->first, a->halves ? a->halves + a->first : NULL};
    psld_parallel(a->share, GRAIN, a->halves ? add_halves_range : add_floats_range, &job);
    if (a->halves) psld_parallel(a->share, GRAIN, halve_range, &own);
    a->stage = GATHERS;
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a->halves ? (void *)a->halves : a->numbers, a->share_counts,
                    a->send_firsts, a->halves ? MPI_UINT16_T : MPI_FLOAT, sums->gather, &sums->requests[i]);
}

/* The next action of arrays whose requests are finished. */
static void move_on(psld_sums *sums, int count)
{
    for (int i = 0; i < count; i++) {
        array_sum *a = &sums->array[sums->ready[i]];
        convert_job job = {a->numbers, a->halves};
        if (a->stage == SCATTERS)
            a->stage = ARRIVED;
        else if (a->halves)
            psld_parallel(a->count, GRAIN, widen_range, &job);
    }
    while (sums->gathered < sums->begun && sums->array[sums->order[sums->gathered]].stage == ARRIVED)
        gather(sums, sums->order[sums->gathered++]);
}

void psld_mpi_begin_sum(psld_sums *sums, size_t i, float *numbers)
{
    sums->array[i].numbers = numbers;
    sums->order[sums->begun++] = i;
    scatter(sums, i);
}

void psld_mpi_poke_sums(psld_sums *sums)
{
    int count = 0;
    MPI_Testsome((int)sums->arrays, sums->requests, &count, sums->ready, MPI_STATUSES_IGNORE);
    if (count != MPI_UNDEFINED) move_on(sums, count);
}

void psld_mpi_finish_sums(psld_sums *sums)
{
    for (int count = 0;; move_on(sums, count)) {
        MPI_Waitsome((int)sums->arrays, sums->requests, &count, sums->ready, MPI_STATUSES_IGNORE);
        if (count == MPI_UNDEFINED) break;
    }
    sums->begun = sums->gathered = 0;
}

/* ---- Making and freeing ------------------------------------------------------------------------------------------ */

/* The share of a rank; its first number in *first. */
static size_t share_of(size_t count, int rank, int ranks, size_t *first)
{
    const psld_distribution one = {.rank = rank, .count = ranks};
    uint64_t begin, end;
    psld_distribution_share(&one, count, &begin, &end);
    *first = (size_t)begin;
    return (size_t)(end - begin);
}

/* Sets which numbers are sent to which rank, and where those of the others arrive. A rank sends nothing to itself. */
static void plan_shares(array_sum *a, const psld_sums *sums)
{
    for (int r = 0, others = 0; r < sums->ranks; r++) {
        size_t first, share = share_of(a->count, r, sums->ranks, &first);
        int is_other = r != sums->rank;
        a->share_counts[r] = (int)share;
        a->send_firsts[r] = (int)first;
        a->send_counts[r] = is_other ? (int)share : 0;
        a->arrive_counts[r] = is_other ? (int)a->share : 0;
        a->arrive_firsts[r] = others * (int)a->share;
        others += is_other;
    }
}

static psld_status prepare_array(array_sum *a, const psld_sums *sums, size_t count, psld_sum_format format)
{
    size_t ranks = (size_t)sums->ranks, size = format == PSLD_SUM_BF16 ? sizeof(uint16_t) : sizeof(float);
    if (count > INT_MAX)
        return psld_fail(PSLD_BAD_ARGUMENT, "sums over ranks: expected arrays of less than 2^31 numbers, found %zu",
                         count);
    a->count = count;
    a->share = share_of(count, sums->rank, sums->ranks, &a->first);
    a->send_counts = psld_alloc(5 * ranks, sizeof(int));
    a->arrived = psld_alloc((ranks - 1) * a->share, size);
    a->halves = format == PSLD_SUM_BF16 ? psld_alloc(count, sizeof *a->halves) : NULL;
    if (!a->send_counts || !a->arrived || (format == PSLD_SUM_BF16 && !a->halves)) return PSLD_NO_MEMORY;
    a->send_firsts = a->send_counts + ranks;
    a->arrive_counts = a->send_firsts + ranks;
    a->arrive_firsts = a->arrive_counts + ranks;
    a->share_counts = a->arrive_firsts + ranks;
    plan_shares(a, sums);
    return PSLD_OK;
}

static psld_status fill_sums(psld_sums *sums, const size_t *counts, size_t arrays, psld_sum_format format)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &sums->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &sums->ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &sums->scatter);
    MPI_Comm_dup(MPI_COMM_WORLD, &sums->gather);
    sums->array = psld_alloc(arrays, sizeof *sums->array);
    sums->requests = psld_alloc(arrays, sizeof(MPI_Request));
    sums->ready = psld_alloc(arrays, sizeof(int));
    sums->order = psld_alloc(arrays, sizeof *sums->order);
    if (!sums->array || !sums->requests || !sums->ready || !sums->order) return PSLD_NO_MEMORY;
    sums->arrays = arrays;
    for (size_t i = 0; i < arrays; i++) sums->requests[i] = MPI_REQUEST_NULL;
    for (size_t i = 0; i < arrays; i++) PSLD_TRY(prepare_array(&sums->array[i], sums, counts[i], format));
    return PSLD_OK;
}

psld_status psld_mpi_create_sums(const size_t *counts, size_t arrays, psld_sum_format format, psld_sums **sums)
{
    *sums = NULL;
    psld_sums *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = fill_sums(made, counts, arrays, format);
    if (status != PSLD_OK) {
        psld_mpi_free_sums(made);
        return status;
    }
    *sums = made;
    return PSLD_OK;
}

void psld_mpi_free_sums(psld_sums *sums)
{
    if (!sums) return;
    MPI_Comm_free(&sums->scatter);
    MPI_Comm_free(&sums->gather);
    for (size_t i = 0; i < sums->arrays; i++) {
        psld_release(sums->array[i].send_counts);
        psld_release(sums->array[i].arrived);
        psld_release(sums->array[i].halves);
    }
    psld_release(sums->array);
    psld_release(sums->requests);
    psld_release(sums->ready);
    psld_release(sums->order);
    psld_release(sums);
}

#endif
