/* Pictures of a run: samples of its averaged weights, its losses, and the accuracy of a classifier at each time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/files/file.h"
#include "plot/figure.h"
#include "psld_data.h"
#include "psld_train.h"
#include "train/log_read.h"
#include "train/training.h"

enum { LARGEST_PICTURE = 1 << 30 };

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

static psld_status save_images(const psld_array *x, const char *path)
{
    psld_array *images;
    PSLD_TRY(psld_images_from_data(x, 0, &images));
    psld_status status = psld_image_grid(images, 0, path);
    psld_array_free(images);
    return status;
}

static psld_status save_points(const psld_array *x, const char *title, const char *path)
{
    size_t n = x->shape[0];
    double *points = psld_alloc(2 * n, sizeof *points);
    if (!points) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        points[i] = (double)((const float *)x->data)[2 * i];
        points[n + i] = (double)((const float *)x->data)[2 * i + 1];
    }
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 360, 360);
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    psld_panel_frame(panel, title, NULL, NULL, PSLD_EQUAL_AXES);
    psld_panel_points(panel, n, points, points + n, 0, 1, 0.5, NULL);
    psld_status status = psld_figure_save(figure, path);
    psld_figure_free(figure);
    psld_release(points);
    return status;
}

static int shows_images(const psld_model *model)
{
    return model->kind == PSLD_SCORE_MODEL && model->rank == 3 && (model->shape[0] == 1 || model->shape[0] == 3);
}

static int shows_points(const psld_model *model)
{
    return model->kind == PSLD_SCORE_MODEL && model->rank == 1 && model->shape[0] == 2;
}

static psld_sample_options picture_options(const psld_training *t)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = t->settings.train.sampler;
    const psld_sampler_info *sampler = psld_sampler_find(options.sampler);
    if (!sampler || !sampler->consistency) options.eps = 1e-3;
    if (!sampler || !sampler->adaptive) options.nfe = (int)t->settings.train.sample_nfe;
    options.seed = (uint64_t)t->settings.seed;
    return options;
}

psld_status psld_training_check_sampler(const psld_training *t)
{
    psld_sample_options options = picture_options(t);
    const psld_sampler_info *sampler = psld_sampler_find(options.sampler);
    if (sampler && sampler->consistency && !psld_model_is_tuned(t->model))
        return psld_fail(PSLD_BAD_INPUT, "train.sampler: consistency needs train.loss = consistency");
    psld_status status = t->model->process ? psld_process_options_complete(t->model->process, &options)
                                           : psld_sample_complete(t->model->recipe, &options);
    return status == PSLD_OK ? PSLD_OK : psld_fail_in(PSLD_BAD_INPUT, "train.sampler, train.sample_nfe");
}

psld_status psld_training_check_picture(const psld_training *t)
{
    return shows_images(t->model) || shows_points(t->model) ? psld_training_check_sampler(t) : PSLD_OK;
}

psld_status psld_training_draw(psld_training *t, size_t count, psld_array **x)
{
    psld_sample_options options = picture_options(t);
    PSLD_TRY(psld_trainer_fetch(t->trainer));
    psld_model_changed(t->model);
    return psld_model_sample(t->model, &options, 0, count, NULL, 0, x, NULL);
}

static psld_status show_in_events(const psld_training *t, const char *path)
{
    char *bytes;
    size_t size;
    PSLD_TRY(psld_file_read(path, LARGEST_PICTURE, &bytes, &size));
    psld_status status = psld_events_picture(t->events, (long)psld_training_steps(t), "samples", bytes, size);
    psld_release(bytes);
    return status;
}

psld_status psld_training_picture(psld_training *t)
{
    psld_array *x;
    char name[64], title[64];
    unsigned long long step = (unsigned long long)psld_training_steps(t);
    int images = shows_images(t->model);
    if (!images && !shows_points(t->model)) return PSLD_OK;
    PSLD_TRY(psld_training_draw(t, (size_t)t->settings.train.sample_count, &x));
    snprintf(name, sizeof name, PSLD_PICTURE_NAME, step);
    snprintf(title, sizeof title, "step %llu", step);
    const char *path = psld_run_folder_file(t->run, name);
    psld_status status = images ? save_images(x, path) : save_points(x, title, path);
    psld_array_free(x);
    return status == PSLD_OK && t->events ? show_in_events(t, path) : status;
}

/* ---- Losses ------------------------------------------------------------------------------------------------------ */

enum { POINTS = 400 }; /* points of a curve: steps between them are averaged */

typedef struct curve {
    double x[POINTS], y[POINTS], weight[POINTS];
    size_t count;
} curve;

/* Adds a value to the mean of its bin of steps. */
static void add_value(curve *c, double step, double steps, const json_t *value)
{
    size_t at = (size_t)((step - 1) / steps * POINTS);
    if (!json_is_number(value) || at >= POINTS) return;
    c->x[at] += step;
    c->y[at] += json_number_value(value);
    c->weight[at]++;
}

static void finish_curve(curve *c)
{
    c->count = 0;
    for (size_t i = 0; i < POINTS; i++) {
        if (c->weight[i] == 0) continue;
        c->x[c->count] = c->x[i] / c->weight[i];
        c->y[c->count++] = c->y[i] / c->weight[i];
    }
}

