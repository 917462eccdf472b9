/* Drift and diffusion of states, and simulated paths. PSLD_TERM_LANES states are computed at a time. */
#include "process/process_run.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/threads.h"

double psld_process_beta(const psld_process *process, double t)
{
    return process->beta_min + (process->beta_max - process->beta_min) * t;
}

/* ---- Lanes ------------------------------------------------------------------------------------------------------- */

void psld_lanes_load(size_t n, size_t count, const double *z, double *lanes)
{
    for (size_t l = 0; l < PSLD_TERM_LANES; l++) /* lanes without a state repeat the last one */
        for (size_t i = 0; i < n; i++) lanes[i * PSLD_TERM_LANES + l] = z[(l < count ? l : count - 1) * n + i];
}

void psld_lanes_store(size_t n, size_t count, const double *lanes, double *z)
{
    for (size_t l = 0; l < count; l++)
        for (size_t i = 0; i < n; i++) z[l * n + i] = lanes[i * PSLD_TERM_LANES + l];
}

typedef struct lanes_job {
    const psld_process *process;
    const psld_formulas *formulas;
    size_t count;
    psld_lanes_fn body;
    void *user;
    atomic_int failed;
} lanes_job;

static void lanes_range(void *context, size_t begin, size_t end)
{
    lanes_job *job = context;
    size_t scratch = job->formulas ? psld_formulas_scratch(job->formulas) : 0;
    size_t states = (size_t)job->process->variables * PSLD_TERM_LANES;
    double *memory = psld_alloc(scratch + PSLD_TERM_ARRAYS * states, sizeof *memory);
    if (!memory) {
        atomic_store(&job->failed, PSLD_NO_MEMORY);
        return;
    }
    psld_lane_work lanes = {.process = job->process, .scratch = memory};
    for (int i = 0; i < PSLD_TERM_ARRAYS; i++) lanes.array[i] = memory + scratch + (size_t)i * states;
    if (job->formulas) psld_formulas_prepare(job->formulas, memory);
    for (size_t b = begin; b < end; b++) {
        size_t first = b * PSLD_TERM_LANES, left = job->count - first;
        if (job->body(job->user, &lanes, first, left < PSLD_TERM_LANES ? left : PSLD_TERM_LANES) != PSLD_OK)
            atomic_store(&job->failed, PSLD_NOT_FINITE);
    }
    psld_release(memory);
}

psld_status psld_lanes_run(const psld_process *process, const psld_formulas *formulas, size_t count, psld_lanes_fn body,
                           void *user)
{
    lanes_job job = {.process = process, .formulas = formulas, .count = count, .body = body, .user = user};
    psld_parallel((count + PSLD_TERM_LANES - 1) / PSLD_TERM_LANES, 1, lanes_range, &job);
    return (psld_status)atomic_load(&job.failed);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

typedef struct values_job {
    const double *z;
    double beta, *first, *second;
} values_job;

static psld_status drift_lanes(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    const values_job *job = user;
    const psld_process *p = lanes->process;
    size_t n = (size_t)p->variables;
    psld_lanes_load(n, count, job->z + first * n, lanes->array[0]);
    psld_formulas_run(p->motion, lanes->array[0], lanes->scratch);
    for (size_t i = 0; i < n; i++) {
        const double *f = psld_formulas_output(p->motion, lanes->scratch, PSLD_MOTION_DRIFT(p) + i);
        for (size_t l = 0; job->first && l < count; l++) job->first[(first + l) * n + i] = job->beta * f[l];
        for (size_t j = 0; job->second && j <= i; j++) {
            const double *D =
                psld_formulas_output(p->motion, lanes->scratch, PSLD_MOTION_DIFFUSION(p) + i * (i + 1) / 2 + j);
            for (size_t l = 0; l < count; l++) {
                double *out = job->second + (first + l) * n * n;
                out[i * n + j] = out[j * n + i] = job->beta * D[l];
            }
        }
    }
    return PSLD_OK;
}

psld_status psld_process_drift(const psld_process *process, size_t n, const double *z, double t, double *drift,
                               double *diffusion)
{
    values_job job = {z, psld_process_beta(process, t), drift, diffusion};
    psld_status status = psld_lanes_run(process, process->motion, n, drift_lanes, &job);
    return status == PSLD_OK ? PSLD_OK : psld_fail(status, "out of memory");
}

static psld_status energy_lanes(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    const values_job *job = user;
    const psld_process *p = lanes->process;
    size_t n = (size_t)p->variables;
    psld_lanes_load(n, count, job->z + first * n, lanes->array[0]);
    psld_formulas_run(p->energy, lanes->array[0], lanes->scratch);
    const double *H = psld_formulas_output(p->energy, lanes->scratch, 0);
    if (job->first) memcpy(job->first + first, H, count * sizeof *H);
    for (size_t i = 0; job->second && i < n; i++) {
        const double *slope = psld_formulas_output(p->energy, lanes->scratch, 1 + i);
        for (size_t l = 0; l < count; l++) job->second[(first + l) * n + i] = slope[l];
    }
    return PSLD_OK;
}

psld_status psld_process_energy(const psld_process *process, size_t n, const double *z, double *H, double *gradient)
{
    values_job job = {z, 1, H, gradient};
    psld_status status = psld_lanes_run(process, process->energy, n, energy_lanes, &job);
    return status == PSLD_OK ? PSLD_OK : psld_fail(status, "out of memory");
}

/* A pivot this far below the largest entry is rounding. */
#define ROUNDING 1e-13

int psld_process_factor(const psld_process *process, const double *scratch, size_t lane, double scale, double *lower)
{
    size_t n = (size_t)process->variables, at = PSLD_MOTION_DIFFUSION(process);
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double D = scale * psld_formulas_output(process->motion, scratch, at++)[lane];
            if (!isfinite(D)) return 0;
            lower[i * n + j] = D;
            if (j < i) lower[j * n + i] = 0;
            largest = fmax(largest, fabs(D));
        }
    for (size_t j = 0; j < n; j++) {
        double pivot = lower[j * n + j];
        for (size_t c = 0; c < j; c++) pivot -= lower[j * n + c] * lower[j * n + c];
        if (pivot < -1e-9 * largest) return 0;
        double root = pivot > ROUNDING * largest ? sqrt(pivot) : 0;
        lower[j * n + j] = root;
        for (size_t i = j + 1; i < n; i++) {
            double sum = lower[i * n + j];
            for (size_t c = 0; c < j; c++) sum -= lower[i * n + c] * lower[j * n + c];
            lower[i * n + j] = root > 0 ? sum / root : 0;
        }
    }
    return 1;
}

