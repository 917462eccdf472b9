/* Opening and closing a device, and how it fails. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "device/opencl/opencl.h"

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

const char *psld_cl_code_name(cl_int code)
{
    static const struct {
        cl_int code;
        const char *name;
    } names[] = {
#define NAME(name) {name, #name}
        NAME(CL_DEVICE_NOT_FOUND),
        NAME(CL_DEVICE_NOT_AVAILABLE),
        NAME(CL_COMPILER_NOT_AVAILABLE),
        NAME(CL_OUT_OF_RESOURCES),
        NAME(CL_OUT_OF_HOST_MEMORY),
        NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        NAME(CL_BUILD_PROGRAM_FAILURE),
        NAME(CL_INVALID_VALUE),
        NAME(CL_INVALID_DEVICE),
        NAME(CL_INVALID_CONTEXT),
        NAME(CL_INVALID_COMMAND_QUEUE),
        NAME(CL_INVALID_MEM_OBJECT),
        NAME(CL_INVALID_BINARY),
        NAME(CL_INVALID_BUILD_OPTIONS),
        NAME(CL_INVALID_PROGRAM),
        NAME(CL_INVALID_KERNEL_NAME),
        NAME(CL_INVALID_KERNEL),
        NAME(CL_INVALID_ARG_INDEX),
        NAME(CL_INVALID_ARG_VALUE),
        NAME(CL_INVALID_ARG_SIZE),
        NAME(CL_INVALID_KERNEL_ARGS),
        NAME(CL_INVALID_WORK_GROUP_SIZE),
        NAME(CL_INVALID_WORK_ITEM_SIZE),
        NAME(CL_INVALID_OPERATION),
        NAME(CL_INVALID_BUFFER_SIZE),
        NAME(CL_INVALID_GLOBAL_WORK_SIZE),
        NAME(CL_INVALID_PROGRAM_EXECUTABLE),
#undef NAME
        {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "an earlier command failed"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code) return names[i].name;
    return "error";
}

psld_status psld_cl_check(psld_cl_device *device)
{
    int lost = atomic_load(&device->lost);
    if (!lost) return PSLD_OK;
    return psld_fail(PSLD_DEVICE_FAILED, "%s", lost == PSLD_CL_LOST ? device->reason : "the device was lost");
}

/* The first of several threads says why. */
static void lose(psld_cl_device *device, cl_int code, const char *verb)
{
    int fine = 0;
    if (!atomic_compare_exchange_strong(&device->lost, &fine, PSLD_CL_LOSING)) return;
    snprintf(device->reason, sizeof device->reason, "%s: was lost: cannot %s: %s (%d)", device->device.facts.id, verb,
             psld_cl_code_name(code), (int)code);
    atomic_store(&device->lost, PSLD_CL_LOST);
}

