/* psld demo: what the program can do, on built-in data, as a page of pictures. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

enum { RECIPES = 3, SAMPLERS = 3, BUDGETS = 5, COMPONENTS = 8, SAMPLES = 8000, SHOWN = 1500, DIRECTIONS = 32 };

static const char *const recipe_names[RECIPES] = {"vp", "cld", "psld gamma=0.02"};
static const char *const sampler_names[SAMPLERS] = {"em", "sscs", "ode"};
static const int budgets[BUDGETS] = {10, 20, 50, 100, 200};
static const double tolerances[BUDGETS] = {1e-1, 3e-2, 1e-2, 1e-3, 1e-4};

typedef struct demo {
    const char *folder;
    psld_mixture *mixture;
    psld_recipe *recipes[RECIPES];
    psld_array *truth;   /* [2 * SAMPLES][2]: two independent exact sets */
    double floor;        /* distance between them: smaller distances cannot be measured */
    psld_array *states;  /* scratch [SAMPLES][3 * 2] */
    psld_array *samples; /* scratch [SAMPLES][2] */
    double evaluations[RECIPES][SAMPLERS][BUDGETS], distances[RECIPES][SAMPLERS][BUDGETS];
    cli_progress progress;
    uint64_t done;
} demo;

const char *demo_file(const char *folder, const char *name)
{
    static char path[DEMO_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- Preparation ------------------------------------------------------------------------------------------------- */

/* Eight Gaussians on a ring. */
static psld_status make_data(demo *d)
{
    double weights[COMPONENTS], means[COMPONENTS][2], scales[COMPONENTS];
    for (int c = 0; c < COMPONENTS; c++) {
        double angle = 2 * 3.14159265358979323846 * c / COMPONENTS;
        weights[c] = 1.0 / COMPONENTS;
        means[c][0] = 1.2 * cos(angle);
        means[c][1] = 1.2 * sin(angle);
        scales[c] = 0.12;
    }
    return psld_mixture_create(COMPONENTS, 2, weights, means[0], scales, &d->mixture);
}

static psld_status demo_prepare(demo *d)
{
    size_t truth[2] = {2 * SAMPLES, 2}, states[2] = {SAMPLES, 2 * PSLD_MAX_K}, samples[2] = {SAMPLES, 2};
    psld_status status = make_data(d);
    for (int r = 0; r < RECIPES && status == PSLD_OK; r++) status = psld_recipe_open(recipe_names[r], &d->recipes[r]);
    if (status == PSLD_OK) status = psld_array_create(PSLD_F64, 2, truth, &d->truth);
    if (status == PSLD_OK) status = psld_array_create(PSLD_F64, 2, states, &d->states);
    if (status == PSLD_OK) status = psld_array_create(PSLD_F64, 2, samples, &d->samples);
    if (status != PSLD_OK) return status;
    double *points = d->truth->data;
    status = psld_mixture_draw(d->mixture, d->recipes[0], 0, 1, 0, 2 * SAMPLES, points); /* k = 1: states are points */
    if (status != PSLD_OK) return status;
    return psld_sliced_wasserstein(2, SAMPLES, points, SAMPLES, points + 2 * SAMPLES, DIRECTIONS, 0, &d->floor);
}

/* ---- The comparison ---------------------------------------------------------------------------------------------- */

static int demo_report(void *user, uint64_t done, uint64_t total)
{
    demo *d = user;
    return cli_progress_report(&d->progress, d->done * total + done, (uint64_t)RECIPES * SAMPLERS * BUDGETS * total);
}

static psld_status demo_draw(demo *d, int recipe, int sampler, int budget, uint64_t *nfe)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    psld_source *source = NULL;
    options.sampler = sampler_names[sampler];
    options.grid = "uniform";
    options.nfe = budgets[budget];
    options.tolerance = tolerances[budget];
    options.batch = SAMPLES;
    options.progress = demo_report;
    options.progress_user = d;
    psld_status status = psld_source_mixture(d->mixture, d->recipes[recipe], &source);
    if (status == PSLD_OK)
        status = psld_sample(d->recipes[recipe], source, &options, 0, SAMPLES, 2, NULL, d->states->data, nfe);
    psld_source_free(source);
    size_t state = 2 * (size_t)psld_recipe_get(d->recipes[recipe])->k;
    const double *z = d->states->data;
    double *x = d->samples->data;
    for (size_t i = 0; i < SAMPLES; i++) memcpy(x + 2 * i, z + i * state, 2 * sizeof *x);
    return status;
}

static psld_status compare_one(demo *d, int r, int s, int b)
{
    uint64_t nfe = 0;
    psld_status status = demo_draw(d, r, s, b, &nfe);
    d->done++;
    if (status == PSLD_NOT_FINITE) { /* a budget at which the sampler is unstable: a gap in the table, not a failure */
        d->evaluations[r][s][b] = d->distances[r][s][b] = NAN;
        return PSLD_OK;
    }
    if (status != PSLD_OK) return status;
    d->evaluations[r][s][b] = (double)nfe;
    status = psld_sliced_wasserstein(2, SAMPLES, d->samples->data, SAMPLES, d->truth->data, DIRECTIONS, 0,
                                     &d->distances[r][s][b]);
    if (status != PSLD_OK || budgets[b] != 50) return status;
    char name[64], title[128];
    snprintf(name, sizeof name, "samples-%d-%s.png", r, sampler_names[s]);
    snprintf(title, sizeof title, "%s, %s, %llu evaluations", recipe_names[r], sampler_names[s],
             (unsigned long long)nfe);
    return psld_plot_points(d->mixture, d->samples->data, SHOWN, title, demo_file(d->folder, name));
}

static psld_status compare_all(demo *d)
{
    psld_status status = PSLD_OK;
    for (int r = 0; r < RECIPES; r++)
        for (int s = 0; s < SAMPLERS; s++)
            for (int b = 0; b < BUDGETS && status == PSLD_OK; b++) status = compare_one(d, r, s, b);
    return status;
}

static psld_status plot_comparison(const demo *d)
{
    psld_curve curves[RECIPES * SAMPLERS];
    char labels[RECIPES * SAMPLERS][64];
    for (int i = 0; i < RECIPES * SAMPLERS; i++) {
        int r = i / SAMPLERS, s = i % SAMPLERS;
        snprintf(labels[i], sizeof labels[i], "%s, %s", recipe_names[r], sampler_names[s]);
        curves[i] = (psld_curve){labels[i], BUDGETS, d->evaluations[r][s], d->distances[r][s], r, s};
    }
    return psld_plot_curves("distance from the exact distribution", "evaluations of the score",
                            "sliced Wasserstein distance", 1, 1, curves, RECIPES * SAMPLERS,
                            demo_file(d->folder, "distance.png"));
}

/* ---- Output ------------------------------------------------------------------------------------------------------ */

static void demo_print_table(const demo *d, FILE *out)
{
    for (int r = 0; r < RECIPES; r++)
        for (int s = 0; s < SAMPLERS; s++) {
            fprintf(out, "  %-16s %-5s", recipe_names[r], sampler_names[s]);
            for (int b = 0; b < BUDGETS; b++) {
                if (isfinite(d->distances[r][s][b]))
                    fprintf(out, "  %.3f @%3.0f", d->distances[r][s][b], d->evaluations[r][s][b]);
                else
                    fprintf(out, "  %-10s", "unstable");
            }
            fprintf(out, "\n");
        }
}

static psld_status demo_write_page(const demo *d)
{
    const char *path = demo_file(d->folder, "index.html");
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return cli_bad_input("%s: cannot write: %s", path, strerror(errno));
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>psld demo</title><style>\n"
            "body{font-family:sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222;line-height:1.5}\n"
            "img{max-width:100%%}img.pixels{width:100%%;image-rendering:pixelated}figure{margin:0}.grid{display:grid;"
            "grid-template-columns:repeat(3,1fr);gap:.5rem}\n"
            "pre{background:#f6f6f6;padding:1rem;overflow:auto}\n</style></head><body>\n"
            "<h1>psld demo</h1>\n<p>Three members of the family of diffusion processes: the variance-preserving SDE, "
            "critically damped\n"
            "Langevin diffusion, and phase-space Langevin diffusion. The data are eight Gaussians on a ring, whose "
            "score is\n"
            "known exactly under every process, so the errors below are those of the samplers.</p>\n"
            "<h2>The processes</h2>\n<img src=\"recipes.png\" alt=\"analysis of the three recipes\">\n"
            "<h2>Samples with about 50 evaluations</h2>\n<p>Rows: processes. Columns: Euler-Maruyama, symmetric "
            "splitting, probability\n"
            "flow (tolerance 1e-2). Blue: the exact density.</p>\n<div class=\"grid\">\n");
    for (int r = 0; r < RECIPES; r++)
        for (int s = 0; s < SAMPLERS; s++)
            fprintf(out, "<img src=\"samples-%d-%s.png\" alt=\"%s %s\">\n", r, sampler_names[s], recipe_names[r],
                    sampler_names[s]);
    fprintf(
        out,
        "</div>\n<h2>Distance from the truth against cost</h2>\n<img src=\"distance.png\" alt=\"distance against "
        "evaluations\">\n"
        "<p>Sliced Wasserstein distance of %d samples @ evaluations per sample; two exact sets of this size are %.3f "
        "apart.</p>\n<pre>\n",
        SAMPLES, d->floor);
    demo_print_table(d, out);
    fprintf(out, "</pre>\n");
    demo_train_page(out);
    demo_digits_page(out);
    demo_steer_page(out);
    fprintf(out, "</body></html>\n");
    psld_status status = fclose(out) == 0 ? psld_text_save(text, path) : cli_bad_input("%s: out of memory", path);
    free(text);
    return status;
}

