/* Shared by the commands that sample: the sampling options and, for commands that sample under a condition, reading
 * pictures and vectors, sampling from any source, and writing the results. */
#ifndef PSLD_PROGRAMS_SAMPLING_H
#define PSLD_PROGRAMS_SAMPLING_H

#include "cli.h"
#include "labels.h"
#include "sheet.h"

typedef struct sampling_request {
    cli_model model;
    psld_sample_options options;
    const char *out, *quantize, *sampler, *quality, *eta, *detail;
    long n, nfe, order, batch, corrector, ode_group, zoom;
    double tolerance, eps;
    int state, json, fit;
    int default_sampler;  /* the default sampler was given by name; then `sampler` is NULL */
    int formulas;         /* the command also accepts models of processes with formulas */
    label_request labels; /* for models with classes of their own */
    /* guidance */
    const char *classifier, *classifier_config, *label;
    double scale; /* 0: the default of the classifier */
} sampling_request;

/* Names of all samplers and qualities for the tables of options, separated by '|', and a line of help about them. */
const char *sampling_samplers(void);
const char *sampling_samplers_help(void);
/* Whether a sampler chooses its own steps; no for NULL or an unknown name. */
int sampling_is_adaptive(const char *sampler);
/* Lines of help with the default grid and number of evaluations of each sampler. */
const char *sampling_grid_help(void);
const char *sampling_nfe_help(void);
/* Lines of help with the samplers that use an option, and its default. */
const char *sampling_order_help(void);
const char *sampling_detail_help(void);
const char *sampling_eta_help(void);
const char *sampling_tolerance_help(void);
const char *sampling_qualities(void);

/* Rows of tables of options: for all commands that draw, and for those that write samples. clang-format off: it would
 * break every row that is longer than a line. */
/* clang-format off */
#define SAMPLING_WALK(s) \
    {"process", 0, CLI_TEXT, "RECIPE", "another recipe than the model's own (\"psld gamma=0.02\", a file)", \
     &(s).model.options.process, NULL}, \
    CLI_WEAK_OPTIONS((s).model), \
    {"quality", 0, CLI_TEXT, sampling_qualities(), "cheapest settings for a quality (default normal)", &(s).quality, \
     sampling_qualities()}, \
    {"sampler", 0, CLI_TEXT, "NAME", sampling_samplers_help(), &(s).sampler, sampling_samplers()}, \
    {"order", 0, CLI_COUNT, "N", sampling_order_help(), &(s).order, NULL}, \
    {"detail", 0, CLI_TEXT, "D", sampling_detail_help(), &(s).detail, NULL}, \
    {"eta", 0, CLI_TEXT, "E", sampling_eta_help(), &(s).eta, NULL}, \
    {"grid", 0, CLI_TEXT, "NAME", sampling_grid_help(), &(s).options.grid, NULL}, \
    {"rho", 0, CLI_NUMBER, "R", "exponent of the grid rho (default 7)", &(s).options.rho, NULL}, \
    {"nfe", 0, CLI_COUNT, "N", sampling_nfe_help(), &(s).nfe, NULL}, \
    {"tol", 0, CLI_NUMBER, "TOL", sampling_tolerance_help(), &(s).tolerance, NULL}, \
    {"seed", 0, CLI_SEED, "S", "sample i of a seed is always the same (default 0)", &(s).options.seed, NULL}, \
    {"no-denoise", 0, CLI_CLEAR, NULL, "no final denoising step; its evaluation is used for another reverse step", \
     &(s).options.denoise, NULL}, \
    {"eps", 0, CLI_NUMBER, "T", "end time of sampling (default 1e-3; by quality)", &(s).eps, NULL}, \
    {"end-sigma", 0, CLI_NUMBER, "S", "end where the effective noise is S, instead of --eps", &(s).options.end_sigma, \
     NULL}, \
    {"clip", 0, CLI_NUMBER, "C", "clip predicted clean data to [-C, C]", &(s).options.clip, NULL}, \
    {"threshold", 0, CLI_NUMBER, "Q", "scale them by this quantile of their magnitude instead, e.g. 0.995", \
     &(s).options.threshold, NULL}, \
    {"corrector", 0, CLI_COUNT, "N", "Langevin steps after each step", &(s).corrector, NULL}, \
    {"corrector-size", 0, CLI_NUMBER, "A", "their size in (0, 1] (default 0.05)", &(s).options.corrector_size, NULL}, \
    {"batch", 0, CLI_COUNT, "B", "samples at a time (default: by the model)", &(s).batch, NULL}, \
    {"ode-group", 0, CLI_COUNT, "N", "samples that share the steps of ode (default 16)", &(s).ode_group, NULL}, \
    {"quantize", 0, CLI_TEXT, "round|floor", "how pixels become 8 bits (default round)", &(s).quantize, \
     "round|floor"}, \
    {"json", 0, CLI_FLAG, NULL, "print one JSON object", &(s).json, NULL}, \
    CLI_MODEL_OPTIONS((s).model)

