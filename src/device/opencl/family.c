/* Which OpenCL devices there are, numbered in the order in which platforms and drivers name them. */
#include <stdio.h>
#include <string.h>

#include "device/opencl/opencl.h"
#include "device/opencl/vendors.h"

enum { PLATFORMS = 16, DEVICES = 64 };

typedef struct listed {
    cl_platform_id platform;
    cl_device_id id;
} listed;

/* Found once: what the library says does not change. */
static struct {
    const psld_cl_api *cl;
    listed device[DEVICES];
    size_t count;
} list;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add_platform(cl_platform_id platform)
{
    cl_device_id ids[DEVICES];
    cl_uint count = 0;
    if (list.cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES, ids, &count) != CL_SUCCESS) return;
    for (cl_uint i = 0; i < count && i < DEVICES && list.count < DEVICES; i++)
        list.device[list.count++] = (listed){platform, ids[i]};
}

static void find_devices(char *why, size_t size)
{
    cl_platform_id platforms[PLATFORMS];
    cl_uint count = 0;
    list.cl = psld_cl_load(why, size);
    if (!list.cl) return;
    if (list.cl->GetPlatformIDs(PLATFORMS, platforms, &count) != CL_SUCCESS)
        count = 0; /* no driver is a failure, too */
    for (cl_uint i = 0; i < count && i < PLATFORMS; i++) add_platform(platforms[i]);
    if (!list.count && why)
        snprintf(why, size, count ? "the OpenCL drivers have no device" : "OpenCL has no driver (clinfo lists them)");
}

static size_t opencl_count(char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    if (!list.count) find_devices(why, size);
    pthread_mutex_unlock(&lock);
    return list.count;
}

/* ---- Facts ------------------------------------------------------------------------------------------------------- */

/* Without blanks at either end. */
static void trim(char *text)
{
    size_t from = strspn(text, " \t\n"), length = strlen(text + from);
    while (length > 0 && strchr(" \t\n", text[from + length - 1])) length--;
    memmove(text, text + from, length);
    text[length] = 0;
}

/* "" where it cannot be had. */
static void device_text(cl_device_id id, cl_device_info what, char *text, size_t size)
{
    char whole[16384] = "";
    if (list.cl->GetDeviceInfo(id, what, sizeof whole - 1, whole, NULL) != CL_SUCCESS) whole[0] = 0;
    trim(whole);
    snprintf(text, size, "%.*s", (int)size - 1, whole);
}

static void platform_text(cl_platform_id platform, char *text, size_t size)
{
    char whole[1024] = "";
    if (list.cl->GetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof whole - 1, whole, NULL) != CL_SUCCESS) whole[0] = 0;
    trim(whole);
    snprintf(text, size, "%.*s", (int)size - 1, whole);
}

/* Whether it can be opened; psld_cl_open says in words why not. */
static int is_usable(cl_device_id id)
{
    char version[256];
    cl_bool compiler = CL_FALSE, little = CL_FALSE;
    list.cl->GetDeviceInfo(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof compiler, &compiler, NULL);
    list.cl->GetDeviceInfo(id, CL_DEVICE_ENDIAN_LITTLE, sizeof little, &little, NULL);
    device_text(id, CL_DEVICE_VERSION, version, sizeof version);
    return compiler && little && strncmp(version, "OpenCL 1.0", 10) != 0 && strncmp(version, "OpenCL 1.1", 10) != 0;
}

/* A GPU that cannot be used is not one that is chosen by itself. */
static psld_device_kind kind_of(cl_device_id id)
{
    cl_device_type type = 0;
    if (list.cl->GetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL) != CL_SUCCESS) type = 0;
    if ((type & CL_DEVICE_TYPE_GPU) && is_usable(id)) return PSLD_DEVICE_GPU;
    return type & CL_DEVICE_TYPE_CPU ? PSLD_DEVICE_OPENCL_CPU : PSLD_DEVICE_ACCELERATOR;
}

static uint64_t device_number(cl_device_id id, cl_device_info what)
{
    cl_ulong value = 0;
    return list.cl->GetDeviceInfo(id, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

static psld_status opencl_describe(size_t index, psld_device_facts *facts)
{
    char why[256] = "there is no such device", extensions[16384];
    cl_uint units = 0;
    *facts = (psld_device_facts){0};
    if (index >= opencl_count(why, sizeof why)) return psld_fail(PSLD_DEVICE_FAILED, "opencl:%zu: %s", index, why);
    const listed *device = &list.device[index];
    snprintf(facts->id, sizeof facts->id, "opencl:%u", (unsigned)index % 1000);
    device_text(device->id, CL_DEVICE_NAME, facts->name, sizeof facts->name);
    device_text(device->id, CL_DRIVER_VERSION, facts->driver, sizeof facts->driver);
    device_text(device->id, CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
    platform_text(device->platform, facts->platform, sizeof facts->platform);
    facts->kind = kind_of(device->id);
    facts->memory = device_number(device->id, CL_DEVICE_GLOBAL_MEM_SIZE);
    facts->largest = device_number(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    if (list.cl->GetDeviceInfo(device->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL) == CL_SUCCESS)
        facts->units = units;
    facts->half = strstr(extensions, "cl_khr_fp16") != NULL;
    return PSLD_OK;
}

static psld_status opencl_open(size_t index, psld_device **device)
{
    psld_device_facts facts;
    *device = NULL;
    PSLD_TRY(opencl_describe(index, &facts));
    return psld_cl_open(list.cl, list.device[index].platform, list.device[index].id, &facts, device);
}

const psld_device_family psld_opencl_family = {"opencl",    opencl_count,  opencl_describe,
                                               opencl_open, psld_cl_close, psld_opencl_may_have_gpu};
