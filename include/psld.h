/* psld: diffusion generative models by the complete recipe (Pandey & Mandt, ICCV 2023).
 *
 * Every process of the family is linear with the same small matrices for each coordinate of the data:
 *
 *     dz = -beta(t) (D + Q) P z dt + sqrt(2 beta(t) D) dw,      z = (x, m_1, ..., m_{k-1}),  t in [0, 1],
 *
 * with D symmetric positive semidefinite (noise), Q skew-symmetric (exchange between the variables), and
 * P = diag(1, 1/mass_1, ...), so that N(0, P^-1) is stationary. x is the data, the m_i are auxiliary variables.
 * k = 1 is VP-SDE, k = 2 holds CLD and PSLD, k = 3 third-order Langevin dynamics.
 *
 * Conventions
 *   - A function returns a psld_status; results come last and are set to NULL (or left alone) on failure.
 *     psld_error_text() then says in one line what went wrong.
 *   - Objects are opaque, made and freed in pairs; freeing NULL is harmless. Options, and results that a caller
 *     allocates, are plain structs that begin with their size. Initialise each with its macro:
 *     psld_sample_options options = PSLD_SAMPLE_DEFAULTS; Later versions add fields at the end; the library reads and
 *     writes only what the size covers, and refuses a size that it does not know.
 *   - The library chooses what options leave unset. Unset is NULL for texts and pointers and PSLD_UNSET for numbers;
 *   where
 *     0 would make no sense, 0 is unset too. The macros leave everything unset, or at the default that is named.
 *   - Objects, arrays and results must not be NULL, unless the meaning of NULL is documented.
 *   - Matrices are k x k, row by row, position first. States are variable-major: all of x, then all of m_1, ...
 *   - The library never prints, never exits, never touches the environment or signal handlers.
 *   - Objects are immutable once made and may be shared between threads, unless said otherwise. A source that wraps
 *     another may be shared if that one may: exact sources can be shared, networks cannot.
 */
#ifndef PSLD_H
#define PSLD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PSLD_API __attribute__((visibility("default")))
#else
#define PSLD_API
#endif

/* ---- Status, version, log, threads ------------------------------------------------------------------------------- */

/* The values are fixed: programs may store them. */
typedef enum psld_status {
    PSLD_OK = 0,
    PSLD_NO_MEMORY = 1,    /* an allocation failed */
    PSLD_BAD_ARGUMENT = 2, /* an argument or option of the call is outside its range */
    PSLD_BAD_INPUT = 3,    /* a file or text has wrong contents */
    PSLD_IO = 4,           /* a file cannot be opened, read or written */
    PSLD_CANCELLED = 5,    /* the progress callback asked to stop */
    PSLD_NOT_FINITE = 6,   /* a computation gave infinity or not-a-number */
    PSLD_DEVICE_FAILED = 7 /* a device is not there, cannot compute this, or was lost */
} psld_status;

/* One line on the last failure in this thread; "" if there was none. Valid until the next call that fails. If a
 * callback of yours fails, this is the line of the library call that failed in it; if there was none, the line names
 * the callback and its status. */
PSLD_API const char *psld_error_text(void);

/* A number with the fewest digits that read back as the same number: 0.05, 20000, 1e-5, 2.598076211353316; with a '.'
 * in every locale. Returns `text`. */
enum { PSLD_NUMBER_SIZE = 32 };
PSLD_API const char *psld_text_shortest(double number, char text[PSLD_NUMBER_SIZE]);
/* The word of a list that is most similar to `word`, for messages: it differs by letters left out, added, wrong or
 * exchanged, or by a missing end. NULL: none. */
PSLD_API const char *psld_text_nearest(const char *word, const char *const *words, size_t count);

/* Creates a folder and those above it, unless they exist. */
PSLD_API psld_status psld_folder_make(const char *path);

#define PSLD_VERSION        "0.2.0"
#define PSLD_VERSION_NUMBER 200 /* major * 10000 + minor * 100 + patch */
/* The version of the library at run time; PSLD_VERSION is the one at compile time. */
PSLD_API const char *psld_version(void);

typedef enum psld_log_level { PSLD_LOG_INFO = 0, PSLD_LOG_WARNING = 1 } psld_log_level;

/* Receives messages of the library while it works, one line at a time, perhaps from a thread of the library. Without
 * one (the default, or NULL) the library is silent. */
typedef void (*psld_log_fn)(void *user, psld_log_level level, const char *line);
PSLD_API void psld_log_to(psld_log_fn log, void *user);

/* Called between steps of long work, from the thread that made the call: `done` of `total` units. A value other
 * than 0 cancels: the call returns PSLD_CANCELLED. */
typedef int (*psld_progress_fn)(void *user, uint64_t done, uint64_t total);

/* Number of threads that the library computes with, the caller's included; 0 = one for each processor that the
 * process may use (the default). Results do not depend on it. May be changed at any time between calls; a training that is
 * open keeps its plan, and with it no more threads than there were when it was opened. A child of fork begins with threads
 * of its own; objects that work ahead in the background, open data and training, are not to be used in it. */
PSLD_API psld_status psld_threads_set(int count);
PSLD_API int psld_threads_get(void);

/* An unset number in options: the library chooses it. */
#define PSLD_UNSET (-1)

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

typedef enum psld_type { PSLD_F64 = 0, PSLD_F32 = 1, PSLD_U8 = 2, PSLD_I32 = 3, PSLD_I64 = 4 } psld_type;

enum { PSLD_MAX_RANK = 8 };

/* A dense array in C order. The fields may be read and the elements changed. */
typedef struct psld_array {
    psld_type type;
    int rank;
    size_t shape[PSLD_MAX_RANK];
    size_t count; /* product of the shape */
    void *data;
} psld_array;

PSLD_API psld_status psld_array_create(psld_type type, int rank, const size_t *shape, psld_array **array);
PSLD_API void psld_array_free(psld_array *array);

/* NumPy's .npy, versions 1 to 3, little-endian or single-byte elements of the types above. */
PSLD_API psld_status psld_array_load(const char *path, psld_array **array);
/* Only type and shape of a .npy, also of a very large one: `data` is NULL. */
PSLD_API psld_status psld_array_inspect(const char *path, psld_array *array);
PSLD_API psld_status psld_array_save(const psld_array *array, const char *path);
/* The same file in memory. Free with psld_bytes_free. */
PSLD_API psld_status psld_array_encode(const psld_array *array, void **bytes, size_t *size);
PSLD_API void psld_bytes_free(void *bytes);
/* NumPy's .npz: arrays under their names, uncompressed. */
PSLD_API psld_status psld_npz_save(const char *path, size_t count, const char *const *names,
                                   const psld_array *const *arrays);

/* "float64", "float32", "uint8", "int32", "int64"; NULL for a value that is not a type. */
PSLD_API const char *psld_type_name(psld_type type);
/* Converts an array of any type to a new one of type F64 (exact, except for I64 beyond 2^53), or F32. */
PSLD_API psld_status psld_array_convert(const psld_array *array, psld_type type, psld_array **converted);
/* A number that identifies the elements of an array. */
PSLD_API uint64_t psld_array_fingerprint(const psld_array *array);

/* Converts the numbers of models to pixels: float32 in [-1, 1], any shape. v becomes (v + 1) 127.5, rounded, or rounded
 * down with `floor`; values outside become 0 or 255. */
PSLD_API psld_status psld_images_from_data(const psld_array *x, int floor, psld_array **images);

/* ---- Files and folders that a program writes --------------------------------------------------------------------- */

/* Writes a text as a file, completely or not at all. A file of that name is replaced; a symbolic link is not
 * followed. */
PSLD_API psld_status psld_text_save(const char *text, const char *path);

