#include "design.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 4096, MAX_STARTS = 24 };

double design_number(const json_t *row, const char *name)
{
    const json_t *value = json_object_get(row, name);
    return json_is_number(value) ? json_number_value(value) : (double)INFINITY;
}

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static int is_stage(const json_t *row, const char *stage)
{
    return strcmp(text_of(row, "stage"), stage) == 0;
}

/* ---- The front --------------------------------------------------------------------------------------------------- */

design_axes design_axes_of(const char *criterion)
{
    design_axes axes = {NULL, NULL};
    const psld_design_criterion_info *row;
    for (int i = 0; (row = psld_design_criterion_at(i)); i++) {
        if (!strstr(criterion, row->name)) continue;
        if (!axes.first)
            axes.first = row->name;
        else if (!axes.second)
            axes.second = row->name;
    }
    if (!axes.second) axes.second = strcmp(axes.first, "distance") == 0 ? "factors" : "distance";
    return axes;
}

/* Whether b is at least as good as a in both, and better in one. */
static int is_beaten(const json_t *a, const json_t *b, design_axes axes)
{
    double x = design_number(a, axes.first), y = design_number(a, axes.second);
    double u = design_number(b, axes.first), v = design_number(b, axes.second);
    return u <= x && v <= y && (u < x || v < y);
}

static int on_front(const json_t *rows, const json_t *row, design_axes axes)
{
    size_t index;
    const json_t *other;
    if (is_stage(row, "final") || isinf(design_number(row, axes.first) + design_number(row, axes.second))) return 0;
    json_array_foreach(rows, index, other)
    {
        if (!is_stage(other, "final") && is_beaten(row, other, axes)) return 0;
    }
    return 1;
}

json_t *design_front(const json_t *rows, design_axes axes)
{
    json_t *front = json_array();
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        size_t place = 0;
        if (!on_front(rows, row, axes)) continue;
        while (place < json_array_size(front) &&
               design_number(json_array_get(front, place), axes.second) <= design_number(row, axes.second))
            place++;
        json_array_insert(front, place, row);
    }
    return front;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static void write_front(FILE *file, const json_t *front)
{
    size_t index;
    const json_t *row;
    fprintf(file, "file,name,error,distance,factors,total\n");
    json_array_foreach(front, index, row)
    {
        fprintf(file, "front-%zu.yaml,%s,%.17g,%.17g,%.17g,%.17g\n", index + 1, text_of(row, "name"),
                design_number(row, "error"), design_number(row, "distance"), design_number(row, "factors"),
                design_number(row, "total"));
    }
}

static psld_status save_table(const char *path, const json_t *front)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file) return cli_bad_input("%s: %s", path, strerror(errno));
    write_front(file, front);
    int failed = ferror(file);
    failed |= fclose(file) != 0;
    psld_status status = failed ? cli_bad_input("%s: out of memory", path) : psld_text_save(text, path);
    free(text);
    return status;
}

static psld_status save_recipe(const char *folder, const char *name, const json_t *row)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return psld_text_save(text_of(row, "recipe"), path);
}

/* The front as a curve, and a point for each recipe that the search began from. */
static psld_status draw_front(const char *path, const json_t *rows, const json_t *front, design_axes axes)
{
    size_t count = json_array_size(front), index, starts = 0;
    double *x = calloc(count + MAX_STARTS, 2 * sizeof *x), *y = x ? x + count + MAX_STARTS : NULL;
    psld_curve curves[MAX_STARTS + 1];
    const json_t *row;
    if (!x) return cli_bad_input("%s: out of memory", path);
    for (size_t i = 0; i < count; i++) {
        x[i] = design_number(json_array_get(front, i), axes.second);
        y[i] = design_number(json_array_get(front, i), axes.first);
    }
    curves[0] = (psld_curve){"front", count, x, y, 0, 0};
    json_array_foreach(rows, index, row)
    {
        double a = design_number(row, axes.second), b = design_number(row, axes.first);
        if (!is_stage(row, "start") || starts == MAX_STARTS || isinf(a + b)) continue;
        x[count + starts] = a;
        y[count + starts] = b;
        curves[starts + 1] =
            (psld_curve){text_of(row, "name"), 1, x + count + starts, y + count + starts, (int)(1 + starts % 7),
                         (int)(starts / 7 % 3)};
        starts++;
    }
    psld_status status = psld_plot_curves("front", axes.second, axes.first, 1, 1, curves, starts + 1, path);
    free(x);
    return status;
}

psld_status design_write(const char *folder, const json_t *rows, const json_t *front, design_axes axes,
                         const json_t *best)
{
    char path[PATH], name[64];
    psld_status status = save_recipe(folder, "best.yaml", best);
    for (size_t i = 0; status == PSLD_OK && i < json_array_size(front); i++) {
        snprintf(name, sizeof name, "front-%zu.yaml", i + 1);
        status = save_recipe(folder, name, json_array_get(front, i));
    }
    snprintf(path, sizeof path, "%s/front.csv", folder);
    if (status == PSLD_OK) status = save_table(path, front);
    snprintf(path, sizeof path, "%s/front.svg", folder);
    return status == PSLD_OK ? draw_front(path, rows, front, axes) : status;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void print_cost(double value)
{
    if (isinf(value))
        printf("  %10s", "failed");
    else
        printf("  %10.4g", value);
}

static void print_rows(const char *title, const json_t *rows, const char *stage)
{
    size_t index;
    const json_t *row;
    printf("%-24s  %10s  %10s  %10s\n", title, "error", "distance", "factors");
    json_array_foreach(rows, index, row)
    {
        if (stage && !is_stage(row, stage)) continue;
        printf("  %-22.22s", text_of(row, "name"));
        print_cost(design_number(row, "error"));
        print_cost(design_number(row, "distance"));
        print_cost(design_number(row, "factors"));
        printf("\n");
    }
}

static int has_stage(const json_t *rows, const char *stage)
{
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row)
    {
        if (is_stage(row, stage)) return 1;
    }
    return 0;
}

/* The smallest error of the starts in the final comparison. */
static double least_of_starts(const json_t *rows)
{
    size_t index;
    const json_t *row;
    double least = INFINITY;
    json_array_foreach(rows, index, row)
    {
        if (is_stage(row, "final") && !json_is_true(json_object_get(row, "best")))
            least = fmin(least, design_number(row, "error"));
    }
    return least;
}

void design_print(const json_t *rows, const json_t *front, design_axes axes, const json_t *best, double floor)
{
    char title[128];
    size_t index;
    const json_t *row;
    snprintf(title, sizeof title, "front: %s, %s", axes.first, axes.second);
    print_rows(title, front, NULL);
    printf("best: %s\n", text_of(best, "name"));
    if (!has_stage(rows, "final")) return;
    print_rows("final comparison", rows, "final");
    json_array_foreach(rows, index, row)
    {
        if (!json_is_true(json_object_get(row, "best"))) continue;
        double error = design_number(row, "error"), least = least_of_starts(rows);
        printf("two sets of the data: %.4g; error of the best: %.4g, %.3g times the smallest of the others (%.4g)\n",
               floor, error, error / least, least);
    }
}
