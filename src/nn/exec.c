#include "nn/exec.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/mirror.h"

/* Memory in blocks that are no larger than the device allows. No tensor lies in two blocks. */
typedef struct blocks {
    psld_memory **block;
    size_t count;
} blocks;

struct psld_exec {
    const psld_plan *plan;
    psld_device *device;
    blocks arena, kept;
    psld_memory *parameters; /* only read: no step of a plan writes there */
    psld_memory *spread;     /* or one block per parameter, by number; NULL: all are in `parameters` */
    psld_memory *gradients;
    psld_mirror parameter_mirror, gradient_mirror; /* parameters as arrays of the host, */
    psld_memory *gathered;                         /* or each parameter at its own address */
    const void *const *at;
    psld_device_call *calls; /* [step_count], for `samples` samples */
    void **prepared;         /* [step_count], prepared by the device */
    size_t prepared_count;
    int samples;
    int uploaded; /* the device has the host's present parameters, */
    int fresh;    /* and packed weights and other results that depend only on parameters are up to date */
    int poison;
    void (*after)(void *user, size_t step); /* or NULL */
    void *after_user;
    size_t faults;
    double *seconds; /* [step_count], or NULL: no timing */
};

/* ---- Places ------------------------------------------------------------------------------------------------------ */

static psld_place place_in(const psld_plan *plan, const blocks *memory, size_t offset)
{
    size_t block = offset / plan->block;
    return (psld_place){memory->block[block], offset - block * plan->block};
}

static psld_place place_at(const psld_exec *exec, const psld_location *place)
{
    switch (place->buffer) {
    case PSLD_IN_GRADIENTS:
        return (psld_place){exec->gradients, place->offset};
    case PSLD_IN_PARAMETERS:
        if (exec->spread) return (psld_place){&exec->spread[place->parameter], 0};
        return (psld_place){exec->parameters, place->offset};
    case PSLD_IN_KEPT:
        return place_in(exec->plan, &exec->kept, place->offset);
    case PSLD_IN_ARENA:
        break;
    }
    return place_in(exec->plan, &exec->arena, place->offset);
}

static psld_device_operand operand_at(const psld_exec *exec, const psld_location *place, int n)
{
    psld_device_operand operand = {
        .at = place_at(exec, place), .shape = place->shape, .pixel = place->pixel, .half = place->half};
    if (operand.shape.n == 0) operand.shape.n = n;
    if (operand.half) operand.at.offset *= 2; /* plans count in floats */
    return operand;
}

static psld_place extra_at(const psld_exec *exec, const psld_step_memory *extra)
{
    if (!extra->size) return (psld_place){0};
    return place_in(exec->plan, extra->region == PSLD_NONE ? &exec->kept : &exec->arena, extra->offset);
}

static psld_device_call make_call(const psld_exec *exec, const psld_step *step, int n)
{
    psld_device_call call = {.op = step->op,
                             .kernel = &step->kernel,
                             .attributes = &step->attributes,
                             .inputs = step->inputs,
                             .threads = exec->plan->threads,
                             .narrow = exec->plan->backend->narrow,
                             .element = exec->plan->element,
                             .out = operand_at(exec, &step->out, n),
                             .scratch = extra_at(exec, &step->scratch),
                             .packed = extra_at(exec, &step->packed)};
    for (int i = 0; i < step->inputs; i++)
        if (step->from[i] != PSLD_NONE) call.in[i] = operand_at(exec, &step->in[i], n);
    return call;
}

/* ---- Poison ------------------------------------------------------------------------------------------------------ */

static psld_status fill_nan(psld_exec *exec, size_t offset, size_t count)
{
    psld_place place = place_in(exec->plan, &exec->arena, offset);
    double *host = place.memory->host;
    if (exec->plan->backend->type != PSLD_F64) return exec->device->does->fill(exec->device, place, count, NAN);
    for (size_t i = 0; i < count; i++) host[place.offset + i] = (double)NAN;
    return PSLD_OK;
}

static psld_status fill_arena(psld_exec *exec)
{
    const psld_plan *plan = exec->plan;
    for (size_t at = 0; at < plan->arena; at += plan->block)
        PSLD_TRY(fill_nan(exec, at, plan->arena - at < plan->block ? plan->arena - at : plan->block));
    return PSLD_OK;
}

