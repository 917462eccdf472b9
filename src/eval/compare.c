/* Compares two sets. Each is read once, batch by batch: pixels become features, and features are added to the sums
 * that the metrics need. Only metrics of pairs of images keep the features themselves. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/sized.h"
#include "eval/inception_score.h"
#include "eval/metrics.h"
#include "eval/set.h"

enum { BATCH = 64 };

#define NETWORK_WANTED                                                                                          \
    "metrics of images need --weights: the FID network pt_inception-2015-12-05-6726825d.pth from the releases " \
    "of pytorch-fid and of torch-fidelity (SHA-256 6726825d...), or a classifier of psld"

/* ---- Options ----------------------------------------------------------------------------------------------------- */

static psld_status read_compare_options(const psld_compare_options *options, psld_compare_options *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_compare_options, options, own, PSLD_COMPARE_DEFAULTS));
    if (!own->metrics) own->metrics = PSLD_FRECHET;
    PSLD_FILL_ZERO(own->splits, 10);
    PSLD_FILL_ZERO(own->neighbours, 3);
    PSLD_FILL_ZERO(own->directions, 256);
    PSLD_FILL_ZERO(own->kid_subsets, 100);
    PSLD_FILL_ZERO(own->kid_subset_size, 1000);
    if (own->splits > 0 && own->neighbours > 0 && own->directions > 0 && own->kid_subset_size > 0) return PSLD_OK;
    return psld_fail(
        PSLD_BAD_ARGUMENT,
        "compare: splits %d, neighbours %d, directions %d, kid_subset_size %d: expected at least 1 of each",
        own->splits, own->neighbours, own->directions, own->kid_subset_size);
}

/* ---- Reading a set ----------------------------------------------------------------------------------------------- */

/* What is collected from a set; NULL: not needed. */
typedef struct summary {
    psld_statistics *statistics;
    psld_array *rows;                     /* float32 [count, dim] */
    psld_logit_sums *shuffled, *in_order; /* of its logits */
} summary;

static void free_summary(summary *s)
{
    psld_statistics_free(s->statistics);
    psld_array_free(s->rows);
    psld_logit_sums_free(s->shuffled);
    psld_logit_sums_free(s->in_order);
}

/* Progress over both sets, in thousandths of an item. */
typedef struct tracker {
    psld_progress_fn progress;
    void *user;
    uint64_t done, batch, total;
} tracker;

static int report_drawing(void *user, uint64_t done, uint64_t total)
{
    tracker *t = user;
    return t->progress ? t->progress(t->user, t->done + t->batch * 900 * done / (total ? total : 1), t->total) : 0;
}

typedef struct reading {
    psld_set *set;
    psld_features *features;
    size_t dim, classes;
    int rows_are_logits;
    psld_array *images; /* u8 [BATCH, ...]; NULL: a set of rows */
    float *out, *logits;
    summary *summary;
    tracker *tracker;
} reading;

static psld_status add_to_summary(reading *w, uint64_t first, size_t n)
{
    summary *s = w->summary;
    const float *logits = w->rows_are_logits ? w->out : w->logits;
    if (s->statistics) PSLD_TRY(psld_statistics_add(s->statistics, n, w->out));
    if (s->rows) memcpy((float *)s->rows->data + first * w->dim, w->out, n * w->dim * sizeof(float));
    if (s->shuffled) PSLD_TRY(psld_logit_sums_add(s->shuffled, n, logits));
    if (s->in_order) PSLD_TRY(psld_logit_sums_add(s->in_order, n, logits));
    return PSLD_OK;
}

static psld_status read_batch(reading *w, uint64_t first, size_t n)
{
    if (!w->images) return psld_set_read_rows(w->set, first, n, w->out);
    PSLD_TRY(psld_set_read_images(w->set, first, n, w->images->data));
    w->images->shape[0] = n;
    return psld_features_extract(w->features, w->images, w->out, w->logits);
}

