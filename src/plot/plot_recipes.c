/* A page about recipes: how the kernel moves from the data to the stationary distribution, how fast, how errors of the
 * score grow, and what paths look like. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "plot/figure.h"
#include "process/recipe.h"
#include "psld_plot.h"
#include "sample/samplers/sampler.h"

enum { POINTS = 240, PATH_POINTS = 400, PATHS = 2 };

typedef struct recipe_page {
    psld_figure *figure;
    const psld_recipe *const *recipes;
    size_t count;
    double linear[POINTS], logarithmic[POINTS]; /* times */
} recipe_page;

enum { LABEL = PSLD_NAME_SIZE + 24 };

/* The name of recipe r, with a number if several have the same name. */
static const char *recipe_label(const recipe_page *page, size_t r, char label[LABEL])
{
    const char *name = page->recipes[r]->spec.name;
    size_t same = 0, number = 0;
    for (size_t i = 0; i < page->count; i++) {
        same += strcmp(page->recipes[i]->spec.name, name) == 0;
        if (i == r) number = same;
    }
    if (same < 2) return name;
    snprintf(label, LABEL, "%s (%zu)", name, number);
    return label;
}

typedef psld_status (*quantity_fn)(const psld_recipe *recipe, double t, double *values);

static psld_status mean_of_variables(const psld_recipe *recipe, double t, double *values)
{
    psld_gaussian kernel;
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    for (int i = 0; i < recipe->spec.k; i++) values[i] = kernel.mean[i * recipe->spec.k] / recipe->deviation[i];
    return PSLD_OK;
}

static psld_status variance_of_variables(const psld_recipe *recipe, double t, double *values)
{
    psld_gaussian kernel;
    int k = recipe->spec.k;
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    for (int i = 0; i < k; i++) values[i] = kernel.cov[i * k + i] / (recipe->deviation[i] * recipe->deviation[i]);
    return PSLD_OK;
}

static psld_status second_order_factors(const psld_recipe *recipe, double t, double *values)
{
    double first[PSLD_MAX_K];
    PSLD_TRY(psld_recipe_error_factors(recipe, t, first, values));
    for (int i = 0; i < recipe->spec.k; i++) values[i] = fabs(values[i]);
    return PSLD_OK;
}

static psld_status first_order_factors(const psld_recipe *recipe, double t, double *values)
{
    double second[PSLD_MAX_K];
    PSLD_TRY(psld_recipe_error_factors(recipe, t, values, second));
    for (int i = 0; i < recipe->spec.k; i++) values[i] = fabs(values[i]);
    return PSLD_OK;
}

static psld_status effective_noise(const psld_recipe *recipe, double t, double *values)
{
    return psld_recipe_sigma(recipe, t, values);
}

static psld_status recipe_distance(const psld_recipe *recipe, double t, double *values)
{
    return psld_recipe_distance(recipe, t, values);
}

/* Curves of a quantity with one value per variable (`each` = 1) or one for all (0). x is solid, auxiliary variables are
 * dashed, unless `dash` is given. */
static psld_status add_curves(const recipe_page *page, psld_panel *panel, const double *times, quantity_fn quantity,
                              int each, int dotted, int labelled)
{
    for (size_t r = 0; r < page->count; r++) {
        double values[PSLD_MAX_K], y[PSLD_MAX_K][POINTS];
        char label[LABEL];
        int curves = each ? page->recipes[r]->spec.k : 1;
        for (int i = 0; i < POINTS; i++) {
            PSLD_TRY(quantity(page->recipes[r], times[i], values));
            for (int c = 0; c < curves; c++) y[c][i] = values[c];
        }
        for (int c = 0; c < curves; c++)
            psld_panel_curve(panel, POINTS, times, y[c], (int)r,
                             dotted ? PSLD_DOTTED
                             : c    ? PSLD_DASHED
                                    : PSLD_SOLID,
                             c == 0 && labelled ? recipe_label(page, r, label) : NULL);
    }
    return PSLD_OK;
}

static void add_spectrum(const recipe_page *page, psld_panel *panel)
{
    psld_panel_frame(panel, "eigenvalues of the drift, in units of beta", "real part", "imaginary part", 0);
    for (size_t r = 0; r < page->count; r++) {
        double re[PSLD_MAX_K], im[PSLD_MAX_K];
        char label[LABEL];
        size_t k = (size_t)page->recipes[r]->spec.k;
        psld_matrix_eigenvalues((int)k, page->recipes[r]->drift, re, im);
        psld_panel_points(panel, k, re, im, (int)r, 4, 0.8, recipe_label(page, r, label));
    }
}

