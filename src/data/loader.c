/* The plan of what to decode ahead is a sequence: entry q is sample base + q / n * stride + q % n, that is n samples of
 * each later call. Threads take the next entry until `ahead` are done. Each call of psld_loader_read for the expected
 * samples moves the plan on by n entries, so that every sample is prepared once. */
#include "data/loader.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/threads.h"
#include "data/data.h"
#include "data/order.h"

enum { MAX_FEED_THREADS = 8 };

typedef struct plan {
    uint64_t base, stride;
    size_t n;
    size_t next, end; /* entries */
} plan;

struct psld_loader {
    psld_data *data;
    psld_loader_options options;
    int augments;    /* images are augmented */
    uint64_t count;  /* samples of an epoch */
    uint64_t *index; /* of the next samples */
    uint8_t *flips;
    size_t index_capacity, flips_capacity;
    uint64_t last; /* first sample of the last call, once there was one */
    int began;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    plan plan;
    int stop;
    pthread_t threads[MAX_FEED_THREADS];
    int thread_count;
};

uint64_t psld_loader_item(const psld_loader *feed, uint64_t sample, int *flip)
{
    const psld_loader_options *o = &feed->options;
    uint64_t all = psld_data_count(feed->data);
    uint64_t item = psld_order_at(o->seed, sample / feed->count, feed->count, sample % feed->count);
    if (feed->count < all) item = psld_order_at(o->seed, PSLD_ORDER_OF_SPLIT, all, o->begin + item);
    uint16_t coin = 0;
    if (o->flip) psld_random_short(o->seed, PSLD_FOR_FLIP, sample, 0, 0, 1, &coin);
    *flip = coin & 1;
    return item;
}

/* ---- Ahead ------------------------------------------------------------------------------------------------------- */

/* The next sample to prepare; returns 0 when the loader ends. */
static int next_sample(psld_loader *feed, uint64_t *sample)
{
    plan *p = &feed->plan;
    pthread_mutex_lock(&feed->lock);
    while (!feed->stop && p->next == p->end) pthread_cond_wait(&feed->wake, &feed->lock);
    int go_on = !feed->stop;
    if (go_on) {
        *sample = p->base + p->next / p->n * p->stride + p->next % p->n;
        p->next++;
    }
    pthread_mutex_unlock(&feed->lock);
    return go_on;
}

static void *decode_ahead(void *context)
{
    psld_loader *feed = context;
    uint64_t sample = 0;
    int flip = 0;
    uint8_t *pixels = psld_alloc(psld_data_dim(feed->data), 1);
    if (!pixels) return NULL; /* psld_loader_read decodes them */
    while (next_sample(feed, &sample)) psld_data_prepare(feed->data, psld_loader_item(feed, sample, &flip), pixels);
    psld_release(pixels);
    return NULL;
}

/* Plans what to decode while the samples first ... first + n - 1 are used. */
static void plan_batch(psld_loader *feed, uint64_t first, size_t n)
{
    plan *p = &feed->plan;
    if (feed->thread_count == 0) return;
    uint64_t stride = feed->began && first > feed->last ? first - feed->last : n;
    pthread_mutex_lock(&feed->lock);
    int as_expected = feed->began && p->n == n && p->stride == stride && p->base == first;
    size_t done = as_expected && p->next > n ? p->next - n : 0;
    *p = (plan){.base = first + stride, .stride = stride, .n = n, .next = done, .end = feed->options.ahead};
    pthread_cond_broadcast(&feed->wake);
    pthread_mutex_unlock(&feed->lock);
    feed->last = first;
    feed->began = 1;
}

/* ---- From outside ------------------------------------------------------------------------------------------------ */

