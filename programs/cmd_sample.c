/* psld sample: draws from a model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct request {
    const char *out, *z0, *start;
    cli_model model;
    long n, nfe, batch, corrector, ode_group;
    double tolerance;
    int state, json, nfe_given, n_given;
    psld_sample_options options;
} request;

typedef struct result {
    psld_array *states; /* [n][k * dim] float64 */
    size_t n, dim, k;
    int rank;
    size_t shape[PSLD_MAX_RANK]; /* of one sample */
    uint64_t nfe;
    double seconds;
} result;

/* ---- Where the walk starts --------------------------------------------------------------------------------------- */

static psld_status start_from_file(const char *path, size_t width, size_t *n, psld_array **start)
{
    psld_array *loaded = NULL;
    psld_status status = psld_array_load(path, &loaded);
    if (status == PSLD_OK) status = psld_array_convert(loaded, PSLD_F64, start);
    psld_array_free(loaded);
    if (status != PSLD_OK) return status;
    size_t states = (*start)->rank > 1 ? (*start)->shape[0] : 0;
    if (states == 0 || (*start)->count != states * width)
        return cli_bad_input("%s: expected states [n, %zu], k times the data's size each", path, width);
    for (size_t i = 0; i < (*start)->count; i++)
        if (!isfinite(((const double *)(*start)->data)[i]))
            return cli_bad_input("%s: state %zu is not finite", path, i / width);
    if (*n == 0) *n = states;
    if (*n > states) return cli_bad_input("%s: has %zu states, -n asks for %zu", path, states, *n);
    return PSLD_OK;
}

static psld_status start_exactly(const psld_model *model, const request *r, size_t n, size_t width, psld_array **start)
{
    size_t shape[2] = {n, width};
    psld_status status = psld_array_create(PSLD_F64, 2, shape, start);
    if (status != PSLD_OK) return status;
    return psld_mixture_draw(psld_model_mixture(model), psld_model_recipe(model), 1, r->options.seed, 0, n,
                             (*start)->data);
}

/* ---- Output ------------------------------------------------------------------------------------------------------ */

/* The first `variables` variables of each state: all of it, or the position. */
static psld_status cut_states(const result *drawn, size_t variables, psld_type type, psld_array **cut)
{
    size_t shape[PSLD_MAX_RANK + 1] = {drawn->n}, width = variables * drawn->dim;
    for (int i = 0; i < drawn->rank; i++) shape[i + 1] = drawn->shape[i] * (i == 0 ? variables : 1);
    psld_status status = psld_array_create(type, drawn->rank + 1, shape, cut);
    if (status != PSLD_OK) return status;
    const double *z = drawn->states->data;
    for (size_t i = 0; i < drawn->n; i++)
        for (size_t j = 0; j < width; j++) {
            double value = z[i * drawn->k * drawn->dim + j];
            if (type == PSLD_F32)
                ((float *)(*cut)->data)[i * width + j] = (float)value;
            else
                ((double *)(*cut)->data)[i * width + j] = value;
        }
    return PSLD_OK;
}

static psld_status write_samples(const psld_model *model, const request *r, const result *drawn)
{
    psld_array *cut = NULL;
    psld_status status;
    if (cli_ends_in(r->out, ".npy")) {
        status = cut_states(drawn, r->state ? drawn->k : 1, PSLD_F32, &cut);
        if (status == PSLD_OK) status = psld_array_save(cut, r->out);
    } else {
        char title[160];
        const char *process = psld_recipe_get(psld_model_recipe(model))->name;
        snprintf(title, sizeof title, "%s, %s, %llu evaluations", process, r->options.sampler,
                 (unsigned long long)drawn->nfe);
        status = cut_states(drawn, 1, PSLD_F64, &cut);
        if (status == PSLD_OK) status = psld_plot_points(psld_model_mixture(model), cut->data, drawn->n, title, r->out);
    }
    psld_array_free(cut);
    return status;
}