/* The curves of loss.png: for each the key of the log and the number of its panel. */
static const struct {
    const char *key, *label;
    int panel;
} shown[] = {{"loss", "training", 0},
             {"held_out", "held out", 0},
             {"held_out_raw", "held out, raw weights", 0},
             {"held_out_accuracy", "accuracy", 1},
             {"metric", "samples to data", 2}};
static const struct {
    const char *title, *y; /* NULL: what is trained */
    int options;
} panels[] = {{NULL, "loss", PSLD_LOG_Y}, {"held-out data", "accuracy", 0}, {"samples", "distance", PSLD_LOG_Y}};
enum { CURVES = sizeof shown / sizeof *shown, PANELS = sizeof panels / sizeof *panels };

typedef struct log_curves {
    double steps;      /* of all steps */
    curve *curves;     /* [CURVES] */
    json_t **measured; /* the last entry that has the accuracy by time; owned, or NULL */
} log_curves;

static void add_entry(void *user, json_t *entry)
{
    log_curves *l = user;
    double step = json_number_value(json_object_get(entry, "step"));
    for (int i = 0; i < CURVES && step >= 1; i++)
        add_value(&l->curves[i], step, l->steps, json_object_get(entry, shown[i].key));
    if (!json_object_get(entry, "loss_accuracy_by_t")) return;
    json_decref(*l->measured);
    *l->measured = json_incref(entry);
}

/* *measured is to be released with json_decref. */
static psld_status read_curves(const char *path, double steps, curve curves[CURVES], json_t **measured)
{
    log_curves l = {.steps = steps, .curves = curves, .measured = measured};
    *measured = NULL;
    PSLD_TRY(psld_log_read(path, add_entry, &l));
    for (int i = 0; i < CURVES; i++) finish_curve(&curves[i]);
    return PSLD_OK;
}

static psld_status draw_losses(const psld_training *t, const curve *curves, const char *path)
{
    int has[PANELS] = {1}, column[PANELS], count = 0;
    for (int i = 0; i < CURVES; i++) has[shown[i].panel] |= curves[i].count > 0;
    for (int p = 0; p < PANELS; p++) {
        column[p] = count;
        count += has[p];
    }
    psld_figure *figure = psld_figure_create(NULL, 1, count, 480, 320);
    for (int p = 0; p < PANELS; p++)
        if (has[p])
            psld_panel_frame(psld_figure_panel(figure, 0, column[p]), p ? panels[p].title : t->objective->name, "step",
                             panels[p].y, panels[p].options);
    for (int i = 0; i < CURVES; i++)
        if (curves[i].count)
            psld_panel_curve(psld_figure_panel(figure, 0, column[shown[i].panel]), curves[i].count, curves[i].x,
                             curves[i].y, i, PSLD_SOLID, shown[i].label);
    psld_status status = psld_figure_save(figure, path);
    psld_figure_free(figure);
    return status;
}

/* ---- Accuracy against time --------------------------------------------------------------------------------------- */

/* A curve through the middles of the bins that have a number. */
static size_t read_bins(const json_t *means, double *x, double *y)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(means); i++) {
        const json_t *mean = json_array_get(means, i);
        if (!json_is_number(mean) || count == POINTS) continue;
        x[count] = ((double)i + 0.5) / (double)json_array_size(means);
        y[count++] = json_number_value(mean);
    }
    return count;
}

/* The accuracy of a classifier by time, in the last measurement. */
static psld_status draw_accuracy(const json_t *measured, const char *path)
{
    static const char *const keys[] = {"loss_accuracy_by_t", "held_out_accuracy_by_t"};
    static const char *const labels[] = {"training", "held out"};
    char title[64];
    double x[POINTS], y[POINTS];
    snprintf(title, sizeof title, "step %.0f", json_number_value(json_object_get(measured, "step")));
    psld_figure *figure = psld_figure_create(NULL, 1, 1, 480, 320);
    psld_panel *panel = psld_figure_panel(figure, 0, 0);
    psld_panel_frame(panel, title, "t", "accuracy", 0);
    for (int i = 0; i < 2; i++) {
        size_t count = read_bins(json_object_get(measured, keys[i]), x, y);
        if (count) psld_panel_curve(panel, count, x, y, i, PSLD_SOLID, labels[i]);
    }
    psld_status status = psld_figure_save(figure, path);
    psld_figure_free(figure);
    return status;
}

psld_status psld_training_plot(psld_training *t)
{
    json_t *measured = NULL;
    curve *curves = psld_alloc(CURVES, sizeof *curves);
    if (!curves) return PSLD_NO_MEMORY;
    double steps = (double)psld_training_steps(t);
    psld_status status = read_curves(psld_run_folder_file(t->run, "log.jsonl"), steps, curves, &measured);
    if (status == PSLD_OK) status = draw_losses(t, curves, psld_run_folder_file(t->run, "loss.png"));
    if (status == PSLD_OK && measured) status = draw_accuracy(measured, psld_run_folder_file(t->run, "accuracy.png"));
    json_decref(measured);
    psld_release(curves);
    return status;
}
