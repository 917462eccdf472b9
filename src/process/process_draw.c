/* Draws from exp(-H) by Hamiltonian Monte Carlo: a chain for each draw.
 *
 * A chain begins at a normal number for each variable, so that chains begin in different modes. In the first half of its
 * moves each adapts the size of its leapfrog steps to its own acceptance; what is drawn is where it ends. */
#include <math.h>
#include <string.h>

#include "process/process_run.h"

enum { MOVES = 300, LEAPS = 12 };

typedef struct draw_job {
    uint64_t seed, first;
    double *z;
} draw_job;

/* A batch of chains. All arrays are [n][PSLD_TERM_LANES]. */
typedef struct chains {
    const psld_process *process;
    double *z, *gradient, *trial, *p, *slope;
    double H[PSLD_TERM_LANES], size[PSLD_TERM_LANES];
} chains;

static void evaluate_hamiltonian(const chains *c, double *scratch, const double *z, double *H, double *gradient)
{
    size_t n = (size_t)c->process->variables;
    psld_formulas_run(c->process->energy, z, scratch);
    memcpy(H, psld_formulas_output(c->process->energy, scratch, 0), PSLD_TERM_LANES * sizeof *H);
    for (size_t i = 0; i < n; i++)
        memcpy(gradient + i * PSLD_TERM_LANES, psld_formulas_output(c->process->energy, scratch, 1 + i),
               PSLD_TERM_LANES * sizeof *H);
}

/* Leapfrog steps of all chains, from z to trial; H there. */
static void leap(chains *c, double *scratch, double *H)
{
    size_t numbers = (size_t)c->process->variables * PSLD_TERM_LANES;
    memcpy(c->trial, c->z, numbers * sizeof *c->z);
    memcpy(c->slope, c->gradient, numbers * sizeof *c->z);
    for (int s = 0; s < LEAPS; s++) {
        for (size_t i = 0; i < numbers; i++) {
            double size = c->size[i % PSLD_TERM_LANES];
            c->p[i] -= 0.5 * size * c->slope[i];
            c->trial[i] += size * c->p[i];
        }
        evaluate_hamiltonian(c, scratch, c->trial, H, c->slope);
        for (size_t i = 0; i < numbers; i++) c->p[i] -= 0.5 * c->size[i % PSLD_TERM_LANES] * c->slope[i];
    }
}

static double kinetic(const chains *c, size_t lane)
{
    double sum = 0;
    for (size_t i = 0; i < (size_t)c->process->variables; i++)
        sum += c->p[i * PSLD_TERM_LANES + lane] * c->p[i * PSLD_TERM_LANES + lane] / 2;
    return sum;
}

/* One move of all chains. Step sizes vary from move to move, so that no orbit closes. */
static void move_chains(chains *c, double *scratch, const draw_job *job, size_t first, uint64_t move)
{
    size_t n = (size_t)c->process->variables;
    double before[PSLD_TERM_LANES], H[PSLD_TERM_LANES], u[PSLD_TERM_LANES][2], normal[PSLD_MAX_VARIABLES],
        base[PSLD_TERM_LANES];
    for (size_t l = 0; l < PSLD_TERM_LANES; l++) {
        uint64_t sample = job->first + first + l;
        psld_random_normal(job->seed, PSLD_FOR_EQUILIBRIUM, sample, 2 * move + 1, 0, n, normal);
        psld_random_uniform(job->seed, PSLD_FOR_EQUILIBRIUM, sample, 2 * move + 2, 0, 2, u[l]);
        for (size_t i = 0; i < n; i++) c->p[i * PSLD_TERM_LANES + l] = normal[i];
        before[l] = c->H[l] + kinetic(c, l);
        base[l] = c->size[l];
        c->size[l] *= 0.6 + 0.8 * u[l][1];
    }
    leap(c, scratch, H);
    for (size_t l = 0; l < PSLD_TERM_LANES; l++) {
        double after = H[l] + kinetic(c, l);
        int accepted = isfinite(after) && log(u[l][0]) < before[l] - after;
        c->size[l] = base[l];
        if (move < MOVES / 2) c->size[l] *= accepted ? 1.08 : 0.8;
        for (size_t i = 0; accepted && i < n; i++) {
            c->z[i * PSLD_TERM_LANES + l] = c->trial[i * PSLD_TERM_LANES + l];
            c->gradient[i * PSLD_TERM_LANES + l] = c->slope[i * PSLD_TERM_LANES + l];
        }
        if (accepted) c->H[l] = H[l];
    }
}

static psld_status draw_lanes(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    const draw_job *job = user;
    size_t n = (size_t)lanes->process->variables;
    double normal[PSLD_MAX_VARIABLES];
    chains c = {.process = lanes->process,
                .z = lanes->array[0],
                .gradient = lanes->array[1],
                .trial = lanes->array[2],
                .p = lanes->array[3],
                .slope = lanes->array[4]};
    int finite = 1;
    for (size_t l = 0; l < PSLD_TERM_LANES; l++) {
        psld_random_normal(job->seed, PSLD_FOR_EQUILIBRIUM, job->first + first + l, 0, 0, n, normal);
        for (size_t i = 0; i < n; i++) c.z[i * PSLD_TERM_LANES + l] = normal[i];
        c.size[l] = 0.2;
    }
    evaluate_hamiltonian(&c, lanes->scratch, c.z, c.H, c.gradient);
    for (uint64_t m = 0; m < MOVES; m++) move_chains(&c, lanes->scratch, job, first, m);
    for (size_t l = 0; l < count; l++) finite &= isfinite(c.H[l]);
    psld_lanes_store(n, count, c.z, job->z + first * n);
    return finite ? PSLD_OK : PSLD_NOT_FINITE;
}

psld_status psld_process_draw(const psld_process *process, uint64_t seed, uint64_t first, size_t count, double *z)
{
    draw_job job = {seed, first, z};
    psld_status status = psld_lanes_run(process, process->energy, count, draw_lanes, &job);
    if (status == PSLD_NO_MEMORY) return psld_fail(status, "out of memory");
    if (status != PSLD_OK)
        return psld_fail(PSLD_BAD_INPUT, "recipe %s: H is not finite where draws of exp(-H) begin, at about 1 from 0",
                         process->name);
    return PSLD_OK;
}