#define SAMPLING_OPTIONS(s) \
    SHEET_OPTION((s).zoom), \
    {"state", 0, CLI_FLAG, NULL, "write auxiliary variables too", &(s).state, NULL}, \
    SAMPLING_WALK(s)

#define SAMPLING_GUIDANCE(s) \
    {"classifier", 0, CLI_FILE, "CLF", "a classifier of states, trained for the model's recipe", &(s).classifier, NULL}, \
    {"classifier-config", 0, CLI_FILE, "FILE", "configuration of a classifier without one", \
     &(s).classifier_config, NULL}, \
    {"scale", 0, CLI_NUMBER, "S", "factor of the classifier's gradient (default 3; exact models 1, Bayes' rule)", &(s).scale, \
     NULL}

/* For commands that complete or restore data. */
#define SAMPLING_RESTORATION(s) \
    {"number", 'n', CLI_COUNT, "N", "samples for each image (default 4 pictures, 1000 vectors)", &(s).n, NULL}, \
    {"out", 'o', CLI_FILE, "OUT", ".npy, .png (original | degraded | samples), or a folder of all", &(s).out, NULL}, \
    {"fit", 0, CLI_FLAG, NULL, "resize pictures of another size to the model's", &(s).fit, NULL}, \
    {"label", 0, CLI_TEXT, "L", "draw this class, by the model's labels or --classifier", &(s).label, NULL}, \
    LABEL_CFG_OPTIONS((s).labels), \
    SAMPLING_GUIDANCE(s), \
    SAMPLING_OPTIONS(s)
/* clang-format on */

void sampling_defaults(sampling_request *s);

/* cli_parse for a command whose words are a model and then overrides: `words` has room for SAMPLING_WORDS. Returns 1 when
 * the command is to run. */
enum { SAMPLING_WORDS = 64 };
int sampling_parse(const cli_command *command, const cli_option *options, int argc, char **argv, const char **words,
                   int *count, int *exit_code);
/* Check the options before anything is computed: those of sampling, and those of the output, which is a folder or has
 * one of the '|'-separated endings. Both return EXIT_DONE if they are right, and convert what was given as text. */
int sampling_check(const cli_command *command, sampling_request *s);
int sampling_check_out(const cli_command *command, const sampling_request *s, const char *endings);
/* The same for commands with SAMPLING_RESTORATION: sampling under conditions, and the output. */
int sampling_check_conditions(const cli_command *command, sampling_request *s);
int sampling_check_restored(const cli_command *command, const sampling_request *s);

/* The sampling options for this model: the sampler by name, or the cheapest settings for a quality. */
psld_status sampling_choose(const sampling_request *s, const psld_model *model, psld_sample_options *options);

/* A model, perhaps a classifier, and the samples so far. */
typedef struct sampling_job {
    const sampling_request *request;
    psld_sample_options options;
    psld_model *model, *classifier; /* classifier: the model itself if that is exact */
    double scale;                   /* of guidance */
    label_choice labels;            /* for the model's own labels */
    size_t k, dim, width, kept;     /* width: numbers of a state; kept: how many of them are written */
    int rank;
    size_t shape[PSLD_MAX_RANK]; /* of one sample */
    cli_progress progress;
    size_t planned, drawn; /* samples: in all, and finished */
    uint64_t evaluations;  /* of all samples together */
    uint64_t nfe;          /* per sample */
    double seconds;
} sampling_job;

/* Opens the model words[0], the other words being overrides, and the classifier if one is asked for; `classifier`: one
 * is required. Checks that they are compatible. */
