/* A library of OpenCL for tests: the real one, except where the environment asks for faults. PSLD_OPENCL names it to the
 * program.
 *     FAULTY_KIND=gpu       devices say that they are GPUs
 *     FAULTY_DEVICES=N      each device is there N times
 *     FAULTY_MEMORY=BYTES   devices say that they have so much memory
 *     FAULTY_ROOM=BYTES     blocks of memory beyond so much in all cannot be made
 *     FAULTY_BUILD=NAME     programs that have this kernel do not compile
 *     FAULTY_LOST=N         after N kernels the device is lost: whatever is asked of it fails */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cl_program bad_programs[PROGRAMS];
static size_t bad_count, allocated;
static long kernels;

/* The function of the library behind this one. */
static void *behind(const char *name)
{
    static void *library;
    if (!library) library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) abort();
    return function;
}

#define REAL(name) ((cl_api_##name)behind(#name))

/* A number of the environment; 0: none. */
static unsigned long long number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static int is_lost(void)
{
    long most = (long)number_of("FAULTY_LOST");
    return most > 0 && kernels > most;
}

/* ---- What devices say -------------------------------------------------------------------------------------------- */

cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *ids,
                                  cl_uint *count)
{
    cl_uint found = 0, times = (cl_uint)number_of("FAULTY_DEVICES");
    cl_int code = REAL(clGetDeviceIDs)(platform, type, room, ids, &found);
    if (times < 1) times = 1;
    for (cl_uint i = found; code == CL_SUCCESS && ids && i < found * times && i < room; i++) ids[i] = ids[i - found];
    if (count) *count = found * times;
    return code;
}

static cl_int answer(const void *value, size_t size, size_t room, void *to)
{
    if (room < size) return CL_INVALID_VALUE;
    memcpy(to, value, size);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t room, void *to, size_t *size)
{
    const char *kind = getenv("FAULTY_KIND");
    cl_ulong memory = number_of("FAULTY_MEMORY");
    cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    if (what == CL_DEVICE_TYPE && kind && strcmp(kind, "gpu") == 0) return answer(&gpu, sizeof gpu, room, to);
    if (memory && what == CL_DEVICE_GLOBAL_MEM_SIZE) return answer(&memory, sizeof memory, room, to);
    return REAL(clGetDeviceInfo)(id, what, room, to, size);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *error)
{
    unsigned long long room = number_of("FAULTY_ROOM");
    pthread_mutex_lock(&lock);
    int fits = !room || allocated + size <= room;
    if (fits) allocated += size;
    pthread_mutex_unlock(&lock);
    if (fits) return REAL(clCreateBuffer)(context, flags, size, host, error);
    if (error) *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
}

cl_int CL_API_CALL clReleaseMemObject(cl_mem memory)
{
    size_t size = 0;
    ((cl_api_clGetMemObjectInfo)behind("clGetMemObjectInfo"))(memory, CL_MEM_SIZE, sizeof size, &size, NULL);
    pthread_mutex_lock(&lock);
    allocated -= size;
    pthread_mutex_unlock(&lock);
    return REAL(clReleaseMemObject)(memory);
}

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts,
                                                 const size_t *lengths, cl_int *error)
{
    const char *name = getenv("FAULTY_BUILD");
    int bad = 0;
    for (cl_uint i = 0; name && i < count; i++) bad |= strstr(texts[i], name) != NULL;
    cl_program made = REAL(clCreateProgramWithSource)(context, count, texts, lengths, error);
    pthread_mutex_lock(&lock);
    if (bad && bad_count < PROGRAMS) bad_programs[bad_count++] = made;
    pthread_mutex_unlock(&lock);
    return made;
}

static int is_bad(cl_program program)
{
    for (size_t i = 0; i < bad_count; i++)
        if (bad_programs[i] == program) return 1;
    return 0;
}

cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint count, const cl_device_id *ids, const char *options,
                                  void(CL_CALLBACK *done)(cl_program, void *), void *user)
{
    if (is_bad(program)) return CL_BUILD_PROGRAM_FAILURE;
    return REAL(clBuildProgram)(program, count, ids, options, done, user);
}

cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id id, cl_program_build_info what, size_t room,
                                         void *to, size_t *size)
{
    static const char log[] =
        "warning: an old driver\n<source>:12:3: error: this driver has no such thing\n  12 | int\n";
    if (!is_bad(program) || what != CL_PROGRAM_BUILD_LOG)
        return REAL(clGetProgramBuildInfo)(program, id, what, room, to, size);
    if (size) *size = sizeof log;
    return to ? answer(log, sizeof log, room, to) : CL_SUCCESS;
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                          const size_t *offset, const size_t *global, const size_t *group,
                                          cl_uint count, const cl_event *events, cl_event *event)
{
    pthread_mutex_lock(&lock);
    kernels++;
    pthread_mutex_unlock(&lock);
    if (is_lost()) return CL_OUT_OF_RESOURCES;
    return REAL(clEnqueueNDRangeKernel)(queue, kernel, dimensions, offset, global, group, count, events, event);
}

cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue queue, cl_mem from, cl_bool wait, size_t offset, size_t size,
                                       void *to, cl_uint count, const cl_event *events, cl_event *event)
{
    if (is_lost()) return CL_OUT_OF_RESOURCES;
    return REAL(clEnqueueReadBuffer)(queue, from, wait, offset, size, to, count, events, event);
}

cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem to, cl_bool wait, size_t offset, size_t size,
                                        const void *from, cl_uint count, const cl_event *events, cl_event *event)
{
    if (is_lost()) return CL_OUT_OF_RESOURCES;
    return REAL(clEnqueueWriteBuffer)(queue, to, wait, offset, size, from, count, events, event);
}

cl_int CL_API_CALL clFinish(cl_command_queue queue)
{
    return is_lost() ? CL_OUT_OF_RESOURCES : REAL(clFinish)(queue);
}
