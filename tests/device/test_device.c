/* Devices other than the CPU, as far as the engine has to do with them: a device with memory of its own, in blocks, gives
 * the CPU's bits; whatever fails, nothing leaks and nothing half done is taken for whole. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "double_device.h"
#include "io/yaml/yaml.h"
#include "model/networks/network.h"
#include "nn/plan.h"
#include "train/trainer.h"

enum { SIZE = 8, CHANNELS = 2, BATCH = 3, NUMBERS = BATCH * CHANNELS * SIZE * SIZE, STEPS = 3 };

static const float times[BATCH] = {0.1f, 0.5f, 0.9f};

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

static psld_network *small_network(void)
{
    const char *text = "data: {size: 8}\n"
                       "model: {in_ch: 2, out_ch: 2, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4], "
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

static void fill_numbers(float *z, double by)
{
    for (int i = 0; i < NUMBERS; i++) z[i] = (float)sin(by * (i + 1));
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

typedef struct answer {
    float out[NUMBERS], grad_z[NUMBERS];
    float *gradients; /* of the parameters */
    size_t arena;     /* bytes, */
    size_t blocks;    /* that were cut into so many */
} answer;

static psld_status run_network(const psld_network *network, const psld_backend *backend, int poison, answer *a)
{
    float z[NUMBERS], grad_out[NUMBERS];
    psld_runner *runner;
    psld_runner_options options = {.backend = backend,
                                   .batch = BATCH,
                                   .want = PSLD_WANT_GRADIENT_Z | PSLD_WANT_GRADIENT_PARAMETERS,
                                   .store = SIZE_MAX,
                                   .poison = poison};
    psld_runner_data data = {
        .type = PSLD_F32, .z = z, .t = times, .grad_out = grad_out, .out = a->out, .grad_z = a->grad_z};
    fill_numbers(z, 1);
    fill_numbers(grad_out, 3);
    *a = (answer){.blocks = 0};
    PSLD_TRY(psld_runner_open(network, &options, &runner));
    const psld_plan *plan = psld_runner_plan(runner);
    must(psld_plan_check(plan));
    a->arena = plan->arena * sizeof(float);
    a->blocks = (plan->arena - 1) / plan->block + 1;
    psld_status status = psld_runner_run(runner, BATCH, &data);
    if (status == PSLD_OK) status = psld_runner_run(runner, BATCH, &data); /* what is kept is right, too */
    if (status == PSLD_OK) {
        assert_int_equal(psld_runner_faults(runner), 0);
        a->gradients = psld_copy_bytes(psld_runner_gradients(runner), plan->parameters * sizeof(float));
    }
    psld_runner_free(runner);
    return status;
}

static void same_answers(const psld_network *network, const answer *a, const answer *b)
{
    assert_memory_equal(a->out, b->out, sizeof a->out);
    assert_memory_equal(a->grad_z, b->grad_z, sizeof a->grad_z);
    assert_memory_equal(a->gradients, b->gradients, network->graph->parameter_elements * sizeof(float));
}

static void blocks_and_copies(void **state)
{
    (void)state;
    psld_network *network = small_network();
    const psld_backend *cpu = psld_backend_fastest();
    answer expected, found;
    must(run_network(network, cpu, 0, &expected));
    assert_int_equal(expected.blocks, 1);
    for (int poison = 0; poison < 2; poison++)
        for (int small = 0; small < 2; small++) {
            double_device d;
            double_device_open(&d, cpu, small ? expected.arena / 5 * 3 : 0);
            must(run_network(network, &d.backend, poison, &found));
            assert_true(small ? found.blocks > 1 : found.blocks == 1);
            same_answers(network, &expected, &found);
            assert_int_equal(d.blocks, 0);
            psld_release(found.gradients);
        }
    psld_release(expected.gradients);
    psld_network_free(network);
}

