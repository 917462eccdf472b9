/* Where plans run: the CPU, or a device with memory of its own.
 *
 * A *device* owns blocks of memory, runs the steps of a plan on them, and has the operations of training beside these.
 * All of it can fail. The layout of tensors is that of kernels.h on every device: NHWC, lanes of 8 of which those behind
 * the channels are zero, dense parameters without gaps; so plans, checkpoints and tests are the same everywhere.
 *
 * Rules:
 *   1. Work is done in the order of the calls. A call may return before its work is done; `wait`, `download`, `get` and
 *      `read_squares` return when everything before them is done. A failure of earlier work may be reported by any
 *      later call, at the latest by one of these.
 *   2. What a caller hands over (data to upload, calls, attributes, psld_run) may be changed as soon as the call returns.
 *   3. A device that was lost fails in every further call, with PSLD_DEVICE_FAILED and one line of text. Freeing is
 *      always possible.
 *   4. Several threads may use a device at a time, each with memory and prepared steps of its own.
 *   5. The same calls give the same bits every time; bits of a sample depend on neither the batch nor n (rule 4 of
 *      kernels.h).
 *
 * How a plan gets to a device: a psld_backend (kernels.h) names its device. The planner takes from the backend's table
 * names, scratch, packed, in_place, finish and in_time; `tasks`, `run`, `pack` and `pack_tasks` are there for the CPU
 * alone. Sizes that the planner is told are in bytes, for the largest batch; no addresses are set then. */
#ifndef PSLD_DEVICE_DEVICE_H
#define PSLD_DEVICE_DEVICE_H

#include "base/status.h"
#include "kernels/kernels.h"

typedef struct psld_device psld_device;

/* A block of a device's memory. A device may allocate a larger struct that begins with this one. */
typedef struct psld_memory {
    psld_device *device;
    size_t bytes;
    void *host; /* its address for the CPU, and for devices that compute there; NULL: not to be reached */
} psld_memory;

/* A place in a block. */
typedef struct psld_place {
    psld_memory *memory; /* NULL: nothing is there (inputs that an operation does without) */
    size_t offset;       /* elements, of the type of what lies there; a multiple of 64 bytes but for parts of dense
                            tensors */
} psld_place;

/* As psld_operand. */
typedef struct psld_device_operand {
    psld_place at;
    psld_shape shape; /* n: samples of this run, or rows of a dense tensor */
    size_t pixel;     /* elements from a pixel to the next; 0: dense */
    int half;         /* elements are IEEE half precision, and the offset counts these; dense tensors never are */
} psld_device_operand;

/* As psld_call. The address of `attributes` stays the same for a step as long as it is prepared. */
typedef struct psld_device_call {
    psld_op op;
    const psld_op_kernel *kernel; /* of the backend */
    const psld_attributes *attributes;
    const psld_run *run; /* NULL while it is prepared */
    int inputs, threads, narrow;
    size_t element; /* bytes of the backend's type: 4 but for tests on the CPU */
    psld_device_operand in[PSLD_MAX_INPUTS], out;
    psld_place scratch; /* as many bytes as the kernel asked for; holds anything; the offset counts backend's type */
    psld_place packed;  /* the weights in the kernel's own form, likewise */
} psld_device_call;

typedef enum psld_device_kind {
    PSLD_DEVICE_CPU,         /* the processor, without anything between */
    PSLD_DEVICE_GPU,         /* is chosen by itself */
    PSLD_DEVICE_ACCELERATOR, /* of another kind; is not */
    PSLD_DEVICE_OPENCL_CPU   /* the processor again, by OpenCL: for tests */
} psld_device_kind;

enum { PSLD_DEVICE_TEXT = 128 };

typedef struct psld_device_facts {
    char id[16]; /* what --device takes: "cpu", "opencl:0" */
    char name[PSLD_DEVICE_TEXT], platform[PSLD_DEVICE_TEXT], driver[PSLD_DEVICE_TEXT];
    psld_device_kind kind;
    uint64_t memory;  /* bytes in all */
    uint64_t largest; /* bytes of the largest block */
    unsigned units;   /* compute units; the CPU's: threads */
    int half;         /* computes with half precision; storing it needs nothing */
} psld_device_facts;

