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
    int default_sampler;  /* the sampler of most models was asked for by name; then `sampler` is NULL */
    int formulas;         /* the command can also do with a model of a process with formulas */
    label_request labels; /* for models with classes of their own */
    /* guidance */
    const char *classifier, *classifier_config, *label;
    double scale; /* 0: what suits the classifier */
} sampling_request;

/* Names of all samplers and qualities for the tables of options, '|' between them, and a line of help about them. */
const char *sampling_samplers(void);
const char *sampling_samplers_help(void);
/* Whether a sampler chooses its own steps; NULL, or none that there is: no. */
int sampling_is_adaptive(const char *sampler);
/* Lines of help that say which grid and how many evaluations each sampler takes by itself. */
const char *sampling_grid_help(void);
const char *sampling_nfe_help(void);
/* Lines of help that say which samplers heed an option, and its default. */
const char *sampling_order_help(void);
const char *sampling_detail_help(void);
const char *sampling_eta_help(void);
const char *sampling_tolerance_help(void);
const char *sampling_qualities(void);

/* Rows of tables of options: of all commands that draw; and of those that write what they drew. clang-format off: it
 * would break every row that is longer than a line. */
/* clang-format off */
#define SAMPLING_WALK(s) \
    {"process", 0, CLI_TEXT, "RECIPE", "another recipe than the model's own (\"psld gamma=0.02\", a file)", \
     &(s).model.options.process, NULL}, \
    CLI_WEAK_OPTIONS((s).model), \
    {"quality", 0, CLI_TEXT, sampling_qualities(), "what costs least for a quality (default normal)", &(s).quality, \
     sampling_qualities()}, \
    {"sampler", 0, CLI_TEXT, "NAME", sampling_samplers_help(), &(s).sampler, sampling_samplers()}, \
    {"order", 0, CLI_COUNT, "N", sampling_order_help(), &(s).order, NULL}, \
    {"detail", 0, CLI_TEXT, "D", sampling_detail_help(), &(s).detail, NULL}, \
    {"eta", 0, CLI_TEXT, "E", sampling_eta_help(), &(s).eta, NULL}, \
    {"grid", 0, CLI_TEXT, "NAME", sampling_grid_help(), &(s).options.grid, NULL}, \
    {"rho", 0, CLI_NUMBER, "R", "of the grid rho (default 7)", &(s).options.rho, NULL}, \
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
    {"batch", 0, CLI_COUNT, "B", "samples at a time (default: what suits the model)", &(s).batch, NULL}, \
    {"ode-group", 0, CLI_COUNT, "N", "samples that share the steps of ode (default 16)", &(s).ode_group, NULL}, \
    {"quantize", 0, CLI_TEXT, "round|floor", "how pixels are cut to 8 bits (default round)", &(s).quantize, \
     "round|floor"}, \
    {"json", 0, CLI_FLAG, NULL, "print one JSON object", &(s).json, NULL}, \
    CLI_MODEL_OPTIONS((s).model)

#define SAMPLING_OPTIONS(s) \
    SHEET_OPTION((s).zoom), \
    {"state", 0, CLI_FLAG, NULL, "write auxiliary variables too", &(s).state, NULL}, \
    SAMPLING_WALK(s)

#define SAMPLING_GUIDANCE(s) \
    {"classifier", 0, CLI_FILE, "CLF", "a classifier of states, trained for the model's recipe", &(s).classifier, NULL}, \
    {"classifier-config", 0, CLI_FILE, "FILE", "configuration of a classifier that carries none", \
     &(s).classifier_config, NULL}, \
    {"scale", 0, CLI_NUMBER, "S", "of the gradient that is added to the score (default 3; of exact models 1, Bayes' rule)", &(s).scale, \
     NULL}

/* Of commands that make something whole again. */
#define SAMPLING_RESTORATION(s) \
    {"number", 'n', CLI_COUNT, "N", "samples of each (default 4 pictures, 1000 vectors)", &(s).n, NULL}, \
    {"out", 'o', CLI_FILE, "OUT", ".npy, .png (original | degraded | samples), or a folder of all", &(s).out, NULL}, \
    {"fit", 0, CLI_FLAG, NULL, "bring pictures of another size to the model's", &(s).fit, NULL}, \
    {"label", 0, CLI_TEXT, "L", "of this class: the model's own label, or guidance by --classifier", &(s).label, NULL}, \
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
/* What can be known to be wrong before anything is computed, of the walk and of the output, which is a folder or has one
 * of the '|'-separated endings. Both return EXIT_DONE when nothing is, and take in what was given as text. */
int sampling_check(const cli_command *command, sampling_request *s);
int sampling_check_out(const cli_command *command, const sampling_request *s, const char *endings);
/* The same for commands with SAMPLING_RESTORATION: the walk under conditions, and the output. */
int sampling_check_conditions(const cli_command *command, sampling_request *s);
int sampling_check_restored(const cli_command *command, const sampling_request *s);

/* The options of a walk with this model: the sampler by name, or what costs least for a quality. */
psld_status sampling_choose(const sampling_request *s, const psld_model *model, psld_sample_options *options);