static psld_status read_batches(reading *w)
{
    tracker *t = w->tracker;
    w->set->progress = report_drawing;
    w->set->progress_user = t;
    psld_status status = PSLD_OK;
    for (uint64_t first = 0; status == PSLD_OK && first < w->set->count; first += BATCH) {
        size_t n = w->set->count - first < BATCH ? (size_t)(w->set->count - first) : BATCH;
        t->batch = n;
        status = read_batch(w, first, n);
        if (status == PSLD_OK) status = add_to_summary(w, first, n);
        if (status == PSLD_BAD_INPUT && !strstr(psld_error_text(), w->set->name))
            psld_fail_in(status, "%s", w->set->name);
        t->done += 1000 * n;
        if (status == PSLD_OK) status = psld_progress(t->progress, t->user, t->done, t->total);
    }
    w->set->progress = NULL;
    return status;
}

static psld_status prepare_reading(reading *w)
{
    size_t shape[4] = {BATCH, w->set->shape[0], w->set->shape[1], w->set->shape[2]};
    int images = w->set->kind == PSLD_SET_IMAGES;
    w->out = psld_alloc(BATCH, w->dim * sizeof(float));
    if (!w->out) return PSLD_NO_MEMORY;
    if (images && w->summary->shuffled) {
        w->logits = psld_alloc(BATCH, w->classes * sizeof(float));
        if (!w->logits) return PSLD_NO_MEMORY;
    }
    return images ? psld_array_create(PSLD_U8, 4, shape, &w->images) : PSLD_OK;
}

/* Length of a feature vector of the set. */
static size_t feature_width(const psld_set *set, const psld_features *features)
{
    return set->kind == PSLD_SET_IMAGES ? psld_features_dim(features) : set->size;
}

static psld_status create_scores(reading *w, size_t splits)
{
    size_t classes = w->rows_are_logits ? w->dim : w->classes;
    PSLD_TRY(psld_logit_sums_create((size_t)w->set->count, classes, splits, 1, &w->summary->shuffled));
    return psld_logit_sums_create((size_t)w->set->count, classes, splits, 0, &w->summary->in_order);
}

/* Collects what `metrics` need of a set. The caller handles sets that are only statistics (files). */
static psld_status summarise_set(psld_set *set, psld_features *features, unsigned metrics, size_t splits,
                                 tracker *track, summary *s)
{
    reading w = {.set = set, .features = features, .dim = feature_width(set, features), .summary = s, .tracker = track};
    const size_t shape[2] = {(size_t)set->count, w.dim};
    psld_status status = PSLD_OK;
    w.classes = features && set->kind == PSLD_SET_IMAGES ? psld_features_classes(features) : 0;
    w.rows_are_logits = set->kind == PSLD_SET_ROWS;
    if (metrics & PSLD_FRECHET) status = psld_statistics_create(w.dim, &s->statistics);
    if (status == PSLD_OK && (metrics & psld_metrics_that(psld_metric_needs_rows)))
        status = psld_array_create(PSLD_F32, 2, shape, &s->rows);
    if (status == PSLD_OK && (metrics & PSLD_INCEPTION_SCORE)) status = create_scores(&w, splits);
    if (status == PSLD_OK) status = prepare_reading(&w);
    if (status == PSLD_OK) status = read_batches(&w);
    if (status == PSLD_OK && s->statistics) status = psld_statistics_finish(s->statistics);
    if (w.images) w.images->shape[0] = BATCH;
    psld_array_free(w.images);
    psld_release(w.out);
    psld_release(w.logits);
    return status;
}

/* ---- Checks before any work -------------------------------------------------------------------------------------- */

static psld_status check_set(const psld_set *set, const psld_features *features, unsigned metrics)
{
    if (set->kind == PSLD_SET_IMAGES && !features) return psld_fail(PSLD_BAD_INPUT, "%s: " NETWORK_WANTED, set->name);
    if (set->kind == PSLD_SET_STATISTICS && (metrics & ~(unsigned)PSLD_FRECHET))
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: has only mean and covariance, which are enough for fid and for no other metric",
                         set->name);
    return PSLD_OK;
}

