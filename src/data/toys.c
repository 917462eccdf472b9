/* Toy sets in the plane. Item i is drawn from its own random numbers, so the sets are endless. Each set is moved and
 * scaled to mean 0 and variance 1 (the mean of both coordinates); the constants are the exact moments of the draws. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/table.h"
#include "base/text.h"
#include "data/kinds.h"

static const double pi = 3.14159265358979323846;

enum { UNIFORMS = 3, NORMALS = 2 };
#define TOY_COUNT (UINT64_C(1) << 32)

/* Makes one point of uniform numbers u and normal numbers n; returns its class. */
typedef int (*toy_fn)(const double u[UNIFORMS], const double n[NORMALS], double x[2]);

static int choose_part(double u, int count)
{
    int choice = (int)(u * count);
    return choice < count ? choice : count - 1;
}

static int swissroll(const double *u, const double *n, double *x)
{
    double t = 1.5 * pi * (1 + 2 * u[0]);
    x[0] = t * cos(t) + 0.4 * n[0];
    x[1] = t * sin(t) + 0.4 * n[1];
    return 0;
}

static int moons(const double *u, const double *n, double *x)
{
    int lower = choose_part(u[1], 2);
    double c = cos(pi * u[0]), s = sin(pi * u[0]);
    x[0] = (lower ? 1 - c : c) + 0.1 * n[0];
    x[1] = (lower ? 0.5 - s : s) + 0.1 * n[1];
    return lower;
}

static int rings(const double *u, const double *n, double *x)
{
    int ring = choose_part(u[1], 4);
    double radius = 0.25 * (ring + 1);
    x[0] = radius * cos(2 * pi * u[0]) + 0.03 * n[0];
    x[1] = radius * sin(2 * pi * u[0]) + 0.03 * n[1];
    return ring;
}

/* The white cells of a board of four by four, each of size 1. */
static int checkerboard(const double *u, const double *n, double *x)
{
    (void)n;
    int column = choose_part(u[0], 4), upper = choose_part(u[1], 2);
    x[0] = 4 * u[0] - 2;
    x[1] = u[2] - 2 + 2 * upper + column % 2;
    return 2 * column + upper;
}

static int eight_gaussians(const double *u, const double *n, double *x)
{
    int mode = choose_part(u[0], 8);
    x[0] = cos(mode * pi / 4) + 0.1 * n[0];
    x[1] = sin(mode * pi / 4) + 0.1 * n[1];
    return mode;
}

/* Long Gaussians, rotated more at larger distance from the centre. */
static int pinwheel(const double *u, const double *n, double *x)
{
    int arm = choose_part(u[0], 5);
    double along = 1 + 0.3 * n[0], across = 0.1 * n[1], angle = 2 * pi * arm / 5 + 0.25 * exp(along);
    x[0] = along * cos(angle) - across * sin(angle);
    x[1] = along * sin(angle) + across * cos(angle);
    return arm;
}

static const struct toy {
    psld_toy_info info;
    toy_fn draw;
    double mean[2], scale;
} toys[] = {
    {{.name = "swissroll", .summary = "a spiral", .classes = 0},
     swissroll,
     {2, 0.21220659078919379},
     6.800868006124175},
    {{.name = "moons", .summary = "two half circles that reach into each other", .classes = 2},
     moons,
     {0.5, 0.25},
     0.7121060713883183},
    {{.name = "rings", .summary = "four circles around each other", .classes = 4}, rings, {0, 0}, 0.485051543652837},
    {{.name = "checkerboard", .summary = "every other cell of four by four", .classes = 8},
     checkerboard,
     {0, 0},
     1.1547005383792515},
    {{.name = "8gaussians", .summary = "eight Gaussians on a circle", .classes = 8},
     eight_gaussians,
     {0, 0},
     0.714142842854285},
    {{.name = "pinwheel", .summary = "five curved arms", .classes = 5}, pinwheel, {0, 0}, 0.7416198487095663},
};

enum { SET_COUNT = sizeof toys / sizeof *toys };

