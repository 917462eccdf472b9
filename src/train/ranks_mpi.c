/* Ranks that an MPI launcher has started. */
#include "train/ranks.h"

#ifdef PSLD_MPI

#include <limits.h>
#include <mpi.h>

enum { MAX_SUMS = 256 };

static MPI_Request requests[MAX_SUMS];
static int request_count;

static void wait_for_all(void)
{
    MPI_Waitall(request_count, requests, MPI_STATUSES_IGNORE);
    request_count = 0;
}

static void begin_sum(float *numbers, size_t count)
{
    for (size_t done = 0; done < count;) {
        int part = count - done < INT_MAX ? (int)(count - done) : INT_MAX;
        if (request_count == MAX_SUMS) wait_for_all();
        MPI_Iallreduce(MPI_IN_PLACE, numbers + done, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &requests[request_count++]);
        done += (size_t)part;
    }
}

static void poke(void)
{
    int done;
    if (request_count) MPI_Testall(request_count, requests, &done, MPI_STATUSES_IGNORE);
    if (request_count && done) request_count = 0;
}

static void sum(double *numbers, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcast(void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        int part = size - done < INT_MAX ? (int)(size - done) : INT_MAX;
        MPI_Bcast((char *)bytes + done, part, MPI_BYTE, 0, MPI_COMM_WORLD);
        done += (size_t)part;
    }
}

static void merge(void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        int part = size - done < INT_MAX ? (int)(size - done) : INT_MAX;
        MPI_Allreduce(MPI_IN_PLACE, (char *)bytes + done, part, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
        done += (size_t)part;
    }
}

psld_status psld_mpi_begin(const psld_distribution **ranks)
{
    static psld_distribution own = {0, 1, begin_sum, poke, wait_for_all, sum, broadcast, merge};
    int level;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return psld_fail(PSLD_IO, "MPI cannot be started");
    MPI_Comm_rank(MPI_COMM_WORLD, &own.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &own.count);
    *ranks = &own;
    return PSLD_OK;
}

/* A rank that has failed takes the others, which may be waiting for it, with it. */
void psld_mpi_end(int failed)
{
    if (failed)
        MPI_Abort(MPI_COMM_WORLD, failed);
    else
        MPI_Finalize();
}

#else

psld_status psld_mpi_begin(const psld_distribution **ranks)
{
    (void)ranks;
    return psld_fail(PSLD_BAD_ARGUMENT, "this psld was built without MPI: it cannot share work among ranks");
}

void psld_mpi_end(int failed)
{
    (void)failed;
}

#endif