/* Locks a folder that one process at a time may write into. Fails if another process has the lock (PSLD_IO). Removes
 * temporary files that killed processes of the library left there. The lock ends with the process at the latest. */
typedef struct psld_folder_lock psld_folder_lock;
PSLD_API psld_status psld_folder_lock_take(const char *folder, psld_folder_lock **claim);
PSLD_API void psld_folder_lock_free(psld_folder_lock *claim);

/* ---- Recipes: the forward process -------------------------------------------------------------------------------- */

enum { PSLD_MAX_K = 8, PSLD_NAME_SIZE = 64 };

/* HSM: the kernel given x_0 alone, auxiliary variables starting from N(0, init mass). DSM: given all of z_0. */
typedef enum psld_mode { PSLD_HSM = 0, PSLD_DSM = 1 } psld_mode;

/* Everything that defines a process and the meaning of its eps. By default k = 1, D = 0.5, beta 8, all else 0. */
typedef struct psld_recipe_spec {
    size_t size;
    char name[PSLD_NAME_SIZE];
    int k;                             /* variables: 1 + auxiliary ones, at most PSLD_MAX_K */
    double D[PSLD_MAX_K * PSLD_MAX_K]; /* k x k, packed: D[row * k + column] */
    double Q[PSLD_MAX_K * PSLD_MAX_K]; /* k x k */
    double mass[PSLD_MAX_K - 1];       /* of the k - 1 auxiliary variables */
    double init[PSLD_MAX_K - 1];       /* variance of the auxiliary variables at t = 0, in units of their mass */
    double beta_min, beta_max;         /* beta(t) = beta_min + (beta_max - beta_min) t */
    double stabiliser;                 /* added to the diagonal of the kernel covariance before factorising */
    int upper;                         /* 1: factor U U' instead of L L' (some published checkpoints) */
    int natural;    /* 1: L is lower in the order x, m_1, ...; 0: variables without noise come first */
    psld_mode mode; /* the kernel that eps belongs to: that of the training loss */
    int reserved;   /* 0 */
} psld_recipe_spec;

#define PSLD_RECIPE_SPEC_DEFAULTS                                                                \
    {                                                                                            \
        sizeof(psld_recipe_spec), "unnamed", 1, {0.5}, {0}, {0}, {0}, 8, 8, 0, 0, 0, PSLD_HSM, 0 \
    }

typedef struct psld_recipe psld_recipe;

/* Any recipe as a user writes it: the name of a preset or the path of a YAML file, then overrides
 * ("psld gamma=0.02", "my-process.yaml beta=[0.1, 20]"). docs/reference/recipe.md has both forms. */
PSLD_API psld_status psld_recipe_open(const char *text, psld_recipe **recipe);
/* From matrices. All conditions of the family are checked; the message says which one fails and by how much. */
PSLD_API psld_status psld_recipe_create(const psld_recipe_spec *spec, psld_recipe **recipe);
/* From YAML text; `origin` names it in messages. */
PSLD_API psld_status psld_recipe_parse(const char *yaml, const char *origin, psld_recipe **recipe);
PSLD_API void psld_recipe_free(psld_recipe *recipe);

/* A recipe as the text of a YAML file, from which the same recipe can be read. Free with psld_text_free. */
PSLD_API psld_status psld_recipe_text(const psld_recipe *recipe, char **text);

/* The size of this struct is 0, since it belongs to the library. To make another recipe from a copy, set the size of
 * the copy: psld_recipe_spec spec = *psld_recipe_get(recipe); spec.size = sizeof spec; */
PSLD_API const psld_recipe_spec *psld_recipe_get(const psld_recipe *recipe);

/* Whether two recipes are the same process; names and factors may differ. A network is trained for one process; for
 * another process use psld_source_translate. */
PSLD_API int psld_recipe_same(const psld_recipe *a, const psld_recipe *b);
/* The first parameter in which they differ, as "gamma is 0.01, not 0.02" (0.01 is that of `a`). If the processes are
 * equal, the first property in which their eps differ: stabiliser, factor or kernel. "" if both are equal. */
PSLD_API void psld_recipe_difference(const psld_recipe *a, const psld_recipe *b, char *text, size_t size);

/* Everything that has a name is listed in a table: presets here; samplers, time grids, qualities, tasks and methods of
 * restoration below; metrics, toy sets and filters in other headers. psld_X_at gives row `index` from 0 on, and NULL
 * past the last. psld_X_find gives the row of that name, or NULL: psld_error_text() then lists the names. Rows are
 * valid as long as the library is loaded. Later versions may add fields at the end. */

/* A key of a preset that may be overridden: "psld gamma=0.02". */
typedef struct psld_preset_parameter {
    const char *name;    /* NULL ends a list of them */
    const char *initial; /* default as YAML; NULL: it follows from the others */
    const char *help;
} psld_preset_parameter;

typedef struct psld_preset_info {
    const char *name, *summary;
    int k;                                   /* variables */
    const psld_preset_parameter *parameters; /* without those that every recipe has (name, stabiliser, ...) */
} psld_preset_info;
PSLD_API const psld_preset_info *psld_preset_at(int index);
PSLD_API const psld_preset_info *psld_preset_find(const char *name);

/* p(z_t | z_0) = N(mean z_0, cov), chol lower with chol chol' = cov; exact, without the stabiliser. t in [0, 1]. Each
 * result is k x k, or NULL if it is not wanted. */
PSLD_API psld_status psld_recipe_kernel(const psld_recipe *recipe, double t, psld_mode mode, double *mean, double *cov,
                                        double *chol);

/* Simulates the process: moves the states z [count][k * dim] of samples first, first + 1, ... from time s to t >= s, by
 * a draw of p(z_t | z_s). `move` numbers the moves of a path, so that each draws other numbers of the seed. */
PSLD_API psld_status psld_recipe_move(const psld_recipe *recipe, double s, double t, uint64_t seed, uint64_t move,
                                      uint64_t first, size_t count, size_t dim, double *z);

/* The meaning of a network's eps at time t > 0. The stabilised covariance is factor factor', the noise is factor eps,
 * and the score is -inverse' eps with inverse = factor^-1. The factor is triangular in the order of psld_recipe_order;
 * its rows and columns are in the order x, m_1, ... Usually `mode` is that of the recipe. k x k each. */
PSLD_API psld_status psld_recipe_factor(const psld_recipe *recipe, double t, psld_mode mode, double *factor,
                                        double *inverse);

/* The order of the variables in which the factor is lower triangular. Returns how many of them, counted from the end,
 * have their eps predicted: all from the first one with noise (a row of D that is not 0) on, because their scores need
 * no other eps. By default variables without noise come first, so that exactly those with noise are predicted.
 * spec.natural takes the order x, m_1, ... instead, and spec.upper the reverse of that. */
PSLD_API int psld_recipe_order(const psld_recipe *recipe, int order[PSLD_MAX_K]);
/* The predicted variables, one channel of eps each: in the order x, m_1, ..., for every kind of factor. Returns how many
 * there are. */
PSLD_API int psld_recipe_predicted(const psld_recipe *recipe, int variables[PSLD_MAX_K]);
/* The coefficients between eps and clean data at time t in (0, 1], for each coordinate: x = state . z + noise . eps
 * with state [k] and noise [predicted], and eps = white z - gain x with white [predicted][k] and gain [predicted]. eps
 * is that of networks, which belongs to the recipe's mode and its stabilised factor. Results may be NULL. */
PSLD_API psld_status psld_recipe_denoiser(const psld_recipe *recipe, double t, double *state, double *noise,
                                          double *white, double *gain);

typedef enum psld_damping { PSLD_OVERDAMPED = 0, PSLD_CRITICAL = 1, PSLD_UNDERDAMPED = 2 } psld_damping;
/* NULL for any other value. */
PSLD_API const char *psld_damping_name(psld_damping damping);

