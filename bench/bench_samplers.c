/* bench_samplers [PICTURE]: error against evaluations on an exact mixture (eight Gaussians on a ring of radius 1.2,
 * deviation 0.12), for every sampler and preset, as the tables of docs/measurements/samplers.md.
 *
 * All samplers start from draws of the exact p_1 and end at t = 1e-3 without a denoising step. Measured are
 *   spread    root mean square distance from the nearest mode, a coordinate, over that of exact draws, less 1: a mode that
 *             is blurred or too narrow;
 *   distance  sliced Wasserstein distance from exact draws, less what two sets of exact draws have between them: mass in
 *             the wrong place. It hardly sees blur;
 *   flow      samplers that follow a flow: root mean square distance of each sample from where that flow, solved to
 *             convergence, takes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "psld.h"
#include "psld_eval.h"
#include "psld_plot.h"

enum { SAMPLES = 4000, FLOW_SAMPLES = 400, BUDGETS = 5, DIRECTIONS = 64 };
static const int budgets[BUDGETS] = {5, 10, 20, 50, 100};
static const char *const presets[] = {"vp", "cld", "psld gamma=0.02", "told"};

static const struct way {
    const char *sampler, *grid;
    int order, plain;  /* plain: with detail 0 */
    const char *truth; /* the sampler whose flow it follows, NULL: none */
} ways[] = {
    {"em", "quadratic", 0, 0, NULL},
    {"sscs", "quadratic", 0, 0, NULL},
    {"euler-ode", "quadratic", 0, 0, "ode"},
    {"heun", "quadratic", 0, 0, "ode"},
    {"dpm", "sqrt", 1, 0, "ode"},
    {"dpm", "sqrt", 2, 0, "ode"},
    {"dpm", "sqrt", 3, 0, "ode"},
    {"dpm", "sqrt", 3, 1, "ode"},
    {"dpm", "log", 3, 0, "ode"},
    {"collapsed", "log", 2, 0, "collapsed"},
    {"collapsed", "log", 3, 0, "collapsed"},
    {"collapsed-heun", "rho", 0, 0, "collapsed"},
    {"ancestral", "log", 1, 0, NULL},
    {"ancestral", "log", 2, 0, NULL},
    {"ancestral", "log", 2, 1, NULL},
};
enum { WAYS = sizeof ways / sizeof *ways };

static psld_mixture *mixture;

static void must(psld_status status)
{
    if (status == PSLD_OK) return;
    fprintf(stderr, "bench_samplers: %s\n", psld_error_text());
    exit(1);
}

static void make_ring(void)
{
    double weights[8], means[16], scales[8];
    for (int c = 0; c < 8; c++) {
        weights[c] = 0.125;
        means[2 * c] = 1.2 * cos(c * 0.78539816339744830962);
        means[2 * c + 1] = 1.2 * sin(c * 0.78539816339744830962);
        scales[c] = 0.12;
    }
    must(psld_mixture_create(8, 2, weights, means, scales, &mixture));
}

typedef struct field {
    psld_recipe *recipe;
    psld_source *source;
    size_t state;                                /* numbers of a state */
    double *start, *exact, *other, *z, *flow[2]; /* flow: of ode, of collapsed */
    double floor;                                /* distance of two exact sets */
} field;

static double *positions(const field *f, const double *z, size_t n)
{
    double *x = malloc(n * 2 * sizeof *x);
    if (!x) exit(1);
    for (size_t i = 0; i < n; i++) memcpy(x + 2 * i, z + i * f->state, 2 * sizeof *x);
    return x;
}

static double distance(const field *f, const double *a, const double *b)
{
    double *x = positions(f, a, SAMPLES), *y = positions(f, b, SAMPLES), value;
    must(psld_sliced_wasserstein(2, SAMPLES, x, SAMPLES, y, DIRECTIONS, 1, &value));
    free(x);
    free(y);
    return value;
}

static double spread(const field *f, const double *z)
{
    double sum = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        double x = z[i * f->state], y = z[i * f->state + 1], best = INFINITY;
        for (int c = 0; c < 8; c++) {
            double angle = c * 0.78539816339744830962;
            best = fmin(best, pow(x - 1.2 * cos(angle), 2) + pow(y - 1.2 * sin(angle), 2));
        }
        sum += best;
    }
    return sqrt(sum / (2 * SAMPLES));
}

static void walk(const field *f, const struct way *way, int nfe, size_t n, double *z)
{
    psld_sample_options o = PSLD_SAMPLE_DEFAULTS;
    o.sampler = way->sampler;
    o.grid = way->grid;
    o.order = way->order;
    if (way->plain) o.detail = 0;
    o.nfe = nfe;
    o.denoise = 0;
    o.tolerance = 1e-7;
    o.batch = 2048;
    must(psld_sample(f->recipe, f->source, &o, 0, n, 2, f->start, z, NULL));
}

