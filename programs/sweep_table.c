#include "sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 256, MAX_CURVES = 64 };

/* A metric under its name in JSON. */
static const struct column {
    unsigned metric;
    const char *name, *spread;
    size_t offset; /* in psld_comparison */
} columns[] = {
    {PSLD_FRECHET, "fid", "fid_spread", offsetof(psld_comparison, frechet)},
    {PSLD_FRECHET, "frechet", "frechet_spread",
     offsetof(psld_comparison, frechet)}, /* of features that are not FID's */
    {PSLD_INCEPTION_SCORE, "is", "is_spread", offsetof(psld_comparison, score)},
    {PSLD_KID, "kid", "kid_spread", offsetof(psld_comparison, kid)},
    {PSLD_PRECISION_RECALL, "precision", "precision_spread", offsetof(psld_comparison, precision)},
    {PSLD_PRECISION_RECALL, "recall", "recall_spread", offsetof(psld_comparison, recall)},
    {PSLD_SLICED, "swd", "swd_spread", offsetof(psld_comparison, sliced)},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

void sweep_put_metrics(json_t *row, unsigned metrics, const psld_sweep_result *result)
{
    const char *wrong_name = result->is_fid ? "frechet" : "fid";
    for (int i = 0; i < COLUMNS; i++) {
        const char *at = (const char *)result->comparison + columns[i].offset;
        if ((metrics & columns[i].metric) && strcmp(columns[i].name, wrong_name) != 0)
            json_object_set_new(row, columns[i].name, cli_json_number(*(const double *)(const void *)at));
    }
}

/* ---- Seeds ------------------------------------------------------------------------------------------------------- */

/* Whether two rows are of the same cell but for the seed. Adaptive samplers may need other evaluations with each. */
static int same_but_seed(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"model", "process", "sampler", "grid", "tolerance", "number", "cfg", "nfe"};
    size_t count = sizeof names / sizeof *names - (json_object_get(a, "tolerance") != NULL);
    for (size_t i = 0; i < count; i++) {
        const json_t *x = json_object_get(a, names[i]), *y = json_object_get(b, names[i]);
        if ((x || y) && !json_equal(x, y)) return 0;
    }
    return 1;
}

/* Mean and standard deviation of a number of the rows that are the same as `row` but for the seed; how many have it. */
static size_t moments(const json_t *rows, const json_t *row, const char *name, double *mean, double *deviation)
{
    double square = 0;
    size_t count = 0, index;
    const json_t *other;
    *mean = 0;
    json_array_foreach(rows, index, other)
    {
        const json_t *value = json_object_get(other, name);
        if (!json_is_number(value) || !same_but_seed(row, other)) continue;
        double from_mean = json_number_value(value) - *mean;
        *mean += from_mean / (double)++count;
        square += from_mean * (json_number_value(value) - *mean);
    }
    *deviation = count > 1 ? sqrt(square / (double)(count - 1)) : 0;
    return count;
}

static json_t *column_mean(const json_t *rows, json_t *row)
{
    json_t *merged = json_copy(row);
    double mean, deviation;
    size_t seeds = moments(rows, row, "seed", &mean, &deviation);
    if (seeds < 2) return merged;
    json_object_del(merged, "seed");
    json_object_set_new(merged, "seeds", json_integer((json_int_t)seeds));
    moments(rows, row, "nfe", &mean, &deviation);
    json_object_set_new(merged, "nfe", json_integer((json_int_t)ceil(mean)));
    moments(rows, row, "seconds", &mean, &deviation);
    json_object_set_new(merged, "seconds", cli_json_number(mean));
    for (int i = 0; i < COLUMNS; i++)
        if (moments(rows, row, columns[i].name, &mean, &deviation)) {
            json_object_set_new(merged, columns[i].name, cli_json_number(mean));
            json_object_set_new(merged, columns[i].spread, cli_json_number(deviation));
        }
    return merged;
}

json_t *sweep_means(const json_t *rows)
{
    json_t *means = json_array();
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        size_t first = 0;
        while (!same_but_seed(row, json_array_get(rows, first))) first++;
        if (first == index) json_array_append_new(means, column_mean(rows, row));
    }
    return means;
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

static const char *const head[] = {"model", "process", "sampler", "grid",  "tolerance",
                                   "cfg",   "nfe",     "seed",    "seeds", "number"};
enum { HEAD = sizeof head / sizeof *head, NAMES = HEAD + 2 * COLUMNS + 1 };

static const char *name_at(int i)
{
    if (i < HEAD) return head[i];
    i -= HEAD;
    return i == 2 * COLUMNS ? "seconds" : i % 2 ? columns[i / 2].spread : columns[i / 2].name;
}

/* A value as text: nothing where a row has none. */
static void format_value(const json_t *value, int digits, char *text, size_t size)
{
    text[0] = 0;
    if (json_is_string(value)) snprintf(text, size, "%s", json_string_value(value));
    if (json_is_integer(value)) snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) snprintf(text, size, "%.*g", digits, json_real_value(value));
}

static void write_quoted(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) fprintf(file, "%s%c", *text == '"' ? "\"" : "", *text);
    fputc('"', file);
}

static void write_cell(FILE *file, const char *text, int csv, size_t width, int first)
{
    if (!first) fputs(csv ? "," : "  ", file);
    if (!csv)
        fprintf(file, "%-*s", (int)width, text);
    else if (strpbrk(text, ",\" \n"))
        write_quoted(file, text);
    else
        fputs(text, file);
}

static size_t column_width(const json_t *rows, const char *name, int digits)
{
    size_t width = 0, index;
    const json_t *row;
    char text[512];
    json_array_foreach(rows, index, row)
    {
        format_value(json_object_get(row, name), digits, text, sizeof text);
        if (strlen(text) > width) width = strlen(text);
    }
    return width > 0 && width < strlen(name) ? strlen(name) : width;
}

