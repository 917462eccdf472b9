#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "eval/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Address space per thread of OpenBLAS: its buffer and its stack, with some to spare. */
#define ROOM_OF_THREAD ((size_t)160 << 20)

static psld_blas blas;
static char problem[256]; /* "": it is loaded */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int roomy; /* the largest number of threads that fitted: OpenBLAS keeps its threads */

static void load_blas(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    static const struct {
        const char *name;
        size_t place;
    } functions[] = {{"cblas_dsyrk", offsetof(psld_blas, dsyrk)},
                     {"cblas_dgemm", offsetof(psld_blas, dgemm)},
                     {"dsyevd_", offsetof(psld_blas, dsyevd)},
                     {"dgesdd_", offsetof(psld_blas, dgesdd)},
                     {"openblas_get_num_threads", offsetof(psld_blas, get_threads)},
                     {"openblas_set_num_threads", offsetof(psld_blas, set_threads)}};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();
    for (size_t i = 0; i < sizeof functions / sizeof *functions && !why; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function) why = dlerror();
        memcpy((char *)&blas + functions[i].place, &function, sizeof function);
    }
    snprintf(problem, sizeof problem, "%.*s", (int)sizeof problem - 1, why ? why : "");
}

/* Whether there is enough address space for this many threads, including the calling one. */
static int has_address_space(int threads)
{
    if (threads <= atomic_load(&roomy)) return 1;
    size_t size = (size_t)(threads - atomic_load(&roomy)) * ROOM_OF_THREAD;
    void *room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return 0;
    munmap(room, size);
    return 1;
}

/* The number of threads after loading: ours, and those that loading starts unless the environment sets their number. */
static int blas_thread_count(void)
{
    long processors = getenv("OPENBLAS_NUM_THREADS") || atomic_load(&roomy) ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    return processors > psld_threads_get() ? (int)processors : psld_threads_get();
}

psld_status psld_blas_open(const psld_blas **opened)
{
    int threads = blas_thread_count();
    *opened = NULL;
    if (!has_address_space(threads))
        return psld_fail(PSLD_NO_MEMORY, "evaluation with %d threads needs %zu MB of address space; take fewer threads",
                         threads, (size_t)threads * (ROOM_OF_THREAD >> 20));
    pthread_once(&once, load_blas);
    if (*problem)
        return psld_fail(PSLD_IO, "evaluation needs OpenBLAS (Debian's libopenblas0), which cannot be loaded: %s",
                         problem);
    if (threads > atomic_load(&roomy)) atomic_store(&roomy, threads);
    *opened = &blas;
    return PSLD_OK;
}