const psld_toy_info *psld_toy_at(int index)
{
    return PSLD_TABLE_AT(toys, index);
}

const psld_toy_info *psld_toy_find(const char *name)
{
    return PSLD_TABLE_FIND(toys, "toy", name);
}

/* ---- As items ---------------------------------------------------------------------------------------------------- */

typedef struct toy_items {
    psld_items items;
    int set;
    uint64_t first; /* number of the draw that is item 0 */
} toy_items;

static int toy_draw(const psld_items *items, uint64_t index, double x[2])
{
    const toy_items *t = (const toy_items *)items;
    double u[UNIFORMS], n[NORMALS];
    uint64_t number = t->first + index, step = 2 * (uint64_t)t->set;
    psld_random_uniform(0, PSLD_FOR_TOY, number, step, 0, UNIFORMS, u);
    psld_random_normal(0, PSLD_FOR_TOY, number, step + 1, 0, NORMALS, n);
    return toys[t->set].draw(u, n, x);
}

static psld_status draw_numbers(const psld_items *items, uint64_t index, float *x)
{
    const struct toy *toy = &toys[((const toy_items *)items)->set];
    double point[2];
    toy_draw(items, index, point);
    for (int i = 0; i < 2; i++) x[i] = (float)((point[i] - toy->mean[i]) / toy->scale);
    return PSLD_OK;
}

static int32_t draw_label(const psld_items *items, uint64_t index)
{
    double point[2];
    int class = toy_draw(items, index, point);
    return items->class_count ? class : -1;
}

static void free_toy(psld_items *items)
{
    psld_release(items);
}

static const psld_items_ops toy_ops = {.numbers = draw_numbers, .label = draw_label, .free = free_toy};

static psld_status fail_name(const char *path)
{
    char names[256] = "", meant[PSLD_SUGGESTION_SIZE], name[64];
    const char *list[SET_COUNT], *given = path + strlen("toy:");
    for (int i = 0; i < SET_COUNT; i++) {
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", toys[i].info.name);
        list[i] = toys[i].info.name;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, ":"), given);
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: no such toy set, expected toy: and one of %s (toy:NAME:COUNT limits it)%s",
                     path, names, psld_text_suggest(name, list, SET_COUNT, meant));
}

/* "toy:NAME" or "toy:NAME:COUNT" */
static psld_status toy_parse_name(const char *path, int *set, uint64_t *count)
{
    const char *name = path + strlen("toy:"), *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    int64_t stated = 0;
    *count = TOY_COUNT;
    if (colon) {
        if (!psld_text_integer(colon + 1, &stated) || stated < 1 || (uint64_t)stated > TOY_COUNT)
            return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected a number from 1 to %" PRIu64 " behind the second colon",
                             path, TOY_COUNT);
        *count = (uint64_t)stated;
    }
    for (*set = 0; *set < SET_COUNT; (*set)++)
        if (strlen(toys[*set].info.name) == length && strncmp(name, toys[*set].info.name, length) == 0) return PSLD_OK;
    return fail_name(path);
}

psld_status psld_toy_open(const char *path, const psld_data_options *options, psld_items **items)
{
    int set = 0;
    uint64_t count = 0;
    *items = NULL;
    PSLD_TRY(toy_parse_name(path, &set, &count));
    toy_items *t = psld_items_create(&toy_ops, sizeof *t);
    if (!t) return PSLD_NO_MEMORY;
    t->set = set;
    t->first = options->test ? TOY_COUNT : 0;
    t->items.count = count;
    t->items.endless = 1;
    t->items.rank = 1;
    t->items.shape[0] = 2;
    psld_status status = psld_items_set_kind(&t->items, "toy set %s", toys[set].info.name);
    for (int i = 0; i < toys[set].info.classes && status == PSLD_OK; i++)
        status = psld_items_add_class(&t->items, &"01234567"[i], 1);
    if (status != PSLD_OK) {
        psld_items_free(&t->items);
        return status;
    }
    *items = &t->items;
    return PSLD_OK;
}