/* A tensor that fits into no block, and weights that do not. */
static void blocks_too_small(void **state)
{
    (void)state;
    psld_network *network = small_network();
    double_device d;
    answer found;
    double_device_open(&d, psld_backend_fastest(), 4096);
    assert_int_equal(run_network(network, &d.backend, 0, &found), PSLD_NO_MEMORY);
    assert_non_null(strstr(psld_error_text(), "double:0"));
    assert_non_null(strstr(psld_error_text(), "batch"));
    assert_int_equal(d.blocks, 0);
    psld_network_free(network);
}

static void running_fails(void **state)
{
    (void)state;
    psld_network *network = small_network();
    double_device d;
    answer found;
    long failures = 0;
    for (long at = 1;; at += at < 40 ? 1 : 29) {
        double_device_open(&d, psld_backend_fastest(), 0);
        d.fail_at = at;
        psld_status status = run_network(network, &d.backend, 0, &found);
        assert_int_equal(d.blocks, 0);
        if (status == PSLD_OK) break;
        assert_int_equal(status, PSLD_DEVICE_FAILED);
        failures++;
    }
    psld_release(found.gradients);
    assert_true(failures > 40);
    psld_network_free(network);
}

/* ---- Training ---------------------------------------------------------------------------------------------------- */

typedef struct course {
    psld_network *network;
    psld_trainer *trainer;
    double loss[STEPS], norm[STEPS];
} course;

static psld_status begin_course(course *c, const psld_backend *backend, int microbatches)
{
    const double more[] = {0.5};
    psld_trainer_options options;
    psld_trainer_defaults(&options);
    options.backend = backend;
    options.batch = BATCH;
    options.microbatches = microbatches;
    options.warmup = 1;
    options.ema = 0.9;
    options.more = more;
    options.more_count = 1;
    c->network = small_network();
    return psld_trainer_create(c->network, &options, &c->trainer);
}

static psld_status step_course(course *c, int microbatches, int step)
{
    float z[NUMBERS], target[NUMBERS], weight[BATCH], loss[BATCH], t[BATCH];
    fill_numbers(z, step + 1);
    fill_numbers(target, step + 2);
    memcpy(t, times, sizeof t);
    for (int i = 0; i < BATCH; i++) weight[i] = 1.0f / (float)(BATCH * microbatches);
    for (int part = 0; part < microbatches; part++) {
        psld_microbatch b = {.n = BATCH,
                             .in_step = (uint64_t)(part * BATCH),
                             .last = part == microbatches - 1,
                             .z = z,
                             .time = t,
                             .target = target,
                             .weight = weight,
                             .loss = loss};
        PSLD_TRY(psld_trainer_add(c->trainer, &b));
    }
    c->loss[step] = (double)loss[0];
    return psld_trainer_update(c->trainer, c->loss[step], &c->norm[step]);
}

static void end_course(course *c)
{
    psld_trainer_free(c->trainer);
    psld_network_free(c->network);
}

static void take_course(course *c, const psld_backend *backend, int microbatches)
{
    must(begin_course(c, backend, microbatches));
    for (int i = 0; i < STEPS; i++) must(step_course(c, microbatches, i));
    must(psld_trainer_fetch(c->trainer));
}

static void same_courses(const course *a, const course *b)
{
    psld_trainer_state x = psld_trainer_state_of(a->trainer), y = psld_trainer_state_of(b->trainer);
    size_t bytes = x.count * sizeof(float);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->norm, b->norm, sizeof a->norm);
    assert_memory_equal(a->network->weights, b->network->weights, bytes);
    assert_memory_equal(x.m, y.m, bytes);
    assert_memory_equal(x.v, y.v, bytes);
    assert_memory_equal(x.average, y.average, bytes);
    assert_memory_equal(x.more[0], y.more[0], bytes);
    assert_int_equal(*x.steps, *y.steps);
}

static void training_is_the_same(void **state)
{
    (void)state;
    for (int microbatches = 1; microbatches <= 2; microbatches++) {
        course here, there;
        double_device d;
        double_device_open(&d, psld_backend_fastest(), 0);
        take_course(&here, psld_backend_fastest(), microbatches);
        take_course(&there, &d.backend, microbatches);
        same_courses(&here, &there);
        end_course(&here);
        end_course(&there);
        assert_int_equal(d.blocks, 0);
    }
}

