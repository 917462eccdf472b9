/* Attention by parts: some hundred rows of the matrix of weights at a time, of some images, are made in scratch memory,
 * used and forgotten. Which rows go together does not depend on the batch, so bits do not either. */
#include "device/opencl/product.h"
#include "device/opencl/rules.h"

enum { ROWS_AT_ONCE = 256, SOFTMAX_GROUP = 64 }; /* the group is that of samples.cl */

/* Bytes of scratch memory, about. */
static const size_t most_scratch = (size_t)64 << 20;

enum { SCORES = 0, SOFTMAX = 1, RESULT = 2, SLOPES = 3, SOFTMAX_DX = 4 }; /* slots of a step */

/* Inputs. */
enum { Q = 0, K = 1, Y = 2, DO = 3, V = 4 };

static int area_of(psld_shape s)
{
    return s.h * s.w;
}

static size_t image_bytes(psld_shape q, psld_shape k, int slope)
{
    int rows = area_of(q) < ROWS_AT_ONCE ? area_of(q) : ROWS_AT_ONCE;
    return (size_t)rows * psld_lanes(area_of(k)) * sizeof(float) * (slope ? 2 : 1);
}

static int images_at_once(psld_shape q, psld_shape k, int slope)
{
    size_t fit = most_scratch / image_bytes(q, k, slope);
    if (fit < 1) fit = 1;
    return fit < (size_t)q.n ? (int)fit : q.n;
}

static size_t scratch_attend(const psld_call *call)
{
    psld_shape q = call->in[Q].shape, k = call->in[K].shape;
    int slope = call->attributes->attend.slope;
    return (size_t)images_at_once(q, k, slope) * image_bytes(q, k, slope);
}

/* The part of the matrices that is computed at a time. */
typedef struct part {
    int image, images, row, rows;
    int columns, lanes; /* of the matrices */
} part;

static int64_t place_of(const psld_device_operand *o, int image, int row)
{
    return (int64_t)o->at.offset + ((int64_t)image * area_of(o->shape) + row) * (int64_t)o->pixel;
}

static int64_t batch_of(const psld_device_operand *o)
{
    return (int64_t)area_of(o->shape) * (int64_t)o->pixel;
}

/* Where P is, and dP behind it. */
static psld_place matrix_at(const psld_device_call *call, const part *p, int second)
{
    size_t size = (size_t)p->images * (size_t)p->rows * (size_t)p->lanes;
    return (psld_place){call->scratch.memory, call->scratch.offset + (second ? size : 0)};
}

/* by a b' for the rows of a, into a matrix. */
static void describe_pairs(const psld_device_call *call, const part *p, int a, int b, int second, double by,
                           psld_cl_product *s, psld_cl_factors *f)
{
    const psld_device_operand *left = &call->in[a], *right = &call->in[b];
    *f = (psld_cl_factors){.a = left->at.memory, .b = right->at.memory, .out = call->scratch.memory};
    *s = (psld_cl_product){.a = place_of(left, p->image, p->row),
                           .b = place_of(right, p->image, 0),
                           .out = (int64_t)matrix_at(call, p, second).offset,
                           .a_batch = batch_of(left),
                           .b_batch = batch_of(right),
                           .out_batch = (int64_t)p->rows * p->lanes,
                           .m = p->rows,
                           .n = p->lanes,
                           .k = psld_cl_lanes(left->shape.c),
                           .columns = p->columns,
                           .lda = (int32_t)left->pixel,
                           .ldb = (int32_t)right->pixel,
                           .ldc = p->lanes,
                           .finish = PSLD_FINISH_SCALE,
                           .by = (float)by};
    s->out_height = s->out_width = 1; /* nothing is divided by nothing */
}

/* The matrix times y, or its transpose times y, which is added to that of the rows before. */
static void describe_result(const psld_device_call *call, const part *p, psld_cl_product *s, psld_cl_factors *f)
{
    const psld_device_operand *y = &call->in[Y], *out = &call->out;
    const int transposed = call->attributes->attend.transposed, slope = call->attributes->attend.slope;
    *f = (psld_cl_factors){.a = call->scratch.memory, .b = y->at.memory, .out = out->at.memory};
    *s = (psld_cl_product){.a = (int64_t)matrix_at(call, p, slope).offset,
                           .b = place_of(y, p->image, transposed ? p->row : 0),
                           .out = place_of(out, p->image, transposed ? 0 : p->row),
                           .a_batch = (int64_t)p->rows * p->lanes,
                           .b_batch = batch_of(y),
                           .out_batch = batch_of(out),
                           .m = transposed ? p->columns : p->rows,
                           .n = psld_cl_lanes(out->shape.c),
                           .k = transposed ? p->rows : p->lanes,
                           .columns = out->shape.c,
                           .b_rows = transposed ? p->rows : p->columns,
                           .lda = p->lanes,
                           .ldb = (int32_t)y->pixel,
                           .ldc = (int32_t)out->pixel,
                           .finish = out->half ? PSLD_CL_HALF_OUT : 0};
    s->out_height = s->out_width = 1;
    if (!transposed || p->row == 0) return;
    f->residual = out->at.memory;
    s->residual = s->out;
    s->residual_batch = s->out_batch;
    s->ldr = s->ldc;
    s->finish |= PSLD_FINISH_RESIDUAL | (out->half ? PSLD_CL_HALF_RESIDUAL : 0);
}

