/* Plans as text. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "nn/ops.h"
#include "nn/plan.h"

static double step_flops(const psld_step *step)
{
    const psld_op_rule *rule = psld_op_rule_of(step->op);
    psld_shape in[PSLD_MAX_INPUTS];
    for (int i = 0; i < step->inputs; i++) in[i] = step->in[i].shape;
    return rule->flops ? rule->flops(in, step->out.shape, &step->attributes) : 0;
}

double psld_plan_flops(const psld_plan *plan, int n)
{
    double sum = 0;
    for (size_t i = 0; i < plan->step_count; i++) sum += step_flops(&plan->steps[i]);
    return sum * n;
}

typedef struct writer {
    char *text;
    size_t length, capacity;
    psld_status status;
} writer;

static void put(writer *w, const char *format, ...) PSLD_PRINTF(2, 3);

static void put(writer *w, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    void *text = w->text;
    size_t added = strlen(line);
    if (w->status == PSLD_OK) w->status = psld_grow(&text, &w->capacity, w->length + added + 1, 1);
    if (w->status != PSLD_OK) return;
    w->text = text;
    memcpy(w->text + w->length, line, added + 1);
    w->length += added;
}

static const char *shape_text(psld_shape s, char *text, size_t size)
{
    if (s.n > 0)
        snprintf(text, size, "[%d][%d][%d][%d]", s.n, s.c, s.h, s.w);
    else
        snprintf(text, size, "%d x %d x %d", s.c, s.h, s.w);
    return text;
}

static void put_place(writer *w, const psld_plan *plan, const psld_place *place)
{
    static const char *const buffers[] = {"arena", "parameters", "gradients"};
    put(w, "%s+%zu", buffers[place->buffer], place->offset * plan->element);
}

static void put_finish(writer *w, const psld_step *step)
{
    static const char *const names[] = {"bias", "vector", "residual", "scale", "relu"};
    if (step->op != PSLD_OP_CONV && step->op != PSLD_OP_CONV_DX) return;
    for (int i = 0; i < 5; i++)
        if (step->attributes.conv.finish >> i & 1) put(w, " +%s", names[i]);
}

static void put_step(writer *w, const psld_plan *plan, size_t i)
{
    const psld_step *step = &plan->steps[i];
    char shape[64];
    put(w, "%5zu  %-18s %-22s %9.3f  ", i, step->kernel.name, shape_text(step->out.shape, shape, sizeof shape),
        step_flops(step) * 1e-6);
    put_place(w, plan, &step->out);
    put(w, " <-");
    for (int j = 0; j < step->inputs; j++) {
        if (step->from[j] == PSLD_NONE) continue;
        put(w, " ");
        put_place(w, plan, &step->in[j]);
    }
    put_finish(w, step);
    if (step->scratch.size) put(w, " scratch %zu", step->scratch.size * plan->element);
    if (step->packed.size)
        put(w, " packed %zu%s", step->packed.size * plan->element, step->packed.region == PSLD_NONE ? " kept" : "");
    put(w, "\n");
}

psld_status psld_plan_text(const psld_plan *plan, char **text)
{
    writer w = {0};
    put(&w, "backend %s, batch %d, %zu steps, %.3f Gflop a sample\n", plan->backend->name, plan->batch,
        plan->step_count, psld_plan_flops(plan, 1) * 1e-9);
    put(&w, "arena %.2f MB (at least %.2f MB), parameters %.2f MB, packed weights %.2f MB\n",
        (double)(plan->arena * plan->element) * 1e-6, (double)(plan->bound * plan->element) * 1e-6,
        (double)(plan->parameters * plan->element) * 1e-6, (double)(plan->packed * plan->element) * 1e-6);
    put(&w, " step  kernel             result a sample           Mflop  place in bytes\n");
    for (size_t i = 0; i < plan->step_count; i++) put_step(&w, plan, i);
    if (w.status != PSLD_OK) {
        psld_release(w.text);
        w.text = NULL;
    }
    *text = w.text;
    return w.status;
}