static psld_status check_count(const psld_set *set, const char *metric, uint64_t need)
{
    if (set->kind == PSLD_SET_STATISTICS || set->count >= need) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: %s needs at least %llu %s, the set has %llu", set->name, metric,
                     (unsigned long long)need, set->kind == PSLD_SET_IMAGES ? "images" : "points",
                     (unsigned long long)set->count);
}

static psld_status check_counts(const psld_set *set, const psld_compare_options *o, int first)
{
    unsigned metrics = o->metrics;
    if (metrics & PSLD_FRECHET) PSLD_TRY(check_count(set, "fid", 2));
    if (first && (metrics & PSLD_INCEPTION_SCORE)) PSLD_TRY(check_count(set, "is", (uint64_t)o->splits));
    if (metrics & PSLD_KID) PSLD_TRY(check_count(set, "kid", (uint64_t)o->kid_subset_size));
    if (metrics & PSLD_PRECISION_RECALL) PSLD_TRY(check_count(set, "prc", (uint64_t)o->neighbours + 1));
    return PSLD_OK;
}

static psld_status check_pair(const psld_set *a, const psld_set *b, const psld_features *features)
{
    if (a->kind == PSLD_SET_IMAGES && b->kind == PSLD_SET_IMAGES &&
        memcmp(a->shape, b->shape, 3 * sizeof *a->shape) != 0)
        return psld_fail(
            PSLD_BAD_INPUT,
            "images of different sizes: %s has %zu x %zu x %zu, %s %zu x %zu x %zu (channels, height, width)", a->name,
            a->shape[0], a->shape[1], a->shape[2], b->name, b->shape[0], b->shape[1], b->shape[2]);
    size_t width_a = feature_width(a, features), width_b = feature_width(b, features);
    if (width_a == width_b) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "features of different width: %s has %zu numbers, %s %zu", a->name, width_a,
                     b->name, width_b);
}

static psld_status check_comparison(const psld_set *a, const psld_set *b, const psld_features *features,
                                    const psld_compare_options *o)
{
    unsigned pairs = o->metrics & psld_metrics_that(psld_metric_needs_pair);
    if (!o->metrics) return psld_fail(PSLD_BAD_ARGUMENT, "metric: expected at least one");
    if (!b && pairs) return psld_fail(PSLD_BAD_ARGUMENT, "a second set is needed: only the metric is works on one set");
    PSLD_TRY(check_set(a, features, o->metrics));
    PSLD_TRY(check_counts(a, o, 1));
    if ((o->metrics & PSLD_INCEPTION_SCORE) && a->kind == PSLD_SET_ROWS && b)
        return psld_fail(PSLD_BAD_INPUT, "%s: is needs images; give a file of logits alone, without a second set",
                         a->name);
    if (!b) return PSLD_OK;
    PSLD_TRY(check_set(b, features, pairs));
    PSLD_TRY(check_counts(b, o, 0));
    return check_pair(a, b, features);
}

/* ---- Metrics ----------------------------------------------------------------------------------------------------- */

static psld_status sliced_metric(const summary *a, const summary *b, const psld_compare_options *o, double *distance)
{
    psld_array *x = NULL, *y = NULL;
    psld_status status = psld_array_convert(a->rows, PSLD_F64, &x);
    if (status == PSLD_OK) status = psld_array_convert(b->rows, PSLD_F64, &y);
    if (status == PSLD_OK)
        status = psld_sliced_wasserstein(x->shape[1], x->shape[0], x->data, y->shape[0], y->data, (size_t)o->directions,
                                         o->seed, distance);
    psld_array_free(x);
    psld_array_free(y);
    return status;
}

