#include "kernels/simd/update.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "kernels/simd/sizes.h"
#include "kernels/simd/vec.h"

enum { CHUNK = 8192 };

typedef struct {
    ptrdiff_t count;
    const float *x;
    double *sums;
} square_job;

static double sum_squares(const float *x, ptrdiff_t count)
{
    vec_double sum = vd_zero();
    ptrdiff_t i = 0;
    for (; i + V_LANES <= count; i += V_LANES) sum = vd_add_square(sum, v_load(x + i));
    double rest = 0;
    for (; i < count; i++) rest += (double)x[i] * (double)x[i];
    return vd_sum(sum) + rest;
}

static void fast_square_range(void *context, size_t begin, size_t end)
{
    const square_job *job = context;
    for (ptrdiff_t chunk = (ptrdiff_t)begin; chunk < (ptrdiff_t)end; chunk++)
        job->sums[chunk] = sum_squares(job->x + chunk * CHUNK, psld_min(CHUNK, job->count - chunk * CHUNK));
}

size_t simd_square_chunks(size_t count)
{
    return (count + CHUNK - 1) / CHUNK;
}

double simd_sum_squares(size_t count, const float *x, double *scratch)
{
    square_job job = {(ptrdiff_t)count, x, scratch};
    const size_t chunks = simd_square_chunks(count);
    psld_parallel(chunks, 4, fast_square_range, &job);
    double sum = 0;
    for (size_t i = 0; i < chunks; i++) sum += scratch[i];
    return sum;
}

typedef struct {
    ptrdiff_t count;
    const float *g;
    float *w, *m, *v, *average;
    float beta1, beta2, other1, other2, rate, root, epsilon, decay, clip, ema, other_ema, shrink;
} adam_job;

SIMD_INLINE void adam_vector(const adam_job *a, const float *g, float *w, float *m, float *v, float *average)
{
    const vec weight = v_load(w);
    const vec slope = v_fma(v_set(a->decay), weight, v_mul(v_set(a->clip), v_load(g)));
    const vec first = v_fma(v_set(a->beta1), v_load(m), v_mul(v_set(a->other1), slope));
    const vec second = v_fma(v_set(a->beta2), v_load(v), v_mul(v_set(a->other2), v_mul(slope, slope)));
    const vec size = v_fma(v_sqrt(second), v_set(a->root), v_set(a->epsilon));
    const vec next = v_fnma(v_set(a->rate), v_div(first, size), v_mul(v_set(a->shrink), weight));
    v_store(m, first);
    v_store(v, second);
    v_store(w, next);
    if (average) v_store(average, v_fma(v_set(a->ema), v_load(average), v_mul(v_set(a->other_ema), next)));
}

/* Fewer than a vector: through a buffer, by the same arithmetic. */
static void adam_rest(const adam_job *a, ptrdiff_t start, ptrdiff_t count)
{
    float buffer[5][V_LANES] = {{0}};
    const size_t bytes = (size_t)count * sizeof(float);
    memcpy(buffer[0], a->g + start, bytes);
    memcpy(buffer[1], a->w + start, bytes);
    memcpy(buffer[2], a->m + start, bytes);
    memcpy(buffer[3], a->v + start, bytes);
    if (a->average) memcpy(buffer[4], a->average + start, bytes);
    adam_vector(a, buffer[0], buffer[1], buffer[2], buffer[3], buffer[4]);
    memcpy(a->w + start, buffer[1], bytes);
    memcpy(a->m + start, buffer[2], bytes);
    memcpy(a->v + start, buffer[3], bytes);
    if (a->average) memcpy(a->average + start, buffer[4], bytes);
}

static void adam_range(void *context, size_t begin, size_t end)
{
    const adam_job *a = context;
    const ptrdiff_t last = psld_min(a->count, (ptrdiff_t)end * CHUNK);
    ptrdiff_t i = (ptrdiff_t)begin * CHUNK;
    for (; i + V_LANES <= last; i += V_LANES)
        adam_vector(a, a->g + i, a->w + i, a->m + i, a->v + i, a->average ? a->average + i : NULL);
    if (i < last) adam_rest(a, i, last - i);
}

void simd_adam(const psld_adam *adam, size_t count, const float *g, float *w, float *m, float *v, float *average)
{
    adam_job job = {.count = (ptrdiff_t)count, .g = g, .w = w, .m = m, .v = v, .average = average};
    job.beta1 = (float)adam->beta1, job.other1 = (float)(1 - adam->beta1);
    job.beta2 = (float)adam->beta2, job.other2 = (float)(1 - adam->beta2);
    job.rate = (float)(adam->rate / (1 - pow(adam->beta1, (double)adam->step)));
    job.root = (float)(1 / sqrt(1 - pow(adam->beta2, (double)adam->step)));
    job.epsilon = (float)adam->epsilon, job.decay = (float)adam->decay, job.clip = (float)adam->clip;
    job.ema = (float)adam->ema, job.other_ema = (float)(1 - adam->ema);
    job.shrink = (float)adam->shrink;
    psld_parallel((count + CHUNK - 1) / CHUNK, 4, adam_range, &job);
}
