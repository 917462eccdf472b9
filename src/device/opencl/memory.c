/* Blocks of memory, and what goes in and out. Uploads are copied to memory of the host first and not waited for: a step
 * of training is not to stop where its data come in. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/half.h"
#include "device/opencl/opencl.h"

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

/* Drivers promise more memory than there is and fail later, so it is counted here, too. */
static psld_status take_room(psld_cl_device *device, uint64_t bytes)
{
    const psld_device_facts *facts = &device->device.facts;
    uint64_t used = atomic_fetch_add(&device->used, bytes) + bytes;
    if (used <= facts->memory && bytes <= facts->largest) return PSLD_OK;
    atomic_fetch_sub(&device->used, bytes);
    char needs[PSLD_DEVICE_AMOUNT], has[PSLD_DEVICE_AMOUNT];
    if (used > facts->memory)
        return psld_fail(PSLD_NO_MEMORY, "needs %s, device %s has %s", psld_device_amount(used, needs), facts->id,
                         psld_device_amount(facts->memory, has));
    return psld_fail(PSLD_NO_MEMORY, "needs a block of %s, device %s has blocks of %s at most",
                     psld_device_amount(bytes, needs), facts->id, psld_device_amount(facts->largest, has));
}

static psld_status no_room(psld_cl_device *device, cl_int error)
{
    const psld_device_facts *facts = &device->device.facts;
    if (error != CL_MEM_OBJECT_ALLOCATION_FAILURE && error != CL_OUT_OF_HOST_MEMORY && error != CL_OUT_OF_RESOURCES)
        return psld_cl_result(device, error, "create a block of memory");
    char needs[PSLD_DEVICE_AMOUNT], has[PSLD_DEVICE_AMOUNT];
    return psld_fail(PSLD_NO_MEMORY, "needs %s, device %s has %s, but not as much is free",
                     psld_device_amount(atomic_load(&device->used), needs), facts->id,
                     psld_device_amount(facts->memory, has));
}