static psld_status add_moments(const recipe_page *page)
{
    psld_panel *panel = psld_figure_panel(page->figure, 0, 0);
    psld_panel_frame(panel, "mean given x_{0} = 1 (dashed: auxiliary, / deviation)", "t", NULL, 0);
    PSLD_TRY(add_curves(page, panel, page->linear, mean_of_variables, 1, 0, 1));

    panel = psld_figure_panel(page->figure, 0, 1);
    psld_panel_frame(panel, "variance given x_{0} (dashed: auxiliary, / mass)", "t", NULL, PSLD_LOG_X | PSLD_LOG_Y);
    PSLD_TRY(add_curves(page, panel, page->logarithmic, variance_of_variables, 1, 0, 0));

    panel = psld_figure_panel(page->figure, 0, 2);
    psld_panel_frame(panel, "effective noise level of the data", "t", "sigma_{eff}", PSLD_LOG_X | PSLD_LOG_Y);
    PSLD_TRY(add_curves(page, panel, page->logarithmic, effective_noise, 0, 0, 0));

    panel = psld_figure_panel(page->figure, 0, 3);
    const double ends[2] = {0, 1}, limit[2] = {PSLD_DISTANCE_LIMIT, PSLD_DISTANCE_LIMIT};
    psld_panel_frame(panel, "distance from stationarity (dotted: enough)", "t", "nats per coordinate", PSLD_LOG_Y);
    psld_panel_curve(panel, 2, ends, limit, 6, PSLD_DOTTED, NULL);
    PSLD_TRY(add_curves(page, panel, page->linear, recipe_distance, 0, 0, 0));

    add_spectrum(page, psld_figure_panel(page->figure, 1, 0));

    panel = psld_figure_panel(page->figure, 1, 1);
    psld_panel_frame(panel, "error factors |lambda| (dotted: first order)", "t", NULL, PSLD_LOG_X | PSLD_LOG_Y);
    PSLD_TRY(add_curves(page, panel, page->logarithmic, second_order_factors, 1, 0, 0));
    return add_curves(page, panel, page->logarithmic, first_order_factors, 1, 1, 0);
}

/* ---- Paths ------------------------------------------------------------------------------------------------------- */

/* Times 0 ... 1 that are dense near the data. */
static double path_time(int i)
{
    double u = (double)i / (PATH_POINTS - 1);
    return u * u;
}

/* A path of the process itself from x_0, by exact transitions. The plane is x and the first auxiliary variable, or t
 * and x if there is none. */
static void forward_path(const psld_recipe *recipe, double x0, uint64_t sample, double *horizontal, double *vertical)
{
    int k = recipe->spec.k;
    double z[PSLD_MAX_K] = {x0}, next[PSLD_MAX_K], noise[PSLD_MAX_K];
    psld_random_normal(1, PSLD_FOR_DATA, sample, 0, 0, (size_t)k, noise);
    for (int a = 1; a < k; a++) z[a] = sqrt(recipe->spec.init[a - 1]) * recipe->deviation[a] * noise[a];
    for (int i = 0; i < PATH_POINTS; i++) {
        horizontal[i] = k > 1 ? z[0] : path_time(i);
        vertical[i] = k > 1 ? z[1] : z[0];
        if (i + 1 == PATH_POINTS) break;
        psld_gaussian move;
        psld_transition(recipe, PSLD_FORWARD, psld_beta_integral(recipe, path_time(i), path_time(i + 1)), NULL, &move);
        psld_random_normal(1, PSLD_FOR_STEP, sample, (uint64_t)i, 0, (size_t)k, noise);
        for (int a = 0; a < k; a++) {
            next[a] = 0;
            for (int b = 0; b < k; b++) next[a] += move.mean[a * k + b] * z[b] + move.factor[a * k + b] * noise[b];
        }
        memcpy(z, next, sizeof z);
    }
}

/* Takes one splitting step with one 1-D state. */
static psld_status step_back(const psld_sampler *sscs, psld_reverse *reverse, double t, double u, uint64_t index,
                             void *table)
{
    PSLD_TRY(sscs->plan_step(reverse->recipe, t, u, 0, table));
    return sscs->step(reverse, index, table);
}

/* A path of the reverse process with the exact score of data at -1 and 1, from t = 1 to
 * where samplers end. */