/* What was begun on one goes on on the other. */
static void training_moves(void **state)
{
    (void)state;
    course whole, first, second;
    double_device d;
    double_device_open(&d, psld_backend_fastest(), 0);
    take_course(&whole, psld_backend_fastest(), 1);
    must(begin_course(&first, &d.backend, 1));
    must(step_course(&first, 1, 0));
    must(psld_trainer_fetch(first.trainer));
    must(begin_course(&second, psld_backend_fastest(), 1));
    psld_trainer_state from = psld_trainer_state_of(first.trainer), to = psld_trainer_state_of(second.trainer);
    size_t bytes = from.count * sizeof(float);
    memcpy(second.network->weights, first.network->weights, bytes);
    memcpy(to.m, from.m, bytes);
    memcpy(to.v, from.v, bytes);
    memcpy(to.average, from.average, bytes);
    memcpy(to.more[0], from.more[0], bytes);
    *to.steps = *from.steps;
    must(psld_trainer_store(second.trainer));
    second.loss[0] = first.loss[0];
    second.norm[0] = first.norm[0];
    for (int i = 1; i < STEPS; i++) must(step_course(&second, 1, i));
    must(psld_trainer_fetch(second.trainer));
    same_courses(&whole, &second);
    end_course(&whole);
    end_course(&first);
    end_course(&second);
}

/* Whenever the device is lost, the host has the state of a whole step: the last that was fetched. */
static void training_fails(void **state)
{
    (void)state;
    course c = {0};
    double_device d;
    double_device_open(&d, psld_backend_fastest(), 0);
    must(begin_course(&c, &d.backend, 1));
    long begun = d.calls;
    must(step_course(&c, 1, 0));
    long step = d.calls - begun;
    must(psld_trainer_fetch(c.trainer));
    size_t bytes = psld_trainer_state_of(c.trainer).count * sizeof(float);
    float *weights = psld_copy_bytes(c.network->weights, bytes);
    end_course(&c);
    for (long at = 1; at <= step + 3; at += at + 20 < step ? 17 : 1) {
        double_device_open(&d, psld_backend_fastest(), 0);
        must(begin_course(&c, &d.backend, 1));
        must(step_course(&c, 1, 0));
        must(psld_trainer_fetch(c.trainer));
        d.fail_at = d.calls + at;
        psld_status status = step_course(&c, 1, 1);
        if (at <= step) assert_int_equal(status, PSLD_DEVICE_FAILED);
        d.fail_at = 1;
        if (status == PSLD_OK) assert_int_equal(psld_trainer_fetch(c.trainer), PSLD_DEVICE_FAILED);
        assert_memory_equal(c.network->weights, weights, bytes);
        end_course(&c);
        assert_int_equal(d.blocks, 0);
    }
    psld_release(weights);
}

