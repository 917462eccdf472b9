/* A job is divided into ranges, which the thread and, when it comes back, the caller take by a counter. Invariants:
 *   1. The fields of a job are written while the thread is not `inside`, and it goes inside only where `is_posted` says
 *      so, both under `lock`.
 *   2. psld_ahead_take returns after all ranges are taken and the thread has left: all are drawn then. If the thread
 *   has not started yet, the caller has drawn all of them and does not wait. */
#include "sample/ahead.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "sample/reverse.h"

enum { WORTH = 4096, RANGE = 2048 }; /* numbers: twenty and ten microseconds */

struct psld_ahead {
    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock;
    pthread_cond_t posted, left;
    int is_posted, inside, stop; /* under `lock` */
    /* The job. */
    uint64_t seed, first, step;
    size_t count, each, steps, states; /* states: of a range */
    atomic_size_t next;
    int is_drawn; /* of the caller alone */
    double *numbers;
};

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

static void draw_ranges(psld_ahead *a)
{
    const size_t per_step = (a->count - 1) / a->states + 1;
    for (size_t range; (range = atomic_fetch_add(&a->next, 1)) < per_step * a->steps;) {
        size_t step = range / per_step, begin = range % per_step * a->states;
        size_t states = a->count - begin < a->states ? a->count - begin : a->states;
        psld_random_normal_each(a->seed, PSLD_FOR_STEP, a->first + begin, states, a->step + step, a->each,
                                a->numbers + (step * a->count + begin) * a->each);
    }
}

static void *ahead_main(void *context)
{
    psld_ahead *a = context;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (!a->is_posted && !a->stop) pthread_cond_wait(&a->posted, &a->lock);
        if (a->stop) break;
        a->is_posted = 0;
        a->inside = 1;
        pthread_mutex_unlock(&a->lock);
        draw_ranges(a);
        pthread_mutex_lock(&a->lock);
        a->inside = 0;
        pthread_cond_signal(&a->left);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* The thread may no longer begin with the job; if it has begun, it leaves. */
static void wait_until_left(psld_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->is_posted = 0;
    while (a->inside) pthread_cond_wait(&a->left, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

psld_status psld_ahead_open(const psld_reverse *reverse, size_t numbers, psld_ahead **ahead)
{
    *ahead = NULL;
    if (!reverse->source->is_foreign || reverse->options->noise || psld_threads_get() < 2 || numbers < WORTH)
        return PSLD_OK;
    psld_ahead *a = psld_alloc(1, sizeof *a);
    double *room = a ? psld_alloc(PSLD_AHEAD_STEPS * numbers, sizeof *room) : NULL;
    if (!room) {
        psld_release(a);
        return PSLD_NO_MEMORY;
    }
    a->numbers = room;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->posted, NULL);
    pthread_cond_init(&a->left, NULL);
    *ahead = a;
    return PSLD_OK;
}

void psld_ahead_free(psld_ahead *a)
{
    if (!a) return;
    if (a->has_thread) {
        pthread_mutex_lock(&a->lock);
        a->stop = 1;
        pthread_cond_signal(&a->posted);
        pthread_mutex_unlock(&a->lock);
        pthread_join(a->thread, NULL);
    }
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->posted);
    pthread_cond_destroy(&a->left);
    psld_release(a->numbers);
    psld_release(a);
}

void psld_ahead_begin(const psld_reverse *reverse, uint64_t step, size_t steps)
{
    psld_ahead *a = reverse->ahead;
    if (!a) return;
    /* If there can be no thread, the noise is drawn when it is needed. The first job makes it: many calls have none. */
    if (!a->has_thread && pthread_create(&a->thread, NULL, ahead_main, a) != 0) return;
    a->has_thread = 1;
    wait_until_left(a); /* of a job whose noise was not used */
    pthread_mutex_lock(&a->lock);
    a->seed = reverse->options->seed;
    a->first = reverse->first;
    a->step = step;
    a->steps = steps;
    a->count = reverse->count;
    a->each = reverse->k * reverse->dim;
    a->states = RANGE / a->each + 1;
    a->is_drawn = 0;
    atomic_store(&a->next, 0);
    a->is_posted = 1;
    pthread_cond_signal(&a->posted);
    pthread_mutex_unlock(&a->lock);
}

const double *psld_ahead_take(const psld_reverse *reverse, uint64_t step)
{
    psld_ahead *a = reverse->ahead;
    if (!a || !a->has_thread || a->first != reverse->first || a->count != reverse->count || step < a->step ||
        step - a->step >= a->steps)
        return NULL;
    if (!a->is_drawn) {
        draw_ranges(a);
        wait_until_left(a);
        a->is_drawn = 1;
    }
    return a->numbers + (step - a->step) * a->count * a->each;
}
