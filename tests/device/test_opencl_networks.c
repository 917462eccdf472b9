/* Networks on the OpenCL device: against the golden numbers, against the CPU, and against themselves. Skipped where there
 * is no device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "flow_check.h"
#include "golden_network.h"
#include "kernels/backend.h"
#include "network_check.h"
#include "opencl_test.h"
#include "sanitized.h"
#include "trace_check.h"
#include "train/trainer.h"

#if PSLD_SANITIZED
/* Threads of a driver's compiler may end while leaks are looked for, which the sanitizer does not always outlive. The
 * other tests of OpenCL devices look for leaks. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}
#endif

static psld_device *device;
static const psld_backend *fp32;

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

/* ---- Golden numbers ---------------------------------------------------------------------------------------------- */

/* A driver compiles kernels for minutes where its memory is watched, too. */
#define SLOW_WITH_SANITIZERS \
    if (PSLD_SANITIZED) skip_for("the driver's compiler takes too long with a sanitizer")

/* Whether a folder before this one has the same name: both sets have the same networks. */
static int is_repeated(const golden_list *list, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(golden_name(list->folders[j]), golden_name(list->folders[i])) == 0) return 1;
    return 0;
}

static void golden_networks(void **state)
{
    (void)state;
    SLOW_WITH_SANITIZERS;
    char path[GOLDEN_PATH];
    int checked = 0;
    const golden_list *list = golden_find("z.npy");
    for (size_t i = 0; i < list->count; i++) {
        const char *folder = list->folders[i];
        if (is_repeated(list, i) || !golden_path(folder, "config.yaml", path)) continue;
        if (!golden_path(folder, "eps.npy", path) && !golden_path(folder, "logits.npy", path)) continue;
        golden_weights(folder, path);
        psld_network_config config = golden_config(folder);
        psld_network *network = golden_network(&config, path);
        network_check(folder, "its weights", network, fp32, 2e-5);
        psld_network_free(network);
        checked++;
    }
    if (!checked) fail_msg("no golden folder has a network to check");
}

static void golden_steps(void **state)
{
    (void)state;
    SLOW_WITH_SANITIZERS;
    const golden_list *list = golden_find("train.json");
    for (size_t i = 0; i < list->count; i++)
        if (!is_repeated(list, i)) trace_check(list->folders[i], fp32, 2e-5);
}

static void golden_flow(void **state)
{
    (void)state;
    SLOW_WITH_SANITIZERS;
    flow_check("opencl:0");
}

/* ---- A small network with every kind of option ------------------------------------------------------------------- */

enum { SIZE = 8, CHANNELS = 3, MOST = 7, IMAGE = CHANNELS * SIZE * SIZE, STEPS = 3 };

/* Odd channels, so that lanes are left over everywhere. */
static psld_network *small_network(void)
{
    const char *text =
        "data: {size: 8}\n"
        "model: {in_ch: 3, out_ch: 3, nf: 12, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4], "
        "dropout: 0.1}";
    psld_yaml *yaml;
    psld_network_config config;
    psld_network *network;
    must(psld_yaml_parse(text, strlen(text), "small", &yaml));
    must(psld_network_config_read(psld_yaml_root(yaml), NULL, &config));
    psld_yaml_free(yaml);
    must(psld_network_create(&config, &network));
    psld_network_initialise(network, 4);
    return network;
}

static void fill_numbers(float *z, size_t count, double by)
{
    for (size_t i = 0; i < count; i++) z[i] = (float)sin(by * ((double)i + 1));
}

/* Samples `first` ... of a fixed sequence, with the gradient by z. */
static void evaluate(const psld_network *network, const psld_backend *backend, size_t first, int n, float *out,
                     float *grad_z)
{
    float z[MOST * IMAGE], grad_out[MOST * IMAGE], t[MOST];
    psld_runner *runner;
    psld_runner_options options = {.backend = backend, .batch = n, .want = PSLD_WANT_GRADIENT_Z, .store = SIZE_MAX};
    fill_numbers(z, sizeof z / sizeof *z, 1);
    fill_numbers(grad_out, sizeof z / sizeof *z, 3);
    for (int i = 0; i < MOST; i++) t[i] = 0.1f + 0.1f * (float)i;
    psld_runner_data data = {.type = PSLD_F32,
                             .z = z + first * IMAGE,
                             .t = t + first,
                             .grad_out = grad_out + first * IMAGE,
                             .out = out,
                             .grad_z = grad_z};
    must(psld_runner_open(network, &options, &runner));
    must(psld_runner_run(runner, (size_t)n, &data));
    psld_runner_free(runner);
}

static void any_batch(void **state)
{
    (void)state;
    static float whole[2][MOST * IMAGE], part[2][MOST * IMAGE];
    psld_network *network = small_network();
    evaluate(network, fp32, 0, MOST, whole[0], whole[1]);
    evaluate(network, fp32, 0, MOST, part[0], part[1]);
    assert_memory_equal(part, whole, sizeof whole);
    for (size_t i = 0; i < MOST; i += 3) {
        evaluate(network, fp32, i, 1, part[0], part[1]);
        assert_memory_equal(part[0], whole[0] + i * IMAGE, IMAGE * sizeof(float));
        assert_memory_equal(part[1], whole[1] + i * IMAGE, IMAGE * sizeof(float));
    }
    psld_network_free(network);
}