static int report(const psld_model *model, const request *r, const result *drawn)
{
    if (!r->json) {
        printf("%zu samples of %zu dimensions, %llu evaluations each, %.2f s: %s\n", drawn->n, drawn->dim,
               (unsigned long long)drawn->nfe, drawn->seconds, r->out);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "n", json_integer((json_int_t)drawn->n));
    json_object_set_new(object, "nfe", json_integer((json_int_t)drawn->nfe));
    json_object_set_new(object, "seconds", cli_json_number(drawn->seconds));
    json_object_set_new(object, "sampler", json_string(r->options.sampler));
    json_object_set_new(object, "process", json_string(psld_recipe_get(psld_model_recipe(model))->name));
    json_object_set_new(object, "seed", json_integer((json_int_t)r->options.seed));
    json_object_set_new(object, "out", json_string(r->out));
    return cli_json_print(object);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static psld_status draw(psld_model *model, request *r, result *drawn)
{
    const psld_recipe *recipe = psld_model_recipe(model);
    size_t width;
    drawn->rank = psld_model_shape(model, drawn->shape);
    drawn->k = (size_t)psld_recipe_get(recipe)->k;
    drawn->dim = 1;
    for (int i = 0; i < drawn->rank; i++) drawn->dim *= drawn->shape[i];
    drawn->n = r->z0 && !r->n_given ? 0 : (size_t)r->n;
    width = drawn->k * drawn->dim;

    psld_array *start = NULL;
    psld_status status = PSLD_OK;
    if (r->z0)
        status = start_from_file(r->z0, width, &drawn->n, &start);
    else if (strcmp(r->start, "exact") == 0)
        status = start_exactly(model, r, drawn->n, width, &start);
    size_t states[2] = {drawn->n, width};
    if (status == PSLD_OK) status = psld_array_create(PSLD_F64, 2, states, &drawn->states);
    if (status == PSLD_OK) {
        cli_progress progress;
        cli_progress_begin(&progress, "sampling");
        r->options.progress = cli_progress_report;
        r->options.progress_user = &progress;
        status = psld_sample(recipe, psld_model_source(model), &r->options, 0, drawn->n, drawn->dim,
                             start ? start->data : NULL, drawn->states->data, &drawn->nfe);
        cli_progress_end(&progress);
        drawn->seconds = cli_seconds() - progress.began;
    }
    psld_array_free(start);
    return status;
}

/* What can be known to be wrong before anything is computed. Returns EXIT_DONE when nothing is. */
static int check_request(const cli_command *command, request *r)
{
    int adaptive = strcmp(r->options.sampler, "ode") == 0;
    if (!r->out) return cli_wrong_usage(command, "where to? Give -o OUT (.npy; .png or .svg for 2-D models)");
    if (!cli_ends_in(r->out, ".npy|.png|.svg"))
        return cli_wrong_usage(command, "-o: expected a name that ends in .npy, .png or .svg, found \"%s\"", r->out);
    if (adaptive && r->nfe) return cli_wrong_usage(command, "--nfe: ode chooses its steps itself; give --tol");
    if (!adaptive && r->tolerance != 0)
        return cli_wrong_usage(command, "--tol is for ode alone; %s takes --nfe", r->options.sampler);
    if (r->nfe) r->options.nfe = r->nfe > 1000000000 ? 1000000000 : (int)r->nfe;
    if (r->tolerance != 0) r->options.tolerance = r->tolerance;
    r->options.corrector = r->corrector > 1000000 ? 1000000 : (int)r->corrector;
    if (r->batch) r->options.batch = (size_t)r->batch;
    r->options.ode_group = (size_t)r->ode_group;
    r->n_given = r->n != 0;
    if (!r->n_given) r->n = 1000;
    return cli_output_possible(r->out) ? EXIT_DONE : EXIT_FAILED;
}

/* What only some models can do, and how many states one takes at a time. */
static psld_status check_model(const psld_model *model, request *r)
{
    psld_model_kind kind = psld_model_kind_of(model);
    if (kind == PSLD_CLASSIFIER) return cli_bad_input("a classifier has no samples");
    if (kind != PSLD_EXACT_MODEL && strcmp(r->start, "exact") == 0)
        return cli_bad_input("--start exact is for exact models: of a network p_1 is not known");
    if (r->batch == 0) r->options.batch = kind == PSLD_EXACT_MODEL ? 16384 : 16;
    return PSLD_OK;
}

static int sample_model(const cli_command *command, const char *path, request *r)
{
    psld_model *model = NULL;
    result drawn = {0};
    size_t shape[PSLD_MAX_RANK];
    int exit_code = EXIT_DONE;
    r->model.options.raw = r->model.use && strcmp(r->model.use, "raw") == 0;
    psld_status status = psld_model_open(path, &r->model.options, &model);
    if (status == PSLD_OK) status = check_model(model, r);
    if (status == PSLD_OK && !cli_ends_in(r->out, ".npy") && (psld_model_shape(model, shape) != 1 || shape[0] != 2)) {
        psld_model_free(model);
        return cli_wrong_usage(command, "-o %s: a picture needs a 2-D model; write .npy", r->out);
    }
    if (status == PSLD_OK) status = draw(model, r, &drawn);
    if (status == PSLD_OK) status = write_samples(model, r, &drawn);
    if (status == PSLD_OK) exit_code = report(model, r, &drawn);
    psld_array_free(drawn.states);
    psld_model_free(model);
    return status == PSLD_OK ? exit_code : cli_failed(status);
}

static int run(const cli_command *command, int argc, char **argv)
{
    request r = {.start = "prior", .ode_group = 16};
    const char *words[64];
    int count, exit_code;
    psld_sample_defaults(&r.options);
    psld_model_defaults(&r.model.options);
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "OUT", ".npy (float32, [n, channels, ...]), or .png/.svg for 2-D models", &r.out, NULL},
        {"number", 'n', CLI_COUNT, "N", "samples to draw (default 1000, or as many as --z0 has)", &r.n, NULL},
        {"process", 0, CLI_TEXT, "RECIPE", "another recipe than the model's own (\"psld gamma=0.02\", a file)",
         &r.model.options.process, NULL},
        {"sampler", 0, CLI_TEXT, "NAME", "em (default), sscs, ode, euler-ode, heun", &r.options.sampler,
         "em|sscs|ode|euler-ode|heun"},
        {"grid", 0, CLI_TEXT, "NAME", "uniform or quadratic (default)", &r.options.grid, "uniform|quadratic"},
        {"nfe", 0, CLI_COUNT, "N", "evaluations of the score a sample (default 250)", &r.nfe, NULL},
        {"tol", 0, CLI_NUMBER, "TOL", "tolerance of ode, relative and absolute (default 1e-5)", &r.tolerance, NULL},
        {"seed", 0, CLI_SEED, "S", "sample i of a seed is always the same (default 0)", &r.options.seed, NULL},
        {"no-denoise", 0, CLI_CLEAR, NULL, "no last noise-free step; its evaluation goes to the walk",
         &r.options.denoise, NULL},
        {"eps", 0, CLI_NUMBER, "T", "where the walk ends (default 1e-3)", &r.options.eps, NULL},
        {"corrector", 0, CLI_COUNT, "N", "Langevin steps after each step", &r.corrector, NULL},
        {"corrector-size", 0, CLI_NUMBER, "A", "their size in (0, 1] (default 0.05)", &r.options.corrector_size, NULL},
        {"start", 0, CLI_TEXT, "prior|exact", "start from the stationary law (default) or the exact p_1 of the mixture",
         &r.start, "prior|exact"},
        {"z0", 0, CLI_FILE, "FILE", "start from the states in a .npy file, [n, k * channels, ...]", &r.z0, NULL},
        {"state", 0, CLI_FLAG, NULL, "write auxiliary variables too", &r.state, NULL},
        {"batch", 0, CLI_COUNT, "B", "states a call of the score (default 16; exact models 16384)", &r.batch, NULL},
        {"ode-group", 0, CLI_COUNT, "N", "samples that share the steps of ode (default 16)", &r.ode_group, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &r.json, NULL},
        CLI_MODEL_OPTIONS(r.model),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 64) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count != 1) return cli_wrong_usage(command, "expected one model, found %d", count);
    exit_code = check_request(command, &r);
    return exit_code == EXIT_DONE ? sample_model(command, words[0], &r) : exit_code;
}

const cli_command command_sample = {
    .name = "sample",
    .summary = "draws samples from a model",
    .usage = "MODEL -n N -o OUT [options]",
    .description = "MODEL is a score network (.safetensors, or a PyTorch checkpoint with --config), or an exact model: "
                   "a YAML file with\n"
                   "`mixture` (weights, means, scales) and `process` (a recipe), whose score is known in closed form. "
                   "Sample i of a\n"
                   "seed has the same bits whatever --batch and --threads are.\n\n"
                   "The number of evaluations counts the last denoising step. ode controls its step for groups of "
                   "consecutive samples\n"
                   "and reports the mean number of evaluations over groups, rounded up.",
    .examples = "  psld sample mixture.yaml -n 2000 -o samples.png\n"
                "  psld sample mixture.yaml --process \"psld gamma=0.02\" --sampler sscs --nfe 50 -n 100000 -o x.npy\n"
                "  psld sample mixture.yaml --sampler ode --tol 1e-5 -n 160 --no-denoise --state -o z.npy --json\n",
    .run = run,
};
