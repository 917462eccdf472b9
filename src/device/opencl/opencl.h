/* What the files of this folder share: the OpenCL library, a device, its programs, and launches of kernels.
 *
 *   loader.c    the library, loaded at run time
 *   family.c    which devices there are
 *   device.c    opening and closing; failures
 *   memory.c    blocks, and what goes in and out
 *   program.c   kernels from the sources of kernels/, which are within the library
 *   cache.c     programs that were compiled before, in files
 *   launch.c    arguments and ranges
 *   steps.c     steps of plans: the table of operations, and the backends
 *   train.c     operations of training
 *   tuning.c    which of several ways was the fastest
 *   rows.c, sums.c, image.c, samples.c, products.c, attention.c
 *               the host's side of operations: a rule for each (rules.h) */
#ifndef PSLD_DEVICE_OPENCL_OPENCL_H
#define PSLD_DEVICE_OPENCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "device/device.h"

/* ---- The library ------------------------------------------------------------------------------------------------- */

/* Every function that is used, by its name after "cl". */
typedef struct psld_cl_api {
#define PSLD_CL_FUNCTION(name) cl_api_cl##name name;
#include "device/opencl/functions.def"
#undef PSLD_CL_FUNCTION
} psld_cl_api;

/* NULL where there is no such library; `why` (or NULL) then says what was looked for. */
const psld_cl_api *psld_cl_load(char *why, size_t size);

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

enum { PSLD_CL_STAGES = 8, PSLD_CL_REASON = 192, PSLD_CL_LOSING = 1, PSLD_CL_LOST = 2 };

/* Memory of the host that an upload is copied to, so that nobody waits for it. */
typedef struct psld_cl_stage {
    void *bytes;
    size_t size;
    cl_event used; /* by what; NULL: by nothing */
} psld_cl_stage;

typedef struct psld_cl_program psld_cl_program;

typedef struct psld_cl_device {
    psld_device device;
    const psld_cl_api *cl;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue; /* in order */
    size_t largest_group;   /* work items */
    uint64_t local_bytes;   /* of local memory of a group */
    uint64_t key;           /* what tells it and its driver from others: part of names in the cache */
    _Atomic uint64_t used;  /* bytes of blocks */
    pthread_mutex_t lock;   /* of all that follows, and of kernels that steps share */
    psld_cl_program *programs;
    psld_cl_stage stage[PSLD_CL_STAGES];
    int next_stage;
    cl_kernel update[8];            /* of train.c */
    struct psld_cl_choice *choices; /* of tuning.c, read from the cache when the first is asked for */
    size_t choice_count;
    psld_backend backends[2];    /* fp32, fp16 */
    atomic_int lost;             /* not 0: every call fails, */
    char reason[PSLD_CL_REASON]; /* with this, once it is PSLD_CL_LOST */
} psld_cl_device;

typedef struct psld_cl_memory {
    psld_memory memory;
    cl_mem block;
} psld_cl_memory;

static inline psld_cl_device *psld_cl_of(psld_device *device)
{
    return (psld_cl_device *)device;
}

static inline cl_mem psld_cl_block(const psld_memory *memory)
{
    return ((const psld_cl_memory *)memory)->block;
}

/* Fails if the device was lost before. Every call from outside begins with it. */
psld_status psld_cl_check(psld_cl_device *device);
/* PSLD_OK for CL_SUCCESS. Else one line "opencl:0: cannot <verb>: CL_OUT_OF_RESOURCES (-5)"; the device counts as lost,
 * but for failures to allocate, which are PSLD_NO_MEMORY. */
psld_status psld_cl_result(psld_cl_device *device, cl_int code, const char *verb);
const char *psld_cl_code_name(cl_int code);

/* ---- Blocks (memory.c) ------------------------------------------------------------------------------------------- */

psld_status psld_cl_create(psld_device *device, size_t bytes, psld_memory **memory);
void psld_cl_free(psld_memory *memory);
psld_status psld_cl_upload(psld_memory *to, size_t offset, size_t bytes, const void *from);
psld_status psld_cl_download(psld_memory *from, size_t offset, size_t bytes, void *to);
psld_status psld_cl_copy(psld_memory *to, size_t to_offset, psld_memory *from, size_t from_offset, size_t bytes);
psld_status psld_cl_set(psld_device *device, const psld_device_operand *to, psld_type own, psld_type type,
                        const void *from);
psld_status psld_cl_get(psld_device *device, const psld_device_operand *from, psld_type own, psld_type type, void *to);
void psld_cl_stages_free(psld_cl_device *device);

/* ---- Programs (program.c) ---------------------------------------------------------------------------------------- */

/* A kernel of its own for the caller, who releases it with psld_cl_kernel_free. `files`: names in kernels/ with spaces
 * between them, put behind one another; "common.cl" is always in front. `options`: what the compiler is told, such as
 * "-DTILE=64 -DHALF_OUT=1". What was compiled before, now or in an earlier process, is found again. */
psld_status psld_cl_kernel(psld_cl_device *device, const char *files, const char *name, const char *options,
                           cl_kernel *kernel);
void psld_cl_kernel_free(psld_cl_device *device, cl_kernel *kernel);
void psld_cl_programs_free(psld_cl_device *device);

/* The sources: written by cmake/opencl.cmake. Ends with a name of NULL. */
typedef struct psld_cl_source {
    const char *name;
    const char *text;
} psld_cl_source;
extern const psld_cl_source psld_cl_sources[];

/* ---- The cache (cache.c) ----------------------------------------------------------------------------------------- */

