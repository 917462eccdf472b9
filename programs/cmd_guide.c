/* psld guide: samples of a class, by the gradient of a classifier. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling.h"

typedef struct guide_job {
    sampling_job sampling;
    const char *label; /* "all", a number or a name */
    size_t labels, n;  /* classes drawn, samples of each */
    psld_array *x;     /* [labels * n, ...], class by class */
} guide_job;

/* Sample i of a class and a seed is always the same, whichever other classes are drawn. */
static psld_status guide_draw_class(guide_job *g, size_t number)
{
    sampling_job *job = &g->sampling;
    psld_source *guided = NULL;
    psld_status status = sampling_guide_class(job, psld_model_source(job->model), number, &guided);
    if (status == PSLD_OK) status = sampling_draw(job, guided, (uint64_t)number << 32, g->n, g->x);
    psld_source_free(guided);
    return status;
}

static psld_status guide_draw_classes(guide_job *g)
{
    psld_status status = PSLD_OK;
    size_t number = 0;
    if (strcmp(g->label, "all") != 0) {
        status = psld_model_label(g->sampling.classifier, g->label, &number);
        return status == PSLD_OK ? guide_draw_class(g, number) : status;
    }
    for (size_t c = 0; status == PSLD_OK && c < g->labels; c++) status = guide_draw_class(g, c);
    return status;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static psld_status guide_write_plot(const guide_job *g)
{
    const sampling_job *job = &g->sampling;
    char title[200];
    psld_array *points = NULL;
    snprintf(title, sizeof title, "%s, class %s at scale %g, %s", psld_recipe_get(psld_model_recipe(job->model))->name,
             g->label, job->scale, job->options.sampler);
    psld_status status = psld_array_convert(g->x, PSLD_F64, &points);
    if (status == PSLD_OK)
        status =
            psld_plot_points(psld_model_mixture(job->model), points->data, g->x->shape[0], title, job->request->out);
    psld_array_free(points);
    return status;
}

/* The name of a drawn class, as the user wrote it. */
static const char *name_of(const guide_job *g, size_t row, char number[32])
{
    snprintf(number, 32, "%zu", row);
    return strcmp(g->label, "all") == 0 ? number : g->label;
}

static psld_status check_folders(const guide_job *g)
{
    const sampling_job *job = &g->sampling;
    char number[32];
    psld_status status = PSLD_OK;
    if (cli_ends_in(job->request->out, ".npy|.png|.svg")) return PSLD_OK;
    for (size_t row = 0; status == PSLD_OK && row < g->labels; row++)
        status = sampling_check_folder(job->request->out, name_of(g, row, number), g->n);
    return status;
}

/* One folder per class. After an interruption the last one has fewer pictures. */
static psld_status write_folders(const guide_job *g, const psld_array *pixels)
{
    const char *out = g->sampling.request->out;
    char path[CLI_PATH], number[32];
    size_t each = pixels->count / pixels->shape[0];
    psld_array part = *pixels;
    psld_status status = psld_folder_make(out);
    for (size_t row = 0, first = 0; status == PSLD_OK && first < pixels->shape[0]; row++, first += g->n) {
        if (snprintf(path, sizeof path, "%s/%s", out, name_of(g, row, number)) >= (int)sizeof path)
            return cli_bad_input("%s: the name is too long", out);
        part.shape[0] = pixels->shape[0] - first < g->n ? pixels->shape[0] - first : g->n;
        part.count = part.shape[0] * each;
        part.data = (unsigned char *)pixels->data + first * each;
        status = sampling_write_folder(&part, path);
    }
    return status;
}

static psld_status guide_write_samples(const guide_job *g)
{
    const sampling_job *job = &g->sampling;
    const char *out = job->request->out;
    psld_array *pixels = NULL;
    if (cli_ends_in(out, ".npy")) return psld_array_save(g->x, out);
    if (!sampling_is_image(job)) return guide_write_plot(g);
    psld_status status = sampling_pixels(job, g->x, &pixels);
    if (status == PSLD_OK)
        status =
            cli_ends_in(out, ".png") ? sheet_write(pixels, g->n, job->request->zoom, out) : write_folders(g, pixels);
    psld_array_free(pixels);
    return status;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static int guide_check_model(const cli_command *command, const sampling_job *job)
{
    const char *out = job->request->out;
    int is_plane = job->rank == 1 && job->dim == 2;
    if (cli_ends_in(out, ".npy") || (sampling_is_image(job) && !cli_ends_in(out, ".svg"))) return EXIT_DONE;
    if (is_plane && cli_ends_in(out, ".png|.svg")) return EXIT_DONE;
    return cli_wrong_usage(command, "-o %s: %s", out,
                           sampling_is_image(job) ? "pictures are written as .png"
                                                  : "a picture needs a 2-D model; write .npy");
}

static psld_status guide_draw_and_write(guide_job *g)
{
    psld_status drawn = guide_draw_classes(g);
    psld_status written = sampling_keep(&g->sampling, drawn, g->x) ? guide_write_samples(g) : PSLD_OK;
    return written == PSLD_OK ? drawn : written;
}

static int guide_report(const guide_job *g)
{
    char what[200];
    snprintf(what, sizeof what, "of %s %s at scale %g", g->labels > 1 ? "classes" : "class", g->label,
             g->sampling.scale);
    return sampling_report(&g->sampling, g->sampling.drawn, what);
}

static int guide_model(const cli_command *command, const char *const *words, int count, const sampling_request *s)
{
    guide_job g = {.label = s->label};
    int exit_code = EXIT_DONE;
    psld_status status = sampling_open(words, count, s, 1, &g.sampling);
    if (status == PSLD_OK) exit_code = guide_check_model(command, &g.sampling);
    if (status == PSLD_OK && exit_code == EXIT_DONE) {
        g.labels = strcmp(g.label, "all") == 0 ? sampling_classes(&g.sampling) : 1;
        g.n = s->n ? (size_t)s->n : sampling_is_image(&g.sampling) ? 8 : 1000;
        status = check_folders(&g);
        if (status == PSLD_OK) status = sampling_array(&g.sampling, g.labels * g.n, &g.x);
        if (status == PSLD_OK) status = guide_draw_and_write(&g);
        if (status == PSLD_OK) exit_code = guide_report(&g);
    }
    if (status == PSLD_CANCELLED)
        exit_code = sampling_report_interrupted(&g.sampling, g.sampling.drawn, g.sampling.planned, "");
    psld_array_free(g.x);
    sampling_close(&g.sampling);
    return status == PSLD_OK || status == PSLD_CANCELLED ? exit_code : cli_failed(status);
}

static int guide_run(const cli_command *command, int argc, char **argv)
{
    sampling_request s;
    const char *words[SAMPLING_WORDS];
    int count, exit_code;
    sampling_defaults(&s);
    s.model.weak = "none";
    const cli_option options[] = {
        {"label", 0, CLI_TEXT, "L|all", "class by number or by name, or all of them in turn", &s.label, NULL},
        {"number", 'n', CLI_COUNT, "N", "samples of each class (default 8 pictures, 1000 points)", &s.n, NULL},
        {"out", 'o', CLI_FILE, "OUT", ".npy, .png (one row per class), or a folder with one folder per class", &s.out,
         NULL},
        SAMPLING_GUIDANCE(s),
        SAMPLING_OPTIONS(s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (!sampling_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (!s.label) return cli_wrong_usage(command, "no class given; add --label L, or --label all");
    exit_code = sampling_check(command, &s);
    if (exit_code == EXIT_DONE) exit_code = sampling_check_out(command, &s, ".npy|.png|.svg");
    if (exit_code == EXIT_DONE) exit_code = sheet_check_zoom(command, s.zoom, cli_ends_in(s.out, ".png"));
    return exit_code == EXIT_DONE ? guide_model(command, words, count, &s) : exit_code;
}

const cli_command command_guide = {
    .name = "guide",
    .summary = "draws samples of a class",
    .usage = "MODEL --classifier CLF --label L|all -n N -o OUT [options] [key=value ...]",
    .description = "The gradient of log p(label | z_t, t) by z_t, times --scale, is added to the score. This works "
                   "with every sampler, recipe\n"
                   "and network. The classifier must have been trained on noisy states (psld train --classifier). An "
                   "exact model needs none:\n"
                   "its classes are the components of its mixture, and at scale 1 its samples follow them exactly.\n\n"
                   "With a larger scale the classifier is surer of the samples, and they vary less. Scores and "
                   "classifiers of networks are not\n"
                   "exact; the default scale for them is 3.",
    .examples =
        "  psld guide digits.safetensors --classifier digits-classifier.safetensors --label all -n 10 -o rows.png\n"
        "  psld guide mixture.yaml --label 1 -n 10000 --no-denoise --state -o z.npy\n",
    .run = guide_run,
};