static psld_status run_demo(demo *d)
{
    psld_status status = psld_folder_make(d->folder);
    if (status == PSLD_OK) status = demo_prepare(d);
    if (status == PSLD_OK)
        status =
            psld_plot_recipes((const psld_recipe *const *)d->recipes, RECIPES, demo_file(d->folder, "recipes.png"));
    cli_progress_begin(&d->progress, "sampling");
    if (status == PSLD_OK) status = compare_all(d);
    cli_progress_end(&d->progress);
    if (status == PSLD_OK) status = plot_comparison(d);
    if (status == PSLD_OK) status = demo_train(d->folder);
    if (status == PSLD_OK) status = demo_digits(d->folder);
    if (status == PSLD_OK) status = demo_steer(d->folder);
    return status == PSLD_OK ? demo_write_page(d) : status;
}

static int demo_run(const cli_command *command, int argc, char **argv)
{
    static demo d;
    const char *words[16];
    int count, exit_code;
    d.folder = "psld-demo";
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "FOLDER", "where to put the pictures (default psld-demo)", &d.folder, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 16) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count) return cli_wrong_usage(command, "unexpected \"%s\"", words[0]);
    double began = cli_seconds();
    cli_kept("the finished pictures are in %s; run the same command to begin again", d.folder);
    psld_status status = run_demo(&d);
    if (status == PSLD_OK) {
        printf("Eight Gaussians on a ring, exact scores: sliced Wasserstein distance of %d samples @ "
               "evaluations per sample\n"
               "(two exact sets of this size are %.3f apart)\n\n",
               SAMPLES, d.floor);
        demo_print_table(&d, stdout);
        printf("\n");
        demo_train_print(stdout);
        printf("\n");
        demo_digits_print(stdout);
        printf("\n");
        demo_steer_print(stdout);
        printf("\n%.0f s. Pictures: %s/index.html\n", cli_seconds() - began, d.folder);
    }
    for (int r = 0; r < RECIPES; r++) psld_recipe_free(d.recipes[r]);
    psld_array_free(d.truth);
    psld_array_free(d.states);
    psld_array_free(d.samples);
    psld_mixture_free(d.mixture);
    return status == PSLD_OK ? EXIT_DONE : cli_failed(status);
}

const cli_command command_demo = {
    .name = "demo",
    .summary = "shows what the program can do, on built-in data, in about a minute",
    .usage = "[-o FOLDER]",
    .description =
        "Designs three processes, samples a 2-D mixture of Gaussians under each with em, sscs and ode at "
        "several budgets, compares\n"
        "the samples with the exact distribution, trains a network on data in the plane, draws digits from "
        "the model that comes\n"
        "with the program, guides it to classes and fills in half a digit, and writes a page of pictures.\n\n"
        "The models are looked for in $PSLD_MODELS, in `models` beside the program, and where `make install` "
        "puts them.",
    .examples = "  psld demo\n  psld demo -o /tmp/look\n",
    .run = demo_run,
};
