/* index.html of a run: its progress, curves, pictures and configuration. It reloads itself while the run goes on. It
 * needs no scripts and no other servers, and every text from a file is escaped. */
#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/files/file.h"
#include "train/training.h"

enum {
    REFRESH = 15,  /* seconds */
    PICTURES = 24, /* at most so many pictures: evenly chosen, and the last one */
    MARKUP = 1024,
};

static const char style[] =
    "body{font:16px/1.5 sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\n"
    "h1{margin-bottom:0}img{max-width:100%;background:#fff}.newest{width:32rem}.pixels{image-rendering:pixelated}\n"
    ".bar{height:.7rem;background:#ddd;border-radius:.35rem;overflow:hidden}.bar div{height:100%;background:#2a6fb0}\n"
    ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:1rem}.grid img{width:100%}\n"
    "figure{margin:0}figcaption{color:#666;font-size:.85rem}td{padding:.1rem 1.2rem .1rem 0;vertical-align:top}\n"
    "td:first-child{color:#666}pre{background:#f4f4f4;padding:1rem;overflow:auto}\n";

/* ---- Text into markup -------------------------------------------------------------------------------------------- */

/* Adds our own markup, with numbers; no text from a file. */
static void write_markup(psld_writer *page, const char *format, ...) PSLD_PRINTF(2, 3);
static void write_markup(psld_writer *page, const char *format, ...)
{
    char text[MARKUP];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0) psld_writer_put(page, text, strlen(text));
}

