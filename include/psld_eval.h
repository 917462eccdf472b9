/* psld: metrics, likelihoods and sweeps. Needs the full library.
 */
#ifndef PSLD_EVAL_H
#define PSLD_EVAL_H

#include "psld.h"
#include "psld_data.h"
#include "psld_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Evaluation -------------------------------------------------------------------------------------------------- */

/* Metrics compare features: a row of numbers per image, computed by a network. Arrays of features are [n, d] of float32
 * or float64; metrics are computed in float64. docs/reference/evaluation.md has the definitions. */

/* Linear algebra of the application, for machines without OpenBLAS: used if that cannot be loaded. Matrices are row by
 * row. Called from the thread that evaluates. */

/* s [dim][dim] += x' x of x [rows][dim] */
typedef psld_status (*psld_scatter_fn)(void *user, size_t dim, size_t rows, const double *x, double *s);
/* c [n][m] = a b' of a [n][dim], b [m][dim] */
typedef psld_status (*psld_products_fn)(void *user, size_t dim, size_t n, const double *a, size_t m, const double *b,
                                        double *c);
/* Eigenvalues of a symmetric matrix, ascending; row i of `a` becomes the eigenvector of value i. */
typedef psld_status (*psld_eigen_fn)(void *user, size_t dim, double *a, double *values);
/* The sum of the singular values of a [rows][columns]. */
typedef psld_status (*psld_nuclear_norm_fn)(void *user, size_t rows, size_t columns, const double *a, double *sum);

typedef struct psld_linear_algebra {
    size_t size;
    psld_scatter_fn scatter;
    psld_products_fn products;
    psld_eigen_fn eigen;
    psld_nuclear_norm_fn nuclear_norm;
    void *user; /* passed to all */
} psld_linear_algebra;

#define PSLD_LINEAR_ALGEBRA_DEFAULTS                              \
    {                                                             \
        sizeof(psld_linear_algebra), NULL, NULL, NULL, NULL, NULL \
    }
/* Sets all four functions, copied; NULL removes them. Do not call this during an evaluation. */
PSLD_API psld_status psld_linear_algebra_use(const psld_linear_algebra *algebra);

/* Mean and covariance of features (with n - 1 degrees of freedom), which may be added a few at a time: the result has
 * the same bits for every division. One thread at a time until they are finished. */
typedef struct psld_statistics psld_statistics;
PSLD_API psld_status psld_statistics_create(size_t dim, psld_statistics **statistics);
PSLD_API void psld_statistics_free(psld_statistics *statistics);
/* Adds n rows, [n][dim]. */
PSLD_API psld_status psld_statistics_add(psld_statistics *statistics, size_t n, const float *features);
/* Call this after the last row, before distances and files. */
PSLD_API psld_status psld_statistics_finish(psld_statistics *statistics);
/* .npz with `mu` [dim] and `sigma` [dim, dim], as in published statistics; loaded ones are finished. */
PSLD_API psld_status psld_statistics_load(const char *path, psld_statistics **statistics);
PSLD_API psld_status psld_statistics_save(const psld_statistics *statistics, const char *path);
PSLD_API size_t psld_statistics_dim(const psld_statistics *statistics);
/* The number of rows; 0: unknown, as from a file. */
PSLD_API uint64_t psld_statistics_count(const psld_statistics *statistics);
/* NULL before they are finished. */
PSLD_API const double *psld_statistics_mean(const psld_statistics *statistics);
PSLD_API const double *psld_statistics_cov(const psld_statistics *statistics);

/* Frechet distance between Gaussians with these moments: FID if the features are those of the FID network. */
PSLD_API psld_status psld_frechet_distance(const psld_statistics *a, const psld_statistics *b, double *distance);

/* Inception score of logits [n, classes]: mean and deviation over `splits` (10 is usual), in order or shuffled by the
 * permutation of NumPy's RandomState(2020). */
PSLD_API psld_status psld_inception_score(const psld_array *logits, size_t splits, int shuffle, double *mean,
                                          double *deviation);

