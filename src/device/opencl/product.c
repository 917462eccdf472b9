/* Starting products: which tile a shape is cut into. All tiles give the same bits. */
#include "device/opencl/product.h"

#include <stdio.h>

/* Work items of a group, and results of each, down and across. */
typedef struct tile {
    int group[2], each[2];
} tile;

enum { SMALL_TILE = 3, NARROW_TILE = 4, ONE_ITEM = 5 };

/* The last is for processors, where a group is a loop. */
static const tile tiles[] = {
    {{16, 16}, {8, 8}}, {{16, 8}, {8, 8}}, {{8, 8}, {8, 8}}, {{8, 8}, {4, 4}}, {{32, 2}, {4, 4}}, {{1, 1}, {8, 16}},
};

static int rows_of(const tile *t)
{
    return t->group[0] * t->each[0];
}

static int columns_of(const tile *t)
{
    return t->group[1] * t->each[1];
}

static int64_t over(int64_t size, int64_t part)
{
    return (size + part - 1) / part;
}

/* Whether a group of a tile fits: its items, and two buffers of slices of 8. */
static int fits(const psld_cl_device *device, const tile *t)
{
    size_t items = (size_t)(t->group[0] * t->group[1]);
    uint64_t bytes = 2 * 8 * sizeof(float) * (uint64_t)(rows_of(t) + columns_of(t) + 8);
    return items <= device->largest_group && bytes <= device->local_bytes;
}

/* What a tile costs: results that are computed, those outside included, over how well it uses what it loads; and more
 * where there are too few groups for the compute units. */
static double cost_of(const psld_cl_device *device, const tile *t, const psld_cl_product *s, int batch)
{
    double rows = rows_of(t), columns = columns_of(t), units = device->device.facts.units;
    double groups = (double)over(s->m, rows_of(t)) * (double)over(s->n, columns_of(t)) * batch;
    double rounds = groups / units < 1 ? 1 : groups / units;
    return rounds * (rows * columns + 16 * (rows + columns));
}

static int choose_tile(const psld_cl_device *device, const psld_cl_product *s, int batch)
{
    if (device->device.facts.kind == PSLD_DEVICE_OPENCL_CPU) return ONE_ITEM;
    int best = SMALL_TILE;
    for (int i = 0; i < ONE_ITEM; i++)
        if (fits(device, &tiles[i]) && cost_of(device, &tiles[i], s, batch) < cost_of(device, &tiles[best], s, batch))
            best = i;
    return best;
}

static psld_status make_kernel(psld_cl_device *device, const psld_cl_product_kind *kind, const tile *t,
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

psld_status psld_cl_product_prepare(psld_cl_device *device, psld_cl_step *step, int slot,
                                    const psld_cl_product_kind *kind, const psld_cl_product *shape, int batch,
                                    const psld_cl_factors *factors)
{
    (void)factors;
    step->number[slot] = choose_tile(device, shape, batch);
    return make_kernel(device, kind, &tiles[step->number[slot]], &step->kernel[slot]);
}

psld_status psld_cl_product_run(psld_cl_device *device, psld_cl_step *step, int slot, const psld_cl_product *shape,
                                int batch, const psld_cl_factors *factors)
{
    const tile *t = &tiles[step->number[slot]];
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
