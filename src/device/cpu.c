/* The CPU as a device: its memory is that of the host, and all work is done when a call returns. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "device/device.h"
#include "kernels/backend.h"

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static psld_status cpu_create(psld_device *device, size_t bytes, psld_memory **memory)
{
    *memory = NULL;
    psld_memory *made = psld_alloc(1, sizeof *made);
    void *block = psld_alloc(bytes, 1);
    if (!made || !block) {
        psld_release(made);
        psld_release(block);
        return PSLD_NO_MEMORY;
    }
    *made = (psld_memory){device, bytes, block};
    *memory = made;
    return PSLD_OK;
}

static void cpu_free(psld_memory *memory)
{
    if (!memory) return;
    psld_release(memory->host);
    psld_release(memory);
}

static psld_status cpu_upload(psld_memory *to, size_t offset, size_t bytes, const void *from)
{
    assert(offset + bytes <= to->bytes);
    memcpy((char *)to->host + offset, from, bytes);
    return PSLD_OK;
}

static psld_status cpu_download(psld_memory *from, size_t offset, size_t bytes, void *to)
{
    assert(offset + bytes <= from->bytes);
    memcpy(to, (const char *)from->host + offset, bytes);
    return PSLD_OK;
}

static psld_status cpu_copy(psld_memory *to, size_t to_offset, psld_memory *from, size_t from_offset, size_t bytes)
{
    return cpu_upload(to, to_offset, bytes, (const char *)from->host + from_offset);
}

/* ---- Steps of plans ---------------------------------------------------------------------------------------------- */

static void *address_of(const psld_place *place, size_t element)
{
    return place->memory ? (char *)place->memory->host + place->offset * element : NULL;
}

static psld_operand make_operand(const psld_device_operand *o, size_t element)
{
    return (psld_operand){.data = address_of(&o->at, element), .shape = o->shape, .pixel = o->pixel};
}

static psld_call make_call(const psld_device_call *call)
{
    size_t element = call->element;
    psld_call made = {.attributes = call->attributes,
                      .run = call->run,
                      .inputs = call->inputs,
                      .threads = call->threads,
                      .narrow = call->narrow,
                      .out = make_operand(&call->out, element),
                      .scratch = address_of(&call->scratch, element),
                      .packed = address_of(&call->packed, element)};
    for (int i = 0; i < call->inputs; i++)
        if (call->in[i].at.memory) made.in[i] = make_operand(&call->in[i], element);
    return made;
}

static psld_status cpu_prepare(psld_device *device, const psld_device_call *call, void **prepared)
{
    (void)device, (void)call;
    *prepared = NULL;
    return PSLD_OK;
}

static void cpu_forget(psld_device *device, void *prepared)
{
    (void)device, (void)prepared;
}

typedef struct cpu_job {
    psld_call call;
    void (*run)(const psld_call *call, size_t begin, size_t end);
} cpu_job;

static void cpu_range(void *context, size_t begin, size_t end)
{
    const cpu_job *job = context;
    job->run(&job->call, begin, end);
}

static psld_status cpu_pack(psld_device *device, void *prepared, const psld_device_call *call)
{
    (void)device, (void)prepared;
    cpu_job job = {make_call(call), call->kernel->pack};
    psld_parallel(call->kernel->pack_tasks(&job.call), 1, cpu_range, &job);
    return PSLD_OK;
}

static psld_status cpu_run(psld_device *device, void *prepared, const psld_device_call *call)
{
    (void)device, (void)prepared;
    cpu_job job = {make_call(call), call->kernel->run};
    psld_parallel(call->kernel->tasks(&job.call), 1, cpu_range, &job);
    return PSLD_OK;
}

static psld_status cpu_wait(psld_device *device)
{
    (void)device;
    return PSLD_OK;
}

/* ---- In and out -------------------------------------------------------------------------------------------------- */

