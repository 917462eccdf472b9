/* Starting products: which tile a shape is cut into. All tiles give the same bits, so the fastest is chosen: by trying
 * them when a shape is met for the first time on a device, or by a rule where there is too little to do for that. */
#include "device/opencl/product.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"

/* Work items of a group, and results of each, down and across. */
typedef struct cut {
    int group[2], each[2];
} cut;

enum { SMALL_TILE = 3, NARROW_TILE = 4, ONE_ITEM = 5 };

/* The last is for processors, where a group is a loop; larger ones take their compilers long. */
static const cut tiles[] = {
    {{16, 16}, {8, 8}}, {{16, 8}, {8, 8}}, {{8, 16}, {8, 4}}, {{8, 8}, {4, 4}}, {{32, 2}, {4, 4}}, {{1, 1}, {4, 8}},
};

static int rows_of(const cut *t)
{
    return t->group[0] * t->each[0];
}

static int columns_of(const cut *t)
{
    return t->group[1] * t->each[1];
}

static int64_t over(int64_t size, int64_t part)
{
    return (size + part - 1) / part;
}

/* Whether a group of a tile fits: its items, and two buffers of slices of 8. */
static int fits(const psld_cl_device *device, const cut *t)
{
    size_t items = (size_t)(t->group[0] * t->group[1]);
    uint64_t bytes = 2 * 8 * sizeof(float) * (uint64_t)(rows_of(t) + columns_of(t) + 8);
    return items <= device->largest_group && bytes <= device->local_bytes;
}

/* What a tile costs: results that are computed, those outside included, over how well it uses what it loads; and more
 * where there are too few groups for the compute units. */
static double cost_of(const psld_cl_device *device, const cut *t, const psld_cl_product *s, int batch)
{
    double rows = rows_of(t), columns = columns_of(t), units = device->device.facts.units;
    double groups = (double)over(s->m, rows_of(t)) * (double)over(s->n, columns_of(t)) * batch;
    double rounds = groups / units < 1 ? 1 : groups / units;
    return rounds * (rows * columns + 16 * (rows + columns));
}

/* By the rule. */
static int guess_tile(const psld_cl_device *device, const psld_cl_product *s, int batch)
{
    if (device->device.facts.kind == PSLD_DEVICE_OPENCL_CPU) return ONE_ITEM;
    int best = SMALL_TILE;
    for (int i = 0; i < ONE_ITEM; i++)
        if (fits(device, &tiles[i]) && cost_of(device, &tiles[i], s, batch) < cost_of(device, &tiles[best], s, batch))
            best = i;
    return best;
}

static psld_status make_kernel(psld_cl_device *device, const psld_cl_product_kind *kind, const cut *t,
                               cl_kernel *kernel)
{
    static const char *const names[] = {NULL, "ROWS", "COLUMNS", "PIXELS", "PANEL"};
    char options[256];
    snprintf(options, sizeof options,
             "-DGROUP_M=%d -DGROUP_N=%d -DREG_M=%d -DREG_N=%d -DA_FROM=%s -DB_FROM=%s -DA_HALF=%d -DB_HALF=%d%s",
             t->group[0], t->group[1], t->each[0], t->each[1], names[kind->a], names[kind->b], kind->a_half,
             kind->b_half, kind->spread ? " -DSPREAD" : "");
    return psld_cl_kernel(device, "tile.cl product.cl", "product", options, kernel);
}

psld_status psld_cl_product_run(psld_cl_device *device, psld_cl_step *step, int slot, const psld_cl_product *shape,
                                int batch, const psld_cl_factors *factors)
{
    const cut *t = &tiles[step->number[slot]];
    const psld_memory *const memory[] = {factors->a,      factors->b,        factors->bias,
                                         factors->vector, factors->residual, factors->out};
    size_t group[3] = {(size_t)t->group[1], (size_t)t->group[0], 1};
    size_t global[3] = {(size_t)over(shape->m, rows_of(t)) * group[0], (size_t)over(shape->n, columns_of(t)) * group[1],
                        (size_t)batch};
    psld_cl_launch launch = psld_cl_begin(device, step->kernel[slot]);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) psld_cl_arg_memory(&launch, memory[i]);
    psld_cl_arg_bytes(&launch, shape, sizeof *shape);
    return psld_cl_run(&launch, 3, global, group);
}

/* ---- Tuning ------------------------------------------------------------------------------------------------------ */