typedef struct psld_kid_options {
    size_t size;
    int subsets, subset_size; /* unset: 100 subsets of 1000 images */
    int64_t seed;             /* seed of the subsets, below 2^32; unset: 2020, as in torch-fidelity */
} psld_kid_options;

/* clang-format off */
#define PSLD_KID_DEFAULTS { sizeof(psld_kid_options), PSLD_UNSET, PSLD_UNSET, PSLD_UNSET }
/* clang-format on */
/* Kernel inception distance, polynomial kernel of degree 3: mean and deviation over subsets. NULL: defaults. */
PSLD_API psld_status psld_kid(const psld_array *a, const psld_array *b, const psld_kid_options *options, double *mean,
                              double *deviation);

/* Fractions of generated features within the manifold of the real ones, and the other way round (3 neighbours are
 * usual). */
PSLD_API psld_status psld_precision_recall(const psld_array *generated, const psld_array *real, size_t neighbours,
                                           double *precision, double *recall);

/* Mean over random directions of the Wasserstein-1 distance between the projections of two sets of points, a [n][dim]
 * and b [m][dim]. 0 for equal sets; about 1 / sqrt(n) between two samples of the same distribution. */
PSLD_API psld_status psld_sliced_wasserstein(size_t dim, size_t n, const double *a, size_t m, const double *b,
                                             size_t directions, uint64_t seed, double *distance);

/* Computes features of images: by the FID network, or by a classifier of psld, whose distances are not FID. One thread
 * at a time, like all networks. */
typedef struct psld_features psld_features;
/* `weights`: pt_inception-2015-12-05-6726825d.pth, as pytorch-fid and torch-fidelity publish it (or a safetensors
 * conversion); or a classifier with its configuration. */
PSLD_API psld_status psld_features_open(const char *weights, psld_features **features);
/* The same, computed on a device, named as in psld_model_options. */
PSLD_API psld_status psld_features_open_on(const char *weights, const char *device, psld_features **features);
PSLD_API void psld_features_free(psld_features *features);
PSLD_API int psld_features_is_fid(const psld_features *features);
PSLD_API const char *psld_features_name(const psld_features *features);
PSLD_API size_t psld_features_dim(const psld_features *features);
PSLD_API size_t psld_features_classes(const psld_features *features);
/* Features [n][dim] and logits [n][classes] of images u8 [n, channels, height, width]; NULL: not wanted. The FID
 * network gets grey images as three equal channels. */
PSLD_API psld_status psld_features_extract(psld_features *features, const psld_array *images, float *out,
                                           float *logits);

/* One side of a comparison. It is read from its beginning and keeps drawn samples: one thread at a time. */
typedef struct psld_set psld_set;
typedef enum psld_set_kind {
    PSLD_SET_IMAGES = 0,     /* u8 */
    PSLD_SET_ROWS = 1,       /* features, points or logits: rows of numbers */
    PSLD_SET_STATISTICS = 2, /* only mean and covariance */
} psld_set_kind;
/* Images or vectors that psld_data_open takes, features [n, d] (.npy of floats), or statistics (.npz with mu and
 * sigma). With a limit above 0, which endless sets need, only the first so many. A broken image is an error. */
PSLD_API psld_status psld_set_open(const char *path, uint64_t limit, psld_set **set);
/* The same with images fitted to the size and channels of `options` (`strict` is always 1; NULL: defaults).
 * psld_set_fitted tells whether any image read so far had another size, or lost its colour. */
PSLD_API psld_status psld_set_open_as(const char *path, uint64_t limit, const psld_data_options *options,
                                      psld_set **set);
PSLD_API int psld_set_fitted(const psld_set *set);
/* `count` samples of a model, drawn when they are first needed and kept: images (u8, rounded, or rounded down with
 * `floor`), or points. The model is borrowed. A model with classes draws them with the frequencies of its data unless
 * the options have labels. */
PSLD_API psld_status psld_set_model(psld_model *model, const psld_sample_options *options, uint64_t count, int floor,
                                    psld_set **set);
