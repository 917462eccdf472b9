#include "sample/inverse/inpaint.h"

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "base/threads.h"
#include "sample/collapsed_frame.h"
#include "sample/sources/denoiser.h"

psld_status psld_inpainting_read(const psld_inpainting *inpainting, psld_inpainting *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_inpainting, inpainting, own, PSLD_INPAINTING_DEFAULTS));
    PSLD_FILL_ZERO(own->images, 1);
    PSLD_FILL_ZERO(own->each, 1);
    PSLD_FILL_ZERO(own->repeats, 1);
    PSLD_FILL_ZERO(own->jump, 1);
    PSLD_FILL_UNSET(own->lagging, 0);
    return PSLD_OK;
}

psld_status psld_inpaint_check(const psld_inpainting *inpainting, const psld_sampler *sampler)
{
    if (!inpainting) return PSLD_OK;
    if (inpainting->images < 1 || inpainting->each < 1)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "inpainting: expected at least 1 image and 1 sample per image, found %d and %d",
                         inpainting->images, inpainting->each);
    if (!inpainting->x || !inpainting->known)
        return psld_fail(PSLD_BAD_ARGUMENT, "inpainting: %s: expected an array, found NULL",
                         inpainting->x ? "known" : "x");
    if (inpainting->repeats < 1 || inpainting->repeats > 1000)
        return psld_fail(PSLD_BAD_ARGUMENT, "repeats: expected 1 to 1000, found %d", inpainting->repeats);
    if (inpainting->jump < 1)
        return psld_fail(PSLD_BAD_ARGUMENT, "jump: expected at least 1 step, found %d", inpainting->jump);
    if (inpainting->repeats > 1 && sampler->info.adaptive)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "repeats: the sampler %s chooses its own steps and cannot repeat them: set 1",
                         sampler->info.name);
    return PSLD_OK;
}

typedef struct inpaint_job {
    const psld_reverse *reverse;
    const psld_inpainting *known;
    psld_gaussian kernel;
    size_t begin; /* index in the batch of the first state of z */
    uint64_t draw;
    int with_noise;
    double *z;
} inpaint_job;

enum { WIDTH = 256 }; /* coordinates per block */

static void draw_known_noise(const inpaint_job *job, uint64_t sample, size_t first, size_t width, double noise[][WIDTH])
{
    const psld_reverse *reverse = job->reverse;
    for (size_t b = 0; job->with_noise && b < reverse->k; b++)
        psld_random_normal(reverse->options->seed, PSLD_FOR_KNOWN, sample, job->draw, b * reverse->dim + first, width,
                           noise[b]);
}

static void inpaint_state(const inpaint_job *job, size_t i)
{
    const psld_reverse *reverse = job->reverse;
    size_t k = reverse->k, dim = reverse->dim;
    uint64_t sample = reverse->first + job->begin + i,
             image = sample / (uint64_t)job->known->each % (uint64_t)job->known->images;
    const double *x = job->known->x + image * dim;
    const unsigned char *mask = job->known->known + image * dim;
    double noise[PSLD_MAX_K][WIDTH] = {{0}}, *z = job->z + i * k * dim;
    for (size_t first = 0; first < dim; first += WIDTH) {
        size_t width = dim - first < WIDTH ? dim - first : WIDTH;
        draw_known_noise(job, sample, first, width, noise);
        for (size_t a = 0; a < k; a++)
            for (size_t j = 0; j < width; j++) {
                if (!mask[first + j]) continue;
                double value = job->kernel.mean[a * k] * x[first + j];
                for (size_t b = 0; b <= a; b++) value += job->kernel.factor[a * k + b] * noise[b][j];
                z[a * dim + first + j] = value;
            }
    }
}

static void inpaint_range(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) inpaint_state(context, i);
}

void psld_inpaint_apply(const psld_reverse *reverse, size_t begin, size_t count, double from, double t, uint64_t draw,
                        double *z)
{
    const psld_inpainting *known = reverse->options->inpainting;
    if (!known) return;
    inpaint_job job = {.reverse = reverse, .known = known, .begin = begin, .draw = draw, .with_noise = t > 0, .z = z};
    psld_source_kernel(reverse->recipe, reverse->source->exact, known->lagging ? from : t, &job.kernel);
    psld_parallel(count, 2048 / (reverse->k * reverse->dim) + 1, inpaint_range, &job);
}

/* In collapsed coordinates: noise is added to y / sigma until it has the noise of time t; xi is drawn anew. */
psld_status psld_inpaint_diffuse(const psld_reverse *reverse, double u, double t, uint64_t jump)
{
    psld_collapsed_frame from, to;
    psld_affine affine = {{0}, {0}, {0}};
    int k = reverse->recipe->spec.k;
    PSLD_TRY(psld_collapsed_frame_plan(reverse->recipe, reverse->source->exact, u, &from));
    PSLD_TRY(psld_collapsed_frame_plan(reverse->recipe, reverse->source->exact, t, &to));
    double kept = fmin(from.sigma / to.sigma, 1), fresh = sqrt(1 - kept * kept);
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) {
            affine.state[a * k + b] = to.frame[a * k] * kept * from.inverse[b];
            affine.noise[a * k + b] = to.frame[a * k + b] * (b == 0 ? fresh : 1);
        }
    psld_affine_apply(reverse, &affine, PSLD_FOR_JUMP, jump, NULL, reverse->z, reverse->z);
    return PSLD_OK;
}