/* ---- Paths ------------------------------------------------------------------------------------------------------- */

double psld_path_time(double from, double to, int steps, int index)
{
    double root = sqrt(from) + (sqrt(to) - sqrt(from)) * index / steps;
    return index == 0 ? from : index == steps ? to : root * root;
}

int psld_path_step(psld_lane_work *lanes, const psld_path_noise *noise, uint64_t step, size_t count, double scale,
                   double *z)
{
    const psld_process *p = lanes->process;
    size_t n = (size_t)p->variables;
    double lower[PSLD_PROCESS_SQUARE], xi[PSLD_MAX_VARIABLES];
    int finite = 1;
    psld_formulas_run(p->motion, z, lanes->scratch);
    for (size_t l = 0; l < count; l++) {
        if (noise->until && (int)step >= noise->until[l]) continue;
        finite &= psld_process_factor(p, lanes->scratch, l, 2 * scale, lower);
        psld_random_normal(noise->seed, noise->purpose, noise->sample[l], (noise->phase << 32) + step, 0, n, xi);
        for (size_t i = 0; i < n; i++) {
            double sum = scale * psld_formulas_output(p->motion, lanes->scratch, PSLD_MOTION_DRIFT(p) + i)[l];
            for (size_t j = 0; j <= i; j++) sum += lower[i * n + j] * xi[j];
            z[i * PSLD_TERM_LANES + l] += sum;
            finite &= isfinite(sum);
        }
    }
    return finite;
}

typedef struct path_job {
    uint64_t seed, first;
    double from, to, *z;
    int steps;
} path_job;

static psld_status path_lanes(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    const path_job *job = user;
    const psld_process *p = lanes->process;
    size_t n = (size_t)p->variables;
    psld_path_noise noise = {.seed = job->seed, .purpose = PSLD_FOR_PATH};
    double *z = lanes->array[0];
    int finite = 1;
    for (size_t l = 0; l < PSLD_TERM_LANES; l++) noise.sample[l] = job->first + first + l;
    psld_lanes_load(n, count, job->z + first * n, z);
    for (int s = 0; s < job->steps && finite; s++) {
        double t = psld_path_time(job->from, job->to, job->steps, s),
               u = psld_path_time(job->from, job->to, job->steps, s + 1);
        finite = psld_path_step(lanes, &noise, (uint64_t)s, count, psld_process_beta(p, t) * (u - t), z);
    }
    psld_lanes_store(n, count, z, job->z + first * n);
    return finite ? PSLD_OK : PSLD_NOT_FINITE;
}

psld_status psld_process_fail_paths(const psld_process *process, psld_status status)
{
    if (status == PSLD_NO_MEMORY) return psld_fail(status, "out of memory");
    return psld_fail(status,
                     "recipe %s: a simulated path leaves where its formulas are finite and D has no negative "
                     "eigenvalue; more steps may help",
                     process->name);
}

psld_status psld_process_simulate(const psld_process *process, uint64_t seed, uint64_t first, size_t count, double from,
                                  double to, int steps, double *z)
{
    if (!(from >= 0 && from <= to && to <= 1))
        return psld_fail(PSLD_BAD_ARGUMENT, "simulate: expected times 0 <= from <= to <= 1, found %g and %g", from, to);
    if (steps < 0) return psld_fail(PSLD_BAD_ARGUMENT, "steps: expected at least 0, found %d", steps);
    path_job job = {seed, first, from, to, z, steps ? steps : process->steps};
    psld_status status = psld_lanes_run(process, process->motion, count, path_lanes, &job);
    return status == PSLD_OK ? PSLD_OK : psld_process_fail_paths(process, status);
}
