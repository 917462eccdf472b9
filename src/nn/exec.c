#include "nn/exec.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/threads.h"

struct psld_exec {
    const psld_plan *plan;
    void *arena;
    void *parameters;      /* only read: no step of a plan writes there */
    const void *const *at; /* or the address of each of them; NULL: they are in `parameters` */
    void *gradients;
    void *kept; /* whether packed weights and other results of the parameters alone ... */
    int fresh;  /* ... are up to date */
    int poison;
    void (*after)(void *user, size_t step); /* or NULL */
    void *after_user;
    size_t faults;
    double *seconds; /* [step_count], or NULL: no timing */
};

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static psld_operand operand_at(const psld_exec *exec, const psld_location *place, int n)
{
    psld_operand operand = {.shape = place->shape, .pixel = place->pixel};
    size_t bytes = place->offset * exec->plan->element;
    if (operand.shape.n == 0) operand.shape.n = n;
    switch (place->buffer) {
    case PSLD_IN_ARENA:
        operand.data = (char *)exec->arena + bytes;
        break;
    case PSLD_IN_GRADIENTS:
        operand.data = (char *)exec->gradients + bytes;
        break;
    case PSLD_IN_PARAMETERS:
        operand.data = exec->at ? (void *)(uintptr_t)exec->at[place->parameter] : (char *)exec->parameters + bytes;
        break;
    case PSLD_IN_KEPT:
        operand.data = (char *)exec->kept + bytes;
        break;
    }
    return operand;
}

typedef struct job {
    const psld_call *call;
    void (*run)(const psld_call *call, size_t begin, size_t end);
} job;

static void run_range(void *context, size_t begin, size_t end)
{
    const job *j = context;
    j->run(j->call, begin, end);
}

static psld_call make_call(const psld_exec *exec, const psld_step *step, int n, const psld_run *run)
{
    psld_call call = {.attributes = &step->attributes,
                      .run = run,
                      .inputs = step->inputs,
                      .threads = exec->plan->threads,
                      .narrow = exec->plan->backend->narrow};
    size_t element = exec->plan->element;
    for (int i = 0; i < step->inputs; i++)
        if (step->from[i] != PSLD_NONE) call.in[i] = operand_at(exec, &step->in[i], n);
    call.out = operand_at(exec, &step->out, n);
    if (step->scratch.size) call.scratch = (char *)exec->arena + step->scratch.offset * element;
    if (step->packed.size)
        call.packed =
            (char *)(step->packed.region == PSLD_NONE ? exec->kept : exec->arena) + step->packed.offset * element;
    return call;
}

static void pack_step(const psld_step *step, const psld_call *call)
{
    job j = {call, step->kernel.pack};
    psld_parallel(step->kernel.pack_tasks(call), 1, run_range, &j);
}

static void run_step(psld_exec *exec, const psld_step *step, int n, const psld_run *run)
{
    if (step->out.buffer == PSLD_IN_KEPT && exec->fresh) return;
    psld_call call = make_call(exec, step, n, run);
    if (step->packed.size && (step->packed.region != PSLD_NONE || !exec->fresh)) pack_step(step, &call);
    job j = {&call, step->kernel.run};
    psld_parallel(step->kernel.tasks(&call), 1, run_range, &j);
}