/* A device that fails in the middle of an update, and answers again after it, has nothing to save. */
static void half_an_update(void **state)
{
    (void)state;
    course c = {0};
    double_device d;
    double_device_open(&d, psld_backend_fastest(), 0);
    must(begin_course(&c, &d.backend, 1));
    must(step_course(&c, 1, 0));
    long calls = d.calls;
    must(step_course(&c, 1, 1));
    d.fail_at = d.calls + (d.calls - calls); /* the last call of a step: Adam's */
    assert_int_equal(step_course(&c, 1, 2), PSLD_DEVICE_FAILED);
    d.fail_at = 0;
    assert_int_equal(psld_trainer_fetch(c.trainer), PSLD_DEVICE_FAILED);
    end_course(&c);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void room_for_training(void **state)
{
    (void)state;
    course c = {0};
    double_device d;
    double_device_open(&d, psld_backend_fastest(), 0);
    must(begin_course(&c, &d.backend, 1));
    size_t needs = psld_trainer_bytes(c.trainer), parameters = psld_trainer_state_of(c.trainer).count * sizeof(float);
    assert_true(d.allocated <= needs + 65536 && needs <= d.allocated + 65536);
    end_course(&c);
    size_t each = (needs - 6 * parameters) / BATCH;
    d.device.facts.memory = needs - each / 2;
    assert_int_equal(begin_course(&c, &d.backend, 1), PSLD_NO_MEMORY);
    if (!strstr(psld_error_text(), "device double:0 has") || !strstr(psld_error_text(), "train.batch=2 fits"))
        fail_msg("%s", psld_error_text());
    end_course(&c);
    d.device.facts.memory = parameters;
    assert_int_equal(begin_course(&c, &d.backend, 1), PSLD_NO_MEMORY);
    assert_non_null(strstr(psld_error_text(), "smaller network"));
    end_course(&c);
    /* less is free than the device says that it has */
    d.device.facts.memory = UINT64_MAX;
    d.room = needs / 2;
    assert_int_equal(begin_course(&c, &d.backend, 1), PSLD_NO_MEMORY);
    end_course(&c);
    assert_int_equal(d.blocks, 0);
}

/* ---- Choosing ---------------------------------------------------------------------------------------------------- */

static void check_refused(const char *device, const char *isa, const char *precision, const char *text)
{
    psld_device *opened;
    const psld_backend *backend;
    psld_device_wish wish = {device, isa, precision};
    assert_int_not_equal(psld_device_choose(&wish, &opened, &backend), PSLD_OK);
    assert_null(opened);
    if (!strstr(psld_error_text(), text)) fail_msg("\"%s\" in \"%s\"", text, psld_error_text());
}

static void names(void **state)
{
    (void)state;
    psld_device *device;
    const psld_backend *backend;
    psld_device_info info = PSLD_DEVICE_INFO_EMPTY;
    must(psld_device_choose(&(psld_device_wish){"cpu", NULL, NULL}, &device, &backend));
    assert_ptr_equal(device, psld_device_cpu());
    assert_ptr_equal(backend, psld_backend_fastest());
    must(psld_device_choose(&(psld_device_wish){"auto", "reference", NULL}, &device, &backend));
    assert_ptr_equal(backend, &psld_backend_reference);
    check_refused("tpu", NULL, NULL, "expected cpu, gpu or opencl:N, found 'tpu'");
    check_refused("", NULL, NULL, "found ''");
    check_refused("opencl:", NULL, NULL, "number");
    check_refused("opencl:-1", NULL, NULL, "number");
    check_refused("opencl:1x", NULL, NULL, "number");
    check_refused("opencl:4096", NULL, NULL, "opencl:4096");
    check_refused("opencl:99999999999999999999", NULL, NULL, "opencl:9999");
    check_refused("cpu", NULL, "fp16", "precision");
    check_refused("cpu", "mmx", NULL, "isa");
    must(psld_device_describe(0, &info));
    assert_string_equal(info.id, "cpu");
    assert_string_equal(info.kind, "cpu");
    assert_true(info.memory > 0 && info.units > 0 && *info.name);
    assert_int_equal(psld_device_describe(psld_device_count(), &info), PSLD_BAD_ARGUMENT);
}

/* Ranks take turns with what is named. */
static void ranks_take_turns(void **state)
{
    (void)state;
    psld_device *device;
    psld_device_set_rank(0);
    must(psld_device_open("cpu,nothing", &device));
    psld_device_set_rank(1);
    assert_int_equal(psld_device_open("cpu,nothing", &device), PSLD_BAD_ARGUMENT);
    psld_device_set_rank(2);
    must(psld_device_open("cpu,nothing", &device));
    psld_device_set_rank(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_and_copies),    cmocka_unit_test(blocks_too_small),  cmocka_unit_test(running_fails),
        cmocka_unit_test(training_is_the_same), cmocka_unit_test(training_moves),    cmocka_unit_test(training_fails),
        cmocka_unit_test(half_an_update),       cmocka_unit_test(room_for_training), cmocka_unit_test(names),
        cmocka_unit_test(ranks_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