static part part_at(const psld_device_call *call, int image, int row)
{
    psld_shape q = call->in[Q].shape, k = call->in[K].shape;
    int images = images_at_once(q, k, call->attributes->attend.slope);
    part p = {.image = image, .row = row, .columns = area_of(k), .lanes = psld_cl_lanes(area_of(k))};
    p.images = q.n - image < images ? q.n - image : images;
    p.rows = area_of(q) - row < ROWS_AT_ONCE ? area_of(q) - row : ROWS_AT_ONCE;
    return p;
}

/* ---- Preparing --------------------------------------------------------------------------------------------------- */

static psld_status prepare_pairs(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step, int a, int b,
                                 int slot)
{
    part p = part_at(call, 0, 0);
    psld_cl_product s;
    psld_cl_factors f;
    const psld_cl_product_kind kind = {
        .a = PSLD_CL_ROWS, .b = PSLD_CL_ROWS, .a_half = call->in[a].half, .b_half = call->in[b].half};
    describe_pairs(call, &p, a, b, 0, 1, &s, &f);
    return psld_cl_product_prepare(device, step, slot, &kind, &s, p.images, &f);
}

static psld_status prepare_attend(psld_cl_device *device, const psld_device_call *call, psld_cl_step *step)
{
    const psld_attributes *a = call->attributes;
    part p = part_at(call, 0, 0);
    psld_cl_product s;
    psld_cl_factors f;
    const psld_cl_product_kind kind = {
        .a = a->attend.transposed ? PSLD_CL_COLUMNS : PSLD_CL_ROWS, .b = PSLD_CL_PANEL, .b_half = call->in[Y].half};
    PSLD_TRY(prepare_pairs(device, call, step, Q, K, SCORES));
    PSLD_TRY(psld_cl_kernel(device, "samples.cl", "softmax", NULL, &step->kernel[SOFTMAX]));
    if (a->attend.slope) {
        PSLD_TRY(prepare_pairs(device, call, step, DO, V, SLOPES));
        PSLD_TRY(psld_cl_kernel(device, "samples.cl", "softmax_dx", NULL, &step->kernel[SOFTMAX_DX]));
    }
    describe_result(call, &p, &s, &f);
    return psld_cl_product_prepare(device, step, RESULT, &kind, &s, p.images, &f);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static psld_status run_pairs(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call, const part *p,
                             int slot)
{
    const psld_attributes *a = call->attributes;
    psld_cl_product s;
    psld_cl_factors f;
    if (slot == SCORES)
        describe_pairs(call, p, Q, K, 0, a->attend.by, &s, &f);
    else
        describe_pairs(call, p, DO, V, 1, a->attend.slope_by, &s, &f);
    return psld_cl_product_run(device, step, slot, &s, p->images, &f);
}

static void add_matrix(psld_cl_launch *launch, const psld_device_call *call, const part *p, int second)
{
    psld_cl_arg_place(launch, matrix_at(call, p, second));
    psld_cl_arg_int(launch, p->lanes);
}

/* P in its place; or dS = P (dP - <P, dP>) in dP's. */
static psld_status run_rows(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call, const part *p,
                            int slot)
{
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[slot]);
    add_matrix(&launch, call, p, 0);
    add_matrix(&launch, call, p, slot == SOFTMAX_DX);
    if (slot == SOFTMAX_DX) add_matrix(&launch, call, p, 1);
    psld_cl_arg_int(&launch, p->columns);
    psld_cl_arg_int(&launch, p->lanes);
    return psld_cl_run(&launch, 1, (const size_t[]){(size_t)p->images * (size_t)p->rows * SOFTMAX_GROUP},
                       (const size_t[]){SOFTMAX_GROUP});
}

static psld_status run_part(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call, const part *p)
{
    psld_cl_product s;
    psld_cl_factors f;
    PSLD_TRY(run_pairs(device, step, call, p, SCORES));
    PSLD_TRY(run_rows(device, step, call, p, SOFTMAX));
    if (call->attributes->attend.slope) {
        PSLD_TRY(run_pairs(device, step, call, p, SLOPES));
        PSLD_TRY(run_rows(device, step, call, p, SOFTMAX_DX));
    }
    describe_result(call, p, &s, &f);
    return psld_cl_product_run(device, step, RESULT, &s, p->images, &f);
}

static psld_status run_attend(psld_cl_device *device, psld_cl_step *step, const psld_device_call *call)
{
    psld_shape q = call->in[Q].shape;
    for (int image = 0; image < q.n;) {
        part p = part_at(call, image, 0);
        for (int row = 0; row < area_of(q); row += ROWS_AT_ONCE) {
            p = part_at(call, image, row);
            PSLD_TRY(run_part(device, step, call, &p));
        }
        image += p.images;
    }
    return PSLD_OK;
}

const psld_cl_rule psld_cl_rule_attend = {
    {.name = "attend opencl", .scratch = scratch_attend}, prepare_attend, NULL, run_attend, NULL};