static double element_of(const void *data, psld_type type, size_t i)
{
    return type == PSLD_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void put_element(void *data, psld_type type, size_t i, double value)
{
    if (type == PSLD_F64)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static void fill_nan(psld_exec *exec, size_t offset, size_t count)
{
    for (size_t i = 0; i < count; i++) put_element(exec->arena, exec->plan->backend->type, offset + i, (double)NAN);
}

/* Counts lanes after the channels that are not zero. */
static size_t count_faults(const psld_exec *exec, const psld_location *place, int n)
{
    psld_operand o = operand_at(exec, place, n);
    size_t faults = 0, pixels = (size_t)o.shape.n * (size_t)o.shape.h * (size_t)o.shape.w;
    for (size_t i = 0; o.pixel && i < pixels; i++)
        for (size_t c = (size_t)o.shape.c; c < psld_lanes(o.shape.c); c++)
            faults += element_of(o.data, exec->plan->backend->type, i * o.pixel + c) != 0;
    return faults;
}

static void poison_dead(psld_exec *exec, int step)
{
    const psld_plan *plan = exec->plan;
    for (size_t i = 0; i < plan->region_count; i++)
        if (plan->regions[i].last == step) fill_nan(exec, plan->regions[i].offset, plan->regions[i].size);
}

void psld_exec_run(psld_exec *exec, int n, const psld_run *run)
{
    const psld_plan *plan = exec->plan;
    assert(n >= 1 && n <= plan->batch);
    for (size_t i = 0; i < plan->step_count; i++) {
        double began = exec->seconds ? psld_seconds() : 0;
        run_step(exec, &plan->steps[i], n, run);
        if (exec->seconds) exec->seconds[i] += psld_seconds() - began;
        if (exec->after) exec->after(exec->after_user, i);
        if (!exec->poison) continue;
        exec->faults += count_faults(exec, &plan->steps[i].out, n);
        poison_dead(exec, (int)i);
    }
    exec->fresh = 1;
}

void psld_exec_spread(psld_exec *exec, const void *const *at)
{
    exec->at = at;
}

void psld_exec_time(psld_exec *exec, double *seconds)
{
    exec->seconds = seconds;
}

void psld_exec_watch(psld_exec *exec, void (*after)(void *user, size_t step), void *user)
{
    exec->after = after;
    exec->after_user = user;
}

void psld_exec_changed(psld_exec *exec)
{
    exec->fresh = 0;
}

size_t psld_exec_faults(const psld_exec *exec)
{
    return exec->faults;
}

/* ---- In and out -------------------------------------------------------------------------------------------------- */

void psld_exec_set(psld_exec *exec, psld_id input, int n, psld_type type, const void *data)
{
    const psld_location *place = &exec->plan->places[input];
    if (exec->plan->region_of[input] == PSLD_NONE) return; /* no requested output depends on it */
    psld_operand o = operand_at(exec, place, n);
    psld_type own = exec->plan->backend->type;
    size_t pixels = (size_t)o.shape.h * (size_t)o.shape.w, channels = (size_t)o.shape.c, lanes = psld_lanes(o.shape.c);
    for (size_t i = 0; i < (size_t)n * pixels; i++) {
        size_t from = i / pixels * channels * pixels + i % pixels;
        for (size_t c = 0; c < lanes; c++)
            put_element(o.data, own, i * o.pixel + c, c < channels ? element_of(data, type, from + c * pixels) : 0);
    }
}

void psld_exec_get(const psld_exec *exec, psld_id output, int n, psld_type type, void *data)
{
    psld_operand o = operand_at(exec, &exec->plan->places[output], n);
    psld_type own = exec->plan->backend->type;
    if (o.pixel == 0) {
        size_t count = psld_shape_count(o.shape);
        for (size_t i = 0; i < count; i++) put_element(data, type, i, element_of(o.data, own, i));
        return;
    }
    size_t pixels = (size_t)o.shape.h * (size_t)o.shape.w, channels = (size_t)o.shape.c;
    for (size_t i = 0; i < (size_t)n * pixels; i++) {
        size_t to = i / pixels * channels * pixels + i % pixels;
        for (size_t c = 0; c < channels; c++)
            put_element(data, type, to + c * pixels, element_of(o.data, own, i * o.pixel + c));
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

psld_status psld_exec_create(const psld_plan *plan, void *parameters, void *gradients, int poison, psld_exec **exec)
{
    *exec = NULL;
    psld_exec *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    *made = (psld_exec){.plan = plan, .parameters = parameters, .gradients = gradients, .poison = poison};
    made->arena = psld_alloc(plan->arena, plan->element);
    made->kept = psld_alloc(plan->kept, plan->element);
    if (!made->arena || !made->kept) {
        psld_exec_free(made);
        return PSLD_NO_MEMORY;
    }
    if (poison) fill_nan(made, 0, plan->arena);
    *exec = made;
    return PSLD_OK;
}

void psld_exec_free(psld_exec *exec)
{
    if (!exec) return;
    psld_release(exec->arena);
    psld_release(exec->kept);
    psld_release(exec);
}