static double element_of(const void *data, psld_type type, size_t i)
{
    return type == PSLD_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void put_element(void *data, psld_type type, size_t i, double value)
{
    if (type == PSLD_F64)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static size_t size_of(psld_type type)
{
    return type == PSLD_F64 ? sizeof(double) : sizeof(float);
}

static size_t count_of(psld_shape s)
{
    return (size_t)s.n * (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

static psld_status cpu_set(psld_device *device, const psld_device_operand *to, psld_type own, psld_type type,
                           const void *from)
{
    (void)device;
    void *data = address_of(&to->at, size_of(own));
    size_t pixels = (size_t)to->shape.h * (size_t)to->shape.w, channels = (size_t)to->shape.c;
    if (to->pixel == 0)
        for (size_t i = 0; i < count_of(to->shape); i++) put_element(data, own, i, element_of(from, type, i));
    for (size_t i = 0; to->pixel && i < (size_t)to->shape.n * pixels; i++) {
        size_t at = i / pixels * channels * pixels + i % pixels;
        for (size_t c = 0; c < psld_lanes(to->shape.c); c++)
            put_element(data, own, i * to->pixel + c, c < channels ? element_of(from, type, at + c * pixels) : 0);
    }
    return PSLD_OK;
}

static psld_status cpu_get(psld_device *device, const psld_device_operand *from, psld_type own, psld_type type,
                           void *to)
{
    (void)device;
    const void *data = address_of(&from->at, size_of(own));
    size_t pixels = (size_t)from->shape.h * (size_t)from->shape.w, channels = (size_t)from->shape.c;
    if (from->pixel == 0)
        for (size_t i = 0; i < count_of(from->shape); i++) put_element(to, type, i, element_of(data, own, i));
    for (size_t i = 0; from->pixel && i < (size_t)from->shape.n * pixels; i++) {
        size_t at = i / pixels * channels * pixels + i % pixels;
        for (size_t c = 0; c < channels; c++)
            put_element(to, type, at + c * pixels, element_of(data, own, i * from->pixel + c));
    }
    return PSLD_OK;
}

/* ---- Operations of training -------------------------------------------------------------------------------------- */

static float *floats_at(psld_place place)
{
    return address_of(&place, sizeof(float));
}

typedef struct cpu_floats {
    float *to, by;
    const float *from;
} cpu_floats;

static void fill_range(void *context, size_t begin, size_t end)
{
    const cpu_floats *job = context;
    for (size_t i = begin; i < end; i++) job->to[i] = job->by;
}

static void add_range(void *context, size_t begin, size_t end)
{
    const cpu_floats *job = context;
    for (size_t i = begin; i < end; i++) job->to[i] += job->from[i];
}

static void average_range(void *context, size_t begin, size_t end)
{
    const cpu_floats *job = context;
    for (size_t i = begin; i < end; i++) job->to[i] = job->by * job->to[i] + (1 - job->by) * job->from[i];
}

static psld_status for_floats(size_t count, psld_range_fn body, cpu_floats job)
{
    psld_parallel(count, 1 << 14, body, &job);
    return PSLD_OK;
}

static psld_status cpu_fill(psld_device *device, psld_place to, size_t count, float value)
{
    (void)device;
    return for_floats(count, fill_range, (cpu_floats){.to = floats_at(to), .by = value});
}

static psld_status cpu_add(psld_device *device, psld_place to, psld_place by, size_t count)
{
    (void)device;
    return for_floats(count, add_range, (cpu_floats){.to = floats_at(to), .from = floats_at(by)});
}

static psld_status cpu_average(psld_device *device, psld_place average, psld_place weights, size_t count, float decay)
{
    (void)device;
    return for_floats(count, average_range, (cpu_floats){floats_at(average), decay, floats_at(weights)});
}

static psld_status cpu_adam(psld_device *device, const psld_backend *backend, const psld_adam *adam, size_t count,
                            psld_place gradient, psld_place weights, psld_place m, psld_place v, psld_place average)
{
    (void)device;
    backend->update.adam(adam, count, floats_at(gradient), floats_at(weights), floats_at(m), floats_at(v),
                         floats_at(average));
    return PSLD_OK;
}

/* The sum first, then the scratch memory of chunks. */
static size_t cpu_squares_bytes(const psld_backend *backend, size_t count)
{
    return (1 + backend->update.square_chunks(count)) * sizeof(double);
}

static psld_status cpu_begin_squares(psld_device *device, const psld_backend *backend, psld_place x, size_t count,
                                     psld_memory *squares)
{
    (void)device;
    double *sum = squares->host;
    *sum = backend->update.sum_squares(count, floats_at(x), sum + 1);
    return PSLD_OK;
}

static psld_status cpu_read_squares(psld_device *device, size_t count, psld_memory *squares, double *sum)
{
    (void)device, (void)count;
    *sum = *(const double *)squares->host;
    return PSLD_OK;
}

static psld_status cpu_backend(psld_device *device, const char *precision, const psld_backend **backend)
{
    (void)device;
    return psld_backend_find(NULL, precision, backend);
}

/* ---- The device -------------------------------------------------------------------------------------------------- */

static const psld_device_operations operations = {.create = cpu_create,
                                                  .free = cpu_free,
                                                  .upload = cpu_upload,
                                                  .download = cpu_download,
                                                  .copy = cpu_copy,
                                                  .prepare = cpu_prepare,
                                                  .forget = cpu_forget,
                                                  .pack = cpu_pack,
                                                  .run = cpu_run,
                                                  .wait = cpu_wait,
                                                  .set = cpu_set,
                                                  .get = cpu_get,
                                                  .fill = cpu_fill,
                                                  .add = cpu_add,
                                                  .average = cpu_average,
                                                  .adam = cpu_adam,
                                                  .squares_bytes = cpu_squares_bytes,
                                                  .begin_squares = cpu_begin_squares,
                                                  .read_squares = cpu_read_squares,
                                                  .backend = cpu_backend};

/* Blocks are as large as memory allows. */
static psld_device processor = {
    .does = &operations, .facts = {.id = "cpu", .kind = PSLD_DEVICE_CPU, .memory = UINT64_MAX, .largest = UINT64_MAX}};

psld_device *psld_device_cpu(void)
{
    return &processor;
}

/* "model name" of /proc/cpuinfo, where there is one. */
static void find_name(char *name, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "processor");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value) continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(name, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (file) fclose(file);
}

void psld_device_cpu_facts(psld_device_facts *facts)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    *facts = processor.facts;
    find_name(facts->name, sizeof facts->name);
    snprintf(facts->driver, sizeof facts->driver, "%s", psld_backend_fastest()->isa);
    facts->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    facts->largest = facts->memory;
    facts->units = (unsigned)psld_threads_get();
}