static psld_status measure_metrics(const psld_set *sets[2], const summary *of, const psld_compare_options *o,
                                   psld_comparison *c)
{
    const psld_statistics *moments[2];
    for (int i = 0; i < 2; i++)
        moments[i] = sets[i] && sets[i]->kind == PSLD_SET_STATISTICS ? sets[i]->statistics : of[i].statistics;
    if (o->metrics & PSLD_FRECHET) PSLD_TRY(psld_frechet_distance(moments[0], moments[1], &c->frechet));
    if (o->metrics & PSLD_INCEPTION_SCORE) {
        psld_logit_sums_finish(of[0].shuffled, &c->score, &c->score_deviation);
        psld_logit_sums_finish(of[0].in_order, &c->score_in_order, &c->score_in_order_deviation);
    }
    const psld_kid_options kid = {sizeof kid, o->kid_subsets, o->kid_subset_size, o->kid_seed};
    if (o->metrics & PSLD_KID) PSLD_TRY(psld_kid(of[0].rows, of[1].rows, &kid, &c->kid, &c->kid_deviation));
    if (o->metrics & PSLD_PRECISION_RECALL)
        PSLD_TRY(psld_precision_recall(of[0].rows, of[1].rows, (size_t)o->neighbours, &c->precision, &c->recall));
    return o->metrics & PSLD_SLICED ? sliced_metric(&of[0], &of[1], o, &c->sliced) : PSLD_OK;
}

static psld_status compare_sets(psld_set *generated, psld_set *real, psld_features *features,
                                const psld_compare_options *options, psld_comparison *comparison)
{
    psld_set *const sets[2] = {generated, real};
    summary of[2] = {{0}, {0}};
    tracker track = {.progress = options->progress, .user = options->progress_user};
    PSLD_TRY(check_comparison(generated, real, features, options));
    for (int i = 0; i < 2 && sets[i]; i++) track.total += 1000 * sets[i]->count;
    psld_status status = PSLD_OK;
    for (int i = 0; i < 2 && sets[i] && status == PSLD_OK; i++) {
        unsigned metrics = i == 0 ? options->metrics : options->metrics & psld_metrics_that(psld_metric_needs_pair);
        comparison->count[i] = sets[i]->count;
        if (!metrics || sets[i]->kind == PSLD_SET_STATISTICS) continue;
        status = summarise_set(sets[i], features, metrics, (size_t)options->splits, &track, &of[i]);
    }
    comparison->dim = feature_width(generated, features);
    if (status == PSLD_OK) status = measure_metrics((const psld_set *[2]){generated, real}, of, options, comparison);
    free_summary(&of[0]);
    free_summary(&of[1]);
    return status;
}

psld_status psld_compare(psld_set *generated, psld_set *real, psld_features *features,
                         const psld_compare_options *options, psld_comparison *comparison)
{
    psld_compare_options own;
    psld_comparison result = PSLD_COMPARISON_EMPTY;
    PSLD_TRY(psld_sized_check(comparison, sizeof result, "PSLD_COMPARISON_EMPTY"));
    PSLD_TRY(read_compare_options(options, &own));
    psld_status status = compare_sets(generated, real, features, &own, &result);
    psld_sized_write(comparison, &result);
    return status;
}

/* ---- Features and statistics of one set -------------------------------------------------------------------------- */

/* Collects from one set what one metric needs. On failure nothing stays allocated. */
static psld_status summarise_one_set(psld_set *set, psld_features *features, unsigned metric, psld_progress_fn progress,
                                     void *user, summary *s)
{
    tracker track = {.progress = progress, .user = user, .total = 1000 * set->count};
    *s = (summary){0};
    if (set->kind == PSLD_SET_STATISTICS)
        return psld_fail(PSLD_BAD_INPUT, "%s: has mean and covariance, but no features", set->name);
    PSLD_TRY(check_set(set, features, metric));
    psld_status status = summarise_set(set, features, metric, 1, &track, s);
    if (status == PSLD_OK) return PSLD_OK;
    free_summary(s);
    *s = (summary){0};
    return status;
}

psld_status psld_set_features(psld_set *set, psld_features *features, psld_progress_fn progress, void *user,
                              psld_array **rows)
{
    summary s;
    psld_status status = summarise_one_set(set, features, PSLD_KID, progress, user, &s);
    *rows = s.rows;
    return status;
}

psld_status psld_set_statistics(psld_set *set, psld_features *features, psld_progress_fn progress, void *user,
                                psld_statistics **statistics)
{
    summary s;
    *statistics = NULL;
    PSLD_TRY(check_count(set, "a covariance", 2));
    psld_status status = summarise_one_set(set, features, PSLD_FRECHET, progress, user, &s);
    *statistics = s.statistics;
    return status;
}