/* As text for people, or as CSV with all digits. */
static void write_table(FILE *file, const json_t *rows, int csv)
{
    size_t width[NAMES], count = json_array_size(rows);
    char text[512];
    int digits = csv ? 17 : 5;
    for (int c = 0; c < NAMES; c++) width[c] = column_width(rows, name_at(c), digits);
    for (size_t i = 0; i <= count; i++) {
        int first = 1;
        for (int c = 0; c < NAMES; c++) {
            if (width[c] == 0) continue;
            if (i == 0)
                snprintf(text, sizeof text, "%s", name_at(c));
            else
                format_value(json_object_get(json_array_get(rows, i - 1), name_at(c)), digits, text, sizeof text);
            write_cell(file, text, csv, width[c], first);
            first = 0;
        }
        fputc('\n', file);
    }
}

void sweep_print_table(const json_t *rows)
{
    write_table(stdout, rows, 0);
}

static void write_csv(FILE *file, const json_t *rows)
{
    write_table(file, rows, 1);
}

static void write_json(FILE *file, const json_t *rows)
{
    json_dumpf(rows, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
}

static psld_status save_rows(const char *path, const json_t *rows, void (*write)(FILE *, const json_t *))
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file) return cli_bad_input("%s: %s", path, strerror(errno));
    write(file, rows);
    int failed = ferror(file);
    failed |= fclose(file) != 0;
    psld_status status = failed ? cli_bad_input("%s: out of memory", path) : psld_text_save(text, path);
    free(text);
    return status;
}

psld_status sweep_save_table(const char *path, const json_t *rows)
{
    return save_rows(path, rows, write_csv);
}

psld_status sweep_save_json(const char *path, const json_t *rows)
{
    return save_rows(path, rows, write_json);
}

/* ---- The plot ---------------------------------------------------------------------------------------------------- */

typedef struct line {
    char label[LABEL];
    double *x, *y;
    size_t count;
} line;

/* What curves are drawn over: the guidance where it alone differs, or else the evaluations. */
static const char *abscissa_of(const json_t *rows)
{
    size_t index;
    json_t *row;
    const json_t *first = json_array_get(rows, 0);
    int guided = 0, budgets = 0;
    json_array_foreach(rows, index, row)
    {
        const json_t *cfg = json_object_get(row, "cfg");
        if (cfg && !json_equal(cfg, json_object_get(first, "cfg"))) guided = 1;
        if (!json_equal(json_object_get(row, "nfe"), json_object_get(first, "nfe"))) budgets = 1;
    }
    return guided && !budgets ? "cfg" : "nfe";
}

/* What a curve is called; over evaluations there is one per guidance. */
static void row_label(const json_t *row, int with_cfg, char label[LABEL])
{
    const json_t *cfg = json_object_get(row, "cfg");
    static const char *const parts[] = {"model", "process", "sampler", "grid"};
    label[0] = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *text = json_string_value(json_object_get(row, parts[i]));
        size_t length = strlen(label);
        if (text) snprintf(label + length, LABEL - length, "%s%.60s", length ? " " : "", text);
    }
    size_t length = strlen(label);
    if (with_cfg && cfg) snprintf(label + length, LABEL - length, " cfg %g", json_number_value(cfg));
}

static size_t collect_lines(const json_t *rows, const char *metric, const char *abscissa, line *lines)
{
    size_t count = 0, all = json_array_size(rows);
    for (size_t i = 0; i < all; i++) {
        const json_t *row = json_array_get(rows, i), *y = json_object_get(row, metric);
        char label[LABEL];
        size_t at = 0;
        row_label(row, strcmp(abscissa, "cfg") != 0, label);
        while (at < count && strcmp(lines[at].label, label) != 0) at++;
        if (at == count) {
            if (count == MAX_CURVES) continue;
            snprintf(lines[count].label, sizeof lines[count].label, "%s", label);
            lines[count].x = calloc(all, sizeof(double));
            lines[count].y = calloc(all, sizeof(double));
            count++;
        }
        if (!lines[at].x || !lines[at].y || !json_is_number(y) || !(json_number_value(y) > 0)) continue;
        lines[at].x[lines[at].count] = json_number_value(json_object_get(row, abscissa));
        lines[at].y[lines[at].count++] = json_number_value(y);
    }
    return count;
}

/* The first metric that the rows have. */
static const char *metric_of(const json_t *rows)
{
    for (int i = 0; i < COLUMNS; i++)
        if (column_width(rows, columns[i].name, 5)) return columns[i].name;
    return columns[0].name;
}

psld_status sweep_plot(const char *title, const json_t *rows, const char *path)
{
    static line lines[MAX_CURVES];
    psld_curve curves[MAX_CURVES];
    const char *metric = metric_of(rows), *abscissa = abscissa_of(rows);
    int over_cfg = strcmp(abscissa, "cfg") == 0;
    memset(lines, 0, sizeof lines);
    size_t count = collect_lines(rows, metric, abscissa, lines), drawn = 0;
    for (size_t i = 0; i < count; i++)
        if (lines[i].count)
            curves[drawn++] =
                (psld_curve){lines[i].label, lines[i].count, lines[i].x, lines[i].y, (int)(i % 8), (int)(i / 8 % 3)};
    psld_status status = PSLD_OK;
    if (drawn)
        status = psld_plot_curves(title, over_cfg ? "guidance (cfg)" : "evaluations",
                                  strcmp(metric, "frechet") ? metric : "frechet distance (not fid)", !over_cfg, 1,
                                  curves, drawn, path);
    for (size_t i = 0; i < count; i++) {
        free(lines[i].x);
        free(lines[i].y);
    }
    return status;
}