typedef struct psld_analysis {
    size_t size;
    double
        eigenvalue_re[PSLD_MAX_K]; /* of the drift matrix -(D + Q) P in units of beta, by real, then imaginary part */
    double eigenvalue_im[PSLD_MAX_K];
    psld_damping damping;
    double rate;      /* slowest decay, in units of beta: -max real part */
    double distance;  /* psld_recipe_distance at t = 1 */
    int long_enough;  /* distance is at most PSLD_DISTANCE_LIMIT */
    double sigma_max; /* psld_recipe_sigma at t = 1 */
} psld_analysis;

#define PSLD_ANALYSIS_EMPTY                                          \
    {                                                                \
        sizeof(psld_analysis), {0}, {0}, PSLD_OVERDAMPED, 0, 0, 0, 0 \
    }

/* Nats per coordinate. Up to this distance the reverse process can start from N(0, P^-1) without a warning. */
#define PSLD_DISTANCE_LIMIT 5e-3

PSLD_API psld_status psld_recipe_analyse(const psld_recipe *recipe, psld_analysis *analysis);

/* Kullback-Leibler distance of p(z_t | x_0 = 1) from N(0, P^-1), nats per coordinate. */
PSLD_API psld_status psld_recipe_distance(const psld_recipe *recipe, double t, double *distance);
/* Effective noise sigma: z_t has the same information on x_0 as x_0 + sigma n. t in (0, 1]. */
PSLD_API psld_status psld_recipe_sigma(const psld_recipe *recipe, double t, double *sigma);
/* The inverse: the time at which the effective noise is sigma. */
PSLD_API psld_status psld_recipe_time(const psld_recipe *recipe, double sigma, double *t);
/* The factors by which an Euler step carries errors of eps into x (App. D.1): `second` are the paper's lambda_1,
 * lambda_2, ..., and `first` the terms of first order in the step, which the paper leaves out. k numbers each. t in (0,
 * 1]. */
PSLD_API psld_status psld_recipe_error_factors(const psld_recipe *recipe, double t, double *first, double *second);

/* ---- Processes: the recipe in full ------------------------------------------------------------------------------- */

/* dz = beta f dt + sqrt(2 beta D) dw, with formulas of the state for H, D and Q and
 *     f = -(D + Q) grad H + tau,   tau_i = sum_j d_j (D + Q)_ij,
 * so that exp(-H) is stationary; or with a given drift f, for which this is checked. Every recipe of matrices is such a
 * process, too. States are rows of all variables, those of the data first. docs/reference/recipe.md has the files,
 * docs/explanation/beyond.md the mathematics. */
enum { PSLD_MAX_VARIABLES = 24, PSLD_MAX_DATA_VARIABLES = 8 };

typedef struct psld_process psld_process;

/* Opens a file with H, or any recipe that psld_recipe_open takes. `copies` of all variables with the same formulas are
 * for data with as many coordinates; all copies of the first variable come first. Usually 1. */
PSLD_API psld_status psld_process_open(const char *text, int copies, psld_process **process);
PSLD_API psld_status psld_process_parse(const char *yaml, const char *origin, int copies, psld_process **process);
PSLD_API void psld_process_free(psld_process *process);
PSLD_API const char *psld_process_name(const psld_process *process);
/* The number of all variables, and of those that are data. */
PSLD_API int psld_process_variables(const psld_process *process);
PSLD_API int psld_process_data(const psld_process *process);
/* NULL past the last. */
PSLD_API const char *psld_process_variable(const psld_process *process, int index);
/* The variables that get noise: those whose row of D is not 0. Returns how many there are. */
PSLD_API int psld_process_noisy(const psld_process *process, int variables[PSLD_MAX_VARIABLES]);
/* The recipe, if it was written as one; otherwise NULL. */
PSLD_API const psld_recipe *psld_process_recipe(const psld_process *process);

/* For n states z [n][variables]: beta f [n][variables] and beta D [n][variables][variables] at time t. NULL: not
 * wanted. */
PSLD_API psld_status psld_process_drift(const psld_process *process, size_t n, const double *z, double t, double *drift,
                                        double *diffusion);
/* H [n] and its gradient [n][variables]; NULL: not wanted. */
PSLD_API psld_status psld_process_energy(const psld_process *process, size_t n, const double *z, double *H,
                                         double *gradient);
/* Moves the states of samples first, first + 1, ... from time `from` to time `to` in so many Euler-Maruyama steps, even
 * in the square root of t; 0: the number in the recipe. */
PSLD_API psld_status psld_process_simulate(const psld_process *process, uint64_t seed, uint64_t first, size_t count,
                                           double from, double to, int steps, double *z);
/* Draws from exp(-H), by Hamiltonian Monte Carlo. */
PSLD_API psld_status psld_process_draw(const psld_process *process, uint64_t seed, uint64_t first, size_t count,
                                       double *z);

/* The results of checking a process. */
typedef struct psld_process_report {
    size_t size;
    double low[PSLD_MAX_VARIABLES], high[PSLD_MAX_VARIABLES]; /* the region of the checks */
    double least_eigenvalue;                                  /* of D over the region, relative to its largest entry */
    double skewness; /* of Q: the largest |Q + Q'| over the largest |Q|; 0 without Q */
    double residual; /* largest residual of the Fokker-Planck equation by exact derivatives, relative to its terms */
    /* The same by finite differences on a grid, relative to the largest of the terms, for up to three variables: grid
     * points per variable, residual, and the rate at which it falls from the previous grid. */
    int grids;
    int reserved; /* 0 */
    double points[4], grid_residual[4], rate[4];
    /* The largest Kolmogorov distance of all variables: drift_away between draws of exp(-H) and the same draws after a
     * simulation; chance, which two sets of draws exceed in one case of a hundred; mixing, after t = 1 from data at
     * 0. */
    double drift_away, chance, mixing;
} psld_process_report;

#define PSLD_PROCESS_REPORT_EMPTY                                                    \
    {                                                                                \
        sizeof(psld_process_report), {0}, {0}, 0, 0, 0, 0, 0, {0}, {0}, {0}, 0, 0, 0 \
    }

/* Fails if D has a negative eigenvalue, Q is not skew-symmetric, or exp(-H) is not stationary; the message tells where,
 * and by how much. */
PSLD_API psld_status psld_process_check(const psld_process *process, uint64_t seed, psld_process_report *report);

/* The converse: an exchange Q that gives the drift of a process with its D and H, on a grid of `points` (a power of
 * two) per variable, for up to three variables. The grid goes from low to a step before high; exp(-H) vanishes
 * there. */
typedef struct psld_exchange {
    size_t size;
    double *Q; /* [points^n][n][n], the caller's; NULL: not wanted. 0 where exp(-H) is below 1e-12 of its maximum */
    double *density; /* [points^n]: exp(-H) over its maximum; NULL: not wanted */
    double low[3], high[3];
    double skewness; /* the largest |Q + Q'| p over the largest |Q| p */
    double current;  /* the largest error of div(Q p) against F = f p - div(D p), over the largest |F| */
    double known;    /* the largest |Q - that of the file| over the largest |Q|, where p > 1e-6 of its maximum; -1: the
                        file gives the drift and no Q */
} psld_exchange;

#define PSLD_EXCHANGE_EMPTY                                           \
    {                                                                 \
        sizeof(psld_exchange), NULL, NULL, {0}, {0}, 0, 0, PSLD_UNSET \
    }

PSLD_API psld_status psld_process_exchange(const psld_process *process, int points, psld_exchange *exchange);

/* A key of configurations: process, process.*, data.*, model.*, train.* and seed. Texts are valid until the next call in
 * this thread. */