psld_status sampling_open(const char *const *words, int count, const sampling_request *s, int classifier,
                          sampling_job *job);
/* The rest of opening, when job->model is open; `origin` names it in messages. */
psld_status sampling_begin(const char *origin, const sampling_request *s, int classifier, sampling_job *job);
psld_status sampling_begin_restoration(const char *origin, const sampling_request *s, sampling_job *job);
/* The same for commands with SAMPLING_RESTORATION. Prints a message if it fails; EXIT_DONE if it does not. */
int sampling_open_restoration(const cli_command *command, const char *const *words, int count,
                              const sampling_request *s, sampling_job *job);
void sampling_close(sampling_job *job);
int sampling_is_image(const sampling_job *job);
size_t sampling_classes(const sampling_job *job);

/* The model's source for the labels that were asked for; *owned, which has to be freed, is NULL if none were. */
psld_status sampling_label(sampling_job *job, psld_source **owned);
/* A source guided to a class, by its number or by the user's name for it; *owned has to be freed. */
psld_status sampling_guide_class(sampling_job *job, psld_source *base, size_t number, psld_source **owned);
psld_status sampling_guide(sampling_job *job, psld_source *base, const char *label, psld_source **owned);

/* An array for n samples, [n, channels, ...]. */
psld_status sampling_array(const sampling_job *job, size_t n, psld_array **x);
/* Draws samples first ... first + count - 1 from a source, batch after batch, into `x` after the samples that it has.
 * After an interruption job->drawn counts those of finished batches. */
psld_status sampling_draw(sampling_job *job, psld_source *source, uint64_t first, size_t count, psld_array *x);
/* Whether the samples in the array are to be written: all are drawn, or some before an interruption. Shortens the array
 * to the samples that were drawn. */
int sampling_keep(const sampling_job *job, psld_status status, psld_array *x);

/* Pixels of pictures [n, c, h, w]. */
psld_status sampling_pixels(const sampling_job *job, const psld_array *x, psld_array **pixels);
/* Fails if OUT/PART has more than n pictures: those of an earlier command would be mixed with the new ones. */
psld_status sampling_check_folder(const char *out, const char *part, size_t n);
/* PATH/000000.png ... for pictures [n, c, h, w] of u8. */
psld_status sampling_write_folder(const psld_array *pixels, const char *path);

/* Prints the line, or JSON object, about the results. */
int sampling_report(const sampling_job *job, size_t n, const char *what);
/* Prints the line after an interruption: how many of n samples the output has, and how to get the rest ("": by drawing
 * again). Returns the exit code. */
int sampling_report_interrupted(const sampling_job *job, size_t made, size_t n, const char *rest);

/* ---- Input ------------------------------------------------------------------------------------------------------- */

/* Pictures (a file, a folder, an archive) or vectors (.npy) of the model's shape: float64 [n][dim]. A picture of another
 * size is refused unless request->fit. */
psld_status sampling_read(const sampling_job *job, const char *path, psld_array **x);
/* The same for any shape of `rank` sizes, called `what` in messages. */
/* Whether a path is a .npy: by its ending; for an open descriptor (/proc/...) by its first bytes. */
int sampling_is_array(const char *path);
psld_status sampling_read_shape(const char *path, const char *what, int rank, const size_t *shape, int fit,
                                psld_array **x);

/* Masks for `images` samples: u8 [images][dim], 1 where known. From a picture, a folder or an archive of them, IDX or
 * .npy (`path`: nearest resize, above 0 is unknown), or a rectangle "X,Y,W,H" that is unknown. */
psld_status sampling_masks(const sampling_job *job, const char *path, const char *rectangle, size_t images,
                           psld_array **known);

/* For commands with SAMPLING_RESTORATION: whether the folder may be written to. */
psld_status sampling_check_strips(const sampling_job *job, size_t images, size_t samples);
/* Writes strips original | corrupted | samples, one row per image (originals may be NULL), or the folder of all.
 * `drawn` is the status of drawing. After an interruption the samples of finished batches are written; images without
 * samples are left out. Returns EXIT_DONE, or reports what was wrong and returns the exit code. */
int sampling_finish(const sampling_job *job, psld_status drawn, const psld_array *originals,
                    const psld_array *corrupted, psld_array *samples, size_t each);

#endif