/* The same, but each sample completes an image of `images` (borrowed), in order, of which a part is hidden: "left",
 * "right", "upper", "lower" (halves), "centre" (a square of half the size). */
PSLD_API psld_status psld_set_inpainted(psld_model *model, const psld_sample_options *options, uint64_t count,
                                        int floor, psld_set *images, const char *hide, psld_set **set);
/* The hidden part of images that are completed. */
typedef struct psld_hiding {
    size_t size;
    const char *part; /* as above; not used with masks */
    psld_set *masks;  /* pictures of any size, borrowed; mask i is for image i, a single mask for all; NULL: none.
                           Pixels nearer to white than to black are hidden; of IDX digits all that are not black. */
    int lagging;      /* see psld_inpainting; unset: 0 */
    int reserved;     /* 0 */
} psld_hiding;

/* clang-format off */
#define PSLD_HIDING_DEFAULTS { sizeof(psld_hiding), NULL, NULL, PSLD_UNSET, 0 }
/* clang-format on */
/* As psld_set_inpainted. */
PSLD_API psld_status psld_set_inpainted_as(psld_model *model, const psld_sample_options *options, uint64_t count,
                                           int floor, psld_set *images, const psld_hiding *hiding, psld_set **set);
PSLD_API void psld_set_free(psld_set *set);
/* Classes of a set of data, or of the samples of a model with classes (0: none), and their names. */
PSLD_API size_t psld_set_classes(const psld_set *set);
PSLD_API psld_status psld_set_class(const psld_set *set, size_t index, char *name, size_t size);
/* The items of one class as a set; `set` is borrowed, and both share drawn samples. */
PSLD_API psld_status psld_set_of_class(psld_set *set, size_t index, psld_set **part);
PSLD_API psld_set_kind psld_set_kind_of(const psld_set *set);
/* 0 for statistics. */
PSLD_API uint64_t psld_set_count(const psld_set *set);
/* Evaluations per sample of those drawn so far; 0 for sets that are not drawn. */
PSLD_API uint64_t psld_set_nfe(const psld_set *set);

enum {
    PSLD_FRECHET = 1,          /* "fid": both sets */
    PSLD_INCEPTION_SCORE = 2,  /* "is": only the first set */
    PSLD_KID = 4,              /* "kid" */
    PSLD_PRECISION_RECALL = 8, /* "prc" */
    PSLD_SLICED = 16,          /* "swd": sliced Wasserstein distance, of sets of points */
};
typedef struct psld_metric_info {
    const char *name, *summary;
    unsigned bit;      /* bit in psld_compare_options.metrics */
    int needs_pair;    /* compares two sets; otherwise it uses only the first */
    int needs_rows;    /* compares pairs of samples: all features are kept; mean and covariance are not enough */
    int needs_classes; /* of logits, not of features */
} psld_metric_info;
PSLD_API const psld_metric_info *psld_metric_at(int index);
PSLD_API const psld_metric_info *psld_metric_find(const char *name);
/* "fid,is" as PSLD_FRECHET | PSLD_INCEPTION_SCORE. */
PSLD_API psld_status psld_metrics_parse(const char *names, unsigned *metrics);

typedef struct psld_compare_options {
    size_t size;
    unsigned metrics;                 /* bits of psld_metric_info; 0: PSLD_FRECHET */
    int splits;                       /* of the inception score; unset: 10 */
    int neighbours;                   /* of precision and recall; unset: 3 */
    int kid_subsets, kid_subset_size; /* as in psld_kid_options */
    int directions;                   /* of the sliced distance; unset: 256 */
    int64_t kid_seed;                 /* as in psld_kid_options */
    uint64_t seed;                    /* of the directions */
    psld_progress_fn progress;
    void *progress_user;
} psld_compare_options;

/* clang-format off */
#define PSLD_COMPARE_DEFAULTS { \
    sizeof(psld_compare_options), 0, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, \
    0, NULL, NULL }
/* clang-format on */

