/* psld recipe: describes a process and analyses it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe_full.h"
#include "recipe_json.h"

enum { MAX_RECIPES = 16, MAX_TIMES = 1024 };

typedef struct request {
    psld_process *full[MAX_RECIPES]; /* those with formulas; */
    int full_count;
    psld_recipe *recipes[MAX_RECIPES]; /* and those of matrices */
    int count;
    double times[MAX_TIMES];
    int time_count;
    psld_mode mode;
} request;

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* Prints the numbers of a recipe in the form of a recipe file. */
static void print_matrix(const char *name, int k, const double *a)
{
    char text[PSLD_NUMBER_SIZE];
    printf("  %-12s", name);
    for (int i = 0; i < k; i++) {
        printf("%s[", i ? ", " : "");
        for (int j = 0; j < k; j++) printf("%s%s", j ? ", " : "", psld_text_shortest(a[i * k + j], text));
        printf("]");
    }
    printf("\n");
}

static void print_numbers(const char *name, const double *a, int count)
{
    char text[PSLD_NUMBER_SIZE];
    printf("  %-12s", name);
    for (int i = 0; i < count; i++) printf("%s%s", i ? ", " : "", psld_text_shortest(a[i], text));
    printf("\n");
}

static void print_process(const psld_recipe *recipe)
{
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    int variables[PSLD_MAX_K], predicted = psld_recipe_predicted(recipe, variables);
    char first[PSLD_NUMBER_SIZE], last[PSLD_NUMBER_SIZE];
    printf("%s: dz = -beta (D + Q) P z dt + sqrt(2 beta D) dw, %d variable%s\n", spec->name, spec->k,
           spec->k > 1 ? "s" : "");
    print_matrix("D", spec->k, spec->D);
    if (spec->k > 1) {
        print_matrix("Q", spec->k, spec->Q);
        print_numbers("mass", spec->mass, spec->k - 1);
        print_numbers("init", spec->init, spec->k - 1);
    }
    if (spec->beta_min == spec->beta_max)
        printf("  %-12s%s\n", "beta", psld_text_shortest(spec->beta_min, first));
    else
        printf("  %-12s%s to %s, linear in t\n", "beta", psld_text_shortest(spec->beta_min, first),
               psld_text_shortest(spec->beta_max, last));
    printf("  %-12seps of", "predicts");
    for (int i = 0; i < predicted; i++) printf(" %s", recipe_variable_name(spec->k, variables[i]));
    printf(" (%d channel%s for each of the data's)\n", predicted, predicted > 1 ? "s" : "");
    if (spec->upper || spec->natural) printf("  %-12s%s\n", "factor", recipe_factor_name(spec));
    if (spec->mode == PSLD_DSM) printf("  %-12sdsm: eps is that of the kernel given all of z_0\n", "kernel");
}

static void print_analysis(int k, const psld_analysis *a)
{
    printf("  %-12s", "eigenvalues");
    for (int i = 0; i < k; i++) {
        printf("%s%.6g", i ? ", " : "", a->eigenvalue_re[i]);
        if (a->eigenvalue_im[i] != 0)
            printf(" %c %.6g i", a->eigenvalue_im[i] < 0 ? '-' : '+', fabs(a->eigenvalue_im[i]));
    }
    printf(" (times beta)\n  %-12s%s\n", "damping", psld_damping_name(a->damping));
    printf("  %-12s%.3g nats per coordinate from stationary at t = 1: T is %s\n", "mixing", a->distance,
           a->long_enough ? "long enough" : "too short, raise beta");
    printf("  %-12ssigma_eff = %.4g at t = 1\n", "noise", a->sigma_max);
}

static psld_status recipe_print_row(const psld_recipe *recipe, double t, psld_mode mode)
{
    double mean[PSLD_MAX_K * PSLD_MAX_K], cov[PSLD_MAX_K * PSLD_MAX_K], sigma = 0, distance = INFINITY;
    double first[PSLD_MAX_K], second[PSLD_MAX_K];
    int k = psld_recipe_get(recipe)->k;
    psld_status status = psld_recipe_kernel(recipe, t, mode, mean, cov, NULL);
    if (status == PSLD_OK && t > 0) status = psld_recipe_sigma(recipe, t, &sigma);
    if (status == PSLD_OK && t > 0) status = psld_recipe_distance(recipe, t, &distance);
    if (status == PSLD_OK && t > 0) status = psld_recipe_error_factors(recipe, t, first, second);
    if (status != PSLD_OK) return status;
    printf("  %9.3g %10.3e", t, sigma);
    for (int i = 0; i < k; i++) printf(" %10.3e", mean[i * k]);
    for (int i = 0; i < k; i++) printf(" %10.3e", cov[i * k + i]);
    printf(" %10.3e", distance);
    for (int i = 0; t > 0 && i < k; i++) printf(" %10.2e", second[i]);
    printf("\n");
    return PSLD_OK;
}

