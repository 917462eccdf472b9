/* Evaluates a network in training on states outside of its loss: the other side of a consistency loss. */
#include "train/trainer_private.h"

psld_status psld_trainer_plan_look(psld_trainer *r)
{
    psld_network_plan_options how = {.backend = r->options.backend, .batch = r->options.batch};
    PSLD_TRY(psld_network_plan_begin(&r->network->config, 1, &r->look_plan));
    PSLD_TRY(psld_network_plan_finish(&r->look_plan, &how));
    return psld_exec_create_on(r->look_plan.plan, r->state[TRAINER_WEIGHTS].memory, NULL, &r->look_exec);
}

psld_status psld_trainer_look(psld_trainer *r, const psld_microbatch *b)
{
    psld_run run = {.seed = r->options.seed, .step = (uint64_t)r->steps, .first = b->in_step, .training = 1};
    int n = (int)b->n;
    PSLD_TRY(psld_trainer_tell(r, r->look_exec, &r->look_plan.inputs, b, b->other_z, b->other_time));
    PSLD_TRY(psld_exec_run(r->look_exec, n, &run));
    return psld_exec_get(r->look_exec, r->look_plan.out, n, PSLD_F32, b->other);
}