psld_status psld_cl_create(psld_device *device, size_t bytes, psld_memory **memory)
{
    psld_cl_device *d = psld_cl_of(device);
    const cl_uint zero = 0;
    size_t whole = (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
    cl_int error = CL_SUCCESS;
    *memory = NULL;
    PSLD_TRY(psld_cl_check(d));
    PSLD_TRY(take_room(d, whole));
    psld_cl_memory *made = psld_alloc(1, sizeof *made);
    if (!made) {
        atomic_fetch_sub(&d->used, whole);
        return PSLD_NO_MEMORY;
    }
    made->memory = (psld_memory){device, bytes, NULL};
    made->block = d->cl->CreateBuffer(d->context, CL_MEM_READ_WRITE, whole, NULL, &error);
    if (made->block)
        error = d->cl->EnqueueFillBuffer(d->queue, made->block, &zero, sizeof zero, 0, whole, 0, NULL, NULL);
    if (error == CL_SUCCESS) {
        *memory = &made->memory;
        return PSLD_OK;
    }
    psld_status status = no_room(d, error);
    psld_cl_free(&made->memory);
    return status;
}

void psld_cl_free(psld_memory *memory)
{
    if (!memory) return;
    psld_cl_device *d = psld_cl_of(memory->device);
    cl_mem block = psld_cl_block(memory);
    atomic_fetch_sub(&d->used, (memory->bytes + 63) / 64 * 64 + (memory->bytes == 0 ? 64 : 0));
    if (block) d->cl->ReleaseMemObject(block);
    psld_release(memory);
}

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

/* What is larger is waited for. */
enum { LARGEST_STAGE = 16 << 20 };

static psld_status await_stage(psld_cl_device *d, psld_cl_stage *stage)
{
    cl_event used = stage->used;
    if (!used) return PSLD_OK;
    stage->used = NULL;
    cl_int error = d->cl->WaitForEvents(1, &used);
    d->cl->ReleaseEvent(used);
    return psld_cl_result(d, error, "write to a block of memory");
}

/* The next stage, free and large enough: taken from the device until it is put back. */
static psld_status take_stage(psld_cl_device *d, size_t bytes, psld_cl_stage *stage)
{
    pthread_mutex_lock(&d->lock);
    psld_cl_stage *slot = &d->stage[d->next_stage];
    d->next_stage = (d->next_stage + 1) % PSLD_CL_STAGES;
    *stage = *slot;
    *slot = (psld_cl_stage){0};
    pthread_mutex_unlock(&d->lock);
    PSLD_TRY(await_stage(d, stage));
    if (stage->size >= bytes) return PSLD_OK;
    psld_release(stage->bytes);
    *stage = (psld_cl_stage){.bytes = psld_alloc(bytes, 1)};
    if (!stage->bytes) return PSLD_NO_MEMORY;
    stage->size = bytes;
    return PSLD_OK;
}

static void drop_stage(psld_cl_device *d, psld_cl_stage *stage)
{
    (void)await_stage(d, stage);
    psld_release(stage->bytes);
}

/* To the first empty slot: the one that it came from, unless other threads have moved on. Large ones are not kept. */
static void put_stage(psld_cl_device *d, psld_cl_stage *stage)
{
    int kept = 0;
    if (stage->size > LARGEST_STAGE) {
        drop_stage(d, stage);
        return;
    }
    pthread_mutex_lock(&d->lock);
    for (int i = 1; i <= PSLD_CL_STAGES && !kept; i++) {
        psld_cl_stage *slot = &d->stage[(d->next_stage + PSLD_CL_STAGES - i) % PSLD_CL_STAGES];
        if (slot->bytes) continue;
        *slot = *stage;
        kept = 1;
    }
    pthread_mutex_unlock(&d->lock);
    if (!kept) drop_stage(d, stage);
}

void psld_cl_stages_free(psld_cl_device *device)
{
    for (int i = 0; i < PSLD_CL_STAGES; i++) {
        if (device->stage[i].used) device->cl->ReleaseEvent(device->stage[i].used);
        psld_release(device->stage[i].bytes);
        device->stage[i] = (psld_cl_stage){0};
    }
}

/* ---- To and fro -------------------------------------------------------------------------------------------------- */

static psld_status upload_whole(psld_cl_device *d, cl_mem to, size_t offset, size_t bytes, const void *from)
{
    return psld_cl_result(d, d->cl->EnqueueWriteBuffer(d->queue, to, CL_TRUE, offset, bytes, from, 0, NULL, NULL),
                          "write to a block of memory");
}

psld_status psld_cl_upload(psld_memory *to, size_t offset, size_t bytes, const void *from)
{
    psld_cl_device *d = psld_cl_of(to->device);
    psld_cl_stage stage = {0};
    assert(offset + bytes <= to->bytes);
    PSLD_TRY(psld_cl_check(d));
    if (bytes == 0) return PSLD_OK;
    if (bytes > LARGEST_STAGE) return upload_whole(d, psld_cl_block(to), offset, bytes, from);
    psld_status status = take_stage(d, bytes, &stage);
    if (status == PSLD_OK) {
        memcpy(stage.bytes, from, bytes);
        status = psld_cl_result(d,
                                d->cl->EnqueueWriteBuffer(d->queue, psld_cl_block(to), CL_FALSE, offset, bytes,
                                                          stage.bytes, 0, NULL, &stage.used),
                                "write to a block of memory");
    }
    put_stage(d, &stage);
    return status;
}

psld_status psld_cl_download(psld_memory *from, size_t offset, size_t bytes, void *to)
{
    psld_cl_device *d = psld_cl_of(from->device);
    assert(offset + bytes <= from->bytes);
    PSLD_TRY(psld_cl_check(d));
    if (bytes == 0) return PSLD_OK;
    return psld_cl_result(
        d, d->cl->EnqueueReadBuffer(d->queue, psld_cl_block(from), CL_TRUE, offset, bytes, to, 0, NULL, NULL),
        "read from a block of memory");
}

psld_status psld_cl_copy(psld_memory *to, size_t to_offset, psld_memory *from, size_t from_offset, size_t bytes)
{
    psld_cl_device *d = psld_cl_of(to->device);
    PSLD_TRY(psld_cl_check(d));
    if (bytes == 0) return PSLD_OK;
    return psld_cl_result(d,
                          d->cl->EnqueueCopyBuffer(d->queue, psld_cl_block(from), psld_cl_block(to), from_offset,
                                                   to_offset, bytes, 0, NULL, NULL),
                          "copy blocks of memory");
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

static float number_at(const void *data, psld_type type, size_t i)
{
    return type == PSLD_F64 ? (float)((const double *)data)[i] : ((const float *)data)[i];
}

static void put_number(void *data, psld_type type, size_t i, float value)
{
    if (type == PSLD_F64)
        ((double *)data)[i] = (double)value;
    else
        ((float *)data)[i] = value;
}

static size_t pixels_of(const psld_device_operand *o)
{
    return (size_t)o->shape.n * (size_t)o->shape.h * (size_t)o->shape.w;
}

/* Elements of a row: a pixel with its lanes, or all of a dense tensor. */
static size_t row_of(const psld_device_operand *o)
{
    return o->pixel ? psld_lanes(o->shape.c) : (size_t)o->shape.c * pixels_of(o);
}

static size_t rows_of(const psld_device_operand *o)
{
    return o->pixel ? pixels_of(o) : 1;
}

static size_t element_of(const psld_device_operand *o)
{
    return o->half ? sizeof(uint16_t) : sizeof(float);
}

static void write_element(const psld_device_operand *o, void *data, size_t i, float value)
{
    if (o->half)
        ((uint16_t *)data)[i] = psld_half_from(value);
    else
        ((float *)data)[i] = value;
}

static float read_element(const psld_device_operand *o, const void *data, size_t i)
{
    return o->half ? psld_half_value(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}

/* Rows of the tensor from numbers in the order n, c, h, w. */
static void arrange(const psld_device_operand *o, psld_type type, const void *from, void *rows)
{
    size_t row = row_of(o), channels = (size_t)o->shape.c, plane = (size_t)o->shape.h * (size_t)o->shape.w;
    for (size_t i = 0; !o->pixel && i < row; i++) write_element(o, rows, i, number_at(from, type, i));
    for (size_t i = 0; o->pixel && i < pixels_of(o); i++) {
        size_t at = i / plane * channels * plane + i % plane;
        for (size_t c = 0; c < row; c++)
            write_element(o, rows, i * row + c, c < channels ? number_at(from, type, at + c * plane) : 0);
    }
}

static void rearrange(const psld_device_operand *o, psld_type type, const void *rows, void *to)
{
    size_t row = row_of(o), channels = (size_t)o->shape.c, plane = (size_t)o->shape.h * (size_t)o->shape.w;
    for (size_t i = 0; !o->pixel && i < row; i++) put_number(to, type, i, read_element(o, rows, i));
    for (size_t i = 0; o->pixel && i < pixels_of(o); i++) {
        size_t at = i / plane * channels * plane + i % plane;
        for (size_t c = 0; c < channels; c++) put_number(to, type, at + c * plane, read_element(o, rows, i * row + c));
    }
}

/* Rows of a tensor in a block: `at` is in bytes, then rows of a pitch; or in one piece. */
typedef struct rectangle {
    size_t at[3], zero[3], region[3], pitch;
    int whole;
} rectangle;

static rectangle rectangle_of(const psld_device_operand *o)
{
    size_t element = element_of(o), begin = o->at.offset * element;
    rectangle r = {.region = {row_of(o) * element, rows_of(o), 1}, .pitch = o->pixel * element};
    r.whole = r.region[1] == 1 || r.pitch == r.region[0];
    r.at[0] = r.whole ? begin : begin % r.pitch;
    r.at[1] = r.whole ? 0 : begin / r.pitch;
    return r;
}

psld_status psld_cl_set(psld_device *device, const psld_device_operand *to, psld_type own, psld_type type,
                        const void *from)
{
    psld_cl_device *d = psld_cl_of(device);
    psld_cl_stage stage = {0};
    rectangle r = rectangle_of(to);
    cl_mem block = psld_cl_block(to->at.memory);
    (void)own;
    PSLD_TRY(psld_cl_check(d));
    psld_status status = take_stage(d, r.region[0] * r.region[1], &stage);
    if (status == PSLD_OK) {
        arrange(to, type, from, stage.bytes);
        cl_int error = r.whole
                           ? d->cl->EnqueueWriteBuffer(d->queue, block, CL_FALSE, r.at[0], r.region[0] * r.region[1],
                                                       stage.bytes, 0, NULL, &stage.used)
                           : d->cl->EnqueueWriteBufferRect(d->queue, block, CL_FALSE, r.at, r.zero, r.region, r.pitch,
                                                           0, r.region[0], 0, stage.bytes, 0, NULL, &stage.used);
        status = psld_cl_result(d, error, "write a tensor");
    }
    put_stage(d, &stage);
    return status;
}

psld_status psld_cl_get(psld_device *device, const psld_device_operand *from, psld_type own, psld_type type, void *to)
{
    psld_cl_device *d = psld_cl_of(device);
    rectangle r = rectangle_of(from);
    cl_mem block = psld_cl_block(from->at.memory);
    (void)own;
    PSLD_TRY(psld_cl_check(d));
    void *rows = psld_alloc(r.region[0], r.region[1]);
    if (!rows) return PSLD_NO_MEMORY;
    cl_int error = r.whole ? d->cl->EnqueueReadBuffer(d->queue, block, CL_TRUE, r.at[0], r.region[0] * r.region[1],
                                                      rows, 0, NULL, NULL)
                           : d->cl->EnqueueReadBufferRect(d->queue, block, CL_TRUE, r.at, r.zero, r.region, r.pitch, 0,
                                                          r.region[0], 0, rows, 0, NULL, NULL);
    psld_status status = psld_cl_result(d, error, "read a tensor");
    if (status == PSLD_OK) rearrange(from, type, rows, to);
    psld_release(rows);
    return status;
}
