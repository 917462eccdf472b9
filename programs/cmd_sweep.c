/* psld sweep: quality against cost, cell by cell; finished cells are kept in a folder. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results.h"
#include "sweep.h"

enum { KEY = 4096, PATH = 4096 };

typedef struct request {
    const char *out, *plot, *device;
    int json, estimate;
} request;

/* ---- Finished cells: one JSON object per line in OUT/results.jsonl, found by its key ----------------------------- */

static int is_whole(const json_t *row)
{
    return json_is_integer(json_object_get(row, "nfe")) && json_is_number(json_object_get(row, "seconds"));
}

/* The names of the cell in this sweep: another sweep may have given the same model another name. */
static void add_row_names(json_t *row, const psld_sweep *sweep, size_t index)
{
    psld_sweep_cell cell = PSLD_SWEEP_CELL_EMPTY;
    psld_sweep_cell_at(sweep, index, &cell);
    json_object_set_new(row, "model", json_string(cell.model));
    json_object_del(row, "process");
    if (cell.process) json_object_set_new(row, "process", json_string(cell.process));
}

static json_t *sweep_row_of(const char *key, const psld_sweep *sweep, size_t index, const psld_sweep_result *result)
{
    psld_sweep_cell cell = PSLD_SWEEP_CELL_EMPTY;
    json_t *row = json_object();
    psld_sweep_cell_at(sweep, index, &cell);
    json_object_set_new(row, "key", json_string(key));
    add_row_names(row, sweep, index);
    json_object_set_new(row, "sampler", json_string(cell.sampler));
    if (cell.grid) json_object_set_new(row, "grid", json_string(cell.grid));
    if (cell.tolerance > 0) json_object_set_new(row, "tolerance", cli_json_number(cell.tolerance));
    if (cell.has_cfg) json_object_set_new(row, "cfg", cli_json_number(cell.cfg));
    json_object_set_new(row, "nfe", json_integer((json_int_t)result->nfe));
    json_object_set_new(row, "seed", json_integer((json_int_t)cell.seed));
    json_object_set_new(row, "number", json_integer((json_int_t)psld_sweep_number(sweep)));
    sweep_put_metrics(row, psld_sweep_metrics(sweep), result);
    json_object_set_new(row, "seconds", cli_json_number(result->seconds));
    return row;
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

typedef struct share {
    cli_progress progress;
    uint64_t cell, cells;
} share;

static int sweep_report_share(void *user, uint64_t done, uint64_t total)
{
    share *s = user;
    return cli_progress_report(&s->progress, s->cell * 1000 + 1000 * done / (total ? total : 1), 1000 * s->cells);
}

/* Rows of all cells, finished before or now; after an interruption, of the finished ones. */
static psld_status run_cells(psld_sweep *sweep, const char *path, json_t *rows)
{
    size_t count = psld_sweep_count(sweep);
    json_t *done = results_load(path, is_whole);
    share s = {.cells = count};
    psld_status status = PSLD_OK;
    cli_progress_begin(&s.progress, psld_sweep_name(sweep));
    for (size_t i = 0; status == PSLD_OK && i < count; i++) {
        char key[KEY];
        psld_sweep_result result = PSLD_SWEEP_RESULT_EMPTY;
        s.cell = i;
        status = psld_sweep_key(sweep, i, key, sizeof key);
        json_t *before = status == PSLD_OK ? json_object_get(done, key) : NULL;
        if (before) {
            add_row_names(before, sweep, i);
            json_array_append_new(rows, json_copy(before)); /* another cell may be equal but have another name */
            continue;
        }
        if (status == PSLD_OK) status = psld_sweep_run(sweep, i, sweep_report_share, &s, &result);
        if (status != PSLD_OK) break;
        json_t *row = sweep_row_of(key, sweep, i, &result);
        status = results_append(path, row);
        json_array_append_new(rows, row);
    }
    cli_progress_end(&s.progress);
    json_decref(done);
    return status;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static int sweep_estimate(psld_sweep *sweep, const request *r)
{
    double all = 0;
    char time[CLI_DURATION];
    size_t count = psld_sweep_count(sweep);
    for (size_t i = 0; i < count; i++) {
        double seconds;
        psld_status status = psld_sweep_estimate(sweep, i, &seconds);
        if (status != PSLD_OK) return cli_failed(status);
        all += seconds;
    }
    if (!r->json) {
        printf("%zu cells of %" PRIu64 " samples: about %s of sampling on this machine\n", count,
               psld_sweep_number(sweep), cli_duration(all, time));
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "cells", json_integer((json_int_t)count));
    json_object_set_new(object, "number", json_integer((json_int_t)psld_sweep_number(sweep)));
    json_object_set_new(object, "seconds", cli_json_number(all));
    return cli_json_print(object);
}

/* Every row goes to the tables, the means over seeds to the plot. */
static psld_status sweep_write_all(const psld_sweep *sweep, const request *r, const json_t *rows, const json_t *means)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/table.csv", r->out);
    psld_status status = sweep_save_table(path, rows);
    snprintf(path, sizeof path, "%s/table.json", r->out);
    if (status == PSLD_OK) status = sweep_save_json(path, rows);
    snprintf(path, sizeof path, "%s/plot.svg", r->out);
    return status == PSLD_OK ? sweep_plot(psld_sweep_name(sweep), means, path) : status;
}

static int sweep_all(psld_sweep *sweep, const request *r)
{
    char path[PATH];
    json_t *rows = json_array();
    snprintf(path, sizeof path, "%s/results.jsonl", r->out);
    psld_status status = psld_folder_make(r->out);
    if (status == PSLD_OK) status = run_cells(sweep, path, rows);
    cli_kept("%s keeps %zu of %zu cells; run the same command to continue with the others", r->out,
             json_array_size(rows), psld_sweep_count(sweep));
    json_t *means = sweep_means(rows);
    int several = json_array_size(means) < json_array_size(rows);
    if (status == PSLD_OK) status = sweep_write_all(sweep, r, rows, means);
    if (status == PSLD_OK && r->json) {
        json_t *object = json_object();
        json_object_set_new(object, "name", json_string(psld_sweep_name(sweep)));
        json_object_set(object, "rows", rows);
        if (several) json_object_set(object, "means", means);
        cli_json_print(object);
    } else if (status == PSLD_OK) {
        sweep_print_table(means);
    }
    json_decref(means);
    json_decref(rows);
    return status == PSLD_OK ? EXIT_DONE : cli_failed(status);
}

static int sweep_run(const cli_command *command, int argc, char **argv)
{
    const char *words[64];
    int count, exit_code;
    request r = {.device = NULL};
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "FOLDER", "where results are kept: results.jsonl, table.csv, table.json, plot.svg",
         &r.out, NULL},
        {"estimate", 0, CLI_FLAG, NULL, "measure a few evaluations and estimate the time", &r.estimate, NULL},
        CLI_DEVICE_OPTION(r.device),
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &r.json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 64) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count < 1) return cli_wrong_usage(command, "no sweep given; expected a file");
    for (int i = 1; i < count; i++)
        if (!strchr(words[i], '=')) return cli_wrong_usage(command, "%s: expected an override, key=value", words[i]);
    if (!r.estimate && !r.out) return cli_wrong_usage(command, "no output given; add -o FOLDER");
    psld_sweep *sweep;
    char path[CLI_PATH];
    psld_status status =
        psld_sweep_open(cli_find_config(words[0], "sweeps/", path), words + 1, (size_t)(count - 1), &sweep);
    if (status != PSLD_OK) return cli_failed(status);
    status = psld_sweep_set_device(sweep, cli_device(r.device));
    exit_code = status != PSLD_OK ? cli_failed(status) : r.estimate ? sweep_estimate(sweep, &r) : sweep_all(sweep, &r);
    psld_sweep_free(sweep);
    return exit_code;
}

const cli_command command_sweep = {
    .name = "sweep",
    .summary = "quality against cost over models, recipes, samplers and budgets",
    .usage = "SWEEP.yaml -o FOLDER [--estimate] [--json] [key=value ...]",
    .description =
        "Draws from every combination that the file lists and compares with the data: a table (text, CSV, JSON) "
        "and a plot. Finished cells are\n"
        "kept in FOLDER, and a second call continues from there. configs/sweeps/ has one for each table of the "
        "paper; docs/reference/evaluation.md says\n"
        "what a file may hold.",
    .examples = "  psld sweep configs/sweeps/mixture.yaml -o mixture\n"
                "  psld sweep configs/sweeps/cifar10-sde.yaml --estimate\n"
                "  psld sweep configs/sweeps/cifar10-ode.yaml -o ode weights=inception.safetensors number=50000\n",
    .run = sweep_run,
};
