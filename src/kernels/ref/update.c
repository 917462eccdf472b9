/* The update of training, written to be read. */
#include "kernels/adam.h"

#include <math.h>

#include "base/threads.h"

enum { CHUNK = 1 << 14 };

typedef struct adam_job {
    const psld_adam *adam;
    const float *g;
    float *w, *m, *v, *average;
    double *sums;
    size_t count;
} adam_job;

static void update_range(void *context, size_t begin, size_t end)
{
    const adam_job *job = context;
    const psld_adam *a = job->adam;
    float clip = (float)a->clip, decay = (float)a->decay, beta1 = (float)a->beta1, beta2 = (float)a->beta2;
    float step = (float)(a->rate / (1 - pow(a->beta1, (double)a->step)));
    float root = (float)(1 / sqrt(1 - pow(a->beta2, (double)a->step))), epsilon = (float)a->epsilon,
          ema = (float)a->ema, shrink = (float)a->shrink;
    for (size_t i = begin; i < end; i++) {
        float g = clip * job->g[i] + decay * job->w[i];
        job->m[i] = beta1 * job->m[i] + (1 - beta1) * g;
        job->v[i] = beta2 * job->v[i] + (1 - beta2) * g * g;
        job->w[i] = shrink * job->w[i] - step * job->m[i] / (sqrtf(job->v[i]) * root + epsilon);
        if (job->average) job->average[i] = ema * job->average[i] + (1 - ema) * job->w[i];
    }
}

void psld_ref_adam(const psld_adam *adam, size_t count, const float *g, float *w, float *m, float *v, float *average)
{
    adam_job job = {.adam = adam, .g = g, .w = w, .m = m, .v = v, .average = average, .count = count};
    psld_parallel(count, CHUNK, update_range, &job);
}

size_t psld_ref_square_chunks(size_t count)
{
    return count / CHUNK + 1;
}

static void square_range(void *context, size_t begin, size_t end)
{
    const adam_job *job = context;
    for (size_t chunk = begin; chunk < end; chunk++) {
        double sum = 0;
        for (size_t i = chunk * CHUNK; i < (chunk + 1) * CHUNK && i < job->count; i++)
            sum += (double)job->g[i] * (double)job->g[i];
        job->sums[chunk] = sum;
    }
}

double psld_ref_sum_squares(size_t count, const float *x, double *scratch)
{
    adam_job job = {.g = x, .sums = scratch, .count = count};
    double sum = 0;
    psld_parallel(psld_ref_square_chunks(count), 1, square_range, &job);
    for (size_t i = 0; i < psld_ref_square_chunks(count); i++) sum += scratch[i];
    return sum;
}
