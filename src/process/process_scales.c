#include "process/process_scales.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "process/process_run.h"

enum { PAIRS = 512, SEED = 1 };

/* Data and auxiliary variables of both paths of every pair. */
static void begin_pairs(const psld_process *p, double *z)
{
    size_t n = (size_t)p->variables;
    for (size_t i = 0; i < 2 * PAIRS; i++) {
        psld_random_normal(SEED, PSLD_FOR_DATA, i / 2, 0, 0, (size_t)p->data, z + i * n);
        psld_process_begin(p, SEED, i, 0, z + i * n);
    }
}

static void measure_scales(const psld_process *p, const double *z, const double *D, int step, psld_process_scales *s)
{
    size_t n = (size_t)p->variables;
    for (int v = 0; v < s->noisy; v++) {
        size_t i = (size_t)p->noisy[v];
        double sum = 0, rate = 0;
        for (size_t pair = 0; pair < PAIRS; pair++) {
            double difference = z[2 * pair * n + i] - z[(2 * pair + 1) * n + i];
            sum += difference * difference / (2 * PAIRS);
        }
        for (size_t a = 0; a < 2 * PAIRS; a++) rate += 2 * D[a * n * n + i * n + i] / (2 * PAIRS);
        s->variance[step * s->noisy + v] = sum;
        s->rate[step * s->noisy + v] = rate;
    }
}

static psld_status measure_paths(const psld_process *p, double *z, double *D, psld_process_scales *s)
{
    begin_pairs(p, z);
    for (int step = 0; step <= s->steps; step++) {
        double t = psld_path_time(0, 1, s->steps, step);
        if (step)
            PSLD_TRY(psld_process_simulate(p, SEED, (uint64_t)step * 2 * PAIRS, 2 * PAIRS,
                                           psld_path_time(0, 1, s->steps, step - 1), t, 1, z));
        PSLD_TRY(psld_process_drift(p, 2 * PAIRS, z, t, NULL, D));
        measure_scales(p, z, D, step, s);
    }
    return PSLD_OK;
}

psld_status psld_process_scales_create(const psld_process *process, psld_process_scales **scales)
{
    size_t n = (size_t)process->variables, numbers = (size_t)(process->steps + 1) * (size_t)process->noisy_count;
    *scales = NULL;
    psld_process_scales *made = psld_alloc(1, sizeof *made);
    double *z = made ? psld_alloc(2 * PAIRS * (n + n * n), sizeof *z) : NULL;
    psld_status status = PSLD_NO_MEMORY;
    if (z && (made->variance = psld_alloc(2 * numbers, sizeof(double)))) {
        made->rate = made->variance + numbers;
        made->steps = process->steps;
        made->noisy = process->noisy_count;
        status = measure_paths(process, z, z + 2 * PAIRS * n, made);
    }
    psld_release(z);
    if (status == PSLD_OK)
        *scales = made;
    else
        psld_process_scales_free(made);
    return status;
}

void psld_process_scales_free(psld_process_scales *scales)
{
    if (!scales) return;
    psld_release(scales->variance);
    psld_release(scales);
}

double psld_process_scales_at(const psld_process_scales *s, double t, double *deviation)
{
    double at = fmin(fmax(s->steps * sqrt(t), 1), s->steps), sum = 0;
    int low = at < s->steps - 1 ? (int)at : s->steps - 1;
    double part = at - low;
    for (int v = 0; v < s->noisy; v++) {
        const double *variance = s->variance + low * s->noisy + v, *rate = s->rate + low * s->noisy + v;
        double here = variance[0] + part * (variance[s->noisy] - variance[0]);
        deviation[v] = sqrt(fmax(here, 1e-12));
        sum += (rate[0] + part * (rate[s->noisy] - rate[0])) / (deviation[v] * deviation[v]);
    }
    return sum > 0 ? s->noisy / sum : 0;
}