typedef struct psld_key {
    size_t size;
    const char *name;    /* "train.lr" */
    const char *type;    /* "number", "whole number", "word", ... */
    const char *initial; /* its default, as YAML; "": none */
    const char *choices; /* allowed words, separated by '|', or NULL */
    double min, max;     /* range of numbers; both 0: any */
    int may_change;      /* when a run is continued */
    const char *help;
} psld_key;

#define PSLD_KEY_EMPTY                                          \
    {                                                           \
        sizeof(psld_key), NULL, NULL, NULL, NULL, 0, 0, 0, NULL \
    }

/* ---- Score sources ----------------------------------------------------------------------------------------------- */

/* States and their times, as given to sources and classifiers. Later versions may add fields at the end. */
typedef struct psld_states {
    size_t size;            /* size of this struct: PSLD_STATES sets it */
    size_t n, dim;          /* number of states; coordinates of the data */
    const double *z;        /* [n][k * dim] */
    const double *t;        /* [n]: times of the forward process, in which t = 0 is clean data */
    const uint64_t *sample; /* [n]: the number of the sample that each state belongs to; NULL: unknown */
    const int32_t *label;   /* [n]: the class of each sample; -1: no label; NULL: no labels */
} psld_states;

#define PSLD_STATES(n, dim, z, t) ((psld_states){sizeof(psld_states), (n), (dim), (z), (t), NULL, NULL})

/* Fills `out` with the prediction, see psld_predicts. Called only from the thread that samples. */
typedef psld_status (*psld_score_fn)(void *user, const psld_states *states, double *out);

/* The vector-Jacobian product: `grad_z` [n][k * dim] is the gradient by z of sum(weight * out). `weight` has the shape of
 * `out`. Fills `out`, too, unless it is NULL. */
typedef psld_status (*psld_score_gradient_fn)(void *user, const psld_states *states, const double *weight, double *out,
                                              double *grad_z);

typedef struct psld_source psld_source;

/* The quantity that a callback predicts. Variables are in the order of psld_recipe_predicted. */
typedef enum psld_predicts {
    PSLD_PREDICTS_EPS,   /* [n][predicted * dim]: the noise, of the recipe's own mode */
    PSLD_PREDICTS_SCORE, /* [n][predicted * dim]: the gradient of log p_t(z) by the predicted variables */
    PSLD_PREDICTS_DATA,  /* [n][dim]: clean data, E[x_0 | z_t] */
} psld_predicts;

/* A user's own score. Any status but PSLD_OK ends the call that evaluates it. */
typedef struct psld_callback {
    size_t size;                     /* size of this struct: PSLD_CALLBACK_DEFAULTS sets it */
    psld_predicts predicts;          /* PSLD_PREDICTS_EPS by default */
    const psld_recipe *recipe;       /* recipe of the states; copied. NULL: any, if eps is predicted */
    psld_score_fn predict;           /* required */
    psld_score_gradient_fn gradient; /* or NULL. Likelihood and most methods of restoration need it */
    void *user;                      /* passed to both */
    int classes;                     /* classes of the labels in psld_states that it uses; unset: none */
    int needs_label;                 /* 1: it cannot predict without a label */
    int is_exact;                    /* 1: eps comes from an exact score, not from a network; see below */
    int reserved;                    /* 0 */
} psld_callback;

#define PSLD_CALLBACK_DEFAULTS        \
    {                                 \
        .size = sizeof(psld_callback) \
    }

/* A score or clean data count as exact. An eps counts as the noise of the stabilised kernel, as networks learn it,
 * unless is_exact is 1: then it comes from an exact score, such as that of a mixture. */
PSLD_API psld_status psld_source_callback(const psld_callback *callback, psld_source **source);

/* The exact score of data distributed as a mixture of isotropic Gaussians. */
typedef struct psld_mixture psld_mixture;
PSLD_API psld_status psld_mixture_create(size_t components, size_t dim, const double *weights, const double *means,
                                         const double *scales, psld_mixture **mixture);
/* The same mixture with a class for each component: label [components], 0 to classes - 1, each class at least once. Its
 * score takes labels: given a label, it is the score of the components of that class. */
PSLD_API psld_status psld_mixture_label(const psld_mixture *mixture, const int32_t *label, psld_mixture **labelled);
/* Number of classes of its labels; 0: it has none. */
PSLD_API size_t psld_mixture_classes(const psld_mixture *mixture);
PSLD_API void psld_mixture_free(psld_mixture *mixture);
PSLD_API size_t psld_mixture_dim(const psld_mixture *mixture);
/* Density of x_0 at a point, and mean [dim] and covariance [dim][dim] of x_0. */
PSLD_API double psld_mixture_density(const psld_mixture *mixture, const double *x);
PSLD_API void psld_mixture_moments(const psld_mixture *mixture, double *mean, double *cov);
/* Draws z_t for sample numbers first, first + 1, ...: [count][k * dim]. t = 0 gives data. */
PSLD_API psld_status psld_mixture_draw(const psld_mixture *mixture, const psld_recipe *recipe, double t, uint64_t seed,
                                       uint64_t first, size_t count, double *z);
/* Copies what it needs of both. */
PSLD_API psld_status psld_source_mixture(const psld_mixture *mixture, const psld_recipe *recipe, psld_source **source);

PSLD_API void psld_source_free(psld_source *source);
/* Predicts eps [n][predicted * dim], also if a callback predicts the score or clean data. */
PSLD_API psld_status psld_source_predict(psld_source *source, const psld_states *states, double *eps);
/* The gradient of sum(weight * eps), see psld_score_gradient_fn. Mixtures and networks have one. */
PSLD_API int psld_source_has_gradient(const psld_source *source);
PSLD_API psld_status psld_source_gradient(psld_source *source, const psld_states *states, const double *weight,
                                          double *eps, double *grad_z);

/* The denoiser: clean data x [n][dim] = E[x_0 | z_t] by the source's predictions. States are of `recipe`, times in (0, 1].
 * Works also if only some variables are predicted. */
PSLD_API psld_status psld_source_denoise(psld_source *source, const psld_recipe *recipe, const psld_states *states,
                                         double *x);

/* ---- Guidance ---------------------------------------------------------------------------------------------------- */

/* A classifier of states: fills log p(label[i] | z_i, t_i) into log_p [n] (unless that is NULL) and its gradient by all
 * of z into grad_z [n][k * dim]. */
typedef psld_status (*psld_classify_fn)(void *user, const psld_states *states, const int32_t *label, double *log_p,
                                        double *grad_z);

typedef struct psld_classifier psld_classifier;

/* A user's own classifier. */
PSLD_API psld_status psld_classifier_callback(psld_classify_fn classify, void *user, size_t classes,
                                              psld_classifier **classifier);
/* The exact classifier of the classes of a mixture, or of its components if it has no labels. Copies what it needs of
 * both. */
PSLD_API psld_status psld_classifier_mixture(const psld_mixture *mixture, const psld_recipe *recipe,
                                             psld_classifier **classifier);
PSLD_API void psld_classifier_free(psld_classifier *classifier);
PSLD_API size_t psld_classifier_classes(const psld_classifier *classifier);
/* See psld_classify_fn; labels are checked. */
PSLD_API psld_status psld_classifier_evaluate(psld_classifier *classifier, const psld_states *states,
                                              const int32_t *label, double *log_p, double *grad_z);

/* Classifier guidance: the score of `base` plus scale times the gradient of log p(label | z_t, t). Scale 1 is the score of
 * the class. Works with every sampler, and can be wrapped again. `base` and `classifier` must outlive the source. */
PSLD_API psld_status psld_source_guide(psld_source *base, const psld_recipe *recipe, psld_classifier *classifier,
                                       size_t label, double scale, psld_source **source);

/* The classes of samples, for class-conditional sources. Classifier-free guidance by `cfg` is
 *     eps = eps_none + cfg (eps_label - eps_none),
 * where eps_none is predicted without a label: 1 is the prediction for the label itself, 0 the one without. */
