/* psld design: searches for recipes, and keeps all results in a folder. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "design.h"
#include "results.h"

enum { KEY = 1024, PATH = 4096, MAX_STARTS = 24 };

typedef struct request {
    psld_design_options options;
    const char *out, *criterion;
    char *starts[MAX_STARTS];
    long nfe, trials, searches, number, final, directions, components;
    int json;
} request;

/* ---- Trials ------------------------------------------------------------------------------------------------------ */

static const char *const stages[] = {"start", "search", "final"};

static int is_whole(const json_t *row)
{
    return json_is_string(json_object_get(row, "recipe")) && json_object_get(row, "error") &&
           json_object_get(row, "distance") && json_object_get(row, "factors");
}

static json_t *row_of_costs(const char *key, const psld_design_costs *costs, const char *recipe)
{
    json_t *row = json_object();
    json_object_set_new(row, "key", json_string(key));
    json_object_set_new(row, "error", cli_json_number(costs->error));
    json_object_set_new(row, "distance", cli_json_number(costs->distance));
    json_object_set_new(row, "factors", cli_json_number(costs->factors));
    json_object_set_new(row, "recipe", json_string(recipe));
    return row;
}

/* The role of a trial in this run, which may differ from that in the run that measured it. */
static void add_trial(json_t *row, const psld_design_trial *trial, double total)
{
    json_object_set_new(row, "stage", json_string(stages[trial->stage]));
    json_object_set_new(row, "name", json_string(psld_recipe_get(trial->recipe)->name));
    json_object_set_new(row, "number", json_integer((json_int_t)trial->number));
    json_object_set_new(row, "total", cli_json_number(total));
    if (trial->is_best) json_object_set_new(row, "best", json_true());
}

typedef struct share {
    cli_progress progress;
    uint64_t trial, trials;
} share;

static int design_report_share(void *user, uint64_t done, uint64_t total)
{
    share *s = user;
    return cli_progress_report(&s->progress, s->trial * 1000 + 1000 * done / (total ? total : 1), 1000 * s->trials);
}

/* Measures a new trial, and keeps its row. */
static psld_status measure_trial(psld_design *design, const psld_design_trial *trial, const char *key, const char *path,
                                 share *s, json_t **row)
{
    psld_design_costs costs = PSLD_DESIGN_COSTS_EMPTY;
    char *recipe = NULL;
    psld_status status = psld_design_measure(design, design_report_share, s, &costs);
    if (status == PSLD_OK) status = psld_recipe_text(trial->recipe, &recipe);
    if (status == PSLD_OK) {
        *row = row_of_costs(key, &costs, recipe);
        status = results_append(path, *row);
    }
    psld_text_free(recipe);
    return status;
}

static psld_status tell_row(psld_design *design, const psld_design_trial *trial, json_t *row)
{
    psld_design_costs costs = PSLD_DESIGN_COSTS_EMPTY;
    costs.error = design_number(row, "error");
    costs.distance = design_number(row, "distance");
    costs.factors = design_number(row, "factors");
    psld_status status = psld_design_tell(design, &costs);
    add_trial(row, trial, costs.total);
    return status;
}