psld_status psld_loader_create(psld_data *data, const psld_loader_options *options, psld_loader **feed)
{
    *feed = NULL;
    assert(options->begin < options->end && options->end <= psld_data_count(data));
    psld_loader *f = psld_alloc(1, sizeof *f);
    if (!f) return PSLD_NO_MEMORY;
    f->data = data;
    f->options = *options;
    f->options.flip = options->flip && psld_data_is_image(data);
    f->augments = psld_augmentation_any(&options->augment) && psld_data_is_image(data);
    f->count = options->end - options->begin;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->wake, NULL);
    int threads = options->threads ? options->threads : psld_threads_get();
    if (!psld_data_is_costly(data) || options->ahead == 0) threads = 0;
    /* If a thread cannot be created, the loader works without it. */
    while (f->thread_count < threads && f->thread_count < MAX_FEED_THREADS &&
           pthread_create(&f->threads[f->thread_count], NULL, decode_ahead, f) == 0)
        f->thread_count++;
    *feed = f;
    return PSLD_OK;
}

void psld_loader_free(psld_loader *feed)
{
    if (!feed) return;
    pthread_mutex_lock(&feed->lock);
    feed->stop = 1;
    pthread_cond_broadcast(&feed->wake);
    pthread_mutex_unlock(&feed->lock);
    for (int i = 0; i < feed->thread_count; i++) pthread_join(feed->threads[i], NULL);
    pthread_cond_destroy(&feed->wake);
    pthread_mutex_destroy(&feed->lock);
    psld_release(feed->index);
    psld_release(feed->flips);
    psld_release(feed);
}

typedef struct augment_job {
    const psld_loader *feed;
    uint64_t first;
    size_t shape[PSLD_MAX_RANK], dim;
    float *x;
    atomic_int failed;
} augment_job;

static void augment_range(void *context, size_t begin, size_t end)
{
    augment_job *job = context;
    const psld_loader_options *o = &job->feed->options;
    double numbers[PSLD_AUGMENT_NUMBERS];
    float *room = psld_alloc(job->dim, sizeof *room);
    if (!room) atomic_store(&job->failed, 1);
    for (size_t i = begin; room && i < end; i++) {
        psld_augment_draw(&o->augment, o->seed, job->first + i, job->shape, numbers);
        psld_augment_apply(numbers, job->shape, job->x + i * job->dim, room);
    }
    psld_release(room);
}

static psld_status augment_all(const psld_loader *feed, uint64_t first, size_t n, float *x)
{
    augment_job job = {.feed = feed, .first = first, .dim = psld_data_dim(feed->data), .x = x};
    psld_data_shape(feed->data, job.shape);
    psld_parallel(n, 1, augment_range, &job);
    return atomic_load(&job.failed) ? PSLD_NO_MEMORY : PSLD_OK;
}

psld_status psld_loader_read(psld_loader *feed, uint64_t first, size_t n, float *x, int32_t *label)
{
    void *index = feed->index, *flips = feed->flips;
    if (n == 0) return PSLD_OK;
    psld_status status = psld_grow(&index, &feed->index_capacity, n, sizeof *feed->index);
    feed->index = index;
    if (status == PSLD_OK) status = psld_grow(&flips, &feed->flips_capacity, n, 1);
    feed->flips = flips;
    if (status != PSLD_OK) return status;
    for (size_t i = 0; i < n; i++) {
        int flip = 0;
        feed->index[i] = psld_loader_item(feed, first + i, &flip);
        feed->flips[i] = (uint8_t)flip;
    }
    plan_batch(feed, first, n);
    PSLD_TRY(psld_data_fetch(feed->data, n, feed->index, feed->flips, x, label));
    return feed->augments ? augment_all(feed, first, n, x) : PSLD_OK;
}

void psld_loader_augmentation(const psld_loader *feed, uint64_t first, size_t n, float *numbers)
{
    size_t shape[PSLD_MAX_RANK];
    double of_sample[PSLD_AUGMENT_NUMBERS] = {0};
    psld_data_shape(feed->data, shape);
    for (size_t i = 0; i < n; i++) {
        if (feed->augments) psld_augment_draw(&feed->options.augment, feed->options.seed, first + i, shape, of_sample);
        for (size_t j = 0; j < PSLD_AUGMENT_NUMBERS; j++) numbers[i * PSLD_AUGMENT_NUMBERS + j] = (float)of_sample[j];
    }
}