typedef struct psld_labels {
    size_t size;
    const int32_t *label; /* [count]: sample number s gets label[(s - first) % count]; -1: no label */
    size_t count;
    uint64_t first;
    double cfg;       /* unset: that of the model (psld_model_cfg), or 1 */
    double sigma_min; /* guidance acts only if the effective noise is from sigma_min to sigma_max, elsewhere cfg is 1 */
    double sigma_max; /* unset: no limit, for each */
} psld_labels;

#define PSLD_LABELS_DEFAULTS                                                \
    {                                                                       \
        sizeof(psld_labels), NULL, 0, 0, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET \
    }

/* A source that predicts for these labels. States without sample numbers count as samples first, first + 1, ... Both
 * predictions are evaluated as one batch. Copies the labels; `base` must outlive it. It has a gradient if `base` has. */
PSLD_API psld_status psld_source_label(psld_source *base, const psld_recipe *recipe, const psld_labels *labels,
                                       psld_source **source);
/* Number of classes of the labels that a source takes; 0: none. */
PSLD_API size_t psld_source_classes(const psld_source *source);
/* Whether it needs a label to predict: then there is no classifier-free guidance. */
PSLD_API int psld_source_needs_label(const psld_source *source);

/* ---- Restoration: linear inverse problems ------------------------------------------------------------------------ */

/* A kind of measurement operator, and the fields of psld_task that it uses. */
typedef struct psld_task_info {
    const char *name, *summary;
    int uses_factor, uses_blur, uses_known, uses_matrix;
    int needs_colour; /* it is for images of three channels */
} psld_task_info;
PSLD_API const psld_task_info *psld_task_at(int index);
PSLD_API const psld_task_info *psld_task_find(const char *name);

/* A linear measurement A of data. */
typedef struct psld_task {
    size_t size;
    const char *name; /* of psld_task_at; NULL: super-resolution */
    int rank;         /* of the data: 1, or 3 with channels first */
    int factor;       /* super-resolution: pixels per side of a block (vectors: numbers per block); unset: 4 */
    size_t shape[PSLD_MAX_RANK];
    double blur;                /* deblur: deviation in pixels; unset: 2 */
    const unsigned char *known; /* inpaint: [dim], 1 where known */
    const double *matrix;       /* linear: [rows][dim] */
    int rows;
    int reserved; /* 0 */
} psld_task;

#define PSLD_TASK_DEFAULTS                                                        \
    {                                                                             \
        sizeof(psld_task), NULL, 0, PSLD_UNSET, {0}, PSLD_UNSET, NULL, NULL, 0, 0 \
    }

typedef struct psld_operator psld_operator;

/* Copies what it needs. */
PSLD_API psld_status psld_operator_create(const psld_task *task, psld_operator **op);
PSLD_API void psld_operator_free(psld_operator *op);
/* Shape of a measurement: its rank, and its sizes in `shape`. */
PSLD_API int psld_operator_shape(const psld_operator *op, size_t shape[PSLD_MAX_RANK]);
/* y = A x + noise n, with the standard normal numbers n of a seed for measurement `number`. */
PSLD_API psld_status psld_operator_measure(const psld_operator *op, const double *x, double noise, uint64_t seed,
                                           uint64_t number, double *y);

/* A picture of the measurement y in the shape of the data: small images enlarged, unknown pixels grey. */
PSLD_API psld_status psld_operator_show(const psld_operator *op, const double *y, double *x);

/* A method: how p(y | z_t) is approximated. All methods use options.noise and options.scale. */
typedef struct psld_restore_method_info {
    const char *name, *summary;
    int needs_gradient;  /* it needs derivatives of the score: see psld_source_has_gradient */
    int uses_iterations; /* uses options.iterations and options.tolerance */
} psld_restore_method_info;
PSLD_API const psld_restore_method_info *psld_restore_method_at(int index);
PSLD_API const psld_restore_method_info *psld_restore_method_find(const char *name);

typedef struct psld_restore_options {
    size_t size;
    const char *method; /* of psld_restore_method_at; NULL: posterior */
    double noise;       /* deviation of the noise in y; 0, the default: none */
    double scale;       /* factor of the gradient; 1, the default, is Bayes' rule */
    double tolerance;   /* posterior: stop if the residual has fallen by this factor; unset: 1e-4 */
    int iterations;     /* posterior: at most so many products with the covariance per evaluation; unset: 8 */
    int reserved;       /* 0 */
} psld_restore_options;

#define PSLD_RESTORE_DEFAULTS                                               \
    {                                                                       \
        sizeof(psld_restore_options), NULL, 0, 1, PSLD_UNSET, PSLD_UNSET, 0 \
    }

/* A source with the score of `base` given y = A x_0 + noise. All methods except "diffused" differentiate `base`; so
 * wrap guidance around restoration, not the other way. `base` and the operator are borrowed and must outlive the
 * source; the rest is copied. */
PSLD_API psld_status psld_source_restore(psld_source *base, const psld_recipe *recipe, const psld_operator *op,
                                         const double *y, const psld_restore_options *options, psld_source **source);

/* A source of `recipe` made from a source of the recipe `known`. States of all recipes carry the same information on the
 * data at the same effective noise. Valid for the effective noise of `known` from t = 1e-5 to 1. `base` must outlive it. */
PSLD_API psld_status psld_source_translate(psld_source *base, const psld_recipe *known, const psld_recipe *recipe,
                                           psld_source **source);
/* A source whose clean data stay within [-limit, limit]. They are clipped; or, with a quantile above 0, a sample is
 * divided by that quantile of its absolute values if this is beyond the limit. `base` must outlive it. */
PSLD_API psld_status psld_source_clip(psld_source *base, const psld_recipe *recipe, double limit, double quantile,
                                      psld_source **source);

/* Autoguidance, by a weaker model of the same data and recipe: eps = eps_weak + scale (eps_base - eps_weak). Both must
 * outlive it. It has a gradient if both have one. */
PSLD_API psld_status psld_source_autoguide(psld_source *base, psld_source *weak, const psld_recipe *recipe,
                                           double scale, psld_source **source);

/* ---- Sampling ---------------------------------------------------------------------------------------------------- */

/* Supplies the normal numbers of a step in place of the generator: numbers first ... first + count - 1 of the k * dim
 * numbers of draw `draw` of a sample (em: one draw per step, sscs: two). For comparing implementations, or following one
 * trajectory at several step sizes. Called from several threads at once. */
typedef void (*psld_noise_fn)(void *user, uint64_t sample, uint64_t draw, size_t first, size_t count, double *noise);

/* An evaluation of the source during sampling. Later versions may add fields at the end. */
typedef struct psld_evaluation {
    size_t size;               /* of this struct */
    const psld_states *states; /* at least one state, all at the same time, with consecutive sample numbers */
    const double *eps;         /* [n][predicted * dim]: the prediction of the source */
} psld_evaluation;

/* Called after every evaluation, from the thread that samples. Times decrease, except in trial steps of adaptive samplers.
 * Any status but PSLD_OK ends sampling with that status. */
typedef psld_status (*psld_watch_fn)(void *user, const psld_evaluation *evaluation);

/* The clean data x [n][dim] that an evaluation of `source` predicts. Fails at the times at which the predicted
 * variables of an underdamped process do not depend on the data. */
PSLD_API psld_status psld_evaluation_denoise(const psld_evaluation *evaluation, const psld_source *source,
                                             const psld_recipe *recipe, double *x);

/* Inpainting. Sample s belongs to image (s / each) % images. After each reverse step the known elements of all
 * variables are replaced by a new draw of p(z_t | x) at the time t reached; the initial state is treated the same way.
 * After the denoising step they are exactly x. Adaptive samplers draw the noise of the known part once per sample. With
 * repeats > 1 (not for adaptive samplers) every `jump` steps are repeated so many times; before each repetition the
 * state is noised back to their start. options.nfe is then the number for one pass; the reported number counts all. */
