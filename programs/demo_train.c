/* Trains a network: data in the plane, samples at several moments of the training, the loss. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define DATA "toy:pinwheel"

enum { STEPS = 3000, POINTS = 2000, MOMENTS = 3, DIRECTIONS = 64 };

static const uint64_t moments[MOMENTS] = {STEPS / 15, STEPS / 5, STEPS};

static struct learned {
    const char *folder;
    psld_training *training;
    cli_progress progress;
    double *steps, *losses; /* [STEPS], smoothed */
    double distance[MOMENTS], apart, seconds;
} learned;

/* ---- Points ------------------------------------------------------------------------------------------------------ */

/* POINTS new points of the data, from number `first` on, which training does not reach. */
static psld_status fresh_data(uint64_t first, double points[2 * POINTS])
{
    static uint64_t index[POINTS];
    static float x[2 * POINTS];
    psld_data *data = NULL;
    psld_status status = psld_data_open(DATA, NULL, &data);
    for (uint64_t i = 0; i < POINTS && status == PSLD_OK; i++) index[i] = psld_data_count(data) - 1 - first - i;
    if (status == PSLD_OK) status = psld_data_read(data, POINTS, index, x, NULL);
    for (size_t i = 0; i < 2 * POINTS; i++) points[i] = (double)x[i];
    psld_data_free(data);
    return status;
}

static psld_status demo_draw_points(double points[2 * POINTS])
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    psld_array *x = NULL;
    options.sampler = "sscs";
    options.nfe = 50;
    psld_status status =
        psld_model_sample(psld_training_model(learned.training), &options, 0, POINTS, NULL, 0, &x, NULL);
    for (size_t i = 0; i < 2 * POINTS && status == PSLD_OK; i++) points[i] = (double)((const float *)x->data)[i];
    psld_array_free(x);
    return status;
}

static psld_status distance_to_data(const double *points, double *distance)
{
    static double data[2 * POINTS];
    psld_status status = fresh_data(0, data);
    if (status != PSLD_OK) return status;
    return psld_sliced_wasserstein(2, POINTS, points, POINTS, data, DIRECTIONS, 0, distance);
}

/* ---- Training ---------------------------------------------------------------------------------------------------- */

static psld_status show_data(void)
{
    static double points[2 * POINTS];
    psld_status status = fresh_data(POINTS, points);
    if (status == PSLD_OK) status = distance_to_data(points, &learned.apart);
    return status == PSLD_OK
               ? psld_plot_points(NULL, points, POINTS, "data", demo_file(learned.folder, "learned-data.png"))
               : status;
}

static psld_status show_moment(int m)
{
    static double points[2 * POINTS];
    char name[64], title[64];
    snprintf(name, sizeof name, "learned-%d.png", m);
    snprintf(title, sizeof title, "after %llu steps", (unsigned long long)moments[m]);
    psld_status status = demo_draw_points(points);
    if (status == PSLD_OK) status = distance_to_data(points, &learned.distance[m]);
    return status == PSLD_OK ? psld_plot_points(NULL, points, POINTS, title, demo_file(learned.folder, name)) : status;
}

static void note_loss(const psld_training_report *r)
{
    size_t i = (size_t)r->step - 1;
    learned.steps[i] = (double)r->step;
    learned.losses[i] = i ? 0.98 * learned.losses[i - 1] + 0.02 * r->loss : r->loss;
}

static psld_status train_toy_model(void)
{
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    int m = 0;
    while (report.step < STEPS) {
        psld_status status = psld_training_step(learned.training, &report);
        if (status != PSLD_OK) return status;
        note_loss(&report);
        if (cli_progress_report(&learned.progress, report.step, STEPS)) return PSLD_CANCELLED;
        if (report.step != moments[m]) continue;
        status = show_moment(m++);
        if (status != PSLD_OK) return status;
    }
    return PSLD_OK;
}

static psld_status open_training(void)
{
    char steps[32];
    const char *const overrides[] = {steps,          "train.batch=256",        "train.ema=0.99",
                                     "model.nf=64",  "model.num_res_blocks=3", "train.warmup=50",
                                     "train.lr=5e-3"};
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    snprintf(steps, sizeof steps, "train.steps=%d", STEPS);
    options.data = DATA;
    options.overrides = overrides;
    options.override_count = sizeof overrides / sizeof *overrides;
    return psld_training_open(NULL, &options, &learned.training);
}

static psld_status plot_loss(void)
{
    const psld_curve curve = {"loss (smoothed)", STEPS, learned.steps, learned.losses, 0, 0};
    return psld_plot_curves("training", "step", "loss", 0, 0, &curve, 1, demo_file(learned.folder, "learned-loss.png"));
}

psld_status demo_train(const char *folder)
{
    learned.folder = folder;
    learned.steps = calloc(2 * STEPS, sizeof *learned.steps);
    if (!learned.steps) return cli_bad_input("out of memory");
    learned.losses = learned.steps + STEPS;
    cli_progress_begin(&learned.progress, "training");
    psld_status status = show_data();
    if (status == PSLD_OK) status = open_training();
    if (status == PSLD_OK) status = train_toy_model();
    cli_progress_end(&learned.progress);
    learned.seconds = cli_seconds() - learned.progress.began;
    if (status == PSLD_OK) status = plot_loss();
    psld_training_free(learned.training);
    free(learned.steps);
    return status;
}

/* ---- Output ------------------------------------------------------------------------------------------------------ */

void demo_train_print(FILE *out)
{
    fprintf(out, "A network trained on " DATA " just now, %d steps, %.0f s: distance of its samples from the data\n\n",
            STEPS, learned.seconds);
    for (int m = 0; m < MOMENTS; m++)
        fprintf(out, "  after %4llu steps  %.3f\n", (unsigned long long)moments[m], learned.distance[m]);
    fprintf(out, "  two data sets     %.3f\n", learned.apart);
}

void demo_train_page(FILE *out)
{
    fprintf(out,
            "<h2>A network learns</h2>\n<p>A small network was trained while this page was made: %d steps, %.0f s. "
            "Below: the "
            "data, samples\nof the network at three moments, and its loss. Sliced Wasserstein distance of %d samples "
            "from the "
            "data:",
            STEPS, learned.seconds, POINTS);
    for (int m = 0; m < MOMENTS; m++)
        fprintf(out, " %.3f after %llu steps,", learned.distance[m], (unsigned long long)moments[m]);
    fprintf(out,
            " %.3f between two sets of data.</p>\n<div class=\"grid\">\n<img src=\"learned-data.png\" alt=\"data\">\n",
            learned.apart);
    for (int m = 0; m < MOMENTS; m++)
        fprintf(out, "<img src=\"learned-%d.png\" alt=\"samples after %llu steps\">\n", m,
                (unsigned long long)moments[m]);
    fprintf(out, "<img src=\"learned-loss.png\" alt=\"loss\">\n</div>\n");
}