/* Adds any text, escaped. */
static void write_escaped(psld_writer *page, const char *text)
{
    static const struct {
        char from;
        const char *to;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (; *text; text++) {
        char one[2] = {*text, 0};
        const char *to = (unsigned char)*text < ' ' && *text != '\n' && *text != '\t' ? "?" : one;
        if (*text == 127) to = "?";
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
            if (*text == entities[i].from) to = entities[i].to;
        psld_writer_put(page, to, strlen(to));
    }
}

static void write_table_row(psld_writer *page, const char *name, const char *format, ...) PSLD_PRINTF(3, 4);
static void write_table_row(psld_writer *page, const char *name, const char *format, ...)
{
    char text[MARKUP];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_markup(page, "<tr><td>%s</td><td>", name);
    write_escaped(page, text);
    write_markup(page, "</td></tr>\n");
}

/* A number with '.' in every locale. */
static const char *format_number(double number, char text[32])
{
    psld_text_print(text, 32, "%.4g", number);
    return text;
}

static const char *format_duration(double seconds, char text[32])
{
    unsigned long long s = seconds > 0 && seconds < 1e15 ? (unsigned long long)seconds : 0;
    if (s < 60)
        snprintf(text, 32, "%llu s", s);
    else if (s < 3600)
        snprintf(text, 32, "%llu min %llu s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(text, 32, "%llu h %llu min", s / 3600, s / 60 % 60);
    else
        snprintf(text, 32, "%llu d %llu h", s / 86400, s / 3600 % 24);
    return text;
}

/* ---- Progress ---------------------------------------------------------------------------------------------------- */

static void write_page_head(psld_writer *page, const char *name, const psld_run_info *run, int refreshes)
{
    write_markup(page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    if (refreshes) write_markup(page, "<meta http-equiv=\"refresh\" content=\"%d\">\n", REFRESH);
    write_markup(page, "<title>");
    write_escaped(page, name);
    write_markup(page, ": step %llu of %llu</title>\n<style>\n", (unsigned long long)run->step,
                 (unsigned long long)run->steps);
    psld_writer_put(page, style, strlen(style));
    write_markup(page, "</style></head><body>\n<h1>");
    write_escaped(page, name);
    write_markup(page, "</h1>\n");
}

static void write_page_progress(psld_writer *page, const psld_run_info *run, const char *stopped)
{
    char taken[32], left[32], now[64] = "";
    double share = run->steps ? (double)run->step / (double)run->steps : 0;
    int finished = run->step >= run->steps;
    time_t seconds = time(NULL);
    struct tm utc;
    if (gmtime_r(&seconds, &utc)) strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S UTC", &utc);
    write_markup(page, "<p><b>%s</b>, step %llu of %llu, %s",
                 finished  ? "Finished"
                 : stopped ? "Stopped"
                           : "Training",
                 (unsigned long long)run->step, (unsigned long long)run->steps, format_duration(run->seconds, taken));
    if (!finished && run->step > 0)
        write_markup(page, ", about %s left",
                     format_duration(run->seconds / (double)run->step * (double)(run->steps - run->step), left));
    write_markup(page, ". Written %s%s.", now, finished || stopped ? "" : "; reloads by itself");
    if (!finished && stopped) {
        write_markup(page, " Why it stopped: ");
        write_escaped(page, stopped);
        write_markup(page, ". <code>psld train -o</code> with this folder goes on.");
    }
    write_markup(page, "</p>\n<div class=\"bar\"><div style=\"width:%d%%\"></div></div>\n",
                 (int)(100 * (share < 1 ? share : 1)));
}

static void write_page_numbers(psld_writer *page, const psld_run_info *run)
{
    char text[32];
    write_markup(page, "<table>\n");
    if (!isnan(run->loss)) write_table_row(page, "loss, last steps", "%s", format_number(run->loss, text));
    if (!isnan(run->held_out)) write_table_row(page, "loss, held-out data", "%s", format_number(run->held_out, text));
    if (!isnan(run->accuracy))
        write_table_row(page, "accuracy, held-out data", "%s %%", format_number(100 * run->accuracy, text));
    if (run->checkpoints) write_table_row(page, "last checkpoint", "step %llu", (unsigned long long)run->saved);
    write_markup(page, "</table>\n");
}

/* ---- Pictures ---------------------------------------------------------------------------------------------------- */

/* The step after the name makes browsers load a changed picture again. */
static void write_page_curves(psld_writer *page, psld_training *t, unsigned long long step)
{
    static const char *const names[] = {"loss.png", "accuracy.png"};
    for (int i = 0; i < 2; i++)
        if (access(psld_run_folder_file(t->run, names[i]), F_OK) == 0)
            write_markup(page, "<p><img src=\"%s?%llu\" alt=\"%s\"></p>\n", names[i], step, names[i]);
}

static int compare_steps(const void *a, const void *b)
{
    const unsigned long long *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

/* The steps that have a picture in samples/, in order. Release with psld_release. */
static psld_status list_pictures(psld_training *t, unsigned long long **steps, size_t *count)
{
    void *list = NULL;
    size_t capacity = 0;
    psld_status status = PSLD_OK;
    *count = 0;
    DIR *folder = opendir(psld_run_folder_file(t->run, "samples"));
    const struct dirent *entry;
    while (status == PSLD_OK && folder && (entry = readdir(folder))) {
        unsigned long long step;
        char again[64];
        if (sscanf(entry->d_name, "step-%llu.png", &step) != 1) continue;
        snprintf(again, sizeof again, PSLD_PICTURE_NAME, step);
        if (strcmp(again + strlen("samples/"), entry->d_name) != 0) continue;
        status = psld_grow(&list, &capacity, *count + 1, sizeof step);
        if (status == PSLD_OK) ((unsigned long long *)list)[(*count)++] = step;
    }
    if (folder) closedir(folder);
    *steps = list;
    if (*count) qsort(list, *count, sizeof **steps, compare_steps);
    return status;
}

static void write_page_picture(psld_writer *page, const psld_training *t, unsigned long long step, int newest)
{
    char name[64];
    snprintf(name, sizeof name, PSLD_PICTURE_NAME, step);
    write_markup(page,
                 "<figure><img class=\"%s%s\" src=\"%s\" alt=\"samples\"><figcaption>step %llu</figcaption></figure>\n",
                 newest ? "newest" : "", t->model->rank == 3 ? " pixels" : "", name, step);
}

/* The newest picture, large, and those of earlier steps. */
static psld_status write_page_pictures(psld_writer *page, psld_training *t)
{
    unsigned long long *steps = NULL;
    size_t count = 0;
    psld_status status = list_pictures(t, &steps, &count);
    if (status == PSLD_OK && count > 0) {
        size_t shown = count < PICTURES ? count : PICTURES;
        write_markup(page, "<h2>Samples</h2>\n");
        write_page_picture(page, t, steps[count - 1], 1);
        write_markup(page, "<h2>Samples over the steps</h2>\n<div class=\"grid\">\n");
        for (size_t i = 0; i < shown; i++) write_page_picture(page, t, steps[(i + 1) * count / shown - 1], 0);
        write_markup(page, "</div>\n");
    }
    psld_release(steps);
    return status;
}

/* ---- What is trained --------------------------------------------------------------------------------------------- */

static void write_page_data(psld_writer *page, const psld_training *t)
{
    char shape[128] = "";
    for (int i = 0; i < t->model->rank; i++) {
        size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%s%zu", i ? " x " : "", t->model->shape[i]);
    }
    write_table_row(page, "data", "%.400s: %s, %llu items of %s", t->settings.data.path, psld_data_kind(t->data),
                    (unsigned long long)psld_data_count(t->data), shape);
    if (psld_data_classes(t->data)) write_table_row(page, "classes", "%zu", psld_data_classes(t->data));
}

static void write_page_config(psld_writer *page, const psld_training *t)
{
    char number[32];
    const psld_settings *s = &t->settings;
    write_markup(page, "<h2>Configuration</h2>\n<table>\n");
    write_table_row(page, "network", "%s, %s million parameters", t->objective->name,
                    format_number((double)psld_model_parameters(t->model) / 1e6, number));
    write_table_row(page, "recipe", "%s", psld_model_process_name(t->model));
    write_page_data(page, t);
    write_table_row(page, "steps", "%lld of %lld samples each", (long long)s->train.steps, (long long)s->train.batch);
    write_table_row(page, "learning rate", "%s", format_number(s->train.lr, number));
    write_table_row(page, "seed", "%lld", (long long)s->seed);
    write_markup(page, "</table>\n<details><summary>all of config.yaml</summary><pre>");
    write_escaped(page, t->config);
    write_markup(page, "</pre></details>\n");
}

/* ---- The page ---------------------------------------------------------------------------------------------------- */

static psld_status fill_page(psld_writer *page, psld_training *t, const psld_run_info *run, const char *stopped)
{
    const char *path = psld_run_folder_path(t->run), *slash = strrchr(path, '/');
    write_page_head(page, slash ? slash + 1 : path, run, !stopped && run->step < run->steps);
    write_page_progress(page, run, stopped);
    write_page_numbers(page, run);
    write_page_curves(page, t, (unsigned long long)run->step);
    PSLD_TRY(write_page_pictures(page, t));
    write_page_config(page, t);
    write_markup(page, "<p>psld %s</p>\n</body></html>\n", psld_version());
    return PSLD_OK;
}

psld_status psld_training_page(psld_training *t, const char *stopped)
{
    psld_run_info run = PSLD_RUN_INFO_EMPTY;
    psld_writer *page;
    if (!t->run) return PSLD_OK;
    PSLD_TRY(psld_run_inspect(psld_run_folder_path(t->run), &run));
    PSLD_TRY(psld_writer_open(psld_run_folder_file(t->run, "index.html"), &page));
    psld_status status = fill_page(page, t, &run, stopped);
    if (status == PSLD_OK) return psld_writer_commit(page);
    psld_writer_abort(page);
    return status;
}