typedef struct psld_inpainting {
    size_t size;
    int images, each;           /* unset: 1 and 1 */
    const double *x;            /* [images][dim]; unknown elements are not used */
    const unsigned char *known; /* [images][dim]: 1 where known */
    int repeats, jump;          /* unset: 1 and 1 */
    int lagging;                /* 1: draw at the start time of the step, as the paper's authors did */
    int reserved;               /* 0 */
} psld_inpainting;

#define PSLD_INPAINTING_DEFAULTS                                                                           \
    {                                                                                                      \
        sizeof(psld_inpainting), PSLD_UNSET, PSLD_UNSET, NULL, NULL, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, 0 \
    }

/* The library chooses what is unset. With everything unset, samples are those of the quality "normal". */
typedef struct psld_sample_options {
    size_t size;
    const char *sampler; /* the name of a sampler: psld_sampler_at; NULL: that of the quality "normal" */
    const char *grid;    /* a name of psld_grid_at, or decreasing times from 1: "1,0.5,0.1,0.001"; NULL: default of the
                              sampler; unused by adaptive samplers */
    double rho;          /* exponent of the grid rho; unset: 7 */
    int nfe;             /* evaluations of the score per sample, with the denoising step; unset: by the sampler */
    int order;           /* order of samplers that have several; unset: default of the sampler */
    double eta;          /* ancestral: its noise, from 0 (none) to 1 (that of the reverse process); unset: 1 */
    double detail;       /* samplers that extrapolate clean data: noise far below this no longer changes these data,
                              whose unit it has; 0: every noise does; unset: default of the sampler */
    double tolerance;    /* adaptive samplers: relative and absolute; unset: 1e-5 */
    double eps;          /* t_min, at which the reverse process ends; the denoising step goes from there to 0. Unset:
                              1e-3, or the time of the sampler's end_sigma if that is larger */
    double end_sigma;    /* end at this effective noise instead of at eps; unset: at eps */
    double clip;         /* the largest absolute value of clean data, see psld_source_clip; unset: none */
    double threshold;    /* quantile of psld_source_clip; unset: plain clipping */
    int denoise;         /* 0: no denoising step; its evaluation is used for another step; unset: 1 */
    int corrector;       /* Langevin steps after each step; unset: 0 */
    double corrector_size; /* their size, in (0, 1]: 1 replaces the whole noise; unset: 0.05 */
    int ode_group; /* adaptive samplers choose their step for this many consecutive samples at once; unset: 16 */
    int batch;     /* samples at a time; adaptive: whole groups. Results do not depend on it; unset: by the model */
    uint64_t seed;
    psld_noise_fn noise; /* NULL: the random generator */
    void *noise_user;
    psld_progress_fn progress;
    void *progress_user;
    psld_watch_fn watch; /* or NULL */
    void *watch_user;
    const psld_inpainting *inpainting; /* NULL: nothing is known */
    const psld_labels *labels;         /* the classes of the samples. NULL: no labels; psld_model_sample and
                                          psld_model_draw without `start` draw them: psld_model_draw_labels */
} psld_sample_options;

/* clang-format off */
#define PSLD_SAMPLE_DEFAULTS { \
    sizeof(psld_sample_options), NULL, NULL, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, \
    PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, 0, \
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
/* clang-format on */

/* Qualities: budgets, and what each is good for. */
typedef struct psld_quality_info {
    const char *name, *summary;
    const char *sampler, *grid;
    int nfe;
    double eta;
} psld_quality_info;
PSLD_API const psld_quality_info *psld_quality_at(int index);
PSLD_API const psld_quality_info *psld_quality_find(const char *name);
/* The cheapest settings for a quality: sets the sampler, and grid, nfe, eta and eps if they are unset. The reverse
 * process ends at t = 1e-3, or earlier if the effective noise falls below 0.01, which is invisible with 8 bits. */
PSLD_API psld_status psld_sample_quality(const psld_recipe *recipe, const char *quality, psld_sample_options *options);
/* Checks options and fills in unset ones, as sampling itself does. The batch stays unset, since its default depends on
 * the model. */
PSLD_API psld_status psld_sample_complete(const psld_recipe *recipe, psld_sample_options *options);

/* The properties of a sampler. */
typedef struct psld_sampler_info {
    const char *name, *summary;
    const char *grid;     /* default time grid; NULL: it chooses its own times */
    int nfe;              /* default number of evaluations; 0: it is adaptive */
    int evaluations;      /* evaluations of the score per step */
    int order, max_order; /* default and highest order; 0: there is no choice */
    double detail;        /* default of options.detail */
    double end_sigma; /* without options.eps it stops at t = 1e-3, or earlier at this effective noise; 0: at t = 1e-3 */
    int adaptive;     /* chooses its steps by a tolerance, for groups of samples, instead of taking nfe */
    int deterministic; /* follows the probability flow or the collapsed flow: the initial state determines the sample */
    int reversible;    /* can also go from data to noise: psld_encode */
    int predicts_data; /* its steps use predicted clean data */
    int uses_eta;      /* uses options.eta */
    int uses_detail;   /* uses options.detail */
    int uses_tolerance; /* uses options.tolerance */
    int consistency;    /* for models tuned for few evaluations, even one (psld_model_is_tuned) */
} psld_sampler_info;
PSLD_API const psld_sampler_info *psld_sampler_at(int index);
PSLD_API const psld_sampler_info *psld_sampler_find(const char *name);

/* Time grids: the times of the steps. */
typedef struct psld_grid_info {
    const char *name, *summary;
    int in_sigma; /* it is a grid in the effective noise, not in t */
    int uses_rho; /* uses options.rho */
} psld_grid_info;
PSLD_API const psld_grid_info *psld_grid_at(int index);
PSLD_API const psld_grid_info *psld_grid_find(const char *name);

/* Draws the samples first ... first + count - 1 of options->seed: states [count][k * dim] into `z`. The source must belong
 * to this recipe: a source with other variables is refused, here and in every call that takes both. `start`, of the same
 * shape, gives the initial states; NULL: draws of N(0, P^-1). `nfe`, if not NULL, receives the evaluations per sample
 * (mean over groups, rounded up). Sample i of a seed has the same bits for every batch, number of threads and set of other
 * samples. For adaptive samplers this holds for groups that begin at `first`. */
PSLD_API psld_status psld_sample(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                                 uint64_t first, size_t count, size_t dim, const double *start, double *z,
                                 uint64_t *nfe);

/* The same for a process with formulas, by em or ode; states are [count][variables]. `score` fills the gradient of
 * log p_t(z) by the noisy variables, [n][noisy], those that psld_process_noisy lists; `dim` of its states is
 * psld_process_data. Without `start` the initial states are draws of exp(-H). */
PSLD_API psld_status psld_process_sample(const psld_process *process, psld_score_fn score, void *user,
                                         const psld_sample_options *options, uint64_t first, size_t count,
                                         const double *start, double *z, uint64_t *nfe);

/* Checks options and fills in those that are unset, as psld_process_sample does. */
PSLD_API psld_status psld_process_sample_complete(const psld_process *process, psld_sample_options *options);

/* Encoding: states [count][k * dim] at t = 1 from which a reversible sampler (euler-ode, heun, dpm, collapsed,
 * collapsed-heun) returns to the data x [count][dim]. Takes options->nfe evaluations and no denoising step. Auxiliary
 * variables are drawn for the sample numbers first, first + 1, ... */
PSLD_API psld_status psld_encode(const psld_recipe *recipe, psld_source *source, const psld_sample_options *options,
                                 uint64_t first, size_t count, size_t dim, const double *x, double *z, uint64_t *nfe);