/* Whether a number of 8, 4 or 2 bytes is zero, positive or negative. */
static int is_zero(const unsigned char *bytes, size_t size)
{
    double f64 = 0;
    float f32 = 0;
    if (size == sizeof f64) memcpy(&f64, bytes, size);
    if (size == sizeof f32) memcpy(&f32, bytes, size);
    if (size == sizeof(uint16_t)) return (bytes[0] | (bytes[1] & 0x7f)) == 0;
    return f64 == 0 && f32 == 0;
}

/* Counts lanes behind the channels that are not zero. */
static size_t count_lanes(const unsigned char *bytes, const psld_device_operand *o, size_t element)
{
    size_t faults = 0, pixels = (size_t)o->shape.n * (size_t)o->shape.h * (size_t)o->shape.w;
    for (size_t i = 0; i < pixels; i++)
        for (size_t c = (size_t)o->shape.c; c < psld_lanes(o->shape.c); c++)
            faults += !is_zero(bytes + (i * o->pixel + c) * element, element);
    return faults;
}

static psld_status count_faults(psld_exec *exec, const psld_location *place, int n)
{
    psld_device_operand o = operand_at(exec, place, n);
    size_t pixels = (size_t)o.shape.n * (size_t)o.shape.h * (size_t)o.shape.w;
    size_t element = o.half ? exec->plan->element / 2 : exec->plan->element, row = o.pixel * element;
    if (!o.pixel) return PSLD_OK;
    if (o.at.memory->host) {
        exec->faults += count_lanes((const unsigned char *)o.at.memory->host + o.at.offset * element, &o, element);
        return PSLD_OK;
    }
    unsigned char *bytes = psld_alloc(pixels, row);
    if (!bytes) return PSLD_NO_MEMORY;
    psld_status status = exec->device->does->download(o.at.memory, o.at.offset * element, pixels * row, bytes);
    if (status == PSLD_OK) exec->faults += count_lanes(bytes, &o, element);
    psld_release(bytes);
    return status;
}

