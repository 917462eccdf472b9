/* A network that predicts the score of a process with formulas, learned from simulated paths.
 *
 * A path is simulated from the data to a time t and takes one step more, z' = z + h beta f + L xi with L L' = 2 beta h
 * D. Given z, the score of z' is -L^-T xi, so the score of its law is the mean of these given z'. In the metric 2 beta
 * D the error of a network is
 *     |L' s + xi|^2 / h,
 * which needs no inverse of D. The variance of xi / sqrt(h) is unbounded for short steps. So samples come in pairs, of
 * the same path with xi and -xi: the large parts of their gradients cancel. What remains is the difference of the
 * network's scores at both, an estimate of the divergence as in sliced score matching, by differences instead of
 * derivatives.
 *
 * With s = -eps / deviation the loss is (eps - target)' M (eps - target), for M = weight 2 beta D / (deviation
 * deviation') and a target with L' (target / deviation) = xi. The reported loss has 1 in place of the part target' M
 * target, which does not depend on the network: so it is comparable with that of a process of matrices. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/random.h"
#include "process/process_run.h"
#include "train/bins.h"
#include "train/objective.h"

static size_t path_target_size(const psld_model *model)
{
    return (size_t)model->process->noisy_count;
}

static void path_set_options(const psld_settings *settings, const psld_model *model, psld_trainer_options *options)
{
    (void)settings;
    options->power = 2;
    options->metric = model->process->noisy_count;
}

typedef struct path_fill {
    const psld_perturbation *how;
    psld_phase phase;
    psld_microbatch *batch;
} path_fill;

/* Steps of the path before its last one. Times of a path are even in the root of t, so a uniform number of steps gives
 * the same law. */
static int draw_step(const psld_perturbation *how, psld_phase phase, uint64_t pair)
{
    double u, low = 0, high = 1;
    int steps = how->process->steps;
    psld_random_uniform(how->seed, PSLD_FOR_TIME, pair, (uint64_t)phase, 0, 1, &u);
    if (phase >= PSLD_PHASE_HELD_OUT) {
        low = sqrt((double)(phase - PSLD_PHASE_HELD_OUT) / PSLD_BINS);
        high = sqrt((double)(phase - PSLD_PHASE_HELD_OUT + 1) / PSLD_BINS);
    }
    int step = (int)(steps * (low + u * (high - low)));
    return step < steps ? step : steps - 1;
}

/* The target of xi: target / deviation = y with L' y = xi, y being 0 where L has no pivot. */
static void solve_target(const psld_process *p, const double *lower, const double *xi, const double *deviation,
                         double *target)
{
    size_t n = (size_t)p->variables;
    double y[PSLD_MAX_VARIABLES] = {0};
    for (size_t c = n; c-- > 0;) {
        double sum = xi[c];
        if (lower[c * n + c] == 0) continue;
        for (size_t i = c + 1; i < n; i++) sum -= lower[i * n + c] * y[i];
        y[c] = sum / lower[c * n + c];
    }
    for (int v = 0; v < p->noisy_count; v++) target[v] = deviation[v] * y[p->noisy[v]];
}

/* Takes the last step of a path, for both samples of its pair. */
static int take_last_step(const path_fill *f, const psld_lane_work *lanes, size_t lane, uint64_t pair, size_t index,
                          int step)
{
    const psld_process *p = lanes->process;
    psld_microbatch *b = f->batch;
    size_t n = (size_t)p->variables, noisy = (size_t)p->noisy_count;
    double t = psld_path_time(0, 1, p->steps, step), u = psld_path_time(0, 1, p->steps, step + 1);
    double beta = psld_process_beta(p, t), h = u - t, deviation[PSLD_MAX_VARIABLES], target[PSLD_MAX_VARIABLES];
    double lower[PSLD_PROCESS_SQUARE], xi[PSLD_MAX_VARIABLES];
    if (!psld_process_factor(p, lanes->scratch, lane, 2 * beta * h, lower)) return 0;
    double weight = psld_process_scales_at(f->how->scales, u, deviation);
    psld_random_normal(f->how->seed, PSLD_FOR_NOISE, pair, (uint64_t)f->phase, 0, n, xi);
    solve_target(p, lower, xi, deviation, target);
    for (size_t s = 0; s < 2; s++) {
        size_t at = index + s;
        double sign = s ? -1 : 1;
        if (at >= b->n) break;
        b->t[at] = u;
        b->time[at] = (float)u;
        for (size_t i = 0; i < n; i++) {
            double z = lanes->array[0][i * PSLD_TERM_LANES + lane];
            z += beta * h * psld_formulas_output(p->motion, lanes->scratch, PSLD_MOTION_DRIFT(p) + i)[lane];
            for (size_t j = 0; j <= i; j++) z += sign * lower[i * n + j] * xi[j];
            b->z[at * n + i] = (float)z;
            if (!isfinite(z)) return 0;
        }
        for (size_t v = 0; v < noisy; v++) b->target[at * noisy + v] = (float)(sign * target[v]);
        for (size_t v = 0; v < noisy * noisy; v++) {
            size_t i = (size_t)p->noisy[v / noisy], j = (size_t)p->noisy[v % noisy], row = i > j ? i : j,
                   column = i > j ? j : i;
            double D = psld_formulas_output(p->motion, lanes->scratch,
                                            PSLD_MOTION_DIFFUSION(p) + row * (row + 1) / 2 + column)[lane];
            b->metric[at * noisy * noisy + v] =
                (float)(weight * 2 * beta * D / (deviation[v / noisy] * deviation[v % noisy]));
        }
    }
    return 1;
}