static void open_field(const char *preset, field *f)
{
    static const struct way truths[] = {{.sampler = "ode"}, {.sampler = "collapsed", .grid = "log", .order = 3}};
    must(psld_recipe_open(preset, &f->recipe));
    must(psld_source_mixture(mixture, f->recipe, &f->source));
    f->state = 2 * (size_t)psld_recipe_get(f->recipe)->k;
    double **rooms[] = {&f->start, &f->exact, &f->other, &f->z, &f->flow[0], &f->flow[1]};
    for (int i = 0; i < 6; i++)
        if (!(*rooms[i] = malloc(SAMPLES * f->state * sizeof(double)))) exit(1);
    must(psld_mixture_draw(mixture, f->recipe, 1, 1, 0, SAMPLES, f->start));
    must(psld_mixture_draw(mixture, f->recipe, 1e-3, 2, 0, SAMPLES, f->exact));
    must(psld_mixture_draw(mixture, f->recipe, 1e-3, 3, 0, SAMPLES, f->other));
    f->floor = distance(f, f->exact, f->other);
    walk(f, &truths[0], 0, FLOW_SAMPLES, f->flow[0]);
    walk(f, &truths[1], 1000, FLOW_SAMPLES, f->flow[1]);
}

static void close_field(field *f)
{
    double *rooms[] = {f->start, f->exact, f->other, f->z, f->flow[0], f->flow[1]};
    for (int i = 0; i < 6; i++) free(rooms[i]);
    psld_source_free(f->source);
    psld_recipe_free(f->recipe);
}

static double flow_error(const field *f, const struct way *w)
{
    const double *truth = f->flow[strcmp(w->truth, "ode") != 0];
    double sum = 0;
    for (size_t i = 0; i < FLOW_SAMPLES; i++)
        for (size_t j = 0; j < 2; j++) sum += pow(f->z[i * f->state + j] - truth[i * f->state + j], 2);
    return sqrt(sum / (2 * FLOW_SAMPLES));
}

static void print_head(const char *title, const char *preset)
{
    printf("\n%s, %s\n\n| sampler | grid |", title, preset);
    for (int b = 0; b < BUDGETS; b++) printf(" %d |", budgets[b]);
    printf("\n|---|---|");
    for (int b = 0; b < BUDGETS; b++) printf("---|");
    printf("\n");
}

static const char *label(const struct way *w)
{
    static char text[WAYS][48];
    char *out = text[w - ways];
    snprintf(out, sizeof text[0], w->plain ? "%s %d, detail 0" : w->order ? "%s %d" : "%s", w->sampler, w->order);
    return out;
}

static void print_row(const struct way *w, const double *numbers)
{
    printf("| `%s` | %s |", label(w), w->grid);
    for (int b = 0; b < BUDGETS; b++) printf(" %.2g |", numbers[b]);
    printf("\n");
}

static void print_table(const char *title, const char *preset, double numbers[WAYS][BUDGETS], int flows)
{
    print_head(title, preset);
    for (int w = 0; w < WAYS; w++)
        if (!flows || ways[w].truth) print_row(&ways[w], numbers[w]);
}

static void measure(const char *preset, double blur[WAYS][BUDGETS])
{
    field f = {0};
    static double distances[WAYS][BUDGETS], errors[WAYS][BUDGETS];
    open_field(preset, &f);
    double exact = spread(&f, f.exact);
    for (int w = 0; w < WAYS; w++)
        for (int b = 0; b < BUDGETS; b++) {
            walk(&f, &ways[w], budgets[b], SAMPLES, f.z);
            distances[w][b] = fmax(distance(&f, f.z, f.exact) - f.floor, 0);
            blur[w][b] = fabs(spread(&f, f.z) / exact - 1);
            if (ways[w].truth) errors[w][b] = flow_error(&f, &ways[w]);
        }
    print_table("Spread", preset, blur, 0);
    printf("\n(two exact sets: %.2g)\n", fabs(spread(&f, f.other) / exact - 1));
    print_table("Distance", preset, distances, 0);
    printf("\n(between two exact sets, and subtracted: %.2g)\n", f.floor);
    print_table("Flow", preset, errors, 1);
    close_field(&f);
}

static void plot(double blur[WAYS][BUDGETS], const char *path)
{
    static const int shown[] = {0, 1, 3, 6, 10, 11, 13};
    enum { SHOWN = sizeof shown / sizeof *shown };
    psld_curve curves[SHOWN];
    double x[BUDGETS];
    for (int b = 0; b < BUDGETS; b++) x[b] = budgets[b];
    for (int i = 0; i < SHOWN; i++) curves[i] = (psld_curve){label(&ways[shown[i]]), BUDGETS, x, blur[shown[i]], i, 0};
    must(psld_plot_curves("psld gamma=0.02: how wrong the spread of the modes is", "evaluations", "relative error", 1,
                          1, curves, SHOWN, path));
}

int main(int argc, char **argv)
{
    static double blur[WAYS][BUDGETS];
    make_ring();
    for (int p = 0; p < 4; p++) {
        measure(presets[p], blur);
        if (p == 2 && argc > 1) plot(blur, argv[1]);
    }
    psld_mixture_free(mixture);
    return 0;
}
