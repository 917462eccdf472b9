#include "kernels/avx2/update.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "kernels/avx2/sizes.h"
#include "kernels/avx2/vec.h"

#if defined(__AVX2__) && defined(__FMA__)

enum { CHUNK = 8192 };

typedef struct {
    ptrdiff_t count;
    const float *x;
    double *sums;
} square_job;

static double sum_squares(const float *x, ptrdiff_t count)
{
    __m256d low = _mm256_setzero_pd(), high = low;
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const v8 part = v8_load(x + i);
        const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(part));
        const __m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(part, 1));
        low = _mm256_fmadd_pd(a, a, low);
        high = _mm256_fmadd_pd(b, b, high);
    }
    double lanes[4], rest = 0;
    _mm256_storeu_pd(lanes, _mm256_add_pd(low, high));
    for (; i < count; i++) rest += (double)x[i] * (double)x[i];
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + rest;
}

static void avx2_square_range(void *context, size_t begin, size_t end)
{
    const square_job *job = context;
    for (ptrdiff_t chunk = (ptrdiff_t)begin; chunk < (ptrdiff_t)end; chunk++)
        job->sums[chunk] = sum_squares(job->x + chunk * CHUNK, psld_min(CHUNK, job->count - chunk * CHUNK));
}

ptrdiff_t psld_sum_squares_chunks_avx2(ptrdiff_t count)
{
    return (count + CHUNK - 1) / CHUNK;
}

double psld_sum_squares_avx2(ptrdiff_t count, const float *x, double *scratch)
{
    square_job job = {count, x, scratch};
    const ptrdiff_t chunks = psld_sum_squares_chunks_avx2(count);
    psld_parallel((size_t)chunks, 4, avx2_square_range, &job);
    double sum = 0;
    for (ptrdiff_t i = 0; i < chunks; i++) sum += scratch[i];
    return sum;
}

typedef struct {
    ptrdiff_t count;
    const float *g;
    float *w, *m, *v, *average;
    float beta1, beta2, other1, other2, rate, root, epsilon, decay, clip, ema, other_ema, shrink;
} adam_job;

V8_INLINE void adam8(const adam_job *a, const float *g, float *w, float *m, float *v, float *average)
{
    const v8 weight = v8_load(w);
    const v8 slope = v8_fma(v8_set(a->decay), weight, v8_mul(v8_set(a->clip), v8_load(g)));
    const v8 first = v8_fma(v8_set(a->beta1), v8_load(m), v8_mul(v8_set(a->other1), slope));
    const v8 second = v8_fma(v8_set(a->beta2), v8_load(v), v8_mul(v8_set(a->other2), v8_mul(slope, slope)));
    const v8 size = v8_fma(_mm256_sqrt_ps(second), v8_set(a->root), v8_set(a->epsilon));
    const v8 next = v8_fnma(v8_set(a->rate), _mm256_div_ps(first, size), v8_mul(v8_set(a->shrink), weight));
    v8_store(m, first);
    v8_store(v, second);
    v8_store(w, next);
    if (average) v8_store(average, v8_fma(v8_set(a->ema), v8_load(average), v8_mul(v8_set(a->other_ema), next)));
}

/* Fewer than eight: through a buffer, by the same arithmetic. */
static void adam_rest(const adam_job *a, ptrdiff_t start, ptrdiff_t count)
{
    float buffer[5][8] = {{0}};
    const size_t bytes = (size_t)count * sizeof(float);
    memcpy(buffer[0], a->g + start, bytes);
    memcpy(buffer[1], a->w + start, bytes);
    memcpy(buffer[2], a->m + start, bytes);
    memcpy(buffer[3], a->v + start, bytes);
    if (a->average) memcpy(buffer[4], a->average + start, bytes);
    adam8(a, buffer[0], buffer[1], buffer[2], buffer[3], buffer[4]);
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
    for (; i + 8 <= last; i += 8) adam8(a, a->g + i, a->w + i, a->m + i, a->v + i, a->average ? a->average + i : NULL);
    if (i < last) adam_rest(a, i, last - i);
}

void psld_adam_avx2_8(const psld_adam *adam, ptrdiff_t count, const float *g, float *w, float *m, float *v,
                      float *average)
{
    adam_job job = {.count = count, .g = g, .w = w, .m = m, .v = v, .average = average};
    job.beta1 = (float)adam->beta1, job.other1 = (float)(1 - adam->beta1);
    job.beta2 = (float)adam->beta2, job.other2 = (float)(1 - adam->beta2);
    job.rate = (float)(adam->rate / (1 - pow(adam->beta1, (double)adam->step)));
    job.root = (float)(1 / sqrt(1 - pow(adam->beta2, (double)adam->step)));
    job.epsilon = (float)adam->epsilon, job.decay = (float)adam->decay, job.clip = (float)adam->clip;
    job.ema = (float)adam->ema, job.other_ema = (float)(1 - adam->ema);
    job.shrink = (float)adam->shrink;
    psld_parallel((size_t)((count + CHUNK - 1) / CHUNK), 4, adam_range, &job);
}

#endif