static void beside_the_cpu(void **state)
{
    (void)state;
    static float here[2][MOST * IMAGE], there[2][MOST * IMAGE];
    const psld_backend *fp16;
    SLOW_WITH_SANITIZERS;
    psld_network *network = small_network();
    evaluate(network, psld_backend_fastest(), 0, MOST, here[0], here[1]);
    evaluate(network, fp32, 0, MOST, there[0], there[1]);
    golden_report("small network", "out", network_error(there[0], here[0], MOST * IMAGE, 0), 2e-5);
    golden_report("small network", "grad_z", network_error(there[1], here[1], MOST * IMAGE, 0), 5e-5);
    must(device->does->backend(device, "fp16", &fp16));
    evaluate(network, fp16, 0, MOST, there[0], there[1]);
    golden_report("small network", "out, fp16", network_error(there[0], here[0], MOST * IMAGE, 0), 2e-2);
    psld_network_free(network);
}

/* ---- Training ---------------------------------------------------------------------------------------------------- */

typedef struct course {
    psld_network *network;
    psld_trainer *trainer;
    double loss[STEPS], norm[STEPS];
} course;

static void begin_course(course *c, const psld_backend *backend)
{
    psld_trainer_options options;
    psld_trainer_defaults(&options);
    options.backend = backend;
    options.batch = 3;
    options.microbatches = 2;
    options.warmup = 1;
    options.ema = 0.9;
    c->network = small_network();
    must(psld_trainer_create(c->network, &options, &c->trainer));
}

static void end_course(course *c)
{
    psld_trainer_free(c->trainer);
    psld_network_free(c->network);
}

/* Micro-batches of 3 and of 2. */
static void step_course(course *c, int step)
{
    float z[3 * IMAGE], target[3 * IMAGE], weight[3], loss[3], t[3] = {0.1f, 0.5f, 0.9f};
    for (int part = 0; part < 2; part++) {
        fill_numbers(z, sizeof z / sizeof *z, step + 1 + part);
        fill_numbers(target, sizeof z / sizeof *z, step + 2 + part);
        for (int i = 0; i < 3; i++) weight[i] = 0.2f;
        psld_microbatch b = {.n = (size_t)(3 - part),
                             .in_step = (uint64_t)(3 * part),
                             .last = part,
                             .z = z,
                             .time = t,
                             .target = target,
                             .weight = weight,
                             .loss = loss};
        must(psld_trainer_add(c->trainer, &b));
    }
    c->loss[step] = (double)loss[0];
    must(psld_trainer_update(c->trainer, c->loss[step], &c->norm[step]));
}

static void take_course(course *c, const psld_backend *backend)
{
    begin_course(c, backend);
    for (int i = 0; i < STEPS; i++) step_course(c, i);
    must(psld_trainer_fetch(c->trainer));
}

static double state_error(const course *a, const course *b)
{
    psld_trainer_state x = psld_trainer_state_of(a->trainer), y = psld_trainer_state_of(b->trainer);
    const double errors[] = {network_error(a->network->weights, b->network->weights, x.count, 0),
                             network_error(x.m, y.m, x.count, 0), network_error(x.v, y.v, x.count, 0),
                             network_error(x.average, y.average, x.count, 0)};
    double worst = 0;
    for (int i = 0; i < 4; i++) worst = errors[i] <= worst ? worst : errors[i];
    return worst;
}

static void same_bits(const course *a, const course *b)
{
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->norm, b->norm, sizeof a->norm);
    assert_true(state_error(a, b) == 0);
}

static void training(void **state)
{
    (void)state;
    course here, there, again;
    take_course(&here, psld_backend_fastest());
    take_course(&there, fp32);
    take_course(&again, fp32);
    same_bits(&there, &again);
    for (int i = 0; i < STEPS; i++) {
        assert_true(fabs(here.loss[i] / there.loss[i] - 1) < 1e-4);
        assert_true(fabs(here.norm[i] / there.norm[i] - 1) < 1e-4);
    }
    golden_report("small network", "state after training", state_error(&there, &here), 1e-3);
    end_course(&here);
    end_course(&there);
    end_course(&again);
}

static void copy_state(const course *from, course *to)
{
    psld_trainer_state x = psld_trainer_state_of(from->trainer), y = psld_trainer_state_of(to->trainer);
    size_t bytes = x.count * sizeof(float);
    must(psld_trainer_fetch(from->trainer));
    memcpy(to->network->weights, from->network->weights, bytes);
    memcpy(y.m, x.m, bytes);
    memcpy(y.v, x.v, bytes);
    memcpy(y.average, x.average, bytes);
    *y.steps = *x.steps;
    must(psld_trainer_store(to->trainer));
    memcpy(to->loss, from->loss, sizeof to->loss);
    memcpy(to->norm, from->norm, sizeof to->norm);
}

/* What was begun on one goes on on the other, or on the same one to the bit. */
static void training_moves(void **state)
{
    (void)state;
    const psld_backend *const ways[3][2] = {
        {fp32, fp32}, {psld_backend_fastest(), fp32}, {fp32, psld_backend_fastest()}};
    course whole, first, second;
    take_course(&whole, fp32);
    for (int i = 0; i < 3; i++) {
        begin_course(&first, ways[i][0]);
        step_course(&first, 0);
        begin_course(&second, ways[i][1]);
        copy_state(&first, &second);
        for (int k = 1; k < STEPS; k++) step_course(&second, k);
        must(psld_trainer_fetch(second.trainer));
        if (i == 0) same_bits(&whole, &second);
        golden_report("small network", "state after a move", state_error(&second, &whole), 1e-3);
        end_course(&first);
        end_course(&second);
    }
    end_course(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_networks), cmocka_unit_test(golden_steps),   cmocka_unit_test(golden_flow),
        cmocka_unit_test(any_batch),       cmocka_unit_test(beside_the_cpu), cmocka_unit_test(training),
        cmocka_unit_test(training_moves),
    };
    device = opencl_for_test();
    must(device->does->backend(device, NULL, &fp32));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    psld_device_close(device);
    return failed;
}