static psld_status reverse_path(psld_reverse *reverse, uint64_t sample, double *horizontal, double *vertical)
{
    psld_status status = PSLD_OK;
    const psld_sampler *sscs = psld_sampler_row("sscs");
    void *table = psld_alloc(1, sscs->table_size);
    if (!table) return PSLD_NO_MEMORY;
    reverse->first = sample;
    psld_random_normal(1, PSLD_FOR_START, sample, 0, 0, reverse->k, reverse->z);
    for (size_t a = 0; a < reverse->k; a++) reverse->z[a] *= reverse->recipe->deviation[a];
    for (int i = PATH_POINTS - 1; i >= 0 && status == PSLD_OK; i--) {
        double t = fmax(path_time(i), reverse->options->eps), u = fmax(path_time(i ? i - 1 : 0), reverse->options->eps);
        horizontal[i] = reverse->k > 1 ? reverse->z[0] : t;
        vertical[i] = reverse->k > 1 ? reverse->z[1] : reverse->z[0];
        if (u < t) status = step_back(sscs, reverse, t, u, (uint64_t)i, table);
    }
    psld_release(table);
    return status;
}

static psld_status reverse_paths(const recipe_page *page, psld_panel *panel, size_t r, const psld_mixture *data)
{
    double z[PSLD_MAX_K], eps[PSLD_MAX_K], t, horizontal[PATH_POINTS], vertical[PATH_POINTS];
    const psld_recipe *recipe = page->recipes[r];
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    uint64_t sample;
    options.eps = 1e-3;
    options.batch = 1;
    psld_reverse reverse = {.recipe = recipe, .options = &options, .k = (size_t)recipe->spec.k, .dim = 1, .count = 1};
    reverse.predicted = (size_t)recipe->predicted;
    reverse.z = z;
    reverse.eps = eps;
    reverse.t = &t;
    reverse.sample = &sample;
    PSLD_TRY(psld_source_mixture(data, recipe, &reverse.source));
    psld_status status = PSLD_OK;
    for (uint64_t path = 0; path < (page->count == 1 ? PATHS : 1) && status == PSLD_OK; path++) {
        status = reverse_path(&reverse, 2 * path + r, horizontal, vertical);
        psld_panel_curve(panel, PATH_POINTS, horizontal, vertical, (int)r, PSLD_SOLID, NULL);
        psld_panel_points(panel, 1, horizontal, vertical, (int)r, 3, 1, NULL);
    }
    psld_source_free(reverse.source);
    return status;
}

/* Recipes with auxiliary variables are shown in phase space. For the others x is shown against t. */
static psld_status add_paths(const recipe_page *page)
{
    const double weights[2] = {0.5, 0.5}, means[2] = {-1, 1}, scales[2] = {0.05, 0.05};
    double horizontal[PATH_POINTS], vertical[PATH_POINTS];
    psld_panel *forward = psld_figure_panel(page->figure, 1, 2), *reverse = psld_figure_panel(page->figure, 1, 3);
    psld_mixture *data = NULL;
    int phase_space = 0;
    for (size_t r = 0; r < page->count; r++) phase_space |= page->recipes[r]->spec.k > 1;
    const char *x_label = phase_space ? "x" : "t", *y_label = phase_space ? "m" : "x";
    psld_panel_frame(forward, "forward paths (dots: their start)", x_label, y_label, 0);
    psld_panel_frame(reverse, "reverse paths to data at -1, 1 (dots: end)", x_label, y_label, 0);
    psld_status status = psld_mixture_create(2, 1, weights, means, scales, &data);
    for (size_t r = 0; r < page->count && status == PSLD_OK; r++) {
        if (phase_space && page->recipes[r]->spec.k == 1) continue;
        for (uint64_t path = 0; path < (page->count == 1 ? PATHS : 1); path++) {
            forward_path(page->recipes[r], path % 2 ? 1 : -1, 2 * r + path, horizontal, vertical);
            psld_panel_curve(forward, PATH_POINTS, horizontal, vertical, (int)r, PSLD_SOLID, NULL);
            psld_panel_points(forward, 1, horizontal, vertical, (int)r, 3, 1, NULL);
        }
        status = reverse_paths(page, reverse, r, data);
    }
    psld_mixture_free(data);
    return status;
}

psld_status psld_plot_recipes(const psld_recipe *const *recipes, size_t count, const char *path)
{
    recipe_page page = {.recipes = recipes, .count = count};
    if (count < 1) return psld_fail(PSLD_BAD_ARGUMENT, "plot: expected at least one recipe");
    for (int i = 0; i < POINTS; i++) {
        page.linear[i] = (i + 1.0) / POINTS;
        page.logarithmic[i] = pow(10, -5 + 5.0 * i / (POINTS - 1));
    }
    page.figure = psld_figure_create(count == 1 ? recipes[0]->spec.name : NULL, 2, 4, 300, 240);
    psld_status status = add_moments(&page);
    if (status == PSLD_OK) status = add_paths(&page);
    if (status == PSLD_OK) status = psld_figure_save(page.figure, path);
    psld_figure_free(page.figure);
    return status;
}
