/* Plans as text. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

static void plan_print(writer *w, const char *format, ...) PSLD_PRINTF(2, 3);

static void plan_print(writer *w, const char *format, ...)
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

static const char *plan_shape_text(psld_shape s, char *text, size_t size)
{
    if (s.n > 0)
        snprintf(text, size, "[%d][%d][%d][%d]", s.n, s.c, s.h, s.w);
    else
        snprintf(text, size, "%d x %d x %d", s.c, s.h, s.w);
    return text;
}

static void print_plan_place(writer *w, const psld_plan *plan, const psld_location *place)
{
    static const char *const buffers[] = {"arena", "parameters", "gradients", "kept"};
    plan_print(w, "%s+%zu", buffers[place->buffer], place->offset * plan->element);
}

static void print_plan_finish(writer *w, const psld_step *step)
{
    static const char *const names[] = {"bias", "vector", "residual", "scale", "relu"};
    if (step->op != PSLD_OP_CONV && step->op != PSLD_OP_CONV_DX) return;
    for (int i = 0; i < 5; i++)
        if (step->attributes.conv.finish >> i & 1) plan_print(w, " +%s", names[i]);
}

static void print_plan_step(writer *w, const psld_plan *plan, size_t i, const double *seconds, int n)
{
    const psld_step *step = &plan->steps[i];
    char shape[64];
    plan_print(w, "%5zu  %-18s %-22s %9.3f  ", i, step->kernel.name,
               plan_shape_text(step->out.shape, shape, sizeof shape), step_flops(step) * 1e-6);
    if (seconds)
        plan_print(w, "%9.3f %8.1f  ", seconds[i] * 1e3, step_flops(step) * n / fmax(seconds[i], 1e-12) * 1e-9);
    print_plan_place(w, plan, &step->out);
    plan_print(w, " <-");
    for (int j = 0; j < step->inputs; j++) {
        if (step->from[j] == PSLD_NONE) continue;
        plan_print(w, " ");
        print_plan_place(w, plan, &step->in[j]);
    }
    print_plan_finish(w, step);
    if (step->scratch.size) plan_print(w, " scratch %zu", step->scratch.size * plan->element);
    if (step->packed.size)
        plan_print(w, " packed %zu%s", step->packed.size * plan->element,
                   step->packed.region == PSLD_NONE ? " kept" : "");
    plan_print(w, "\n");
}

psld_status psld_plan_text(const psld_plan *plan, const double *seconds, int n, char **text)
{
    writer w = {0};
    plan_print(&w, "backend %s, batch %d, %zu steps, %.3f Gflop per sample\n", plan->backend->name, plan->batch,
               plan->step_count, psld_plan_flops(plan, 1) * 1e-9);
    plan_print(&w, "arena %.2f MB (at least %.2f MB), parameters %.2f MB, packed weights %.2f MB\n",
               (double)(plan->arena * plan->element) * 1e-6, (double)(plan->bound * plan->element) * 1e-6,
               (double)(plan->parameters * plan->element) * 1e-6, (double)(plan->kept * plan->element) * 1e-6);
    plan_print(&w, " step  kernel             result per sample         Mflop  %splace in bytes\n",
               seconds ? "       ms   Gflop/s  " : "");
    for (size_t i = 0; i < plan->step_count; i++) print_plan_step(&w, plan, i, seconds, n);
    if (w.status != PSLD_OK) {
        psld_release(w.text);
        w.text = NULL;
    }
    *text = w.text;
    return w.status;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = ((const psld_kernel_time *)a)->seconds, y = ((const psld_kernel_time *)b)->seconds;
    return (x < y) - (x > y);
}

/* Convolutions of different sizes are listed separately. */
static void kind_name(const psld_step *step, char name[PSLD_NAME_SIZE])
{
    int is_conv = step->op == PSLD_OP_CONV || step->op == PSLD_OP_CONV_DX;
    if (is_conv && step->out.shape.h * step->out.shape.w == 1)
        snprintf(name, PSLD_NAME_SIZE, "%s, linear", step->kernel.name);
    else if (is_conv)
        snprintf(name, PSLD_NAME_SIZE, "%s %d x %d", step->kernel.name, step->attributes.conv.kernel[0],
                 step->attributes.conv.kernel[1]);
    else
        snprintf(name, PSLD_NAME_SIZE, "%s", step->kernel.name);
}

size_t psld_plan_kinds(const psld_plan *plan, const double *seconds, int n, size_t room, psld_kernel_time *kinds)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        char name[PSLD_NAME_SIZE];
        size_t k = 0;
        kind_name(&plan->steps[i], name);
        while (k < count && strcmp(kinds[k].kernel, name) != 0) k++;
        if (k == room) continue;
        if (k == count) {
            kinds[count] = (psld_kernel_time){.size = sizeof *kinds};
            memcpy(kinds[count++].kernel, name, sizeof name);
        }
        kinds[k].steps++;
        kinds[k].seconds += seconds[i] / n;
        kinds[k].flops += step_flops(&plan->steps[i]);
    }
    qsort(kinds, count, sizeof *kinds, compare_seconds);
    return count;
}
