/* psld eval: the request, the two sides, and printing of results (eval_print.c). */
#ifndef PSLD_PROGRAMS_EVAL_H
#define PSLD_PROGRAMS_EVAL_H

#include "sampling.h"

typedef struct eval_request {
    const char *metric, *weights, *features_out, *statistics_out, *page, *divergence, *fit, *resample;
    sampling_request sampling;
    psld_likelihood_options likelihood;
    psld_compare_options compare;
    long splits, neighbours, kid_subsets, kid_size, probes, size;
    int per_class;
} eval_request;

/* What the words of the command line stand for. */
typedef struct eval_sides {
    psld_model *model;            /* NULL: the first side is a set, not a model */
    psld_sample_options sampling; /* of the model */
    label_choice labels;          /* of its samples */
    psld_set *first, *second;
    psld_data_options images; /* size of the images of sets */
    psld_features *features;
    const char *name[2];
} eval_sides;

/* The name of the features that are compared. */
const char *eval_feature_kind(const eval_sides *s);
/* Adds a number to a JSON object. */
void eval_add_number(json_t *object, const char *key, double value);
/* Adds the size to a JSON object, if images were resized. */
void eval_add_resize(json_t *object, const eval_sides *s);
/* Reports on stderr which sets were resized. Call it after they have been read. */
void eval_report_resize(const eval_sides *s);
/* Only the metrics of a comparison. */
void eval_add_metrics(json_t *object, unsigned metrics, int is_fid, const psld_comparison *c);
/* Whether Frechet distances of these features are FID. */
int eval_is_fid(const eval_sides *s);
json_t *eval_comparison_json(const eval_request *r, const eval_sides *s, const psld_comparison *c, double seconds);
void eval_print_comparison(const eval_request *r, const eval_sides *s, const psld_comparison *c, double seconds);
/* Prints a likelihood as text or as JSON. Returns the exit code. */
int eval_print_nll(const eval_request *r, const eval_sides *s, const psld_nll *nll, double seconds);

/* ---- One comparison per class ------------------------------------------------------------------------------------ */

/* Compares the items of each class of the first side with those of the same class of the second, by name, or by number
 * if the names differ: an array of objects. */
psld_status eval_classes(const eval_request *r, eval_sides *s, json_t **rows);
void eval_print_classes(const json_t *rows, unsigned metrics);

#endif