typedef struct psld_comparison {
    size_t size;
    uint64_t count[2]; /* images or rows of each set; 0: statistics */
    size_t dim;        /* length of the features; 0: none were needed */
    double frechet;
    double score, score_deviation;                   /* inception score, shuffled as in torch-fidelity */
    double score_in_order, score_in_order_deviation; /* the same in the order of the set */
    double kid, kid_deviation;
    double precision, recall;
    double sliced;
} psld_comparison;

/* clang-format off */
#define PSLD_COMPARISON_EMPTY { sizeof(psld_comparison), {0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Compares `generated` with `real` (NULL: only the inception score, also of a set of logits). `features` is for images
 * and may be NULL without them; NULL options are the defaults. Only kid, prc and swd keep features in memory
 * (float32). */
PSLD_API psld_status psld_compare(psld_set *generated, psld_set *real, psld_features *features,
                                  const psld_compare_options *options, psld_comparison *comparison);

/* All features of a set, float32 [n, dim], or its mean and covariance. */
PSLD_API psld_status psld_set_features(psld_set *set, psld_features *features, psld_progress_fn progress, void *user,
                                       psld_array **rows);
PSLD_API psld_status psld_set_statistics(psld_set *set, psld_features *features, psld_progress_fn progress, void *user,
                                         psld_statistics **statistics);

/* For psld_training_options.metric: the Frechet distance of features if train.metric_weights names weights for
 * psld_features_open; otherwise the sliced Wasserstein distance of pixels or points. */
PSLD_API const psld_training_metric *psld_training_distance(void);

/* A page (PNG) of `count` real images, generated images, and for each of these the nearest real image (by squared
 * differences of pixels): groups of three rows, real, generated, nearest. */
PSLD_API psld_status psld_compare_page(psld_set *generated, psld_set *real, size_t count, psld_progress_fn progress,
                                       void *user, const char *path);

typedef struct psld_likelihood_options {
    size_t size;
    double tolerance; /* tolerance of the probability flow, relative and absolute; unset: 1e-5 */
    double eps;       /* time at which the flow starts: the density is p_eps at the data; unset: 1e-5 */
    int exact;        /* 1: the exact divergence, 0: Hutchinson's estimate; unset: exact if it needs at most 16
                         products */
    int probes;       /* random directions of the estimate per sample; unset: 1 */
    int ode_group;    /* consecutive samples that share their steps; unset: 16 */
    int batch;        /* rows per call of the source; results do not depend on it; unset: by the model */
    uint64_t seed;    /* seed of the auxiliary variables and of the directions */
    psld_progress_fn progress;
    void *progress_user;
} psld_likelihood_options;

/* clang-format off */
#define PSLD_LIKELIHOOD_DEFAULTS { \
    sizeof(psld_likelihood_options), PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, 0, NULL, \
    NULL }
/* clang-format on */

/* log p(x) in nats of `count` points x [count][dim] under the model, by its probability flow; sample numbers first,
 * first + 1, ... address the random numbers. With auxiliary variables it is an estimate whose mean is a lower bound
 * (tight for an exact score; docs/explanation/likelihood.md derives it). `nfe` (may be NULL): evaluations per sample,
 * mean over groups. NULL options are the defaults. */
PSLD_API psld_status psld_likelihood(const psld_recipe *recipe, psld_source *source,
                                     const psld_likelihood_options *options, uint64_t first, size_t count, size_t dim,
                                     const double *x, double *log_p, uint64_t *nfe);

/* Likelihood of a model for a set. Images are dequantised: each value v is spread uniformly over its cell [v - 1/2, v +
 * 1/2], and log2 127.5 is added per dimension, so that bits are those of the values 0 ... 255. Points are not
 * changed. */
typedef struct psld_nll {
    size_t size;
    uint64_t count;
    size_t dim;
    double bits;  /* bits per dimension: mean of -log2 p / dim; for images of the values */
    double error; /* its standard error */
    double nats;  /* nats per sample: mean of -log p; for images of the values */
    uint64_t nfe; /* evaluations per sample */
    int is_bound; /* 1: with auxiliary variables or dequantisation: an upper bound in expectation */
    int is_exact; /* exact divergence */
} psld_nll;