/* ---- Devices -----------------------------------------------------------------------------------------------------
 *
 * Devices that compute networks: the CPU, and those that OpenCL finds at run time. */

typedef struct psld_device_info {
    size_t size;
    char id[16];                                /* for psld_model_options.device: "cpu", "opencl:0" */
    char kind[16];                              /* "cpu", "gpu", "accelerator", or "opencl-cpu": the processor again */
    char name[128], platform[128], driver[128]; /* "" where it does not say */
    uint64_t memory, largest_block;             /* bytes in all, and of one allocation at most */
    uint64_t units;                             /* compute units; of the CPU threads */
    int half;                                   /* 1: it computes with numbers of 16 bits */
    int reserved;                               /* 0 */
} psld_device_info;

#define PSLD_DEVICE_INFO_EMPTY                                      \
    {                                                               \
        sizeof(psld_device_info), "", "", "", "", "", 0, 0, 0, 0, 0 \
    }

/* All devices; the CPU is number 0. Describing number 1 where there is no other fails with the reason. */
PSLD_API size_t psld_device_count(void);
PSLD_API psld_status psld_device_describe(size_t index, psld_device_info *info);
/* Opens a device, by a name as in psld_model_options, and closes it again: fails where it cannot be used. */
PSLD_API psld_status psld_device_try(const char *name);

/* ---- Models: a score source with its process and the shape of its data ------------------------------------------- */

typedef struct psld_model psld_model;

typedef enum psld_model_kind {
    PSLD_EXACT_MODEL = 0, /* a mixture whose score is known */
    PSLD_SCORE_MODEL = 1, /* a network that predicts eps */
    PSLD_CLASSIFIER = 2,  /* a network that predicts log p(label | z, t) */
} psld_model_kind;

typedef struct psld_model_options {
    size_t size;
    const char *process;          /* another recipe than the model's own (psld_recipe_open; for networks by
                                     psld_source_translate), or NULL */
    const char *config;           /* YAML for weights without a configuration, or NULL */
    const char *const *overrides; /* "key.key=value" each, applied to the configuration */
    int override_count;           /* of `overrides`; unset: none */
    int raw;                      /* 1: the raw weights if a file has EMA weights, too */
    int reference;                /* 1: compute with the reference kernels */
    int blank;                    /* psld_model_create: 1 leaves all weights 0, to inspect a network; also for processes
                                     with formulas */
    /* The weak model for autoguidance (psld_source_autoguide); "": none; NULL: the one in the file, if any. */
    const char *weak;
    double weak_scale; /* scale of autoguidance; unset: that in the file, or 1.5 */
    double ema;        /* if a run or checkpoint has several averages of weights: the decay of the one to use; unset:
                          the first */
    double cfg;        /* classifier-free guidance by default, see psld_labels; unset: that in the file, or 1 */
    const char *isa;   /* instruction set: avx512, avx2, neon, generic or reference; NULL: the best of this processor */
    const char *precision; /* number format of products in networks: fp32, or bf16 (sums, norms, softmax stay fp32); on
                              devices other than the CPU fp32 or fp16 (also the format of values between operations);
                              NULL: fp32 */
    const char *device;    /* device of networks, see psld_device_describe: "cpu", "gpu" (the first of that kind),
                              "opencl:0" ..., several separated by commas, which are distributed over ranks, or "auto":
                              a GPU if there is one, otherwise the CPU; also the CPU for options that only it has (isa,
                              bf16); NULL: cpu */
} psld_model_options;

#define PSLD_MODEL_DEFAULTS                                                                                \
    {                                                                                                      \
        sizeof(psld_model_options), NULL, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, PSLD_UNSET, NULL, NULL, NULL \
    }

#define PSLD_WEAK_SCALE 1.5

/* Opens a model: YAML with `mixture` and `process` (exact); weights as .safetensors with our configuration in their
 * metadata; any weights (safetensors, PyTorch checkpoint) with options->config; or the folder of a training run. NULL
 * options are the defaults.
 * Evaluating a network changes scratch memory: one thread at a time. Weights are used in the mapped file: it may be
 * replaced or removed while the model exists, but not changed. */
PSLD_API psld_status psld_model_open(const char *path, const psld_model_options *options, psld_model **model);
/* The network of a configuration with freshly initialised weights. */
PSLD_API psld_status psld_model_create(const char *config_path, const psld_model_options *options, uint64_t seed,
                                       psld_model **model);
/* An exact model from YAML text, which names no other files; `origin` names it in messages. */
PSLD_API psld_status psld_model_parse(const char *yaml, const char *origin, const psld_model_options *options,
                                      psld_model **model);
PSLD_API void psld_model_free(psld_model *model);

PSLD_API psld_model_kind psld_model_kind_of(const psld_model *model);
/* The same, but also opens models of processes with formulas, which psld_model_open refuses: they have no recipe and no
 * source. Sampling (psld_model_sample, psld_model_draw), saving and the functions that describe a model work for
 * them. */
PSLD_API psld_status psld_model_open_any(const char *path, const psld_model_options *options, psld_model **model);
/* The process of such a model; NULL for others. */
PSLD_API const psld_process *psld_model_process(const psld_model *model);
/* The name of its recipe or process; NULL: it has none. */
PSLD_API const char *psld_model_process_name(const psld_model *model);
/* NULL for a classifier whose configuration names no process, and for a model of a process with formulas. */
PSLD_API const psld_recipe *psld_model_recipe(const psld_model *model);
/* NULL for a classifier. */
PSLD_API psld_source *psld_model_source(psld_model *model);
/* The scale of autoguidance by a weak model that is part of it; 0: there is none. */
PSLD_API double psld_model_weak_scale(const psld_model *model);
/* The classifier network, or the exact classifier of the components of an exact model; NULL for a score network. */
PSLD_API psld_classifier *psld_model_classifier(psld_model *model);
/* The number of a class that is given by its number, or by its name if the configuration lists names (data.classes). */
PSLD_API psld_status psld_model_label(const psld_model *model, const char *text, size_t *label);
/* The labels that a text lists: classes separated by commas, "all" classes, or "none" for samples without a label (-1).
 * I32 [count]. */
PSLD_API psld_status psld_model_labels(const psld_model *model, const char *text, psld_array **labels);
/* The exact model's mixture; NULL for others. */
PSLD_API const psld_mixture *psld_model_mixture(const psld_model *model);
/* Shape of one sample of the data: its rank, and its sizes in `shape`, channels first. */
PSLD_API int psld_model_shape(const psld_model *model, size_t shape[PSLD_MAX_RANK]);
/* Number of weights, and floating-point operations of one evaluation of one sample; 0 for an exact model. */
PSLD_API size_t psld_model_parameters(const psld_model *model);
/* Input and output channels of its network; 0 for an exact model. */
PSLD_API void psld_model_channels(const psld_model *model, size_t *in, size_t *out);
PSLD_API double psld_model_flops(psld_model *model);
/* Instruction set and number format of its network, as in psld_model_options; "" for exact models. */
PSLD_API const char *psld_model_isa(const psld_model *model);
PSLD_API const char *psld_model_precision(const psld_model *model);
/* The device of its network: "cpu", "opencl:0"; "" for exact models. */
PSLD_API const char *psld_model_device(const psld_model *model);
/* Bytes of memory there for what its network has evaluated so far: weights and work. 0 for exact models. */
PSLD_API uint64_t psld_model_bytes(const psld_model *model);
/* Number of classes of a classifier, or of the labels that a score model takes; 0: none. */
PSLD_API size_t psld_model_classes(const psld_model *model);
/* The name of a class in the configuration (data.classes), or otherwise its number. */
PSLD_API psld_status psld_model_class(const psld_model *model, size_t index, char *name, size_t size);
/* Labels for samples first, first + 1, ... of a seed, with the frequencies of the classes in the model's data; uniform
 * if the file does not have them. Sample i of a seed always gets the same label. */