/* What was kept under a name: *bytes to be released with psld_release, or NULL where there is nothing whole. Names are
 * letters, digits and points. The cache may be switched off or not writable: that is no failure. */
int psld_cl_cache_is_on(void); /* PSLD_OPENCL_CACHE=off switches it off */
void psld_cl_cache_get(const char *name, void **bytes, size_t *size);
void psld_cl_cache_put(const char *name, const void *bytes, size_t size);

/* ---- Tuning (tuning.c) ------------------------------------------------------------------------------------------- */

/* Which of several ways, all with the same bits, was the fastest for what `key` stands for: -1 where nobody knows yet.
 * Choices are kept for the device and its driver, here and in the cache. */
int psld_cl_choice_get(psld_cl_device *device, uint64_t key);
void psld_cl_choice_put(psld_cl_device *device, uint64_t key, int choice);
void psld_cl_choices_free(psld_cl_device *device);

/* ---- Launches (launch.c) ----------------------------------------------------------------------------------------- */

/* Arguments are added in their order; psld_cl_run reports what failed. */
typedef struct psld_cl_launch {
    psld_cl_device *device;
    cl_kernel kernel;
    cl_uint next;
    cl_int error;
} psld_cl_launch;

psld_cl_launch psld_cl_begin(psld_cl_device *device, cl_kernel kernel);
/* The block of a place: __global void *. */
void psld_cl_arg_memory(psld_cl_launch *launch, const psld_memory *memory);
/* A place: __global T *, ulong (elements). Nothing: NULL, 0. */
void psld_cl_arg_place(psld_cl_launch *launch, psld_place place);
/* An operand: __global T *, ulong (elements), int (elements from a pixel to the next). */
void psld_cl_arg_operand(psld_cl_launch *launch, const psld_device_operand *operand);
void psld_cl_arg_int(psld_cl_launch *launch, int value);
void psld_cl_arg_long(psld_cl_launch *launch, uint64_t value); /* ulong */
void psld_cl_arg_float(psld_cl_launch *launch, double value);
void psld_cl_arg_local(psld_cl_launch *launch, size_t bytes);
void psld_cl_arg_bytes(psld_cl_launch *launch, const void *bytes, size_t size); /* a struct */
/* Begins the kernel on `dimensions` axes of global[] work items in groups of group[]; global is rounded up to whole
 * groups, so kernels look whether an item is inside. */
psld_status psld_cl_run(psld_cl_launch *launch, unsigned dimensions, const size_t *global, const size_t *group);

/* ---- Steps of plans (steps.c) ------------------------------------------------------------------------------------ */

enum { PSLD_CL_STEP_KERNELS = 8, PSLD_CL_STEP_NUMBERS = 16 };

typedef struct psld_cl_rule psld_cl_rule;

/* What prepare has made of a step. */
typedef struct psld_cl_step {
    const psld_cl_rule *rule;
    cl_kernel kernel[PSLD_CL_STEP_KERNELS]; /* released by forget */
    psld_memory *table;                     /* of the rule's own, or NULL; freed by forget */
    int number[PSLD_CL_STEP_NUMBERS];       /* of the rule's own: tile sizes and so on */
} psld_cl_step;

/* How an operation is computed. */
struct psld_cl_rule {
    psld_op_kernel kernel; /* for the planner: name, scratch, packed, in_place, finish, in_time; the rest is NULL */
    psld_status (*prepare)(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step);
    psld_status (*pack)(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call); /* or NULL */
    psld_status (*run)(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call);
    const char *file; /* for psld_cl_prepare_one (rules.h) */
};

psld_status psld_cl_prepare(psld_device *device, const psld_device_call *call, void **prepared);
void psld_cl_forget(psld_device *device, void *prepared);
psld_status psld_cl_pack(psld_device *device, void *prepared, const psld_device_call *call);
psld_status psld_cl_run_step(psld_device *device, void *prepared, const psld_device_call *call);
/* Fills device->backends. */
void psld_cl_make_backends(psld_cl_device *device);

/* "-DHALF_A=1 -DHALF_OUT=1" and so on: which operands are in half precision; input i is letter A + i. "-DDENSE=1" where
 * input and result are dense. Sources load and store by LOAD_A(p, i) ... STORE_OUT(p, i, x) of common.cl. */
void psld_cl_half_options(const psld_device_call *call, char *options, size_t size);

/* ---- Operations of training (train.c) ---------------------------------------------------------------------------- */

psld_status psld_cl_fill(psld_device *device, psld_place to, size_t count, float value);
psld_status psld_cl_add(psld_device *device, psld_place to, psld_place by, size_t count);
psld_status psld_cl_average(psld_device *device, psld_place average, psld_place weights, size_t count, float decay);
psld_status psld_cl_adam(psld_device *device, const psld_backend *backend, const psld_adam *adam, size_t count,
                         psld_place gradient, psld_place weights, psld_place m, psld_place v, psld_place average);
size_t psld_cl_squares_bytes(const psld_backend *backend, size_t count);
psld_status psld_cl_begin_squares(psld_device *device, const psld_backend *backend, psld_place x, size_t count,
                                  psld_memory *squares);
psld_status psld_cl_read_squares(psld_device *device, size_t count, psld_memory *squares, double *sum);

/* ---- Opening (device.c) ------------------------------------------------------------------------------------------ */

psld_status psld_cl_open(const psld_cl_api *cl, cl_platform_id platform, cl_device_id id,
                         const psld_device_facts *facts, psld_device **device);
void psld_cl_close(psld_device *device);

#endif
