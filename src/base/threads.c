/* The pool is made at the first call that can use it and lives until the number of threads changes. Workers take ranges by an
 * atomic counter. Invariants:
 *   1. `owner` is held by the one thread whose job is running; whoever cannot take it computes alone.
 *   2. A job's fields are written before `generation` rises and read by workers after they saw it rise, both under `lock`.
 *   3. The caller leaves psld_parallel only when `busy` is 0: no worker touches the job any more. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"
#include "psld.h"

enum { MAX_THREADS = 256 };

static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER; /* to workers: a new generation, or stop */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER; /* to the caller: busy is 0 */

static struct {
    psld_range_fn body;
    void *context;
    size_t count, grain;
    atomic_size_t next;
} job;

static int wanted; /* 0: one for each processor */
static int workers;
static pthread_t threads[MAX_THREADS];
static unsigned long generation;
static int busy, stop;
static _Thread_local int inside; /* this thread is running a body */

static int processors(void)
{
#ifdef CPU_COUNT
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

int psld_threads_get(void)
{
    int count = wanted > 0 ? wanted : processors();
    return count < MAX_THREADS ? count : MAX_THREADS;
}

static void take_ranges(void)
{
    inside = 1;
    for (;;) {
        size_t begin = atomic_fetch_add(&job.next, job.grain);
        if (begin >= job.count) break;
        size_t end = job.count - begin < job.grain ? job.count : begin + job.grain;
        job.body(job.context, begin, end);
    }
    inside = 0;
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    unsigned long seen = generation - 1; /* made for the generation that is current */
    for (;;) {
        while (seen == generation && !stop) pthread_cond_wait(&wake, &lock);
        if (stop) break;
        seen = generation;
        pthread_mutex_unlock(&lock);
        take_ranges();
        pthread_mutex_lock(&lock);
        if (--busy == 0) pthread_cond_signal(&idle);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void stop_workers(void)
{
    pthread_mutex_lock(&lock);
    stop = 1;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < workers; i++) pthread_join(threads[i], NULL);
    workers = 0;
    stop = 0;
}

/* Runs the job that stands in `job`. A thread that cannot be made is done without. */
static void run_job(void)
{
    int helpers = psld_threads_get() - 1;
    if (workers > helpers) stop_workers();
    pthread_mutex_lock(&lock);
    generation++;
    busy = workers;
    while (workers < helpers && pthread_create(&threads[workers], NULL, work, NULL) == 0) {
        workers++;
        busy++;
    }
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
    take_ranges();
    pthread_mutex_lock(&lock);
    while (busy) pthread_cond_wait(&idle, &lock);
    pthread_mutex_unlock(&lock);
}

void psld_parallel(size_t count, size_t grain, psld_range_fn body, void *context)
{
    if (count == 0) return;
    if (inside || count <= grain || psld_threads_get() == 1 || pthread_mutex_trylock(&owner) != 0) {
        body(context, 0, count);
        return;
    }
    /* About eight ranges a thread even out their speeds without much traffic on the counter. */
    size_t even = count / (8 * (size_t)psld_threads_get()) + 1;
    job.body = body;
    job.context = context;
    job.count = count;
    job.grain = grain > even ? grain : even;
    atomic_store(&job.next, 0);
    run_job();
    pthread_mutex_unlock(&owner);
}

psld_status psld_threads_set(int count)
{
    if (count < 0 || count > MAX_THREADS)
        return psld_fail(PSLD_BAD_ARGUMENT, "threads: expected 0 to %d, found %d", MAX_THREADS, count);
    pthread_mutex_lock(&owner);
    wanted = count;
    if (workers > psld_threads_get() - 1) stop_workers();
    pthread_mutex_unlock(&owner);
    return PSLD_OK;
}