/* clang-format off */
#define PSLD_NLL_EMPTY { sizeof(psld_nll), 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

PSLD_API psld_status psld_model_nll(psld_model *model, psld_set *set, const psld_likelihood_options *options,
                                    psld_nll *nll);

/* A sweep: quality against cost over models, recipes, samplers, grids, budgets and seeds, listed in a YAML file
 * (docs/reference/evaluation.md, configs/sweeps/). A cell is one combination. One thread at a time. */
typedef struct psld_sweep psld_sweep;
typedef struct psld_sweep_cell {
    size_t size;
    const char *model;   /* its label */
    const char *process; /* NULL: the model's own */
    const char *sampler;
    const char *grid; /* NULL for adaptive samplers */
    int nfe;          /* 0 for adaptive samplers */
    double tolerance; /* of adaptive samplers; otherwise 0 */
    uint64_t seed;
    double cfg;   /* classifier-free guidance */
    int has_cfg;  /* 0: cfg is that of the model */
    int reserved; /* 0 */
} psld_sweep_cell;
typedef struct psld_sweep_result {
    size_t size;
    const psld_comparison *comparison; /* belongs to the sweep; valid until the next psld_sweep_run */
    uint64_t nfe;                      /* evaluations per sample */
    double seconds;
    int is_fid;   /* 0: the features are not those of the FID network, and the Frechet distance is not FID */
    int reserved; /* 0 */
} psld_sweep_result;

/* clang-format off */
#define PSLD_SWEEP_CELL_EMPTY { sizeof(psld_sweep_cell), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0 }
#define PSLD_SWEEP_RESULT_EMPTY { sizeof(psld_sweep_result), NULL, 0, 0, 0, 0 }
/* clang-format on */

/* Overrides are "key=value". Paths in the file are relative to the working folder. Every model is opened once, to
 * identify it and to check that its cells can be sampled. */
PSLD_API psld_status psld_sweep_open(const char *path, const char *const *overrides, size_t override_count,
                                     psld_sweep **sweep);
/* Sets the device of networks (see psld_model_options), before the first cell is run. */
PSLD_API psld_status psld_sweep_set_device(psld_sweep *sweep, const char *device);
PSLD_API void psld_sweep_free(psld_sweep *sweep);
PSLD_API const char *psld_sweep_name(const psld_sweep *sweep);
PSLD_API unsigned psld_sweep_metrics(const psld_sweep *sweep);
/* Samples per cell. */
PSLD_API uint64_t psld_sweep_number(const psld_sweep *sweep);
PSLD_API size_t psld_sweep_count(const psld_sweep *sweep);
/* 0 <= index < psld_sweep_count, for all of these; past the last they fail, and a cell is empty. */
PSLD_API psld_status psld_sweep_cell_at(const psld_sweep *sweep, size_t index, psld_sweep_cell *cell);
/* A text that identifies a cell among all cells of all sweeps with results in the same place. It depends on the
 * contents of model, recipe, data and weights, not on their names. */
PSLD_API psld_status psld_sweep_key(const psld_sweep *sweep, size_t index, char *key, size_t size);
/* Draws the samples of a cell and compares them. */
PSLD_API psld_status psld_sweep_run(psld_sweep *sweep, size_t index, psld_progress_fn progress, void *user,
                                    psld_sweep_result *result);
/* Estimates the seconds of a cell from a few evaluations of its model; for an adaptive sampler it assumes 100. */
PSLD_API psld_status psld_sweep_estimate(psld_sweep *sweep, size_t index, double *seconds);

/* ---- Design: recipes found by search, without any network -------------------------------------------------------- */

/* Criteria of recipes; smaller is better. */
typedef struct psld_design_criterion_info {
    const char *name, *summary;
} psld_design_criterion_info;
PSLD_API const psld_design_criterion_info *psld_design_criterion_at(int index);

