/* psld sample: draws from a model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "latent.h"
#include "sample.h"

#define ENDINGS ".npy|.npz|.png|.svg"

/* ---- Initial states ---------------------------------------------------------------------------------------------- */

static psld_status start_from_file(sample_job *job)
{
    const char *path = job->request->z0;
    size_t width = job->sampling.width;
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
    const sampling_job *s = &job->sampling;
    size_t shape[2] = {job->n, s->k * s->dim};
    psld_status status = psld_array_create(PSLD_F64, 2, shape, &job->start);
    if (status != PSLD_OK) return status;
    return psld_mixture_draw(psld_model_mixture(s->model), psld_model_recipe(s->model), 1, s->options.seed, 0, job->n,
                             job->start->data);
}

static psld_status find_start(sample_job *job)
{
    if (job->request->z0) return start_from_file(job);
    return strcmp(job->request->start, "exact") == 0 ? start_exactly(job) : PSLD_OK;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

typedef struct share {
    cli_progress progress;
    uint64_t before, count, all; /* samples: finished before, drawn now, in all */
} share;

/* Progress of a part as progress of the whole. */
static int sample_report_share(void *user, uint64_t done, uint64_t total)
{
    share *s = user;
    uint64_t all = total / s->count * (s->all - s->before);
    return cli_progress_report(&s->progress, done < all ? done : all,
                               all); /* a group may be drawn again for the rest of its samples */
}

size_t sample_group(const sample_job *job)
{
    const psld_sample_options *o = &job->sampling.options;
    if (!sampling_is_adaptive(o->sampler)) return 1;
    return (size_t)o->ode_group < job->n ? (size_t)o->ode_group : job->n;
}

void sample_share(const sample_job *job, size_t *begin, size_t *end)
{
    size_t group = sample_group(job);
    size_t groups = (job->n + group - 1) / group, rank = (size_t)psld_rank(), ranks = (size_t)psld_rank_count();
    *begin = groups * rank / ranks * group;
    *end = groups * (rank + 1) / ranks * group;
    if (*end > job->n) *end = job->n;
}

psld_status sample_draw(sample_job *job, size_t first, size_t count, size_t before, psld_samples_fn take, void *user)
{
    share part = {.before = before, .count = count, .all = job->n};
    sampling_job *s = &job->sampling;
    psld_sample_options options = s->options;
    psld_array start, *given = NULL;
    if (job->start) { /* a view of the initial states of these samples */
        size_t width = job->sampling.width;
        start = (psld_array){.type = PSLD_F64, .rank = 2, .shape = {count, width}, .count = count * width};
        start.data = (double *)job->start->data + first * width;
        given = &start;
    }
    cli_progress_begin(&part.progress, "sampling");
    if (s->labels.is_set) options.labels = &s->labels.labels;
    options.progress = sample_report_share;
    options.progress_user = &part;
    psld_status status =
        psld_model_draw(s->model, &options, first, count, given, s->request->state, take, user, &s->nfe);
    cli_progress_end(&part.progress);
    s->seconds += cli_seconds() - part.progress.began;
    return status;
}

/* ---- Predicted clean data along trajectories --------------------------------------------------------------------- */

enum { STRIPS = 8, FRAMES = 12 };

static psld_status write_strips(const sample_job *job, const psld_trajectory *trajectory)
{
    psld_array *pixels = NULL;
    psld_array frames = *psld_trajectory_frames(trajectory);
    frames.rank = 4; /* [samples, frames, c, h, w] as one long row of pictures */
    frames.shape[0] *= frames.shape[1];
    memmove(frames.shape + 1, frames.shape + 2, 3 * sizeof *frames.shape);
    psld_status status = sampling_pixels(&job->sampling, &frames, &pixels);
    if (status == PSLD_OK)
        status = sheet_write(pixels, FRAMES, job->sampling.request->zoom, job->request->trajectory_path);
    psld_array_free(pixels);
    return status;
}

static psld_status draw_and_write(sample_job *job)
{
    int is_file = cli_ends_in(job->sampling.request->out, ENDINGS);
    psld_trajectory *trajectory = NULL;
    psld_status status = PSLD_OK;
    if (job->request->trajectory_path) {
        status = psld_trajectory_create(job->sampling.model, 0, job->n < STRIPS ? job->n : STRIPS, FRAMES, &trajectory);
        if (status == PSLD_OK) psld_trajectory_watch(trajectory, &job->sampling.options);
    }
    if (status == PSLD_OK) status = is_file ? sample_to_file(job) : sample_to_folder(job);
    if (status == PSLD_OK && trajectory) status = write_strips(job, trajectory);
    psld_trajectory_free(trajectory);
    return status;
}

/* ---- Report ------------------------------------------------------------------------------------------------------ */

static int sample_report(const sample_job *job)
{
    const sampling_job *s = &job->sampling;
    const sampling_request *r = s->request;
    char what[256];
    if (psld_rank() != 0) return EXIT_DONE;
    if (s->rank == 3)
        snprintf(what, sizeof what, "of %zu x %zu x %zu", s->shape[0], s->shape[1], s->shape[2]);
    else
        snprintf(what, sizeof what, "of %zu dimensions", s->dim);
    if (r->labels.label) {
        size_t used = strlen(what);
        char names[64];
        snprintf(what + used, sizeof what - used, ", %s", labels_text(&r->labels, &s->labels, names, sizeof names));
    }
    if (job->request->z0) { /* names the sampler, since the default differs then */
        size_t used = strlen(what);
        snprintf(what + used, sizeof what - used, ", from the given states by %s", s->options.sampler);
    }
    return sampling_report(s, job->made, what);
}

static int report_interrupted(const sample_job *job)
{
    int is_file = cli_ends_in(job->sampling.request->out, ENDINGS);
    return sampling_report_interrupted(&job->sampling, job->made, job->n,
                                       is_file ? "" : "; run the same command to continue");
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* Checks the options before anything is computed. Returns EXIT_DONE if they are right. */
static int sample_check_request(const cli_command *command, sample_request *r)
{
    int exit_code = sampling_check(command, &r->sampling);
    if (exit_code == EXIT_DONE) exit_code = labels_check(command, &r->sampling.labels);
    if (exit_code != EXIT_DONE) return exit_code;
    if (strcmp(r->start, "exact") == 0 && (r->sampling.labels.label || r->sampling.labels.file))
        return cli_wrong_usage(command, "--start exact draws from the whole mixture; give no label with it");
    if (r->z0 && strcmp(r->start, "exact") == 0)
        return cli_wrong_usage(command, "--start and --z0 both choose the initial states; give one of them");
    if (r->timesteps && (!r->z0 || r->sampling.options.grid || r->sampling.options.end_sigma > 0))
        return cli_wrong_usage(command, "--timesteps needs --z0, the states at the first of them, and no other times");
    if (r->timesteps && r->sampling.options.nfe)
        return cli_wrong_usage(command, "--timesteps sets the number of evaluations; give no --nfe with it");
    if (r->timesteps && sampling_is_adaptive(r->sampling.sampler))
        return cli_wrong_usage(command, "--timesteps: the sampler %s chooses its own times", r->sampling.sampler);
    if (r->trajectory_path && !cli_ends_in(r->trajectory_path, ".png"))
        return cli_wrong_usage(command, "--trajectory: expected a name that ends in .png, found \"%s\"",
                               r->trajectory_path);
    if (r->trajectory_path && !cli_output_possible(r->trajectory_path)) return EXIT_FAILED;
    exit_code = sheet_check_zoom(command, r->sampling.zoom,
                                 r->trajectory_path || (r->sampling.out && cli_ends_in(r->sampling.out, ".png")));
    if (exit_code != EXIT_DONE) return exit_code;
    return r->estimate && !r->sampling.out ? EXIT_DONE : sampling_check_out(command, &r->sampling, ENDINGS);
}

/* Checks whether this model can do what is asked. Returns EXIT_DONE if it can. */
static int sample_check_model(const cli_command *command, const sample_job *job)
{
    const sample_request *r = job->request;
    const sampling_job *s = &job->sampling;
    const char *out = s->request->out;
    int is_image = sampling_is_image(s), is_plane = s->rank == 1 && s->dim == 2;
    int is_array = out && cli_ends_in(out, ".npy|.npz"), is_picture = out && cli_ends_in(out, ".png|.svg");
    if (psld_model_process(s->model) && (r->timesteps || r->estimate || s->request->quality))
        return cli_wrong_usage(command,
                               "--timesteps, --estimate and --quality are for recipes of matrices; recipe %s has "
                               "formulas",
                               psld_model_process_name(s->model));
    if (psld_model_kind_of(s->model) != PSLD_EXACT_MODEL && strcmp(r->start, "exact") == 0)
        return cli_failed(cli_bad_input("--start exact needs an exact model: p_1 of a network is not known"));
    if (is_picture && !is_plane && !(is_image && cli_ends_in(out, ".png")))
        return cli_wrong_usage(command, "-o %s: %s", out,
                               is_image ? "pictures are written as .png" : "a picture needs a 2-D model; write .npy");
    if (out && !is_array && !is_picture && !is_image)
        return cli_wrong_usage(command,
                               "-o: a folder is for models of images; expected a name that ends in .npy, .npz, "
                               ".png or .svg, found \"%s\"",
                               out);
    if (r->trajectory_path && !is_image)
        return cli_wrong_usage(command, "--trajectory draws pictures: it needs a model of images");
    if (r->trajectory_path && out && !is_array && !is_picture)
        return cli_wrong_usage(command, "--trajectory goes with one file, not with a folder that may have the samples");
    return EXIT_DONE;
}

/* A file has one label per sample: it must have enough, and no more, unless -n asks for fewer. */
static psld_status check_label_count(const sample_job *job, size_t listed)
{
    const sampling_request *s = &job->request->sampling;
    if (listed == 0 || listed == job->n || (s->n && listed > job->n)) return PSLD_OK;
    return cli_bad_input("%s: has %zu labels for %zu samples", s->labels.file, listed, job->n);
}

static int sample_model(const cli_command *command, const char *const *words, int count, sample_request *r)
{
    sample_job job = {.request = r};
    int exit_code = EXIT_DONE;
    psld_status status = sampling_open(words, count, &r->sampling, 0, &job.sampling);
    if (status == PSLD_OK) status = sample_reach_timesteps(words, count, r, &job);
    size_t listed = r->sampling.labels.file ? job.sampling.labels.labels.count : 0;
    job.n = r->sampling.n ? (size_t)r->sampling.n : r->z0 ? 0 : sampling_is_image(&job.sampling) ? 64 : 1000;
    if (!r->sampling.n && !r->z0 && listed) job.n = listed;
    if (status == PSLD_OK) exit_code = sample_check_model(command, &job);
    if (status == PSLD_OK && exit_code == EXIT_DONE) {
        status = r->timesteps ? sample_follow_timesteps(&job) : PSLD_OK;
        if (status == PSLD_OK) status = find_start(&job);
        if (status == PSLD_OK) status = check_label_count(&job, listed);
        if (status == PSLD_OK) status = r->estimate ? sample_estimate(&job) : draw_and_write(&job);
        if (status == PSLD_OK && !r->estimate) exit_code = sample_report(&job);
        if (status == PSLD_CANCELLED) exit_code = report_interrupted(&job);
    }
    psld_array_free(job.start);
    free(job.grid);
    sampling_close(&job.sampling);
    return status == PSLD_OK || status == PSLD_CANCELLED ? exit_code : cli_failed(status);
}

/* States come from psld encode, or from another sampler for comparison; a sampler with noise would lose what they
 * contain. So the default is the sampler of psld encode, which follows the flow. */
static void follow_the_flow(sampling_request *s)
{
    if (!s->model.weak) s->model.weak = "none";
    if (s->sampler || s->quality) return;
    s->sampler = LATENT_SAMPLER;
    if (!s->nfe && !(s->options.grid && strchr(s->options.grid, ','))) s->nfe = LATENT_NFE;
}

static int sample_run(const cli_command *command, int argc, char **argv)
{
    sample_request r = {.start = "prior"};
    sampling_request *s = &r.sampling;
    const char *words[SAMPLING_WORDS];
    int count, exit_code;
    sampling_defaults(s);
    s->formulas = 1;
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "OUT", ".npy, .npz, .png (grid of pictures, or plot of points), .svg, or a folder",
         &s->out, NULL},
        {"number", 'n', CLI_COUNT, "N", "samples to draw (default 64 pictures, 1000 points, or as many as --z0 has)",
         &s->n, NULL},
        {"start", 0, CLI_TEXT, "prior|exact", "start from the stationary law (default) or the exact p_1 of the mixture",
         &r.start, "prior|exact"},
        {"z0", 0, CLI_FILE, "FILE",
         "start from the states in a .npy file, [n, k * channels, ...]; the default is then " LATENT_SAMPLER
         ", which follows the flow",
         &r.z0, NULL},
        {"timesteps", 0, CLI_FILE, "FILE",
         "networks of discrete timesteps: take exactly those of a .npy file, from --z0 at the first of them",
         &r.timesteps, NULL},
        {"trajectory", 0, CLI_FILE, "FILE.png",
         "strips of the predicted clean image along the trajectories of the first samples", &r.trajectory_path, NULL},
        {"estimate", 0, CLI_FLAG, NULL, "measure a few evaluations and estimate the time", &r.estimate, NULL},
        LABEL_OPTIONS(s->labels),
        SAMPLING_OPTIONS(*s),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (!sampling_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (r.z0) follow_the_flow(s);
    exit_code = sample_check_request(command, &r);
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
        "closed form. Sample i of a seed has the same bits for every --batch and --threads.\n\n"
        "The ending of OUT decides what is written: .npy has float32 [n, channels, ...]; .npz has `arr_0`, of "
        "pictures unsigned\n"
        "bytes [n, height, width, channels]; .png is a grid of pictures, or a plot of 2-D points (.svg too). "
        "A name without an\n"
        "ending is a folder of .png files named by the number of the sample. It is filled as samples come: "
        "the same command\n"
        "continues where it was stopped.\n\n"
        "Without --sampler, --quality chooses sampler, grid, evaluations and end time: ancestral on the grid log with "
        "12, 30 or 100\n"
        "evaluations. If --sampler is given, that sampler's own grid and number of evaluations are the defaults "
        "(--grid, --nfe);\n"
        "--sampler ancestral is the same as no --sampler. With --z0 the default is collapsed with 200 evaluations, as "
        "in psld encode:\n"
        "a sampler with noise would lose what the states contain.\n\n"
        "A model file may contain a weaker model of the same data (psld convert --weak). Sampling is then guided away "
        "from the\n"
        "errors that both make (autoguidance), at the cost of evaluating both: fewer broken samples, and fewer unusual "
        "ones.\n"
        "--weak none uses the model alone.\n\n"
        "The number of evaluations includes the final denoising step. ode chooses its steps for groups of consecutive "
        "samples and\n"
        "reports the mean number of evaluations over groups, rounded up.",
    .examples = "  psld sample digits.safetensors -o digits.png\n"
                "  psld sample digits.safetensors --quality best --seed 7 -o digits.png\n"
                "  psld sample digits.safetensors --process vp -o digits.png\n"
                "  psld sample RUN -n 50000 --sampler sscs --nfe 200 -o samples/\n"
                "  psld sample RUN -n 50000 --estimate\n"
                "  psld sample mixture.yaml -n 2000 -o samples.png\n"
                "  psld sample mixture.yaml --process \"psld gamma=0.02\" --sampler sscs --nfe 50 -n 100000 -o x.npy\n"
                "  psld sample mixture.yaml --sampler ode --tol 1e-5 -n 160 --no-denoise --state -o z.npy --json\n",
    .run = sample_run,
};