/* What is tried at all: products that take long enough for a clock. */
static const double least_work = 1e8;
enum { RUNS = 3 };

/* PSLD_OPENCL_TUNE=0: by the rule alone; 1: also on processors and for small products. */
static int is_tried(const psld_cl_device *device, const psld_cl_product *s, int batch)
{
    const char *asked = getenv("PSLD_OPENCL_TUNE");
    double sums = s->chunk ? s->k : (double)s->k * batch;
    if (asked && (*asked == '0' || *asked == '1')) return *asked == '1';
    return device->device.facts.kind != PSLD_DEVICE_OPENCL_CPU && 2.0 * s->m * s->n * sums >= least_work;
}

/* PSLD_OPENCL_TILE=N: this one; -1: as it is chosen. For tests. */
static int asked_tile(void)
{
    const char *asked = getenv("PSLD_OPENCL_TILE");
    int tile = asked ? atoi(asked) : -1;
    return tile < (int)(sizeof tiles / sizeof *tiles) ? tile : -1;
}

/* All that its time depends on. */
static uint64_t key_of(const psld_cl_product_kind *kind, const psld_cl_product *s, int batch)
{
    const int32_t numbers[] = {
        (int32_t)kind->a, (int32_t)kind->b, kind->a_half, kind->b_half, kind->spread, s->m,      s->n,     s->k, s->lda,
        s->ldb,           s->ldc,           s->lanes,     s->out_width, s->stride_x,  s->finish, s->chunk, batch};
    return psld_hash_bytes(PSLD_HASH_START, numbers, sizeof numbers);
}

static psld_status use_tile(psld_cl_device *device, psld_cl_step *step, int slot, const psld_cl_product_kind *kind,
                            int tile)
{
    psld_cl_kernel_free(device, &step->kernel[slot]);
    step->number[slot] = tile;
    return make_kernel(device, kind, &tiles[tile], &step->kernel[slot]);
}

/* Seconds of a run, the first of all not counted. */
static psld_status time_tile(psld_cl_device *device, psld_cl_step *step, int slot, const psld_cl_product *shape,
                             int batch, const psld_cl_factors *factors, double *seconds)
{
    double begun = 0;
    for (int run = 0; run <= RUNS; run++) {
        PSLD_TRY(psld_cl_product_run(device, step, slot, shape, batch, factors));
        if (run == 0) PSLD_TRY(device->device.does->wait(&device->device));
        if (run == 0) begun = psld_seconds();
    }
    PSLD_TRY(device->device.does->wait(&device->device));
    *seconds = (psld_seconds() - begun) / RUNS;
    return PSLD_OK;
}

/* Tries all tiles on the tensors themselves: whatever is written there now is written again before it is used. */
static psld_status try_tiles(psld_cl_device *device, psld_cl_step *step, int slot, const psld_cl_product_kind *kind,
                             const psld_cl_product *shape, int batch, const psld_cl_factors *factors, int *best)
{
    double least = 0;
    *best = guess_tile(device, shape, batch);
    for (int i = 0; i < (int)(sizeof tiles / sizeof *tiles); i++) {
        double seconds;
        int for_processors = i == ONE_ITEM && device->device.facts.kind != PSLD_DEVICE_OPENCL_CPU;
        if (for_processors || !fits(device, &tiles[i])) continue;
        PSLD_TRY(use_tile(device, step, slot, kind, i));
        PSLD_TRY(time_tile(device, step, slot, shape, batch, factors, &seconds));
        if (least > 0 && seconds >= least) continue;
        least = seconds;
        *best = i;
    }
    return PSLD_OK;
}

psld_status psld_cl_product_prepare(psld_cl_device *device, psld_cl_step *step, int slot,
                                    const psld_cl_product_kind *kind, const psld_cl_product *shape, int batch,
                                    const psld_cl_factors *factors)
{
    int tile = asked_tile();
    if (tile < 0 && is_tried(device, shape, batch)) {
        uint64_t key = key_of(kind, shape, batch);
        tile = psld_cl_choice_get(device, key);
        if (tile < 0 || tile >= (int)(sizeof tiles / sizeof *tiles)) {
            PSLD_TRY(try_tiles(device, step, slot, kind, shape, batch, factors, &tile));
            psld_cl_choice_put(device, key, tile);
        }
    }
    if (tile < 0) tile = guess_tile(device, shape, batch);
    return use_tile(device, step, slot, kind, tile);
}