/* Fills pairs first ... first + count - 1 of the micro-batch. */
static psld_status fill_pairs(void *user, psld_lane_work *lanes, size_t first, size_t count)
{
    const path_fill *f = user;
    const psld_process *p = lanes->process;
    size_t n = (size_t)p->variables, data = (size_t)p->data;
    psld_path_noise noise = {.seed = f->how->seed, .purpose = PSLD_FOR_PATH, .phase = 1 + (uint64_t)f->phase};
    int until[PSLD_TERM_LANES] = {0}, most = 0, finite = 1;
    double start[PSLD_TERM_LANES * PSLD_MAX_VARIABLES] = {0};
    noise.until = until;
    for (size_t l = 0; l < count; l++) {
        uint64_t pair = f->batch->first / 2 + first + l;
        noise.sample[l] = pair;
        until[l] = draw_step(f->how, f->phase, pair);
        if (until[l] > most) most = until[l];
        for (size_t i = 0; i < data; i++) start[l * n + i] = (double)f->batch->x[2 * (first + l) * data + i];
        psld_process_begin(p, f->how->seed, pair, (uint64_t)f->phase, start + l * n);
    }
    psld_lanes_load(n, count, start, lanes->array[0]);
    for (int s = 0; s < most && finite; s++) {
        double t = psld_path_time(0, 1, p->steps, s), u = psld_path_time(0, 1, p->steps, s + 1);
        finite = psld_path_step(lanes, &noise, (uint64_t)s, count, psld_process_beta(p, t) * (u - t), lanes->array[0]);
    }
    psld_formulas_run(p->motion, lanes->array[0], lanes->scratch);
    for (size_t l = 0; l < count && finite; l++)
        finite = take_last_step(f, lanes, l, noise.sample[l], 2 * (first + l), until[l]);
    return finite ? PSLD_OK : PSLD_NOT_FINITE;
}

static psld_status path_fill_batch(const psld_perturbation *how, psld_phase phase, psld_microbatch *batch)
{
    path_fill f = {how, phase, batch};
    psld_status status = psld_lanes_run(how->process, how->process->motion, (batch->n + 1) / 2, fill_pairs, &f);
    return status == PSLD_OK ? PSLD_OK : psld_process_fail_paths(how->process, status);
}

static void path_judge(const psld_settings *settings, const psld_model *model, psld_microbatch *b)
{
    size_t noisy = (size_t)model->process->noisy_count;
    (void)settings;
    for (size_t i = 0; i < b->n; i++) {
        const float *eps = b->out + i * noisy, *target = b->target + i * noisy, *M = b->metric + i * noisy * noisy;
        double sum = 0;
        for (size_t v = 0; v < noisy; v++)
            for (size_t w = 0; w < noisy; w++)
                sum += (double)eps[v] * (double)M[v * noisy + w] * ((double)eps[w] - 2 * (double)target[w]);
        b->loss[i] = (float)(1 + sum / (double)noisy);
    }
}

const psld_objective psld_objective_path = {
    .name = "score network of paths",
    .prefix = "score_fn.",
    .own_loss = 1,
    .set_options = path_set_options,
    .target_size = path_target_size,
    .fill = path_fill_batch,
    .judge = path_judge,
};