/* A model, maybe a classifier, and what has been drawn so far. */
typedef struct sampling_job {
    const sampling_request *request;
    psld_sample_options options;
    psld_model *model, *classifier; /* classifier: the model itself when that is exact */
    double scale;                   /* of guidance */
    label_choice labels;            /* for the model's own labels */
    size_t k, dim, width, kept;     /* width: numbers of a state; kept: those that are written */
    int rank;
    size_t shape[PSLD_MAX_RANK]; /* of one sample */
    cli_progress progress;
    size_t planned, drawn; /* samples: of the whole command, and finished */
    uint64_t evaluations;  /* of all samples together */
    uint64_t nfe;          /* per sample */
    double seconds;
} sampling_job;

/* Opens the model words[0], the other words being overrides, and the classifier if one is asked for; `classifier`: one is
 * needed. Checks that they fit each other. */
psld_status sampling_open(const char *const *words, int count, const sampling_request *s, int classifier,
                          sampling_job *job);
/* What follows when job->model is open; `origin` names it in messages. */
psld_status sampling_begin(const char *origin, const sampling_request *s, int classifier, sampling_job *job);
psld_status sampling_begin_restoration(const char *origin, const sampling_request *s, sampling_job *job);
/* The same for commands with SAMPLING_RESTORATION, with a word where it fails: EXIT_DONE when it does not. */
int sampling_open_restoration(const cli_command *command, const char *const *words, int count,
                              const sampling_request *s, sampling_job *job);
void sampling_close(sampling_job *job);
int sampling_is_image(const sampling_job *job);
size_t sampling_classes(const sampling_job *job);

/* The model's source for the labels that were asked for; *owned, which has to be freed, is NULL if none were. */
psld_status sampling_label(sampling_job *job, psld_source **owned);
/* A source guided to a class, by its number or by what the user calls it; *owned has to be freed. */
psld_status sampling_guide_class(sampling_job *job, psld_source *base, size_t number, psld_source **owned);
psld_status sampling_guide(sampling_job *job, psld_source *base, const char *label, psld_source **owned);

/* An array for n samples, [n, channels, ...]. */
psld_status sampling_array(const sampling_job *job, size_t n, psld_array **x);
/* Draws samples first ... first + count - 1 from a source, batch after batch, into `x` behind the samples that it has.
 * When interrupted, job->drawn counts those of finished batches. */
psld_status sampling_draw(sampling_job *job, psld_source *source, uint64_t first, size_t count, psld_array *x);
/* Whether the samples in the array are to be written: all are drawn, or it was interrupted after some. Shortens the
 * array to the samples that were drawn. */
int sampling_keep(const sampling_job *job, psld_status status, psld_array *x);

/* Pixels of pictures [n, c, h, w]. */
psld_status sampling_pixels(const sampling_job *job, const psld_array *x, psld_array **pixels);
/* Fails where OUT/PART has more than n pictures: those of an earlier command would stand among the new ones. */
psld_status sampling_check_folder(const char *out, const char *part, size_t n);
/* PATH/000000.png ... for pictures [n, c, h, w] of u8. */
psld_status sampling_write_folder(const psld_array *pixels, const char *path);

/* The line, or JSON object, about what was made. */
int sampling_report(const sampling_job *job, size_t n, const char *what);
/* The line after an interruption: how many of n samples the output has, and how to get the rest ("": by drawing
 * again). Returns what to exit with. */
int sampling_report_interrupted(const sampling_job *job, size_t made, size_t n, const char *rest);

/* ---- What comes in ----------------------------------------------------------------------------------------------- */

/* Pictures (a file, a folder, an archive) or vectors (.npy) of the model's shape: float64 [n][dim]. A picture of another
 * size is refused unless request->fit. */
psld_status sampling_read(const sampling_job *job, const char *path, psld_array **x);
/* The same for any shape of `rank` sizes, called `what` in messages. */
/* Whether a path is a .npy: by its ending, and what an open descriptor stands for (/proc/...) by what is in it. */
int sampling_is_array(const char *path);
psld_status sampling_read_shape(const char *path, const char *what, int rank, const size_t *shape, int fit,
                                psld_array **x);

/* Masks for `images` samples: u8 [images][dim], 1 where known. From a picture, a folder or an archive of them, IDX or
 * .npy (`path`: nearest resize, above 0 is unknown), or a rectangle "X,Y,W,H" that is unknown. */
psld_status sampling_masks(const sampling_job *job, const char *path, const char *rectangle, size_t images,
                           psld_array **known);

/* For commands with SAMPLING_RESTORATION: whether the folder may be written to. */
psld_status sampling_check_strips(const sampling_job *job, size_t images, size_t samples);
/* Writes strips original | corrupted | samples, one row per image (originals may be NULL), or the folder of all. `drawn` is
 * the status of drawing. After an interruption the samples of finished batches are written; images without samples are
 * left out. Returns EXIT_DONE, or reports what was wrong and returns what to exit with. */
int sampling_finish(const sampling_job *job, psld_status drawn, const psld_array *originals,
                    const psld_array *corrupted, psld_array *samples, size_t each);

#endif
