/* log.jsonl as curves. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve_runs.h"

enum { COLUMNS = 5, BY_TIME = 50 };

static const char *const columns[COLUMNS] = {"step", "loss", "norm", "rate", "seconds"};
/* What is measured now and then. */
static const char *const measured[] = {"held_out", "held_out_raw", "held_out_accuracy", "metric"};
enum { MEASURED = sizeof measured / sizeof *measured };
static const char *const by_time[] = {"loss_by_t", "held_out_by_t", "loss_accuracy_by_t", "held_out_accuracy_by_t"};

typedef struct log_curves {
    double (*rows)[COLUMNS];
    size_t count, room;
    json_t *measured[MEASURED], *by_t;
    double after, until;
} log_curves;

static int add_row(log_curves *c, const json_t *line)
{
    if (c->count == c->room) {
        size_t room = 2 * c->room + 1024;
        double(*more)[COLUMNS] = realloc(c->rows, room * sizeof *more);
        if (!more) return 0;
        c->rows = more;
        c->room = room;
    }
    for (int i = 0; i < COLUMNS; i++) {
        const json_t *value = json_object_get(line, columns[i]);
        c->rows[c->count][i] = json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    c->count++;
    return 1;
}

static void add_measured(log_curves *c, const json_t *line, double step)
{
    for (int i = 0; i < MEASURED; i++) {
        json_t *value = json_object_get(line, measured[i]);
        if (json_is_number(value)) json_array_append_new(c->measured[i], json_pack("[f, O]", step, value));
    }
    if (!json_object_get(line, "loss_by_t")) return;
    json_t *row = json_pack("{s:f}", "step", step);
    for (size_t i = 0; i < sizeof by_time / sizeof *by_time; i++)
        if (json_object_get(line, by_time[i])) json_object_set(row, by_time[i], json_object_get(line, by_time[i]));
    json_array_append_new(c->by_t, row);
    if (json_array_size(c->by_t) > BY_TIME) json_array_remove(c->by_t, 0);
}

static int add_line(log_curves *c, const char *text, size_t length)
{
    json_t *line = json_loadb(text, length, 0, NULL);
    const json_t *number = json_object_get(line, "step");
    double step = json_number_value(number);
    int fine = 1;
    if (json_is_number(number) && step > c->after && step <= c->until) {
        fine = add_row(c, line);
        add_measured(c, line, step);
    }
    json_decref(line);
    return fine;
}

/* Means over groups of so many rows. */
static json_t *thin_curve(const log_curves *c, int column, size_t each)
{
    json_t *list = json_array();
    for (size_t begin = 0; begin < c->count; begin += each) {
        double sum = 0, number = 0;
        for (size_t i = begin; i < c->count && i < begin + each; i++)
            if (isfinite(c->rows[i][column])) sum += c->rows[i][column], number++;
        json_array_append_new(list, cli_json_number(number > 0 ? sum / number : (double)NAN));
    }
    return list;
}

static json_t *curves_as_json(log_curves *c, size_t points)
{
    json_t *object = json_object();
    size_t each = (c->count + points - 1) / points;
    double last = c->after;
    for (size_t i = 0; i < c->count; i++) last = fmax(last, c->rows[i][0]);
    for (int i = 0; i < COLUMNS; i++) json_object_set_new(object, columns[i], thin_curve(c, i, each ? each : 1));
    for (int i = 0; i < MEASURED; i++) json_object_set(object, measured[i], c->measured[i]);
    json_object_set(object, "by_t", c->by_t);
    json_object_set_new(object, "last", cli_json_number(last));
    return object;
}

json_t *serve_log_curves(int fd, long *offset, double after, double until, size_t points)
{
    log_curves c = {.after = after, .until = until, .by_t = json_array()};
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *file = own >= 0 ? fdopen(own, "r") : NULL;
    for (int i = 0; i < MEASURED; i++) c.measured[i] = json_array();
    if (file) fseek(file, *offset, SEEK_SET);
    while (file && (length = getline(&line, &room, file)) > 0 && line[length - 1] == '\n') {
        *offset += length;
        if (!add_line(&c, line, (size_t)length)) break;
    }
    if (file) fclose(file);
    free(line);
    json_t *object = curves_as_json(&c, points);
    for (int i = 0; i < MEASURED; i++) json_decref(c.measured[i]);
    json_decref(c.by_t);
    free(c.rows);
    return object;
}
