/* Ranks that an MPI launcher has started. */
#include "train/ranks.h"

#ifdef PSLD_MPI

#include <limits.h>
#include <mpi.h>

#include "device/device.h"

static void sum_now(double *numbers, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcast_bytes(void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        int part = size - done < INT_MAX ? (int)(size - done) : INT_MAX;
        MPI_Bcast((char *)bytes + done, part, MPI_BYTE, 0, MPI_COMM_WORLD);
        done += (size_t)part;
    }
}

static void merge_bits(void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        int part = size - done < INT_MAX ? (int)(size - done) : INT_MAX;
        MPI_Allreduce(MPI_IN_PLACE, (char *)bytes + done, part, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
        done += (size_t)part;
    }
}

/* The ranks of one machine are distributed over its devices. */
static void share_devices(void)
{
    MPI_Comm near;
    int rank = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    MPI_Comm_rank(near, &rank);
    MPI_Comm_free(&near);
    psld_device_set_rank(rank);
}

psld_status psld_mpi_begin(const psld_distribution **ranks)
{
    static psld_distribution own = {.create_sums = psld_mpi_create_sums,
                                    .free_sums = psld_mpi_free_sums,
                                    .begin_sum = psld_mpi_begin_sum,
                                    .poke_sums = psld_mpi_poke_sums,
                                    .finish_sums = psld_mpi_finish_sums,
                                    .sum = sum_now,
                                    .broadcast = broadcast_bytes,
                                    .merge = merge_bits};
    int level;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return psld_fail(PSLD_IO, "MPI cannot be started");
    MPI_Comm_rank(MPI_COMM_WORLD, &own.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &own.count);
    share_devices();
    *ranks = &own;
    return PSLD_OK;
}

/* A rank that fails ends the others, too, since they may be waiting for it. */
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
