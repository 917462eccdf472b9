/* Lines of log.jsonl: one JSON object per step, with `step` and `loss`, and what was measured after the step. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "train/training.h"

enum {
    LOSS_DIGITS = 9,
    OTHER_DIGITS = 6,
    SECONDS_DIGITS = 4,
    FILE_DIGITS = 15, /* numbers with fewer significant digits are written with these alone */
};

/* A number rounded to so many significant digits. JSON has no infinite numbers or NaN: they become null. */
static json_t *rounded(int digits, double number)
{
    char text[32];
    int64_t whole;
    if (!isfinite(number)) return json_null();
    psld_text_print(text, sizeof text, "%.*g", digits, number);
    if (psld_text_integer(text, &whole)) return json_integer(whole);
    psld_text_number(text, &number);
    return json_real(number);
}

/* These functions return a value other than 0 if memory runs out. */

static int set_number(json_t *line, const char *set, const char *what, int digits, double number)
{
    char key[64];
    psld_text_print(key, sizeof key, "%s%s", set, what);
    return json_object_set_new(line, key, rounded(digits, number));
}

/* The mean of each bin; null for empty bins. */
static int set_bins(json_t *line, const char *set, const char *what, double scale, const double *sums,
                    const double *counts)
{
    char key[64];
    json_t *means = json_array();
    int failed = 0;
    psld_text_print(key, sizeof key, "%s%s", set, what);
    for (int i = 0; i < PSLD_BINS; i++)
        failed |= json_array_append_new(
            means, rounded(OTHER_DIGITS, counts[i] > 0 ? scale * sums[i] / counts[i] : (double)NAN));
    return failed | json_object_set_new(line, key, means);
}

/* Losses by time of `set`, training or held-out data; of classifiers accuracies too. */
static int set_by_time(json_t *line, const psld_training *t, const char *set, const psld_bins *bins)
{
    int failed = set_bins(line, set, "_by_t", t->scale, bins->loss, bins->count);
    if (!t->objective->looks_at_output) return failed;
    failed |= set_number(line, set, "_accuracy", OTHER_DIGITS, psld_bins_accuracy(bins));
    return failed | set_bins(line, set, "_accuracy_by_t", 1, bins->hits, bins->count);
}

static int fill_line(json_t *line, const psld_training *t, const psld_training_report *r, const psld_bins *held_out)
{
    int failed = json_object_set_new(line, "step", json_integer((json_int_t)r->step));
    failed |= set_number(line, "loss", "", LOSS_DIGITS, r->loss);
    if (!isnan(r->bits)) failed |= set_number(line, "bits", "", LOSS_DIGITS, r->bits);
    failed |= set_number(line, "norm", "", OTHER_DIGITS, r->norm);
    failed |= set_number(line, "rate", "", OTHER_DIGITS, r->rate);
    failed |= set_number(line, "seconds", "", SECONDS_DIGITS, r->seconds);
    if (!isnan(r->metric)) failed |= set_number(line, "metric", "", LOSS_DIGITS, r->metric);
    if (held_out) failed |= set_by_time(line, t, "loss", &t->bins);
    if (held_out && !isnan(r->held_out)) {
        failed |= set_number(line, "held_out", "", LOSS_DIGITS, r->held_out);
        failed |= set_by_time(line, t, "held_out", held_out);
    }
    if (!isnan(r->held_out_raw)) failed |= set_number(line, "held_out_raw", "", LOSS_DIGITS, r->held_out_raw);
    return failed;
}

/* The same numbers for TensorBoard. */
static psld_status log_scalars(const psld_training *t, const psld_training_report *r)
{
    const psld_scalar scalars[] = {{"train/loss", r->loss},
                                   {"train/bits", r->bits},
                                   {"train/gradient_norm", r->norm},
                                   {"train/learning_rate", r->rate},
                                   {"train/seconds_per_step", r->seconds},
                                   {"held_out/loss", r->held_out},
                                   {"held_out/loss_of_raw_weights", r->held_out_raw},
                                   {"held_out/accuracy", r->accuracy},
                                   {"samples/distance", r->metric}};
    return psld_events_scalars(t->events, (long)r->step, sizeof scalars / sizeof *scalars, scalars);
}

psld_status psld_training_log_step(psld_training *t, const psld_training_report *report, const psld_bins *held_out)
{
    if (!t->run) return PSLD_OK;
    json_t *line = json_object();
    int failed = fill_line(line, t, report, held_out);
    char *text = failed ? NULL : json_dumps(line, JSON_REAL_PRECISION(FILE_DIGITS));
    psld_status status = text ? psld_run_folder_log(t->run, text) : psld_fail(PSLD_NO_MEMORY, "out of memory");
    free(text);
    json_decref(line);
    return status == PSLD_OK && t->events ? log_scalars(t, report) : status;
}