static psld_status run_trials(psld_design *design, const char *path, json_t *rows)
{
    json_t *done = results_load(path, is_whole);
    share s = {.trial = 0};
    psld_status status = PSLD_OK;
    cli_progress_begin(&s.progress, "design");
    while (status == PSLD_OK) {
        char key[KEY];
        json_t *row = NULL;
        psld_design_trial trial = PSLD_DESIGN_TRIAL_EMPTY;
        status = psld_design_next(design, &trial);
        if (status != PSLD_OK || !trial.recipe) break;
        s.trial = trial.number;
        s.trials = trial.total;
        status = psld_design_key(design, key, sizeof key);
        const json_t *before = status == PSLD_OK ? json_object_get(done, key) : NULL;
        if (before)
            row = json_deep_copy(before);
        else if (status == PSLD_OK)
            status = measure_trial(design, &trial, key, path, &s, &row);
        if (status == PSLD_OK) status = tell_row(design, &trial, row);
        if (row) json_array_append_new(rows, row);
    }
    cli_progress_end(&s.progress);
    json_decref(done);
    return status;
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* The row with the least total among starts and search. */
static const json_t *best_row(const json_t *rows)
{
    size_t index;
    const json_t *row, *best = NULL;
    json_array_foreach(rows, index, row)
    {
        int is_final = strcmp(json_string_value(json_object_get(row, "stage")), "final") == 0;
        if (!is_final && (!best || design_number(row, "total") < design_number(best, "total"))) best = row;
    }
    return best;
}

static int design_show_json(const json_t *rows, const json_t *front, const json_t *best, double floor)
{
    json_t *object = json_object();
    json_object_set_new(object, "best", json_deep_copy(best));
    json_object_set_new(object, "front", json_deep_copy(front));
    json_object_set_new(object, "rows", json_deep_copy(rows));
    json_object_set_new(object, "floor", cli_json_number(floor));
    return cli_json_print(object);
}

static int design_show(psld_design *design, const request *r, const json_t *rows)
{
    design_axes axes = design_axes_of(r->criterion);
    const json_t *best = best_row(rows);
    json_t *front = design_front(rows, axes);
    double floor = 0;
    int exit_code = EXIT_DONE;
    psld_status status = design_write(r->out, rows, front, axes, best);
    if (status == PSLD_OK && strcmp(axes.first, "error") == 0) status = psld_design_floor(design, &floor);
    if (status == PSLD_OK && r->json)
        exit_code = design_show_json(rows, front, best, floor);
    else if (status == PSLD_OK)
        design_print(rows, front, axes, best, floor);
    json_decref(front);
    return status == PSLD_OK ? exit_code : cli_failed(status);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* Recipes to begin from, each followed by its overrides. */
static int collect_starts(const cli_command *command, const char **words, int count, request *r, int *starts)
{
    *starts = 0;
    for (int i = 0; i < count;) {
        int last = i + 1;
        while (last < count && strchr(words[last], '=')) last++;
        if (*starts == MAX_STARTS) return cli_wrong_usage(command, "at most %d recipes to begin from", MAX_STARTS);
        r->starts[*starts] = cli_join(words + i, last - i);
        if (!r->starts[*starts]) return cli_failed(PSLD_NO_MEMORY);
        ++*starts;
        i = last;
    }
    return EXIT_DONE;
}

static int set_of(long count)
{
    return count ? cli_int(count) : PSLD_UNSET;
}

static void settle_options(request *r, int starts)
{
    psld_design_options *o = &r->options;
    o->nfe = set_of(r->nfe);
    o->trials = set_of(r->trials);
    o->searches = set_of(r->searches);
    o->number = set_of(r->number);
    o->final_number = set_of(r->final);
    o->directions = set_of(r->directions);
    o->components = set_of(r->components);
    o->criterion = r->criterion;
    if (!starts) return;
    o->starts = (const char *const *)r->starts;
    o->start_count = starts;
}

static int design_all(const char *path, const request *r)
{
    char results[PATH];
    psld_design *design;
    psld_status status = psld_design_create(path, &r->options, &design);
    if (status != PSLD_OK) return cli_failed(status);
    json_t *rows = json_array();
    snprintf(results, sizeof results, "%s/results.jsonl", r->out);
    status = psld_folder_make(r->out);
    if (status == PSLD_OK) status = run_trials(design, results, rows);
    cli_kept("%s keeps the results so far; run the same command to continue", r->out);
    int exit_code = status == PSLD_OK ? design_show(design, r, rows) : cli_failed(status);
    json_decref(rows);
    psld_design_free(design);
    return exit_code;
}

static int design_run(const cli_command *command, int argc, char **argv)
{
    const char *words[64];
    int count, exit_code, starts;
    request r = {.options = PSLD_DESIGN_DEFAULTS, .criterion = "error"};
    psld_design_options *o = &r.options;
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "FOLDER",
         "where results are kept: results.jsonl, best.yaml, front-N.yaml, front.csv, front.svg", &r.out, NULL},
        {"criterion", 0, CLI_TEXT, "LIST",
         "error, distance, factors, or a sum of them, as error,distance=0.1 (default error)", &r.criterion, NULL},
        {"limit", 0, CLI_TEXT, "LIST",
         "largest allowed values, as distance=0.005,factors=2: recipes beyond them are rejected", &o->limits, NULL},
        {"learn", 0, CLI_TEXT, "LIST", "what to search: some of D,Q,mass,beta (default all)", &o->learn, NULL},
        {"sampler", 0, CLI_TEXT, "TEXT", "a sampler and its options, as \"dpm order=2\" (default sscs)", &o->sampler,
         NULL},
        {"nfe", 0, CLI_COUNT, "N", "evaluations per sample (default 10)", &r.nfe, NULL},
        {"trials", 0, CLI_COUNT, "N", "recipes to try, in addition to the starts (default 300)", &r.trials, NULL},
        {"searches", 0, CLI_COUNT, "N", "divide them among searches from so many of the best starts (default 2)",
         &r.searches, NULL},
        {"number", 'n', CLI_COUNT, "N", "samples per trial (default 2000)", &r.number, NULL},
        {"final", 0, CLI_COUNT, "N", "samples of the final comparison (default 10000)", &r.final, NULL},
        {"directions", 0, CLI_COUNT, "N",
         "directions of the sliced distance per trial; four times as many in the final comparison (default 64)",
         &r.directions, NULL},
        {"components", 0, CLI_COUNT, "N", "for data: the first N items become the mixture (default 1000)",
         &r.components, NULL},
        {"scale", 0, CLI_NUMBER, "S", "for data: standard deviation of each component (default 0.1)", &o->scale, NULL},
        {"seed", 0, CLI_SEED, "N", "seed of samples, data and search (default 0)", &o->seed, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &r.json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 64) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count < 1) return cli_wrong_usage(command, "no mixture given; expected an exact model (.yaml) or data");
    if (!r.out) return cli_wrong_usage(command, "no output given; add -o FOLDER");
    exit_code = collect_starts(command, words + 1, count - 1, &r, &starts);
    settle_options(&r, starts);
    if (exit_code == EXIT_DONE) exit_code = design_all(words[0], &r);
    for (int i = 0; i < starts; i++) free(r.starts[i]);
    return exit_code;
}

const cli_command command_design = {
    .name = "design",
    .summary = "searches for the best recipe for a sampler and a budget, without any network",
    .usage = "MODEL.yaml|DATA -o FOLDER [NAME|FILE [key=value ...] ...] [options]",
    .description =
        "Searches D, Q, masses and beta for the least error of a sampler at so many evaluations, the least distance "
        "from\n"
        "stationarity, the least error factors, or a weighted sum, on a mixture whose score is exact: that of an "
        "exact\n"
        "model, or data of which each item is a component. Recipes that follow are those to begin from (default: all\n"
        "presets). In the end the best one and these are compared again, with other random numbers.\n\n"
        "Trials are kept in FOLDER, and a second call goes on from there. docs/reference/design.md has the details.",
    .examples = "  psld design ring.yaml -o ring --sampler sscs --nfe 10\n"
                "  psld design ring.yaml -o ring-dpm --sampler dpm --nfe 20 --criterion error,distance=0.1 vp psld\n"
                "  psld design mnist/train-images-idx3-ubyte.gz -o digits --number 500 --trials 100\n",
    .run = design_run,
};