typedef struct psld_design_options {
    size_t size;
    const char *learn;         /* what to search: some of "D,Q,mass,beta"; NULL: all */
    const char *criterion;     /* "error", or a sum "error,distance=0.1"; NULL: error */
    const char *limits;        /* "distance=0.005": larger values are rejected; NULL: none */
    const char *sampler;       /* a sampler and its options, as in sweeps; NULL: sscs */
    const char *const *starts; /* recipes to begin from (psld_recipe_open); NULL: all presets */
    int start_count;           /* of `starts`; unset: none */
    int nfe;                   /* evaluations per sample; unset: 10 */
    int trials;                /* recipes to try, in addition to the starts; unset: 300 */
    int searches;              /* searches from so many of the best starts; unset: 2 */
    int number;                /* samples per trial; unset: 2000 */
    int final_number;          /* samples in the final comparison, with other random numbers; unset: 10000 */
    int directions;            /* of the sliced distance per trial, four times as many at the end; unset: 64 */
    int components;            /* items of data that become a mixture; unset: 1000 */
    double scale;              /* standard deviation of these components; unset: 0.1 */
    uint64_t seed;
} psld_design_options;

/* clang-format off */
#define PSLD_DESIGN_DEFAULTS { \
    sizeof(psld_design_options), NULL, NULL, NULL, NULL, NULL, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, \
    PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, 0 }
/* clang-format on */

typedef enum psld_design_stage {
    PSLD_DESIGN_START = 0,  /* a recipe that was given */
    PSLD_DESIGN_SEARCH = 1, /* a recipe that the search proposes */
    PSLD_DESIGN_FINAL = 2,  /* the best one and the starts again: more samples, other random numbers */
} psld_design_stage;

typedef struct psld_design_trial {
    size_t size;
    psld_design_stage stage;
    int is_best;               /* in the final stage: the result of the search */
    uint64_t number, total;    /* from 0 on */
    const psld_recipe *recipe; /* belongs to the design, until the next trial is told; NULL: all are done */
} psld_design_trial;

/* Infinite if a recipe cannot be sampled. */
typedef struct psld_design_costs {
    size_t size;
    double error;    /* 0 if it is not a criterion */
    double distance; /* psld_recipe_distance at t = 1 */
    double factors;  /* largest factor of an error of eps that enters the data in two steps */
    double total;    /* the weighted sum; beyond a limit, at least 1e6 */
} psld_design_costs;

/* clang-format off */
#define PSLD_DESIGN_TRIAL_EMPTY { sizeof(psld_design_trial), PSLD_DESIGN_START, 0, 0, 0, NULL }
#define PSLD_DESIGN_COSTS_EMPTY { sizeof(psld_design_costs), 0, 0, 0, 0 }
/* clang-format on */

/* Searches recipes for a mixture: the one of an exact model (.yaml), or data (psld_data_open) as an empirical mixture.
 * Each trial is asked for (next), measured, or known from before by its key, and reported (tell); the next one depends
 * on the reported costs. */
typedef struct psld_design psld_design;
PSLD_API psld_status psld_design_create(const char *path, const psld_design_options *options, psld_design **design);
PSLD_API void psld_design_free(psld_design *design);
PSLD_API psld_status psld_design_next(psld_design *design, psld_design_trial *trial);
/* A text that identifies the measurement of the trial. */
PSLD_API psld_status psld_design_key(const psld_design *design, char *key, size_t size);
PSLD_API psld_status psld_design_measure(psld_design *design, psld_progress_fn progress, void *user,
                                         psld_design_costs *costs);
/* Reports costs, measured now or before. Sets their total, by the weights and limits of this design. */
PSLD_API psld_status psld_design_tell(psld_design *design, psld_design_costs *costs);
/* The error between two new sets of the data, of the size of the final stage: that of a perfect sampler. */
PSLD_API psld_status psld_design_floor(psld_design *design, double *error);

#ifdef __cplusplus
}
#endif

#endif
