/* psld recipe for recipes with formulas: the results of the checks, and the exchange that belongs to their drift. */
#include "recipe_full.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_2 = 128, POINTS_3 = 64 };

static void print_names(const psld_process *process)
{
    int data = psld_process_data(process);
    const char *name;
    printf("  %-12s", "data");
    for (int i = 0; i < data; i++) printf("%s%s", i ? ", " : "", psld_process_variable(process, i));
    printf("\n");
    if (!psld_process_variable(process, data)) return;
    printf("  %-12s", "auxiliary");
    for (int i = data; (name = psld_process_variable(process, i)); i++) printf("%s%s", i > data ? ", " : "", name);
    printf("\n");
}

static void print_report(const psld_process *process, const psld_process_report *r)
{
    printf("%s: dz = beta [-(D + Q) grad H + tau] dt + sqrt(2 beta D) dw, %d variables\n", psld_process_name(process),
           psld_process_variables(process));
    print_names(process);
    printf("  %-12s", "region");
    for (int i = 0; i < psld_process_variables(process); i++)
        printf("%s%s %.3g to %.3g", i ? ", " : "", psld_process_variable(process, i), r->low[i], r->high[i]);
    printf("\n  %-12sleast eigenvalue %.3g of the largest entry there: positive semidefinite\n", "D",
           r->least_eigenvalue);
    printf("  %-12sQ + Q' is %.2g of Q: skew-symmetric\n", "Q", r->skewness);
    printf("  %-12sresidual of the Fokker-Planck equation %.2g of its terms, by exact derivatives\n", "stationary",
           r->residual);
    for (int i = 0; i < r->grids; i++) {
        printf("  %-12s%.0f points a variable: residual %.3g by differences", i ? "" : "grid", r->points[i],
               r->grid_residual[i]);
        printf(i ? ", falls as step^%.2f\n" : "\n", r->rate[i]);
    }
    printf("  %-12sdistance %.3g from exp(-H) after t = 1 from there (chance: %.3g)\n", "simulation", r->drift_away,
           r->chance);
    printf("  %-12sdistance %.3g from data at 0: T is %s\n", "mixing", r->mixing,
           r->mixing < r->chance + 0.05 ? "long enough" : "too short, raise beta");
}

static json_t *report_json(const psld_process *process, const psld_process_report *r)
{
    size_t n = (size_t)psld_process_variables(process), grids = (size_t)r->grids;
    json_t *object = json_object(), *names = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(names, json_string(psld_process_variable(process, (int)i)));
    json_object_set_new(object, "name", json_string(psld_process_name(process)));
    json_object_set_new(object, "variables", names);
    json_object_set_new(object, "data", json_integer(psld_process_data(process)));
    json_object_set_new(object, "low", cli_json_numbers(r->low, n));
    json_object_set_new(object, "high", cli_json_numbers(r->high, n));
    json_object_set_new(object, "least_eigenvalue", cli_json_number(r->least_eigenvalue));
    json_object_set_new(object, "skewness", cli_json_number(r->skewness));
    json_object_set_new(object, "residual", cli_json_number(r->residual));
    json_object_set_new(object, "grid_points", cli_json_numbers(r->points, grids));
    json_object_set_new(object, "grid_residual", cli_json_numbers(r->grid_residual, grids));
    json_object_set_new(object, "grid_rate", cli_json_numbers(r->rate, grids));
    json_object_set_new(object, "simulation", cli_json_number(r->drift_away));
    json_object_set_new(object, "chance", cli_json_number(r->chance));
    json_object_set_new(object, "mixing", cli_json_number(r->mixing));
    return object;
}

/* ---- The exchange ------------------------------------------------------------------------------------------------ */

static psld_status save_exchange(const psld_process *process, int points, const psld_exchange *e, const char *path)
{
    size_t n = (size_t)psld_process_variables(process), shape[5] = {0}, side = (size_t)points;
    psld_array *Q = NULL;
    for (size_t i = 0; i < n; i++) shape[i] = side;
    shape[n] = shape[n + 1] = n;
    psld_status status = psld_array_create(PSLD_F64, (int)n + 2, shape, &Q);
    if (status == PSLD_OK) {
        memcpy(Q->data, e->Q, Q->count * sizeof(double));
        status = psld_array_save(Q, path);
    }
    psld_array_free(Q);
    return status;
}

/* Computes it, and writes it if a file is given. */
static psld_status find_exchange(const psld_process *process, const recipe_full *r, int points, psld_exchange *e)
{
    size_t n = (size_t)psld_process_variables(process), total = n * n;
    for (size_t i = 0; i < n && n <= 3; i++) total *= (size_t)points;
    if (r->exchange_path && n <= 3) e->Q = malloc(total * sizeof *e->Q);
    if (r->exchange_path && n <= 3 && !e->Q) return cli_bad_input("out of memory");
    psld_status status = psld_process_exchange(process, points, e);
    if (status == PSLD_OK && r->exchange_path) status = save_exchange(process, points, e, r->exchange_path);
    free(e->Q);
    e->Q = NULL;
    return status;
}

static json_t *exchange_json(size_t n, int points, const psld_exchange *e)
{
    json_t *found = json_object();
    json_object_set_new(found, "points", json_integer(points));
    json_object_set_new(found, "low", cli_json_numbers(e->low, n));
    json_object_set_new(found, "high", cli_json_numbers(e->high, n));
    json_object_set_new(found, "skewness", cli_json_number(e->skewness));
    json_object_set_new(found, "current", cli_json_number(e->current));
    json_object_set_new(found, "known", e->known >= 0 ? cli_json_number(e->known) : json_null());
    return found;
}

/* In three variables Q is not unique, so its difference from that of the file has no meaning. */
static void print_exchange(size_t n, int points, const psld_exchange *e, const char *path)
{
    printf("  %-12sQ from the drift, %d points a variable: gives the current to %.2g of its largest", "converse",
           points, e->current);
    if (n == 2 && e->known >= 0) printf("; %.2g of Q from that of the file", e->known);
    printf("\n");
    if (path) printf("  %-12s%s\n", "", path);
}

psld_status recipe_full_show(const psld_process *process, const recipe_full *r, int *exit_code)
{
    psld_process_report report = PSLD_PROCESS_REPORT_EMPTY;
    psld_exchange exchange = PSLD_EXCHANGE_EMPTY;
    size_t n = (size_t)psld_process_variables(process);
    int points = r->points ? r->points : n == 2 ? POINTS_2 : POINTS_3;
    psld_status status = psld_process_check(process, 0, &report);
    if (status == PSLD_OK && r->exchange) status = find_exchange(process, r, points, &exchange);
    if (status == PSLD_OK && r->plot) status = psld_plot_process(process, &report, r->plot);
    if (status != PSLD_OK) return status;
    if (r->json) {
        json_t *object = report_json(process, &report);
        if (r->exchange) json_object_set_new(object, "exchange", exchange_json(n, points, &exchange));
        *exit_code = cli_json_print(object);
        return PSLD_OK;
    }
    print_report(process, &report);
    if (r->exchange) print_exchange(n, points, &exchange, r->exchange_path);
    if (r->plot) printf("\nplot: %s\n", r->plot);
    return PSLD_OK;
}
