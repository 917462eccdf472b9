#include "train/trainer.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "nn/exec.h"
#include "nn/gradient.h"
#include "nn/ops.h"
#include "train/adam.h"

struct psld_trainer {
    psld_trainer_options options;
    psld_network *network;
    psld_graph *graph;
    psld_id z, t, eps, seed, loss; /* seed: what each sample's loss counts in the mean */
    psld_plan *plan;
    psld_exec *exec;
    float *gradients, *m, *v, *average; /* [parameter_elements] each */
    double *chunks;
    float *seeds, *losses; /* [batch] */
    long steps;
};

void psld_trainer_defaults(psld_trainer_options *options)
{
    memset(options, 0, sizeof *options);
    options->batch = 1;
    options->power = 2;
    options->rate = 2e-4;
    options->beta1 = 0.9;
    options->beta2 = 0.999;
    options->epsilon = 1e-8;
    options->warmup = 5000;
    options->clip = 1;
    options->ema = 0.9999;
}

/* The network's graph with a loss behind it, differentiated by all that is trained. */
static psld_status make_plan(psld_trainer *r)
{
    psld_id out;
    psld_shape in = psld_graph_shape(r->network->graph, r->network->z);
    PSLD_TRY(psld_graph_create(&r->graph));
    r->z = psld_graph_input(r->graph, in.c, in.h, in.w);
    r->t = psld_graph_input(r->graph, 1, 1, 1);
    PSLD_TRY(psld_network_build(&r->network->config, r->graph, r->z, r->t, &out));
    psld_shape s = psld_graph_shape(r->graph, out);
    r->eps = psld_graph_input(r->graph, s.c, s.h, s.w);
    r->loss = psld_nn_loss(r->graph, out, r->eps, r->options.power);
    r->seed = psld_graph_input(r->graph, 1, 1, 1);
    size_t limit = r->graph->parameter_count, count = 0;
    psld_id *by = psld_alloc(limit, sizeof *by), *gradient = psld_alloc(limit, sizeof *gradient);
    psld_plan_output *outputs = psld_alloc(limit + 1, sizeof *outputs);
    psld_status status = by && gradient && outputs ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t i = 0; status == PSLD_OK && i < limit; i++) {
        if (!r->graph->parameters[i].trained) continue;
        by[count] = r->graph->parameters[i].id;
        outputs[count++].gradient_of = (int)i;
    }
    if (status == PSLD_OK) status = psld_gradient(r->graph, r->loss, r->seed, by, count, gradient);
    if (status == PSLD_OK) {
        for (size_t i = 0; i < count; i++) outputs[i].id = gradient[i];
        outputs[count] = (psld_plan_output){r->loss, PSLD_NONE};
        psld_plan_options plan = {r->options.backend, r->options.batch, PSLD_PASS_ALL, 0};
        status = psld_plan_create(r->graph, &plan, outputs, count + 1, &r->plan);
    }
    psld_release(by);
    psld_release(gradient);
    psld_release(outputs);
    return status;
}

static psld_status make_buffers(psld_trainer *r)
{
    size_t count = r->plan->parameters, batch = (size_t)r->options.batch;
    r->gradients = psld_alloc(count, sizeof(float));
    r->m = psld_alloc(count, sizeof(float));
    r->v = psld_alloc(count, sizeof(float));
    r->average = r->options.ema > 0 ? psld_copy_bytes(r->network->weights, count * sizeof(float)) : NULL;
    r->chunks = psld_alloc(psld_adam_chunks(count), sizeof(double));
    r->seeds = psld_alloc(batch, sizeof(float));
    r->losses = psld_alloc(batch, sizeof(float));
    int all = r->gradients && r->m && r->v && (r->average || r->options.ema <= 0) && r->chunks && r->seeds && r->losses;
    return all ? psld_exec_create(r->plan, r->network->weights, r->gradients, 0, &r->exec) : PSLD_NO_MEMORY;
}

psld_status psld_trainer_create(psld_network *network, const psld_trainer_options *options, psld_trainer **trainer)
{
    *trainer = NULL;
    psld_trainer *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->options = *options;
    made->network = network;
    psld_status status = make_plan(made);
    if (status == PSLD_OK) status = make_buffers(made);
    if (status != PSLD_OK) {
        psld_trainer_free(made);
        return status;
    }
    *trainer = made;
    return PSLD_OK;
}

void psld_trainer_free(psld_trainer *trainer)
{
    if (!trainer) return;
    psld_exec_free(trainer->exec);
    psld_plan_free(trainer->plan);
    psld_graph_free(trainer->graph);
    psld_release(trainer->gradients);
    psld_release(trainer->m);
    psld_release(trainer->v);
    psld_release(trainer->average);
    psld_release(trainer->chunks);
    psld_release(trainer->seeds);
    psld_release(trainer->losses);
    psld_release(trainer);
}

/* Clips and takes the step: the rate of step k, from 0, is rate min(k / warmup, 1). */
static void update(psld_trainer *r, double norm)
{
    const psld_trainer_options *o = &r->options;
    double rise = o->warmup > 0 && r->steps < o->warmup ? (double)r->steps / (double)o->warmup : 1;
    psld_adam adam = {o->rate * rise, o->beta1, o->beta2, o->epsilon, o->decay, 1, o->ema, r->steps + 1};
    if (o->clip > 0 && norm > o->clip) adam.clip = o->clip / (norm + 1e-6);
    psld_adam_update(&adam, r->plan->parameters, r->gradients, r->network->weights, r->m, r->v, r->average);
    r->steps++;
}

psld_status psld_trainer_step(psld_trainer *r, int n, uint64_t first, const float *z, const float *t, const float *eps,
                              double *loss, double *norm)
{
    psld_run run = {.seed = r->options.seed, .step = (uint64_t)r->steps, .first = first, .training = 1};
    for (int i = 0; i < n; i++) r->seeds[i] = 1 / (float)n;
    psld_exec_set(r->exec, r->z, n, PSLD_F32, z);
    psld_exec_set(r->exec, r->t, n, PSLD_F32, t);
    psld_exec_set(r->exec, r->eps, n, PSLD_F32, eps);
    psld_exec_set(r->exec, r->seed, n, PSLD_F32, r->seeds);
    psld_exec_run(r->exec, n, &run);
    psld_exec_get(r->exec, r->loss, n, PSLD_F32, r->losses);
    *loss = 0;
    for (int i = 0; i < n; i++) *loss += (double)r->losses[i] / n;
    *norm = sqrt(psld_adam_sum_squares(r->plan->parameters, r->gradients, r->chunks));
    if (!isfinite(*loss) || !isfinite(*norm))
        return psld_fail(PSLD_NOT_FINITE, "step %ld: the loss is %g and the norm of its gradient %g", r->steps, *loss,
                         *norm);
    update(r, *norm);
    return PSLD_OK;
}

long psld_trainer_steps(const psld_trainer *trainer)
{
    return trainer->steps;
}

const float *psld_trainer_average(const psld_trainer *trainer)
{
    return trainer->average;
}

size_t psld_trainer_bytes(const psld_trainer *r)
{
    return ((r->average ? 5 : 4) * r->plan->parameters + r->plan->arena) * sizeof(float);
}
