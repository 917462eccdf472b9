/* Faults of OpenCL, made by standing in front of its functions: a device that is lost at any call, memory that cannot be
 * had, kernels that do not compile, broken files of the cache. Also what a step of training moves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "device/opencl/opencl.h"
#include "kernels/backend.h"
#include "model/networks/network.h"
#include "opencl_test.h"
#include "train/trainer.h"

enum { SIZE = 4, BATCH = 2, NUMBERS = BATCH * SIZE * SIZE };

static psld_cl_device *device;
static const psld_backend *backend;

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

/* ---- In front of the library ------------------------------------------------------------------------------------- */

static const psld_cl_api *real;
static psld_cl_api faulty;
static long calls, fail_at; /* calls so far that may fail, and the first that does: all later ones do, too; 0: none */
static cl_int fail_with;
static long blocks, kernels, programs, reads; /* that are there */
static size_t read_bytes, written_bytes;
static long made_blocks;

static int fails(void)
{
    calls++;
    return fail_at && calls >= fail_at;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *error)
{
    if (fails()) {
        *error = fail_with;
        return NULL;
    }
    blocks++;
    made_blocks++;
    return real->CreateBuffer(context, flags, size, host, error);
}

static cl_int CL_API_CALL release_buffer(cl_mem memory)
{
    blocks--;
    return real->ReleaseMemObject(memory);
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *error)
{
    if (fails()) {
        *error = fail_with;
        return NULL;
    }
    kernels++;
    return real->CreateKernel(program, name, error);
}

static cl_int CL_API_CALL release_kernel(cl_kernel kernel)
{
    kernels--;
    return real->ReleaseKernel(kernel);
}

static cl_int CL_API_CALL start_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                       const size_t *offset, const size_t *global, const size_t *group, cl_uint count,
                                       const cl_event *events, cl_event *event)
{
    if (fails()) return fail_with;
    return real->EnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, group, count, events, event);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem from, cl_bool wait, size_t offset, size_t size,
                                      void *to, cl_uint count, const cl_event *events, cl_event *event)
{
    if (fails()) return fail_with;
    reads++;
    read_bytes += size;
    return real->EnqueueReadBuffer(queue, from, wait, offset, size, to, count, events, event);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem to, cl_bool wait, size_t offset, size_t size,
                                       const void *from, cl_uint count, const cl_event *events, cl_event *event)
{
    if (fails()) return fail_with;
    written_bytes += size;
    return real->EnqueueWriteBuffer(queue, to, wait, offset, size, from, count, events, event);
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem to, const void *pattern, size_t pattern_size,
                                      size_t offset, size_t size, cl_uint count, const cl_event *events,
                                      cl_event *event)
{
    if (fails()) return fail_with;
    return real->EnqueueFillBuffer(queue, to, pattern, pattern_size, offset, size, count, events, event);
}

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    return fails() ? fail_with : real->Finish(queue);
}

static void stand_in_front(void)
{
    real = device->cl;
    faulty = *real;
    faulty.CreateBuffer = create_buffer;
    faulty.ReleaseMemObject = release_buffer;
    faulty.CreateKernel = create_kernel;
    faulty.ReleaseKernel = release_kernel;
    faulty.EnqueueNDRangeKernel = start_kernel;
    faulty.EnqueueReadBuffer = read_buffer;
    faulty.EnqueueWriteBuffer = write_buffer;
    faulty.EnqueueFillBuffer = fill_buffer;
    faulty.Finish = finish;
    device->cl = &faulty;
}

/* From the n-th call on everything fails. */
static void fail_from(long n, cl_int code)
{
    fail_at = n;
    fail_with = code;
    calls = 0;
}

/* The device was never broken: it counts as opened anew. */
static void mend(void)
{
    fail_at = 0;
    atomic_store(&device->lost, 0);
}

static void check_line(const char *text)
{
    const char *line = psld_error_text();
    if (!strstr(line, text) || !strstr(line, "opencl:0") || strchr(line, '\n'))
        fail_msg("no \"%s\" in one line: %s", text, line);
}

/* ---- A small network --------------------------------------------------------------------------------------------- */