/* What a device does. `device` is the one that the memory belongs to. Every function is there. */
typedef struct psld_device_operations {
    /* ---- Memory. Offsets and sizes are bytes. --------------------------------------------------------------------
     * create: zeroed. PSLD_NO_MEMORY with "needs 9.1 GB, device opencl:0 has 8.0" where it does not fit. */
    psld_status (*create)(psld_device *device, size_t bytes, psld_memory **memory);
    void (*free)(psld_memory *memory); /* NULL is harmless */
    psld_status (*upload)(psld_memory *to, size_t offset, size_t bytes, const void *from);
    psld_status (*download)(psld_memory *from, size_t offset, size_t bytes, void *to);
    psld_status (*copy)(psld_memory *to, size_t to_offset, psld_memory *from, size_t from_offset, size_t bytes);

    /* ---- Steps of plans ------------------------------------------------------------------------------------------
     * prepare: called once for a step, with the shapes of the largest batch and all places; compiles and chooses what
     * run needs, so that run is quick. `*prepared` is the device's own (NULL is allowed). run: n may be smaller, the
     * places are those of prepare, but for gradients and parameters which may be other blocks. pack: fills
     * call->packed from input 1; exec calls it when the weights have changed. */
    psld_status (*prepare)(psld_device *device, const psld_device_call *call, void **prepared);
    void (*forget)(psld_device *device, void *prepared);
    psld_status (*pack)(psld_device *device, void *prepared, const psld_device_call *call);
    psld_status (*run)(psld_device *device, void *prepared, const psld_device_call *call);
    psld_status (*wait)(psld_device *device);

    /* Between numbers of the host in the order n, c, h, w, without gaps, of type PSLD_F32 or PSLD_F64, and a tensor of
     * a plan. `set` writes zeros into the lanes behind the channels. Dense tensors are copied as they are. `own` is
     * the type of the tensor's elements (where not half): PSLD_F32 but for tests on the CPU. */
    psld_status (*set)(psld_device *device, const psld_device_operand *to, psld_type own, psld_type type,
                       const void *from);
    psld_status (*get)(psld_device *device, const psld_device_operand *from, psld_type own, psld_type type, void *to);

    /* ---- Operations of training, on `count` floats at places of any alignment of 4 bytes -------------------------
     * fill: to = value. add: to += by. average: a = decay a + (1 - decay) w, in floats. adam: kernels/adam.h; average
     * may be nothing. */
    psld_status (*fill)(psld_device *device, psld_place to, size_t count, float value);
    psld_status (*add)(psld_device *device, psld_place to, psld_place by, size_t count);
    psld_status (*average)(psld_device *device, psld_place average, psld_place weights, size_t count, float decay);
    psld_status (*adam)(psld_device *device, const psld_backend *backend, const psld_adam *adam, size_t count,
                        psld_place gradient, psld_place weights, psld_place m, psld_place v, psld_place average);
    /* The sum of squares in an order that the count alone fixes: begun into `squares`, a block of squares_bytes(count)
     * that holds anything before, and read later, so that others can be begun meanwhile. */
    size_t (*squares_bytes)(const psld_backend *backend, size_t count);
    psld_status (*begin_squares)(psld_device *device, const psld_backend *backend, psld_place x, size_t count,
                                 psld_memory *squares);
    psld_status (*read_squares)(psld_device *device, size_t count, psld_memory *squares, double *sum);

    /* The backend of a precision ("fp32", "fp16" ...; NULL: fp32); it belongs to the device. One line that says what
     * there is where there is no such thing. */
    psld_status (*backend)(psld_device *device, const char *precision, const psld_backend **backend);
} psld_device_operations;

struct psld_device {
    const psld_device_operations *does;
    psld_device_facts facts;
};

/* Devices of one interface, such as all of OpenCL. */
typedef struct psld_device_family {
    const char *name; /* "opencl": a device is "opencl:N" */
    /* How many there are; 0 where the interface is not installed, which is not a failure. `why` (of `size` bytes), if
     * not NULL, then says in one line what was looked for: "no OpenCL library (libOpenCL.so.1)". */
    size_t (*count)(char *why, size_t size);
    psld_status (*describe)(size_t index, psld_device_facts *facts);
    psld_status (*open)(size_t index, psld_device **device);
    void (*close)(psld_device *device);
    /* Whether a GPU may be there, guessed without loading a driver, which takes a quarter of a second. */
    int (*may_have_gpu)(void);
} psld_device_family;

/* src/device/opencl/ */
extern const psld_device_family psld_opencl_family;

/* ---- Choosing a device ------------------------------------------------------------------------------------------- */

/* The processor. It is always there and never closed. */
psld_device *psld_device_cpu(void);
/* What is known of it. */
void psld_device_cpu_facts(psld_device_facts *facts);

/* The device of a backend. */
static inline psld_device *psld_device_of(const psld_backend *backend)
{
    return backend->device ? backend->device : psld_device_cpu();
}

/* Number `i` of all devices, the CPU being number 0; PSLD_BAD_ARGUMENT beyond. */
size_t psld_device_total(void);
psld_status psld_device_facts_of(size_t i, psld_device_facts *facts);

/* Opens a device: "cpu", "gpu" (the first of that kind), "opencl:N", or several with commas between them. A device that
 * is open already is the same object; each open needs a close. */
psld_status psld_device_open(const char *name, psld_device **device);
void psld_device_close(psld_device *device);

/* Of the devices that are named, and of all GPUs where it is "gpu", a process takes the one with this number modulo
 * theirs: 0, or the number among the ranks on its machine. */
void psld_device_set_rank(int rank);

/* What models and training ask for (psld_model_options): a device, opened, and the backend to use on it. */
typedef struct psld_device_wish {
    const char *device, *isa, *precision; /* NULL: cpu, the best, fp32 */
} psld_device_wish;
psld_status psld_device_choose(const psld_device_wish *wish, psld_device **device, const psld_backend **backend);

/* "9.1 GB", "6.4 MB", for messages. Returns `text`. */
enum { PSLD_DEVICE_AMOUNT = 32 };
const char *psld_device_amount(uint64_t bytes, char text[PSLD_DEVICE_AMOUNT]);

/* Whether a device has room for `fixed` bytes and those that a batch takes. If not: "needs 9.1 GB, device opencl:0 has
 * 8.0 GB: --batch 96 fits", `option` being "--batch ". */
psld_status psld_device_check_room(const psld_device *device, uint64_t fixed, uint64_t for_batch, int batch,
                                   const char *option);

#endif