static psld_status poison_dead(psld_exec *exec, int step)
{
    const psld_plan *plan = exec->plan;
    for (size_t i = 0; i < plan->region_count; i++)
        if (plan->regions[i].last == step) PSLD_TRY(fill_nan(exec, plan->regions[i].offset, plan->regions[i].size));
    return PSLD_OK;
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static void set_samples(psld_exec *exec, int n)
{
    if (exec->samples == n) return;
    for (size_t i = 0; i < exec->plan->step_count; i++) {
        const psld_step *step = &exec->plan->steps[i];
        for (int j = 0; j < step->inputs; j++)
            if (step->from[j] != PSLD_NONE && step->in[j].shape.n == 0) exec->calls[i].in[j].shape.n = n;
        if (step->out.shape.n == 0) exec->calls[i].out.shape.n = n;
    }
    exec->samples = n;
}

static size_t bytes_of(const psld_exec *exec, const psld_location *place)
{
    return psld_shape_count(place->shape) * exec->plan->element;
}

/* Copies parameters from their addresses to their offsets in one block. */
static psld_status gather_parameters(psld_exec *exec)
{
    const psld_plan *plan = exec->plan;
    for (size_t i = 0; i < plan->node_count; i++) {
        const psld_location *place = &plan->places[i];
        if (place->buffer == PSLD_IN_PARAMETERS)
            PSLD_TRY(exec->device->does->upload(exec->gathered, place->offset * plan->element, bytes_of(exec, place),
                                                exec->at[place->parameter]));
    }
    return PSLD_OK;
}

/* Finds the present addresses: a network may have moved its weights. */
static void find_parameters(psld_exec *exec)
{
    const psld_plan *plan = exec->plan;
    for (size_t i = 0; i < plan->node_count; i++) {
        const psld_location *place = &plan->places[i];
        if (place->buffer == PSLD_IN_PARAMETERS)
            exec->spread[place->parameter] =
                (psld_memory){exec->device, bytes_of(exec, place), (void *)(uintptr_t)exec->at[place->parameter]};
    }
}

static psld_status upload_parameters(psld_exec *exec)
{
    if (exec->spread) find_parameters(exec);
    if (exec->uploaded || exec->spread) return PSLD_OK;
    PSLD_TRY(exec->gathered ? gather_parameters(exec) : psld_mirror_upload(&exec->parameter_mirror));
    exec->uploaded = 1;
    return PSLD_OK;
}

static psld_status run_step(psld_exec *exec, size_t i, const psld_run *run)
{
    const psld_step *step = &exec->plan->steps[i];
    psld_device_call *call = &exec->calls[i];
    if (step->out.buffer == PSLD_IN_KEPT && exec->fresh) return PSLD_OK;
    call->run = run;
    if (step->packed.size && (step->packed.region != PSLD_NONE || !exec->fresh))
        PSLD_TRY(exec->device->does->pack(exec->device, exec->prepared[i], call));
    return exec->device->does->run(exec->device, exec->prepared[i], call);
}

static psld_status run_timed(psld_exec *exec, size_t i, const psld_run *run)
{
    double began = psld_seconds();
    PSLD_TRY(run_step(exec, i, run));
    PSLD_TRY(exec->device->does->wait(exec->device));
    exec->seconds[i] += psld_seconds() - began;
    return PSLD_OK;
}

psld_status psld_exec_run(psld_exec *exec, int n, const psld_run *run)
{
    const psld_plan *plan = exec->plan;
    assert(n >= 1 && n <= plan->batch);
    set_samples(exec, n);
    PSLD_TRY(upload_parameters(exec));
    for (size_t i = 0; i < plan->step_count; i++) {
        PSLD_TRY(exec->seconds ? run_timed(exec, i, run) : run_step(exec, i, run));
        if (exec->after) exec->after(exec->after_user, i);
        if (!exec->poison) continue;
        PSLD_TRY(count_faults(exec, &plan->steps[i].out, n));
        PSLD_TRY(poison_dead(exec, (int)i));
    }
    exec->fresh = 1;
    return psld_mirror_download(&exec->gradient_mirror);
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
    exec->fresh = exec->uploaded = 0;
}

size_t psld_exec_faults(const psld_exec *exec)
{
    return exec->faults;
}

/* ---- In and out -------------------------------------------------------------------------------------------------- */

psld_status psld_exec_set(psld_exec *exec, psld_id input, int n, psld_type type, const void *data)
{
    if (exec->plan->region_of[input] == PSLD_NONE) return PSLD_OK; /* no requested output depends on it */
    psld_device_operand o = operand_at(exec, &exec->plan->places[input], n);
    return exec->device->does->set(exec->device, &o, exec->plan->backend->type, type, data);
}

psld_status psld_exec_get(const psld_exec *exec, psld_id output, int n, psld_type type, void *data)
{
    psld_device_operand o = operand_at(exec, &exec->plan->places[output], n);
    return exec->device->does->get(exec->device, &o, exec->plan->backend->type, type, data);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static psld_status create_blocks(psld_device *device, const psld_plan *plan, size_t size, blocks *made)
{
    size_t count = size ? (size - 1) / plan->block + 1 : 0;
    made->block = psld_alloc(count, sizeof(psld_memory *));
    if (!made->block) return PSLD_NO_MEMORY;
    for (; made->count < count; made->count++) {
        size_t left = size - made->count * plan->block;
        PSLD_TRY(device->does->create(device, (left < plan->block ? left : plan->block) * plan->element,
                                      &made->block[made->count]));
    }
    return PSLD_OK;
}

static void free_blocks(psld_device *device, blocks *made)
{
    for (size_t i = 0; i < made->count; i++) device->does->free(made->block[i]);
    psld_release(made->block);
}

/* One block per parameter if the device computes in the host's memory; otherwise one block for all. */
static psld_status spread_parameters(psld_exec *exec, const void *const *at)
{
    const psld_plan *plan = exec->plan;
    exec->at = at;
    if (exec->device != psld_device_cpu()) {
        PSLD_TRY(exec->device->does->create(exec->device, plan->parameters * plan->element, &exec->gathered));
        exec->parameters = exec->gathered;
        return PSLD_OK;
    }
    exec->spread = psld_alloc(plan->node_count, sizeof *exec->spread); /* at most as many as nodes */
    return exec->spread ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_status prepare_steps(psld_exec *exec)
{
    const psld_plan *plan = exec->plan;
    exec->calls = psld_alloc(plan->step_count, sizeof *exec->calls);
    exec->prepared = psld_alloc(plan->step_count, sizeof *exec->prepared);
    if (!exec->calls || !exec->prepared) return PSLD_NO_MEMORY;
    exec->samples = plan->batch;
    for (size_t i = 0; i < plan->step_count; i++) {
        exec->calls[i] = make_call(exec, &plan->steps[i], plan->batch);
        PSLD_TRY(exec->device->does->prepare(exec->device, &exec->calls[i], &exec->prepared[i]));
        exec->prepared_count++;
    }
    return PSLD_OK;
}

static psld_status begin_exec(const psld_plan *plan, psld_exec **exec)
{
    *exec = psld_alloc(1, sizeof **exec);
    if (!*exec) return PSLD_NO_MEMORY;
    (*exec)->plan = plan;
    (*exec)->device = psld_device_of(plan->backend);
    return PSLD_OK;
}

static psld_status mirror_gradients(psld_exec *exec, void *gradients)
{
    PSLD_TRY(psld_mirror_open(exec->device, gradients, exec->plan->parameters * exec->plan->element,
                              &exec->gradient_mirror));
    exec->gradients = exec->gradient_mirror.memory;
    return PSLD_OK;
}

/* Makes the rest, once parameters and gradients are there. */
static psld_status finish_exec(psld_exec *exec, int poison)
{
    const psld_plan *plan = exec->plan;
    exec->poison = poison;
    PSLD_TRY(create_blocks(exec->device, plan, plan->arena, &exec->arena));
    PSLD_TRY(create_blocks(exec->device, plan, plan->kept, &exec->kept));
    PSLD_TRY(prepare_steps(exec));
    return poison ? fill_arena(exec) : PSLD_OK;
}

/* Returns the exec, or frees it after a failure. */
static psld_status end_exec(psld_exec *made, psld_status status, psld_exec **exec)
{
    *exec = status == PSLD_OK ? made : NULL;
    if (status != PSLD_OK) psld_exec_free(made);
    return status;
}

psld_status psld_exec_create(const psld_plan *plan, void *parameters, void *gradients, int poison, psld_exec **exec)
{
    psld_exec *made;
    *exec = NULL;
    PSLD_TRY(begin_exec(plan, &made));
    psld_status status =
        psld_mirror_open(made->device, parameters, plan->parameters * plan->element, &made->parameter_mirror);
    made->parameters = made->parameter_mirror.memory;
    if (status == PSLD_OK) status = mirror_gradients(made, gradients);
    if (status == PSLD_OK) status = finish_exec(made, poison);
    return end_exec(made, status, exec);
}

psld_status psld_exec_create_spread(const psld_plan *plan, const void *const *at, void *gradients, int poison,
                                    psld_exec **exec)
{
    psld_exec *made;
    *exec = NULL;
    PSLD_TRY(begin_exec(plan, &made));
    psld_status status = spread_parameters(made, at);
    if (status == PSLD_OK) status = mirror_gradients(made, gradients);
    if (status == PSLD_OK) status = finish_exec(made, poison);
    return end_exec(made, status, exec);
}

psld_status psld_exec_create_on(const psld_plan *plan, psld_memory *parameters, psld_memory *gradients,
                                psld_exec **exec)
{
    psld_exec *made;
    *exec = NULL;
    PSLD_TRY(begin_exec(plan, &made));
    made->parameters = parameters;
    made->gradients = gradients;
    made->uploaded = 1;
    return end_exec(made, finish_exec(made, 0), exec);
}

void psld_exec_free(psld_exec *exec)
{
    if (!exec) return;
    for (size_t i = 0; i < exec->prepared_count; i++) exec->device->does->forget(exec->device, exec->prepared[i]);
    free_blocks(exec->device, &exec->arena);
    free_blocks(exec->device, &exec->kept);
    psld_mirror_clear(&exec->parameter_mirror);
    psld_mirror_clear(&exec->gradient_mirror);
    if (exec->gathered) exec->device->does->free(exec->gathered);
    psld_release(exec->spread);
    psld_release(exec->calls);
    psld_release(exec->prepared);
    psld_release(exec);
}