psld_status psld_cl_result(psld_cl_device *device, cl_int code, const char *verb)
{
    const char *id = device->device.facts.id;
    if (code == CL_SUCCESS) return PSLD_OK;
    if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY)
        return psld_fail(PSLD_NO_MEMORY, "%s: out of memory: cannot %s: %s (%d)", id, verb, psld_cl_code_name(code),
                         (int)code);
    lose(device, code, verb);
    return psld_cl_check(device);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static psld_status find_limits(psld_cl_device *made)
{
    cl_bool little = CL_FALSE, compiler = CL_FALSE;
    cl_ulong bytes = 0;
    const psld_cl_api *cl = made->cl;
    const char *id = made->device.facts.id;
    char version[128] = "";
    cl->GetDeviceInfo(made->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof made->largest_group, &made->largest_group, NULL);
    cl->GetDeviceInfo(made->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    cl->GetDeviceInfo(made->id, CL_DEVICE_ENDIAN_LITTLE, sizeof little, &little, NULL);
    cl->GetDeviceInfo(made->id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, NULL);
    cl->GetDeviceInfo(made->id, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
    made->local_bytes = bytes;
    if (strncmp(version, "OpenCL 1.0", 10) == 0 || strncmp(version, "OpenCL 1.1", 10) == 0)
        return psld_fail(PSLD_DEVICE_FAILED, "%s: has %s, expected 1.2 or later", id, version);
    if (!compiler) return psld_fail(PSLD_DEVICE_FAILED, "%s: its driver has no compiler", id);
    if (!little) return psld_fail(PSLD_DEVICE_FAILED, "%s: has another order of bytes than expected", id);
    return PSLD_OK;
}

/* What programs that were compiled for it must not be shared with. */
static uint64_t key_of(const psld_device_facts *facts, const char *version)
{
    const char *const parts[] = {facts->platform, facts->name, facts->driver, version};
    uint64_t key = PSLD_HASH_START;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        key = psld_hash_bytes(key, parts[i], strlen(parts[i]) + 1);
    return key;
}

static psld_status open_queue(psld_cl_device *made, cl_platform_id platform)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
    const char *id = made->device.facts.id;
    char version[256] = "";
    cl_int error;
    PSLD_TRY(find_limits(made));
    made->cl->GetDeviceInfo(made->id, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
    made->key = key_of(&made->device.facts, version);
    made->context = made->cl->CreateContext(properties, 1, &made->id, NULL, NULL, &error);
    if (made->context) made->queue = made->cl->CreateCommandQueue(made->context, made->id, 0, &error);
    if (made->queue) return PSLD_OK;
    return psld_fail(PSLD_DEVICE_FAILED, "%s: cannot be opened: %s (%d)", id, psld_cl_code_name(error), (int)error);
}

static psld_status cl_wait(psld_device *device)
{
    psld_cl_device *d = psld_cl_of(device);
    PSLD_TRY(psld_cl_check(d));
    return psld_cl_result(d, d->cl->Finish(d->queue), "finish its work");
}

static psld_status cl_backend(psld_device *device, const char *precision, const psld_backend **backend)
{
    psld_cl_device *d = psld_cl_of(device);
    *backend = NULL;
    for (size_t i = 0; i < sizeof d->backends / sizeof *d->backends; i++)
        if (strcmp(precision ? precision : "fp32", d->backends[i].precision) == 0) *backend = &d->backends[i];
    if (*backend) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "precision: device %s has fp32 and fp16, found '%s'", device->facts.id,
                     precision);
}

static const psld_device_operations operations = {.create = psld_cl_create,
                                                  .free = psld_cl_free,
                                                  .upload = psld_cl_upload,
                                                  .download = psld_cl_download,
                                                  .copy = psld_cl_copy,
                                                  .prepare = psld_cl_prepare,
                                                  .forget = psld_cl_forget,
                                                  .pack = psld_cl_pack,
                                                  .run = psld_cl_run_step,
                                                  .wait = cl_wait,
                                                  .set = psld_cl_set,
                                                  .get = psld_cl_get,
                                                  .fill = psld_cl_fill,
                                                  .add = psld_cl_add,
                                                  .average = psld_cl_average,
                                                  .adam = psld_cl_adam,
                                                  .squares_bytes = psld_cl_squares_bytes,
                                                  .begin_squares = psld_cl_begin_squares,
                                                  .read_squares = psld_cl_read_squares,
                                                  .backend = cl_backend};

psld_status psld_cl_open(const psld_cl_api *cl, cl_platform_id platform, cl_device_id id,
                         const psld_device_facts *facts, psld_device **device)
{
    *device = NULL;
    psld_cl_device *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->device = (psld_device){&operations, *facts};
    made->cl = cl;
    made->id = id;
    pthread_mutex_init(&made->lock, NULL);
    psld_cl_make_backends(made);
    psld_status status = open_queue(made, platform);
    if (status == PSLD_OK)
        *device = &made->device;
    else
        psld_cl_close(&made->device);
    return status;
}

void psld_cl_close(psld_device *device)
{
    psld_cl_device *d = psld_cl_of(device);
    if (d->queue) d->cl->Finish(d->queue);
    psld_cl_stages_free(d);
    for (size_t i = 0; i < sizeof d->update / sizeof *d->update; i++) psld_cl_kernel_free(d, &d->update[i]);
    psld_cl_programs_free(d);
    psld_cl_choices_free(d);
    if (d->queue) d->cl->ReleaseCommandQueue(d->queue);
    if (d->context) d->cl->ReleaseContext(d->context);
    pthread_mutex_destroy(&d->lock);
    psld_release(d);
}
