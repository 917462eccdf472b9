/* psld bench: speed of a network on this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli.h"

typedef struct request {
    long batch, repetitions;
    int json, plan, train;
    cli_model model;
} request;

enum { KINDS = 64 };

typedef struct profile {
    psld_kernel_time kinds[KINDS];
    size_t count;
    char *plan;
} profile;

static void keep_kind(void *user, const psld_kernel_time *time)
{
    profile *p = user;
    if (p->count < KINDS) p->kinds[p->count++] = *time;
}

static void print_kinds(const profile *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->count; i++) sum += p->kinds[i].seconds;
    printf("\nkernel                   steps  ms/sample      share   GFLOP/s\n");
    for (size_t i = 0; i < p->count; i++) {
        const psld_kernel_time *k = &p->kinds[i];
        printf("%-24s %5zu  %11.3f  %5.1f %%", k->kernel, k->steps, 1e3 * k->seconds, 100 * k->seconds / sum);
        if (k->flops > 0) printf("  %8.1f", k->flops / k->seconds / 1e9);
        printf("\n");
    }
}

static json_t *json_kinds(const profile *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->count; i++) {
        const psld_kernel_time *k = &p->kinds[i];
        json_t *item = json_object();
        json_object_set_new(item, "kernel", json_string(k->kernel));
        json_object_set_new(item, "steps", json_integer((json_int_t)k->steps));
        json_object_set_new(item, "seconds_per_image", cli_json_number(k->seconds));
        json_object_set_new(item, "gflops", cli_json_number(k->flops / k->seconds / 1e9));
        json_array_append_new(list, item);
    }
    return list;
}

static int bench_report(const request *r, psld_model *model, double seconds, size_t bytes, const profile *p)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double flops = psld_model_flops(model) * (r->train ? 3 : 1), each = seconds / (double)r->batch;
    size_t peak = (size_t)usage.ru_maxrss * 1024;
    if (!r->json) {
        printf("%.2fM parameters, %.2f GFLOP %s of one sample\n", (double)psld_model_parameters(model) / 1e6,
               flops / 1e9, r->train ? "a training step (three evaluations)" : "an evaluation");
        printf("batch %ld, %d threads, %s %s, %s: %.4f s per sample, %.1f GFLOP/s; %.0f MB of weights and activations, "
               "%.0f MB resident\n",
               r->batch, psld_threads_get(), psld_model_device(model), psld_model_isa(model),
               psld_model_precision(model), each, flops / each / 1e9, (double)bytes / 1e6, (double)peak / 1e6);
        if (p->count) print_kinds(p);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "seconds_per_image", cli_json_number(each));
    json_object_set_new(object, "gflops", cli_json_number(flops / each / 1e9));
    json_object_set_new(object, "peak_bytes", json_integer((json_int_t)peak));
    json_object_set_new(object, "plan_bytes", json_integer((json_int_t)bytes));
    json_object_set_new(object, "device", json_string(psld_model_device(model)));
    json_object_set_new(object, "isa", json_string(psld_model_isa(model)));
    json_object_set_new(object, "precision", json_string(psld_model_precision(model)));
    json_object_set_new(object, "threads", json_integer(psld_threads_get()));
    json_object_set_new(object, "batch", json_integer(r->batch));
    json_object_set_new(object, "parameters", json_integer((json_int_t)psld_model_parameters(model)));
    if (p->count) json_object_set_new(object, "operations", json_kinds(p));
    return cli_json_print(object);
}

static psld_status bench_network(const request *r, const char *const *words, int count, int *exit_code)
{
    psld_model *model = NULL;
    double seconds = 0;
    size_t bytes = 0, batch = (size_t)r->batch;
    profile p = {.count = 0};
    cli_model opening = r->model;
    psld_status status = cli_model_open(&opening, words, count, &model);
    if (status == PSLD_OK && !r->plan)
        status = (r->train ? psld_model_time_training : psld_model_time)(model, batch, (int)r->repetitions, &seconds,
                                                                         &bytes);
    if (status == PSLD_OK && !r->train)
        status = psld_model_profile(model, batch, (int)r->repetitions, keep_kind, &p, &p.plan);
    if (status == PSLD_OK && r->plan)
        printf("%s", p.plan);
    else if (status == PSLD_OK)
        *exit_code = bench_report(r, model, seconds, bytes, &p);
    psld_text_free(p.plan);
    psld_model_free(model);
    return status;
}

static int bench_run(const cli_command *command, int argc, char **argv)
{
    request r = {.batch = 1, .repetitions = 5};
    const char *words[64];
    int count, exit_code;
    r.model.options = (psld_model_options)PSLD_MODEL_DEFAULTS;
    r.model.weak = "none";
    const cli_option options[] = {
        {"batch", 'b', CLI_COUNT, "B", "samples per evaluation (default 1)", &r.batch, NULL},
        {"repetitions", 0, CLI_COUNT, "N", "measure N times and report the best (default 5)", &r.repetitions, NULL},
        {"plan", 0, CLI_FLAG, NULL, "print the plan with the time of each step", &r.plan, NULL},
        {"train", 0, CLI_FLAG, NULL, "measure a training step instead of an evaluation", &r.train, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &r.json, NULL},
        CLI_MODEL_OPTIONS(r.model),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 64) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count < 2 || strcmp(words[0], "net") != 0)
        return cli_wrong_usage(command, "expected net and a model or configuration");
    if (r.plan && r.train) return cli_wrong_usage(command, "--plan cannot be combined with --train");
    if (r.repetitions > 100000) r.repetitions = 100000;
    psld_status status = bench_network(&r, words + 1, count - 1, &exit_code);
    return status == PSLD_OK ? exit_code : cli_failed(status);
}

const cli_command command_bench = {
    .name = "bench",
    .summary = "measures the speed of a network on this machine",
    .usage = "net MODEL|CONFIG [-b BATCH] [options] [key=value ...]",
    .description = "Evaluates a network on random states. A configuration without weights gets initial ones: speed "
                   "does not depend on them. For an\n"
                   "evaluation it also prints the time of each kernel, and with --plan of each step.",
    .examples = "  psld bench net configs/cifar10-psld-39m.yaml -b 8 --json\n"
                "  psld bench net model.safetensors --plan\n",
    .run = bench_run,
};