PSLD_API psld_status psld_model_draw_labels(const psld_model *model, uint64_t seed, uint64_t first, size_t count,
                                            int32_t *label);
/* Classifier-free guidance that the model uses by default. */
PSLD_API double psld_model_cfg(const psld_model *model);
/* The output of the network: "eps", "data" (clean data), "classes" (a classifier); "score" for an exact model. */
PSLD_API const char *psld_model_predicts(const psld_model *model);
/* Steps that its weights were trained for, and those in its configuration (train.steps); 0: unknown. */
PSLD_API psld_status psld_model_trained(const psld_model *model, uint64_t *steps, uint64_t *planned);
/* Whether it is tuned for few evaluations, by the consistency loss: then it needs the sampler consistency. */
PSLD_API int psld_model_is_tuned(const psld_model *model);
/* Fills in unset options: for a tuned model sampler, evaluations and the noise of the last one; for a network under another
 * recipe the end time of a named sampler. psld_model_sample and psld_model_draw do this themselves. */
PSLD_API psld_status psld_model_prefer(const psld_model *model, psld_sample_options *options);

/* Draws the samples first ... first + count - 1 of options->seed (see psld_sample): *x is float32 [count, channels, ...],
 * or with `state` whole states, [count, k * channels, ...]. `start`, if not NULL, has the states to begin with, of that
 * shape and any type. An unset batch is psld_model_batch. */
PSLD_API psld_status psld_model_sample(psld_model *model, const psld_sample_options *options, uint64_t first,
                                       size_t count, const psld_array *start, int state, psld_array **x, uint64_t *nfe);
/* The same for more samples than fit into memory, or to use samples while others are drawn: `take` is called with each
 * finished batch. Any status but PSLD_OK ends the call with that status; `nfe` is that of the samples so far. */
typedef psld_status (*psld_samples_fn)(void *user, uint64_t first, const psld_array *x);
PSLD_API psld_status psld_model_draw(psld_model *model, const psld_sample_options *options, uint64_t first,
                                     size_t count, const psld_array *start, int state, psld_samples_fn take, void *user,
                                     uint64_t *nfe);
/* The clean data that a model predicts along the trajectories of samples first ... first + count - 1, at `frames`
 * moments from t = 1 to the end of the reverse process. Sets itself as the watcher in sampling options; the frames,
 * float32 [count, frames, channels, ...], are those of all sampling calls so far, and exist as long as the trajectory.
 * The model is borrowed. A trajectory watches one call at a time. */
typedef struct psld_trajectory psld_trajectory;
PSLD_API psld_status psld_trajectory_create(const psld_model *model, uint64_t first, size_t count, size_t frames,
                                            psld_trajectory **trajectory);
PSLD_API void psld_trajectory_free(psld_trajectory *trajectory);
PSLD_API void psld_trajectory_watch(psld_trajectory *trajectory, psld_sample_options *options);
PSLD_API const psld_array *psld_trajectory_frames(const psld_trajectory *trajectory);

/* psld_encode for data x [n, channels, ...] of any type: *z is float32 [n, k * channels, ...]. */
PSLD_API psld_status psld_model_encode(psld_model *model, const psld_sample_options *options, uint64_t first,
                                       const psld_array *x, psld_array **z, uint64_t *nfe);
/* The best number of samples to draw together: enough for speed, with limited memory and time to the first result. */
PSLD_API size_t psld_model_batch(const psld_model *model);
/* A number that identifies a model: its weights or mixture, and its process. */
PSLD_API uint64_t psld_model_fingerprint(const psld_model *model);

/* Evaluates a network: z [n, channels, ...] and t [n]; *out is eps, or logits [n, classes], float32. With grad_z not
 * NULL also the gradient by z: of sum(eps * grad_out) for a score network, of log p(label[i] | z_i, t_i) for a
 * classifier (label [n]). */
PSLD_API psld_status psld_model_evaluate(psld_model *model, const psld_array *z, const psld_array *t,
                                         const psld_array *grad_out, const psld_array *label, psld_array **out,
                                         psld_array **grad_z);

/* The clean data that a model predicts from x = x_0 + sigma n, E[x_0 | x], for images x [n, channels, ...] and sigma
 * [n]; float32, of the shape of x. label [n] for a model that takes labels: classes, or -1 for no label; NULL: none. */
PSLD_API psld_status psld_model_denoise(psld_model *model, const psld_array *x, const psld_array *sigma,
                                        const psld_array *label, psld_array **clean);
/* The raw output of a network of discrete timesteps for its own states x [n, channels, ...] at timesteps [n];
 * float32. */
PSLD_API psld_status psld_model_output(psld_model *model, const psld_array *x, const psld_array *timestep,
                                       const psld_array *label, psld_array **out);
/* The range of noise in the training of a network. PSLD_BAD_ARGUMENT for models without this information: those of
 * psld, and exact ones. */
PSLD_API psld_status psld_model_sigma_range(const psld_model *model, double *sigma_min, double *sigma_max);
/* The number of timesteps of a network of discrete timesteps; 0 for others. */
PSLD_API size_t psld_model_timesteps(const psld_model *model);
/* The time at which the model's process has the noise of a timestep. The process must be vp, so that its states there
 * are those of the network. */
PSLD_API psld_status psld_model_timestep_time(const psld_model *model, double timestep, double *t);
/* The family of a network, with its project: "psld", "EDM SongUNet", "EDM DhariwalUNet" or "diffusers UNet2DModel"; for
 * an exact model the kind of network that it stands for, or "". */
PSLD_API const char *psld_model_family(const psld_model *model);

/* Writes the weights with their configuration: .safetensors, or .pt/.pth/.ckpt for PyTorch. */
PSLD_API psld_status psld_model_save(const psld_model *model, const char *path);

/* Seconds of one evaluation of `batch` samples (best of `repetitions`), and the bytes of its working memory. A batch
 * has 1 to 4096 samples, here and for plans. */
PSLD_API psld_status psld_model_time(psld_model *model, size_t batch, int repetitions, double *seconds, size_t *bytes);
/* The plan for a batch as text, one line per step. Free with psld_text_free. */
PSLD_API psld_status psld_model_plan(psld_model *model, size_t batch, char **text);
/* The time of a kernel. Later versions may add fields at the end. */
typedef struct psld_kernel_time {
    size_t size; /* of this struct */
    char kernel[PSLD_NAME_SIZE];
    size_t steps;
    double seconds, flops; /* per sample */
} psld_kernel_time;
typedef void (*psld_kernel_time_fn)(void *user, const psld_kernel_time *time);
/* The plan with the time of each step. `visit`, unless it is NULL, is called with the times summed by kernel, the
 * slowest first. Times are those of the fastest of `repetitions` evaluations of at most psld_model_batch samples. */
PSLD_API psld_status psld_model_profile(psld_model *model, size_t batch, int repetitions, psld_kernel_time_fn visit,
                                        void *user, char **text);
PSLD_API void psld_text_free(char *text);

/* Lists the tensors of any file: calls `visit` once for each, in the order of the file. */
typedef void (*psld_tensor_fn)(void *user, const char *name, const char *type, int rank, const size_t *shape);
PSLD_API psld_status psld_tensors_list(const char *path, psld_tensor_fn visit, void *user);
/* The same for the arrays of a .npz. An array that cannot be read, because of its type or because it is damaged, has
 * the type "unreadable" and the rank 0. */
PSLD_API psld_status psld_npz_list(const char *path, psld_tensor_fn visit, void *user);
/* Converts a file without a configuration to the format of the new name's ending; tensors stay unchanged. */
PSLD_API psld_status psld_tensors_convert(const char *from, const char *to);

#ifdef __cplusplus
}
#endif

#endif
