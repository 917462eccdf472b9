/* The pool is made by the first call that can use it and lives until the number of threads changes. Each thread has a
 * share of the work, so the same part of an array stays in the same cache from call to call. A thread takes ranges of
 * its share by an atomic counter, and then steals ranges of the other shares. Networks make hundreds of calls of a few
 * hundred microseconds each, and waking a sleeping thread takes tens of microseconds. So a waiting thread spins first,
 * longer than the time between two such calls (50 us were too few: 20 switches per evaluation, 5 % of its time), unless
 * psld_threads_rest says that none follows soon. Nobody waits for a worker that has not entered yet. Invariants:
 *   1. `owner` is held by the one thread whose job is running. A thread that cannot take it computes alone.
 *   2. A job's fields are written while the gate is closed and no worker is in. A worker reads them between entering
 *      through the open gate and leaving.
 *   3. The caller returns only after it has closed the gate and all workers that entered have left: no worker touches
 *      the job any more. A worker that comes late finds the gate closed and waits for the next job.
 *   4. Opening the gate, setting `stop` and the last worker's signal happen under `lock`, and a worker checks again
 *      under `lock` before it sleeps: no wake-up is lost.
 *   5. Thread i works under slot number i, so at most one thread uses a slot at any time. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/threads.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "psld.h"

enum { MAX_THREADS = 256, SPIN_NANOSECONDS = 500000 };

static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER; /* to workers: the gate is open, or stop */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER; /* to the caller: all have left */

/* What is left of one thread's share: next ... end - 1. */
typedef struct share {
    _Alignas(64) atomic_size_t next;
    size_t end;
} share;

typedef void (*slot_range_fn)(void *context, int slot, size_t begin, size_t end);

static struct {
    slot_range_fn body;
    void *context;
    size_t grain, share_count;
    share shares[MAX_THREADS];
} job;

/* The number of workers that are in, whether more may enter, and the number of the job. */
#define GATE_COUNT  0xffffUL
#define GATE_OPEN   0x10000UL
#define GATE_NUMBER 0x20000UL /* one job */

static atomic_ulong gate;
static atomic_int stop;
static int sleeping; /* workers that must be woken; under `lock` */

static atomic_int wanted; /* 0: one thread per processor */
static int workers;
static pthread_t threads[MAX_THREADS];
static atomic_int may_spin;      /* there is a processor for every thread */
static atomic_int resting;       /* until the next job nobody spins */
static _Thread_local int inside; /* this thread is running a body */

static int count_processors(void)
{
#ifdef CPU_COUNT
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* Counted once: asking takes a microsecond, and every call of psld_parallel needs the number. */
static int processors(void)
{
    static atomic_int known;
    int count = atomic_load(&known);
    if (count == 0) atomic_store(&known, count = count_processors());
    return count;
}

int psld_threads_get(void)
{
    int count = atomic_load(&wanted);
    if (count == 0) count = processors();
    return count < MAX_THREADS ? count : MAX_THREADS;
}

/* Runs the ranges of the thread's own share, then those that the other threads have left. */
static void take_ranges(size_t thread)
{
    if (thread >= job.share_count) return;
    inside = 1;
    for (size_t i = 0; i < job.share_count; i++) {
        share *from = &job.shares[(thread + i) % job.share_count];
        for (size_t begin; (begin = atomic_fetch_add(&from->next, job.grain)) < from->end;)
            job.body(job.context, (int)thread, begin, from->end - begin < job.grain ? from->end : begin + job.grain);
    }
    inside = 0;
}

static long nanoseconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)(now.tv_sec - start->tv_sec) * 1000000000L + (now.tv_nsec - start->tv_nsec);
}

static void pause_briefly(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    for (int i = 0; i < 32; i++) __builtin_ia32_pause();
#endif
}

/* Whether a worker whose last job was `last` has something to do. */
static int job_or_stop(unsigned long last)
{
    const unsigned long g = atomic_load(&gate);
    return atomic_load(&stop) || ((g & GATE_OPEN) && g / GATE_NUMBER != last);
}

static int all_have_left(unsigned long unused)
{
    (void)unused;
    return (atomic_load(&gate) & GATE_COUNT) == 0;
}

/* Spins until `ready`, but not for long; returns whether it became ready. */
static int spin_for(int (*ready)(unsigned long), unsigned long last)
{
    if (!atomic_load(&may_spin)) return 0;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        if (ready(last)) return 1;
        pause_briefly();
    } while (!atomic_load(&resting) && nanoseconds_since(&start) < SPIN_NANOSECONDS);
    return 0;
}

static void wait_for_job(unsigned long last)
{
    if (spin_for(job_or_stop, last)) return;
    pthread_mutex_lock(&lock);
    sleeping++;
    while (!job_or_stop(last)) pthread_cond_wait(&wake, &lock);
    sleeping--;
    pthread_mutex_unlock(&lock);
}

static void wait_for_workers(void)
{
    if (spin_for(all_have_left, 0)) return;
    pthread_mutex_lock(&lock);
    while (!all_have_left(0)) pthread_cond_wait(&idle, &lock);
    pthread_mutex_unlock(&lock);
}