static psld_status recipe_print_table(const psld_recipe *recipe, const request *r)
{
    int k = psld_recipe_get(recipe)->k;
    printf("  %9s %10s", "t", "sigma_eff");
    for (int i = 0; i < k; i++) printf("    mean %2s", recipe_variable_name(k, i));
    for (int i = 0; i < k; i++) printf("     var %2s", recipe_variable_name(k, i));
    printf(" %10s", "distance");
    for (int i = 0; i < k; i++) printf("    lambda%d", i + 1);
    printf("\n");
    for (int i = 0; i < r->time_count; i++) {
        psld_status status = recipe_print_row(recipe, r->times[i], r->mode);
        if (status != PSLD_OK) return status;
    }
    return PSLD_OK;
}

static psld_status recipe_print_text(const request *r)
{
    for (int i = 0; i < r->count; i++) {
        psld_analysis analysis = PSLD_ANALYSIS_EMPTY;
        psld_status status = psld_recipe_analyse(r->recipes[i], &analysis);
        if (status != PSLD_OK) return status;
        if (i) printf("\n");
        print_process(r->recipes[i]);
        print_analysis(psld_recipe_get(r->recipes[i])->k, &analysis);
        status = recipe_print_table(r->recipes[i], r);
        if (status != PSLD_OK) return status;
    }
    return PSLD_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* One recipe is an object; several are a list of such objects under "recipes". */
static psld_status recipe_print_json(const request *r, int *exit_code)
{
    json_t *list = json_array(), *object = NULL;
    for (int i = 0; i < r->count; i++) {
        object = NULL; /* not the previous one, if this fails */
        psld_status status = recipe_json(r->recipes[i], r->times, (size_t)r->time_count, r->mode, &object);
        if (object) json_array_append_new(list, object);
        if (status != PSLD_OK) {
            json_decref(list);
            return status;
        }
    }
    if (r->count == 1) {
        json_incref(object);
        json_decref(list);
    } else {
        object = json_object();
        json_object_set_new(object, "recipes", list);
    }
    *exit_code = cli_json_print(object);
    return PSLD_OK;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* A recipe of either kind. A recipe without formulas is opened as one of matrices, which also reports its errors. */
static psld_status open_recipe(const char *text, request *r)
{
    psld_process *process;
    psld_status status = psld_process_open(text, 1, &process);
    if (status != PSLD_OK) return status;
    if (!psld_process_recipe(process)) {
        r->full[r->full_count++] = process;
        return PSLD_OK;
    }
    psld_process_free(process);
    status = psld_recipe_open(text, &r->recipes[r->count]);
    r->count += status == PSLD_OK;
    return status;
}

/* Words are recipes, each followed by its overrides. */
static psld_status open_recipes(const char **words, int count, request *r)
{
    for (int i = 0; i < count;) {
        int last = i + 1;
        while (last < count && strchr(words[last], '=')) last++;
        char *text = cli_join(words + i, last - i);
        psld_status status = text ? open_recipe(text, r) : PSLD_NO_MEMORY;
        free(text);
        if (status != PSLD_OK) return status;
        i = last;
    }
    return PSLD_OK;
}

static int count_recipes(const char **words, int count)
{
    int recipes = 0;
    for (int i = 0; i < count; i++) recipes += i == 0 || !strchr(words[i], '=');
    return recipes;
}

static void list_presets(void)
{
    const psld_preset_info *preset;
    for (int i = 0; (preset = psld_preset_at(i)); i++) printf("%-14s %s\n", preset->name, preset->summary);
}

static psld_status recipe_show(const request *r, const recipe_full *full, int *exit_code)
{
    int json = full->json;
    const char *plot = full->plot;
    if (r->full_count + r->count > 1 && r->full_count > 0)
        return cli_bad_input("a recipe with formulas is shown alone; expected one recipe");
    if (r->full_count > 0) return recipe_full_show(r->full[0], full, exit_code);
    if (full->exchange || full->points)
        return cli_bad_input("--exchange: %s gives Q itself; expected a recipe with formulas",
                             psld_recipe_get(r->recipes[0])->name);
    psld_status status = json ? recipe_print_json(r, exit_code) : recipe_print_text(r);
    if (status != PSLD_OK || !plot) return status;
    status = psld_plot_recipes((const psld_recipe *const *)r->recipes, (size_t)r->count, plot);
    if (status == PSLD_OK && !json) printf("\nplot: %s\n", plot);
    return status;
}

static int recipe_run(const cli_command *command, int argc, char **argv)
{
    const char *at = "1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.2, 0.5, 1", *mode = "hsm", *words[256];
    int list = 0, count, exit_code;
    long points = 0;
    recipe_full full = {0};
    const cli_option options[] = {
        {"at", 0, CLI_TEXT, "T,T,...", "times in [0, 1] at which the kernel is printed", &at, NULL},
        {"mode", 0, CLI_TEXT, "hsm|dsm", "kernel given x_0 alone (hsm, default) or all of z_0 (dsm)", &mode, "hsm|dsm"},
        {"plot", 0, CLI_FILE, "FILE", "draw a page of plots, .svg or .png", &full.plot, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object with all digits", &full.json, NULL},
        {"exchange", 0, CLI_FLAG, NULL, "with formulas: also compute Q from the drift, D and H on a grid",
         &full.exchange, NULL},
        {"exchange-out", 0, CLI_FILE, "FILE", "also write that Q, .npy", &full.exchange_path, NULL},
        {"points", 0, CLI_COUNT, "N", "points of that grid per variable (default 128; 64 with three variables)",
         &points, NULL},
        {"list", 0, CLI_FLAG, NULL, "list the presets", &list, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    static request r;
    if (argc > 256) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (list) return list_presets(), EXIT_DONE;
    if (count == 0)
        return cli_wrong_usage(command, "no recipe given; expected a preset or a file (--list shows the presets)");
    if (count_recipes(words, count) > MAX_RECIPES)
        return cli_wrong_usage(command, "at most %d recipes at once", MAX_RECIPES);
    r.mode = strcmp(mode, "dsm") == 0 ? PSLD_DSM : PSLD_HSM;
    r.time_count = cli_numbers(at, r.times, MAX_TIMES);
    if (r.time_count < 0)
        return cli_wrong_usage(command, "--at: expected numbers with commas between, found \"%s\"", at);
    for (int i = 0; i < r.time_count; i++)
        if (!(r.times[i] >= 0 && r.times[i] <= 1))
            return cli_wrong_usage(command, "--at: expected times in [0, 1], found %g", r.times[i]);
    if (full.plot && !cli_ends_in(full.plot, ".svg|.png"))
        return cli_wrong_usage(command, "--plot: expected a name that ends in .svg or .png, found \"%s\"", full.plot);
    if (full.exchange_path && !cli_ends_in(full.exchange_path, ".npy"))
        return cli_wrong_usage(command, "--exchange-out: expected a name that ends in .npy, found \"%s\"",
                               full.exchange_path);
    if (full.plot && !cli_output_possible(full.plot)) return EXIT_FAILED;
    if (full.exchange_path && !cli_output_possible(full.exchange_path)) return EXIT_FAILED;
    full.exchange |= full.exchange_path != NULL;
    full.points = points < 1 << 20 ? (int)points : 1 << 20;
    psld_status status = open_recipes(words, count, &r);
    if (status == PSLD_OK) status = recipe_show(&r, &full, &exit_code);
    for (int i = 0; i < r.full_count; i++) psld_process_free(r.full[i]);
    for (int i = 0; i < r.count; i++) psld_recipe_free(r.recipes[i]);
    return status == PSLD_OK ? exit_code : cli_failed(status);
}

/* Whether an earlier preset has the parameter, too. */
static int is_known(const char *parameter, int before)
{
    for (int i = 0; i < before; i++)
        for (const psld_preset_parameter *p = psld_preset_at(i)->parameters; p->name; p++)
            if (strcmp(p->name, parameter) == 0) return 1;
    return 0;
}

static void recipe_complete(const char *word)
{
    const psld_preset_info *preset;
    (void)word;
    for (int i = 0; (preset = psld_preset_at(i)); i++) {
        puts(preset->name);
        for (const psld_preset_parameter *p = preset->parameters; p->name; p++)
            if (!is_known(p->name, i)) printf("%s=\n", p->name);
    }
}

const cli_command command_recipe = {
    .name = "recipe",
    .summary = "checks a process and shows its properties",
    .usage = "NAME|FILE [key=value ...] [NAME|FILE ...] [options]",
    .description =
        "A recipe is a preset (psld recipe --list) or a YAML file with D and Q (or drift and noise), masses, beta and\n"
        "initial variances; key=value overrides follow the recipe they belong to. An invalid process is refused with "
        "the\n"
        "condition that fails and by how much. Several recipes are compared.\n\n"
        "Shown are: eigenvalues and damping, whether T = 1 is long enough, and against t: effective noise, mean and "
        "variance\n"
        "of each variable given x_0, distance from stationarity, and the error factors lambda of the paper's App. "
        "D.1.\n\n"
        "A file with formulas of the state (H, D and Q, or H, D and drift) is checked over a region and simulated.",
    .examples = "  psld recipe psld\n"
                "  psld recipe psld gamma=0.02 --plot psld.svg\n"
                "  psld recipe vp cld psld told --plot compare.png\n"
                "  psld recipe quartic.yaml --exchange --plot quartic.svg\n"
                "  psld recipe my-process.yaml beta=[0.1,20] --at 1e-5,0.1,1 --json\n",
    .run = recipe_run,
    .complete = recipe_complete,
};
