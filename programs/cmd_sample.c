/* psld sample: draws from a model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sample.h"

/* ---- Where the walk starts --------------------------------------------------------------------------------------- */

static psld_status start_from_file(sample_job *job)
{
    const char *path = job->request->z0;
    size_t width = job->k * job->dim;
    psld_array *loaded = NULL;
    psld_status status = psld_array_load(path, &loaded);
    if (status == PSLD_OK) status = psld_array_convert(loaded, PSLD_F64, &job->start);
    psld_array_free(loaded);
    if (status != PSLD_OK) return status;
    size_t states = job->start->rank > 1 ? job->start->shape[0] : 0;
    if (states == 0 || job->start->count != states * width)
        return cli_bad_input("%s: expected states [n, %zu], k times the data's size each", path, width);
    for (size_t i = 0; i < job->start->count; i++)
        if (!isfinite(((const double *)job->start->data)[i]))
            return cli_bad_input("%s: state %zu is not finite", path, i / width);
    if (job->n == 0) job->n = states;
    if (job->n > states) return cli_bad_input("%s: has %zu states, -n asks for %zu", path, states, job->n);
    return PSLD_OK;
}

static psld_status start_exactly(sample_job *job)
{
    size_t shape[2] = {job->n, job->k * job->dim};
    psld_status status = psld_array_create(PSLD_F64, 2, shape, &job->start);
    if (status != PSLD_OK) return status;
    return psld_mixture_draw(psld_model_mixture(job->model), psld_model_recipe(job->model), 1, job->options.seed, 0,
                             job->n, job->start->data);
}