static void leave_job(void)
{
    const unsigned long before = atomic_fetch_sub(&gate, 1);
    if ((before & GATE_OPEN) || (before & GATE_COUNT) > 1) return;
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&idle);
    pthread_mutex_unlock(&lock);
}

static void *worker_main(void *number)
{
    const size_t thread = (size_t)(uintptr_t)number; /* counted from 1: the caller is 0 */
    unsigned long last = 0;
    for (;;) {
        wait_for_job(last);
        if (atomic_load(&stop)) return NULL;
        unsigned long g = atomic_load(&gate);
        if (!(g & GATE_OPEN) || g / GATE_NUMBER == last) continue;
        if (!atomic_compare_exchange_strong(&gate, &g, g + 1)) continue;
        last = g / GATE_NUMBER;
        take_ranges(thread);
        leave_job();
    }
}

static void stop_workers(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&stop, 1);
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < workers; i++) pthread_join(threads[i], NULL);
    workers = 0;
    atomic_store(&stop, 0);
}

/* A child of fork has this memory but only the thread that forked: it has no workers, and other threads may have held
 * the locks. So it begins with an empty pool, which its first job fills. */
static void forget_workers(void)
{
    workers = sleeping = 0;
    atomic_store(&stop, 0);
    atomic_store(&gate, 0);
    pthread_mutex_init(&owner, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    pthread_cond_init(&idle, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_workers);
}

/* Runs `job`. If a thread cannot be created, the others do its share. */
static void run_job(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int helpers = psld_threads_get() - 1;
    pthread_once(&once, watch_forks);
    if (workers > helpers) stop_workers();
    if (workers < helpers) atomic_store(&may_spin, helpers < processors());
    atomic_store(&resting, 0);
    pthread_mutex_lock(&lock);
    atomic_store(&gate, (atomic_load(&gate) / GATE_NUMBER + 1) * GATE_NUMBER + GATE_OPEN);
    while (workers < helpers &&
           pthread_create(&threads[workers], NULL, worker_main, (void *)(uintptr_t)(workers + 1)) == 0)
        workers++;
    if (sleeping) pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
    take_ranges(0);
    atomic_fetch_and(&gate, ~GATE_OPEN);
    wait_for_workers();
}

/* Divides 0 ... count - 1 into shares of whole ranges: only the very last range may be shorter. */
static void share_out(size_t count, size_t shares)
{
    const size_t ranges = (count - 1) / job.grain + 1;
    size_t begin = 0;
    for (size_t i = 0; i < shares; i++) {
        const size_t end = ranges * (i + 1) / shares * job.grain;
        atomic_store(&job.shares[i].next, begin);
        begin = job.shares[i].end = end < count ? end : count;
    }
    job.share_count = shares;
}

/* Runs 0 ... count - 1 in ranges of `grain` on at most `most` threads; alone if the pool is in use. */
static void run_shared(size_t count, size_t grain, size_t most, slot_range_fn body, void *context)
{
    if (inside || most < 2 || pthread_mutex_trylock(&owner) != 0) {
        body(context, 0, 0, count);
        return;
    }
    const size_t threads_now = (size_t)psld_threads_get();
    job.body = body;
    job.context = context;
    job.grain = grain;
    share_out(count, most < threads_now ? most : threads_now);
    run_job();
    pthread_mutex_unlock(&owner);
}

typedef struct range_call {
    psld_range_fn body;
    void *context;
} range_call;

static void run_range(void *context, int slot, size_t begin, size_t end)
{
    const range_call *call = context;
    (void)slot;
    call->body(call->context, begin, end);
}

void psld_parallel(size_t count, size_t grain, psld_range_fn body, void *context)
{
    if (count == 0) return;
    /* About eight ranges per thread even out their speeds without much traffic on the counters. */
    range_call call = {body, context};
    size_t most = count <= grain ? 1 : (size_t)psld_threads_get(), even = count / (8 * most) + 1;
    run_shared(count, grain > even ? grain : even, most, run_range, &call);
}

typedef struct task_call {
    psld_task_fn body;
    void *context;
} task_call;

static void run_tasks(void *context, int slot, size_t begin, size_t end)
{
    const task_call *call = context;
    for (size_t task = begin; task < end; task++) call->body(call->context, slot, (ptrdiff_t)task);
}

void psld_parallel_tasks(int slots, ptrdiff_t count, psld_task_fn body, void *context)
{
    if (count <= 0) return;
    assert(slots > 0);
    task_call call = {body, context};
    run_shared((size_t)count, 1, (size_t)(slots < count ? slots : count), run_tasks, &call);
}

void psld_threads_rest(void)
{
    atomic_store(&resting, 1);
}

psld_status psld_threads_set(int count)
{
    if (count < 0 || count > MAX_THREADS)
        return psld_fail(PSLD_BAD_ARGUMENT, "threads: expected 0 to %d, found %d", MAX_THREADS, count);
    atomic_store(&wanted, count);
    if (inside) return PSLD_OK; /* waiting for the running job would never end; the next one sees the new number */
    pthread_mutex_lock(&owner);
    if (workers > psld_threads_get() - 1) stop_workers();
    pthread_mutex_unlock(&owner);
    return PSLD_OK;
}