static psld_network *small_network(void)
{
    const char *text = "data: {size: 4}\n"
                       "model: {in_ch: 1, out_ch: 1, nf: 8, ch_mult: [1], num_res_blocks: 1, attn_resolutions: [4]}";
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

static psld_status run_network(const psld_network *network, float *out)
{
    float z[NUMBERS], t[BATCH] = {0.2f, 0.7f};
    psld_runner *runner;
    psld_runner_options options = {.backend = backend, .batch = BATCH, .store = SIZE_MAX};
    psld_runner_data data = {.type = PSLD_F32, .z = z, .t = t, .out = out};
    for (int i = 0; i < NUMBERS; i++) z[i] = (float)sin(i + 1.0);
    PSLD_TRY(psld_runner_open(network, &options, &runner));
    psld_status status = psld_runner_run(runner, BATCH, &data);
    psld_runner_free(runner);
    return status;
}

/* ---- Lost -------------------------------------------------------------------------------------------------------- */

static void lost_at_any_call(void **state)
{
    (void)state;
    psld_network *network = small_network();
    float expected[NUMBERS], found[NUMBERS];
    long before = blocks, failures = 0;
    must(run_network(network, expected));
    long same_kernels = kernels;
    for (long at = 1;; at += at < 6 ? 1 : 13) {
        fail_from(at, CL_OUT_OF_RESOURCES);
        psld_status status = run_network(network, found);
        int is_lost = atomic_load(&device->lost);
        assert_int_equal(blocks, before);
        assert_int_equal(kernels, same_kernels);
        if (status != PSLD_OK && is_lost) {
            check_line("was lost: cannot");
            psld_memory *memory;
            fail_at = 0; /* it answers again, but what it had is gone */
            assert_int_equal(run_network(network, found), PSLD_DEVICE_FAILED);
            assert_int_equal(device->device.does->create(&device->device, 4, &memory), PSLD_DEVICE_FAILED);
            check_line("was lost: cannot");
            assert_null(memory);
        }
        mend();
        if (status == PSLD_OK) break;
        assert_true(status == PSLD_DEVICE_FAILED || status == PSLD_NO_MEMORY);
        failures++;
    }
    assert_true(failures > 10);
    must(run_network(network, found));
    assert_memory_equal(found, expected, sizeof expected);
    psld_network_free(network);
}

/* ---- Training ---------------------------------------------------------------------------------------------------- */

typedef struct course {
    psld_network *network;
    psld_trainer *trainer;
} course;

static void begin_course(course *c)
{
    psld_trainer_options options;
    psld_trainer_defaults(&options);
    options.backend = backend;
    options.batch = BATCH;
    options.ema = 0.9;
    c->network = small_network();
    must(psld_trainer_create(c->network, &options, &c->trainer));
}

static psld_status step_course(course *c)
{
    float z[NUMBERS], target[NUMBERS], weight[BATCH] = {0.5f, 0.5f}, loss[BATCH], t[BATCH] = {0.2f, 0.7f};
    double norm;
    for (int i = 0; i < NUMBERS; i++) z[i] = target[i] = (float)sin(i + 1.0);
    psld_microbatch b = {.n = BATCH, .last = 1, .z = z, .time = t, .target = target, .weight = weight, .loss = loss};
    PSLD_TRY(psld_trainer_add(c->trainer, &b));
    return psld_trainer_update(c->trainer, (double)loss[0], &norm);
}

static void end_course(course *c)
{
    psld_trainer_free(c->trainer);
    psld_network_free(c->network);
}

/* Into a step go the data, the targets, times and weights; out come the losses and the norm. */
static void steps_stay_on_the_device(void **state)
{
    (void)state;
    course c;
    begin_course(&c);
    must(step_course(&c));
    size_t count = psld_trainer_state_of(c.trainer).count;
    for (int i = 0; i < 2; i++) {
        read_bytes = written_bytes = 0;
        reads = 0;
        must(step_course(&c));
        /* times and so on have a pixel of 8 lanes each */
        if (written_bytes > (size_t)(2 * BATCH * SIZE * SIZE * 8 + 4 * BATCH * 8) * sizeof(float))
            fail_msg("%zu bytes were written", written_bytes);
        if (read_bytes > (size_t)(2 * BATCH * 8) * sizeof(float) + psld_cl_squares_bytes(backend, count) || reads > 3)
            fail_msg("%zu bytes were read, %ld times", read_bytes, reads);
    }
    end_course(&c);
}

/* The host has the state of the last step that was fetched. */
static void lost_in_training(void **state)
{
    (void)state;
    course c;
    long before = blocks;
    begin_course(&c);
    must(step_course(&c));
    must(psld_trainer_fetch(c.trainer));
    size_t bytes = psld_trainer_state_of(c.trainer).count * sizeof(float);
    float *weights = psld_copy_bytes(c.network->weights, bytes);
    fail_from(20, CL_DEVICE_NOT_AVAILABLE);
    assert_int_equal(step_course(&c), PSLD_DEVICE_FAILED);
    check_line("CL_DEVICE_NOT_AVAILABLE");
    assert_memory_equal(c.network->weights, weights, bytes);
    end_course(&c);
    assert_int_equal(blocks, before);
    psld_release(weights);
    mend();
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void no_memory(void **state)
{
    (void)state;
    psld_network *network = small_network();
    float out[NUMBERS];
    static const cl_int codes[] = {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES};
    for (int i = 0; i < 3; i++) {
        fail_from(1, codes[i]);
        assert_int_equal(run_network(network, out), PSLD_NO_MEMORY);
        check_line("GB");
        assert_false(atomic_load(&device->lost));
        fail_at = 0;
        must(run_network(network, out)); /* smaller things still fit */
    }
    /* a driver that finds out when a kernel is started */
    fail_from(1, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    assert_int_equal(device->device.does->wait(&device->device), PSLD_NO_MEMORY);
    mend();
    psld_network_free(network);
}

/* Devices that have no large blocks: the memory of a plan is cut into several. */
static void several_blocks(void **state)
{
    (void)state;
    psld_network *network = small_network();
    uint64_t largest = device->device.facts.largest;
    float expected[NUMBERS], found[NUMBERS];
    long before = blocks, most = 0;
    must(run_network(network, expected));
    for (uint64_t bytes = 1 << 20; bytes >= 1024; bytes /= 2) {
        fail_from(0, CL_SUCCESS);
        made_blocks = 0;
        device->device.facts.largest = bytes;
        psld_status status = run_network(network, found);
        device->device.facts.largest = largest;
        assert_int_equal(blocks, before);
        if (status != PSLD_OK) { /* a tensor or the weights do not fit into one */
            assert_int_equal(status, PSLD_NO_MEMORY);
            check_line("opencl:0");
            break;
        }
        assert_memory_equal(found, expected, sizeof expected);
        most = made_blocks > most ? made_blocks : most;
    }
    assert_true(most > 2);
    psld_network_free(network);
}

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

static cl_int CL_API_CALL build_nothing(cl_program program, cl_uint count, const cl_device_id *ids, const char *options,
                                        void(CL_CALLBACK *done)(cl_program, void *), void *user)
{
    (void)program, (void)count, (void)ids, (void)options, (void)done, (void)user;
    return CL_BUILD_PROGRAM_FAILURE;
}

static const char *log_text;

static cl_int CL_API_CALL build_log(cl_program program, cl_device_id id, cl_program_build_info what, size_t room,
                                    void *to, size_t *size)
{
    (void)program, (void)id, (void)what;
    if (size) *size = strlen(log_text) + 1;
    if (to) memcpy(to, log_text, room < strlen(log_text) + 1 ? room : strlen(log_text) + 1);
    return CL_SUCCESS;
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *error)
{
    programs++;
    return real->CreateProgramWithSource(context, count, texts, lengths, error);
}

static void does_not_compile(void **state)
{
    (void)state;
    static const char *const logs[][2] = {
        {"warning: old\n\n<file>:12:3: error: no such thing\n  12 | int\n", "<file>:12:3: error: no such thing"},
        {"\n  something else\nand more", "something else"},
        {"", "CL_BUILD_PROGRAM_FAILURE"}};
    cl_kernel kernel;
    faulty.BuildProgram = build_nothing;
    faulty.GetProgramBuildInfo = build_log;
    for (int i = 0; i < 3; i++) {
        log_text = logs[i][0];
        assert_int_equal(psld_cl_kernel(device, "update.cl", "adam", "-DANOTHER=1", &kernel), PSLD_DEVICE_FAILED);
        assert_null(kernel);
        check_line("update.cl does not compile");
        check_line(logs[i][1]);
    }
    faulty.BuildProgram = real->BuildProgram;
    faulty.GetProgramBuildInfo = real->GetProgramBuildInfo;
    assert_int_equal(psld_cl_kernel(device, "update.cl", "nothing", NULL, &kernel), PSLD_DEVICE_FAILED);
    check_line("nothing");
    assert_int_equal(psld_cl_kernel(device, "nothing.cl", "adam", NULL, &kernel), PSLD_DEVICE_FAILED);
    must(psld_cl_kernel(device, "update.cl", "adam", "-DANOTHER=1", &kernel));
    psld_cl_kernel_free(device, &kernel);
}

/* ---- The cache --------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void check_kept(const char *name, const char *expected)
{
    void *bytes;
    size_t size;
    psld_cl_cache_get(name, &bytes, &size);
    if (!expected) {
        assert_null(bytes);
        assert_int_equal(size, 0);
        return;
    }
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
    psld_release(bytes);
}

static void broken_files(void **state)
{
    (void)state;
    char cache[4096], path[4200], whole[256];
    assert_non_null(getcwd(cache, sizeof cache - 32));
    snprintf(cache + strlen(cache), 32, "/broken-%ld", (long)getpid()); /* nothing is there yet */
    setenv("XDG_CACHE_HOME", cache, 1);
    check_kept("tuned", NULL);
    psld_cl_cache_put("tuned", "what was measured", 17);
    check_kept("tuned", "what was measured");
    snprintf(path, sizeof path, "%s/psld/opencl/tuned", cache);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t length = 0; length < size; length++) {
        write_file(path, whole, length);
        check_kept("tuned", NULL);
    }
    for (size_t i = 0; i < size; i++) {
        whole[i] ^= 4;
        write_file(path, whole, size);
        check_kept("tuned", NULL);
        whole[i] ^= 4;
    }
    psld_cl_cache_put("tuned", "again", 5);
    check_kept("tuned", "again");
    /* a file where a folder should be, a folder where a file should be, and no place at all */
    snprintf(path, sizeof path, "%s/psld/opencl/folder", cache);
    assert_int_equal(mkdir(path, 0777), 0);
    psld_cl_cache_put("folder", "x", 1);
    check_kept("folder", NULL);
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    psld_cl_cache_put("tuned", "x", 1);
    check_kept("tuned", NULL);
    setenv("XDG_CACHE_HOME", cache, 1);
}

static cl_program CL_API_CALL refuse_binary(cl_context context, cl_uint count, const cl_device_id *ids,
                                            const size_t *sizes, const unsigned char **binaries, cl_int *states,
                                            cl_int *error)
{
    (void)context, (void)count, (void)ids, (void)sizes, (void)binaries, (void)states;
    *error = CL_INVALID_BINARY;
    return NULL;
}

/* Programs are compiled once, and again where the driver does not take what was kept. */
static void programs_are_kept(void **state)
{
    (void)state;
    cl_kernel kernel;
    char cache[4096];
    assert_non_null(getcwd(cache, sizeof cache - 16));
    strcat(cache, "/kept");
    setenv("XDG_CACHE_HOME", cache, 1);
    char option[48]; /* that no earlier run of this test has used */
    snprintf(option, sizeof option, "-DRUN=%ld", (long)getpid());
    faulty.CreateProgramWithSource = create_program;
    programs = 0;
    for (int i = 0; i < 4; i++) {
        if (i == 3) faulty.CreateProgramWithBinary = refuse_binary;
        must(psld_cl_kernel(device, "update.cl", "add_floats", option, &kernel));
        psld_cl_kernel_free(device, &kernel);
        if (i > 0) psld_cl_programs_free(device); /* the second finds what the first has made, the third the file */
        assert_int_equal(programs, i < 3 ? 1 : 2);
    }
    faulty.CreateProgramWithBinary = real->CreateProgramWithBinary;
    faulty.CreateProgramWithSource = real->CreateProgramWithSource;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_at_any_call), cmocka_unit_test(steps_stay_on_the_device),
        cmocka_unit_test(lost_in_training), cmocka_unit_test(no_memory),
        cmocka_unit_test(several_blocks),   cmocka_unit_test(does_not_compile),
        cmocka_unit_test(broken_files),     cmocka_unit_test(programs_are_kept),
    };
    psld_device *opened = opencl_for_test();
    device = psld_cl_of(opened);
    must(opened->does->backend(opened, NULL, &backend));
    stand_in_front();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device->cl = real;
    psld_device_close(opened);
    return failed;
}