static psld_status find_start(sample_job *job)
{
    if (job->request->z0) return start_from_file(job);
    return strcmp(job->request->start, "exact") == 0 ? start_exactly(job) : PSLD_OK;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

int sample_is_image(const sample_job *job)
{
    return job->rank == 3 && (job->shape[0] == 1 || job->shape[0] == 3);
}

typedef struct share {
    cli_progress progress;
    uint64_t before, count, all; /* samples: there before, drawn now, in all */
} share;

/* Progress of a part as that of the whole. */
static int report_share(void *user, uint64_t done, uint64_t total)
{
    share *s = user;
    uint64_t all = total / s->count * (s->all - s->before);
    return cli_progress_report(&s->progress, done < all ? done : all,
                               all); /* a group may be drawn again for its rest */
}

void sample_share(const sample_job *job, size_t *begin, size_t *end)
{
    size_t group = strcmp(job->options.sampler, "ode") == 0 ? job->options.ode_group : 1;
    size_t groups = (job->n + group - 1) / group, rank = (size_t)psld_rank(), ranks = (size_t)psld_rank_count();
    *begin = groups * rank / ranks * group;
    *end = groups * (rank + 1) / ranks * group;
    if (*end > job->n) *end = job->n;
}

psld_status sample_draw(sample_job *job, size_t first, size_t count, size_t before, psld_samples_fn take, void *user)
{
    share s = {.before = before, .count = count, .all = job->n};
    psld_sample_options options = job->options;
    psld_array start, *given = NULL;
    if (job->start) { /* a view of the states that these samples begin with */
        size_t width = job->k * job->dim;
        start = (psld_array){.type = PSLD_F64, .rank = 2, .shape = {count, width}, .count = count * width};
        start.data = (double *)job->start->data + first * width;
        given = &start;
    }
    cli_progress_begin(&s.progress, "sampling");
    options.progress = report_share;
    options.progress_user = &s;
    psld_status status =
        psld_model_draw(job->model, &options, first, count, given, job->request->state, take, user, &job->nfe);
    cli_progress_end(&s.progress);
    job->seconds += cli_seconds() - s.progress.began;
    return status;
}

/* ---- What the model believes along the way ----------------------------------------------------------------------- */

enum { STRIPS = 8, FRAMES = 12 };

static psld_status write_strips(const sample_job *job, const psld_trajectory *trajectory)
{
    psld_array *pixels = NULL;
    psld_array frames = *psld_trajectory_frames(trajectory);
    frames.rank = 4; /* [samples, frames, c, h, w] as one long row of pictures */
    frames.shape[0] *= frames.shape[1];
    memmove(frames.shape + 1, frames.shape + 2, 3 * sizeof *frames.shape);
    psld_status status = psld_images_from_data(&frames, strcmp(job->request->quantize, "floor") == 0, &pixels);
    if (status == PSLD_OK) status = psld_image_grid(pixels, FRAMES, job->request->trajectory_path);
    psld_array_free(pixels);
    return status;
}

static psld_status draw_and_write(sample_job *job)
{
    int is_file = cli_ends_in(job->request->out, ".npy|.npz|.png|.svg");
    psld_trajectory *trajectory = NULL;
    psld_status status = PSLD_OK;
    if (job->request->trajectory_path) {
        status = psld_trajectory_create(job->model, 0, job->n < STRIPS ? job->n : STRIPS, FRAMES, &trajectory);
        if (status == PSLD_OK) psld_trajectory_watch(trajectory, &job->options);
    }
    if (status == PSLD_OK) status = is_file ? sample_to_file(job) : sample_to_folder(job);
    if (status == PSLD_OK && trajectory) status = write_strips(job, trajectory);
    psld_trajectory_free(trajectory);
    return status;
}

/* ---- Report ------------------------------------------------------------------------------------------------------ */

static int report(const sample_job *job)
{
    const sample_request *r = job->request;
    if (psld_rank() != 0) return EXIT_DONE;
    if (!r->json) {
        printf("%zu samples of ", job->made);
        if (job->rank == 3)
            printf("%zu x %zu x %zu", job->shape[0], job->shape[1], job->shape[2]);
        else
            printf("%zu dimensions", job->dim);
        if (job->nfe) printf(", %llu evaluations each, %.2f s", (unsigned long long)job->nfe, job->seconds);
        printf(": %s%s\n", r->out, job->nfe ? "" : " has them all");
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "n", json_integer((json_int_t)job->made));
    json_object_set_new(object, "nfe", json_integer((json_int_t)job->nfe));
    json_object_set_new(object, "seconds", cli_json_number(job->seconds));
    json_object_set_new(object, "sampler", json_string(job->options.sampler));
    json_object_set_new(object, "process", json_string(psld_recipe_get(psld_model_recipe(job->model))->name));
    json_object_set_new(object, "seed", json_integer((json_int_t)job->options.seed));
    json_object_set_new(object, "out", json_string(r->out));
    return cli_json_print(object);
}

static int report_interrupted(const sample_job *job)
{
    int is_file = cli_ends_in(job->request->out, ".npy|.npz|.png|.svg");
    if (job->made == 0 && is_file)
        cli_complain("interrupted before the first batch of samples was done");
    else
        cli_complain("interrupted: %s has %zu of %zu samples%s", job->request->out, job->made, job->n,
                     is_file ? "" : "; the same command goes on");
    return EXIT_FAILED;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* A folder is a name with '/' behind it, without an ending, or that is one. */
static int is_folder_name(const char *path)
{
    struct stat about;
    size_t length = strlen(path);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (length == 0) return 0;
    return path[length - 1] == '/' || !strchr(name, '.') || (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

static int check_out(const cli_command *command, const sample_request *r)
{
    if (!r->out && r->estimate) return EXIT_DONE;
    if (!r->out) return cli_wrong_usage(command, "where to? Give -o OUT (.npy, .npz, .png, .svg, or a folder)");
    if (cli_ends_in(r->out, ".npy|.npz|.png|.svg")) return cli_output_possible(r->out) ? EXIT_DONE : EXIT_FAILED;
    if (is_folder_name(r->out)) return EXIT_DONE;
    return cli_wrong_usage(
        command, "-o: expected a name that ends in .npy, .npz, .png or .svg, or a folder, found \"%s\"", r->out);
}

/* What can be known to be wrong before anything is computed. Returns EXIT_DONE when nothing is. */
static int check_request(const cli_command *command, sample_request *r)
{
    int adaptive = r->sampler && strcmp(r->sampler, "ode") == 0;
    if (r->sampler && r->quality)
        return cli_wrong_usage(command, "--quality chooses the sampler: give one of --quality and --sampler");
    if (adaptive && r->nfe) return cli_wrong_usage(command, "--nfe: ode chooses its steps itself; give --tol");
    if (!adaptive && r->tolerance != 0)
        return cli_wrong_usage(command, "--tol is for ode alone; %s takes --nfe",
                               r->sampler ? r->sampler : "what is chosen by --quality");
    if (r->trajectory_path && !cli_ends_in(r->trajectory_path, ".png"))
        return cli_wrong_usage(command, "--trajectory: expected a name that ends in .png, found \"%s\"",
                               r->trajectory_path);
    if (r->trajectory_path && !cli_output_possible(r->trajectory_path)) return EXIT_FAILED;
    if (r->sampler) r->options.sampler = r->sampler;
    if (!r->sampler || r->eps != 0) r->options.eps = r->eps;
    if (r->nfe) r->options.nfe = r->nfe > 1000000000 ? 1000000000 : (int)r->nfe;
    if (r->tolerance != 0) r->options.tolerance = r->tolerance;
    if (r->eta && cli_numbers(r->eta, &r->options.eta, 1) != 1)
        return cli_wrong_usage(command, "--eta: expected a number from 0 to 1, found \"%s\"", r->eta);
    r->options.order = r->order > 1000 ? 1000 : (int)r->order;
    r->options.corrector = r->corrector > 1000000 ? 1000000 : (int)r->corrector;
    r->options.batch = (size_t)r->batch;
    r->options.ode_group = (size_t)r->ode_group;
    return check_out(command, r);
}

/* What only some models can do. Returns EXIT_DONE when this one can. */
static int check_model(const cli_command *command, const sample_job *job)
{
    const sample_request *r = job->request;
    int is_image = sample_is_image(job), is_plane = job->rank == 1 && job->dim == 2;
    int is_array = r->out && cli_ends_in(r->out, ".npy|.npz"), is_picture = r->out && cli_ends_in(r->out, ".png|.svg");
    if (psld_model_kind_of(job->model) != PSLD_EXACT_MODEL && strcmp(r->start, "exact") == 0)
        return cli_failed(cli_bad_input("--start exact is for exact models: of a network p_1 is not known"));
    if (is_picture && !is_plane && !(is_image && cli_ends_in(r->out, ".png")))
        return cli_wrong_usage(command, "-o %s: %s", r->out,
                               is_image ? "pictures are written as .png" : "a picture needs a 2-D model; write .npy");
    if (r->out && !is_array && !is_picture && !is_image)
        return cli_wrong_usage(command,
                               "-o: a folder is for models of images; expected a name that ends in .npy, .npz, "
                               ".png or .svg, found \"%s\"",
                               r->out);
    if (r->state && !is_array && r->out) return cli_wrong_usage(command, "--state: states are written as .npy or .npz");
    if (r->trajectory_path && !is_image)
        return cli_wrong_usage(command, "--trajectory draws pictures: it needs a model of images");
    if (r->trajectory_path && r->out && !is_array && !is_picture)
        return cli_wrong_usage(command, "--trajectory goes with one file, not with a folder that may have the samples");
    return EXIT_DONE;
}

static psld_status open_job(const char *const *words, int count, sample_request *r, sample_job *job)
{
    r->model.options.raw = r->model.use && strcmp(r->model.use, "raw") == 0;
    r->model.options.overrides = words + 1;
    r->model.options.override_count = (size_t)(count - 1);
    psld_status status = psld_model_open(words[0], &r->model.options, &job->model);
    if (status != PSLD_OK) return status;
    if (psld_model_kind_of(job->model) == PSLD_CLASSIFIER) return cli_bad_input("a classifier has no samples");
    job->request = r;
    job->options = r->options;
    job->rank = psld_model_shape(job->model, job->shape);
    job->k = (size_t)psld_recipe_get(psld_model_recipe(job->model))->k;
    job->dim = 1;
    for (int i = 0; i < job->rank; i++) job->dim *= job->shape[i];
    job->n = r->n ? (size_t)r->n : r->z0 ? 0 : sample_is_image(job) ? 64 : 1000;
    if (job->options.batch == 0) job->options.batch = psld_model_batch(job->model);
    if (!r->sampler) {
        const char *quality = r->quality ? r->quality : "normal";
        status = psld_sample_quality(psld_model_recipe(job->model), quality, &job->options);
        if (status != PSLD_OK) return status;
    }
    return psld_sample_complete(psld_model_recipe(job->model), &job->options);
}

static int sample_model(const cli_command *command, const char *const *words, int count, sample_request *r)
{
    sample_job job = {0};
    int exit_code = EXIT_DONE;
    psld_status status = open_job(words, count, r, &job);
    if (status == PSLD_OK) exit_code = check_model(command, &job);
    if (status == PSLD_OK && exit_code == EXIT_DONE) {
        status = find_start(&job);
        if (status == PSLD_OK) status = r->estimate ? sample_estimate(&job) : draw_and_write(&job);
        if (status == PSLD_OK && !r->estimate) exit_code = report(&job);
        if (status == PSLD_CANCELLED) exit_code = report_interrupted(&job);
    }
    psld_array_free(job.start);
    psld_model_free(job.model);
    return status == PSLD_OK || status == PSLD_CANCELLED ? exit_code : cli_failed(status);
}

static int run(const cli_command *command, int argc, char **argv)
{
    sample_request r = {.start = "prior", .quantize = "round", .ode_group = 16};
    const char *words[64];
    int count, exit_code;
    psld_sample_defaults(&r.options);
    psld_model_defaults(&r.model.options);
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "OUT", ".npy, .npz, .png (grid of pictures, or plot of points), .svg, or a folder",
         &r.out, NULL},
        {"number", 'n', CLI_COUNT, "N", "samples to draw (default 64 pictures, 1000 points, or as many as --z0 has)",
         &r.n, NULL},
        {"process", 0, CLI_TEXT, "RECIPE", "another recipe than the model's own (\"psld gamma=0.02\", a file)",
         &r.model.options.process, NULL},
        {"quality", 0, CLI_TEXT, "draft|normal|best", "what costs least for a quality (default normal)", &r.quality,
         "draft|normal|best"},
        {"sampler", 0, CLI_TEXT, "NAME",
         "instead: em, sscs, ode, euler-ode, heun, dpm, collapsed, collapsed-heun, ancestral", &r.sampler,
         "em|sscs|ode|euler-ode|heun|dpm|collapsed|collapsed-heun|ancestral"},
        {"order", 0, CLI_COUNT, "N", "of dpm, collapsed and ancestral: 1 to 3 (default 3; ancestral 2)", &r.order,
         NULL},
        {"eta", 0, CLI_TEXT, "E", "noise of ancestral, from 0 to 1 (default 1)", &r.eta, NULL},
        {"grid", 0, CLI_TEXT, "NAME",
         "uniform, quadratic (default of em, sscs, euler-ode, heun), sqrt, log (dpm, collapsed, ancestral), rho, or "
         "times: 1,0.5,0.1,0.001",
         &r.options.grid, NULL},
        {"rho", 0, CLI_NUMBER, "R", "of the grid rho (default 7)", &r.options.rho, NULL},
        {"nfe", 0, CLI_COUNT, "N", "evaluations of the score a sample (default: by quality; em 250)", &r.nfe, NULL},
        {"tol", 0, CLI_NUMBER, "TOL", "tolerance of ode, relative and absolute (default 1e-5)", &r.tolerance, NULL},
        {"seed", 0, CLI_SEED, "S", "sample i of a seed is always the same (default 0)", &r.options.seed, NULL},
        {"no-denoise", 0, CLI_CLEAR, NULL, "no last noise-free step; its evaluation goes to the walk",
         &r.options.denoise, NULL},
        {"eps", 0, CLI_NUMBER, "T", "where the walk ends (default 1e-3; by quality)", &r.eps, NULL},
        {"end-sigma", 0, CLI_NUMBER, "S", "end where the effective noise is S, instead of --eps", &r.options.end_sigma,
         NULL},
        {"clip", 0, CLI_NUMBER, "C", "clip predicted clean data to [-C, C]", &r.options.clip, NULL},
        {"threshold", 0, CLI_NUMBER, "Q", "scale them by this quantile of their size instead, e.g. 0.995",
         &r.options.threshold, NULL},
        {"corrector", 0, CLI_COUNT, "N", "Langevin steps after each step", &r.corrector, NULL},
        {"corrector-size", 0, CLI_NUMBER, "A", "their size in (0, 1] (default 0.05)", &r.options.corrector_size, NULL},
        {"start", 0, CLI_TEXT, "prior|exact", "start from the stationary law (default) or the exact p_1 of the mixture",
         &r.start, "prior|exact"},
        {"z0", 0, CLI_FILE, "FILE", "start from the states in a .npy file, [n, k * channels, ...]", &r.z0, NULL},
        {"state", 0, CLI_FLAG, NULL, "write auxiliary variables too", &r.state, NULL},
        {"quantize", 0, CLI_TEXT, "round|floor", "how pixels are cut to 8 bits (default round)", &r.quantize,
         "round|floor"},
        {"trajectory", 0, CLI_FILE, "FILE.png",
         "strips of the predicted clean image along the way of the first samples", &r.trajectory_path, NULL},
        {"estimate", 0, CLI_FLAG, NULL, "measure a few evaluations and say how long it would take", &r.estimate, NULL},
        {"batch", 0, CLI_COUNT, "B", "samples at a time (default: what suits the model)", &r.batch, NULL},
        {"ode-group", 0, CLI_COUNT, "N", "samples that share the steps of ode (default 16)", &r.ode_group, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &r.json, NULL},
        CLI_MODEL_OPTIONS(r.model),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 64) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    int models = count;
    for (int i = 1; i < count; i++) models -= strchr(words[i], '=') != NULL;
    if (models != 1) return cli_wrong_usage(command, "expected one model, found %d", models);
    exit_code = check_request(command, &r);
    if (exit_code != EXIT_DONE || !cli_ranks_begin(&exit_code)) return exit_code;
    return cli_ranks_end(sample_model(command, words, count, &r));
}

const cli_command command_sample = {
    .name = "sample",
    .summary = "draws samples from a model",
    .usage = "MODEL -n N -o OUT [options] [key=value ...]",
    .description =
        "MODEL is a score network (.safetensors, a PyTorch checkpoint with --config, or the folder of a training "
        "run), or an\n"
        "exact model: a YAML file with `mixture` (weights, means, scales) and `process` (a recipe), whose "
        "score is known in\n"
        "closed form. Sample i of a seed has the same bits whatever --batch and --threads are.\n\n"
        "OUT says by its ending what is written: .npy has float32 [n, channels, ...]; .npz has `arr_0`, of "
        "pictures unsigned\n"
        "bytes [n, height, width, channels]; .png is a grid of pictures, or a plot of 2-D points (.svg too). "
        "A name without an\n"
        "ending is a folder of .png files named by the number of the sample. It is filled as samples come: "
        "the same command\n"
        "goes on where it was stopped.\n\n"
        "Without --sampler, --quality chooses sampler, grid, evaluations and end of the walk: collapsed of order 3 "
        "on the grid\n"
        "log with 12, 30 or 100 evaluations. em, sscs, euler-ode and heun take the grid quadratic and 250 evaluations "
        "unless told.\n\n"
        "The number of evaluations counts the last denoising step. ode controls its step for groups of "
        "consecutive samples\n"
        "and reports the mean number of evaluations over groups, rounded up.",
    .examples = "  psld sample digits.safetensors -o digits.png\n"
                "  psld sample digits.safetensors --quality best --seed 7 -o digits.png\n"
                "  psld sample digits.safetensors --process vp -o digits.png\n"
                "  psld sample RUN -n 50000 --sampler sscs --nfe 200 -o samples/\n"
                "  psld sample RUN -n 50000 --estimate\n"
                "  psld sample mixture.yaml -n 2000 -o samples.png\n"
                "  psld sample mixture.yaml --process \"psld gamma=0.02\" --sampler sscs --nfe 50 -n 100000 -o x.npy\n"
                "  psld sample mixture.yaml --sampler ode --tol 1e-5 -n 160 --no-denoise --state -o z.npy --json\n",
    .run = run,
};
