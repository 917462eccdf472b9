/* The metric that psld_training computes of its samples: the Frechet distance of image features, or, without a feature
 * network, the sliced Wasserstein distance of the data themselves. */
#include "base/alloc.h"
#include "base/status.h"
#include "psld_eval.h"

enum { DIRECTIONS = 256 };

typedef struct distance {
    psld_features *features; /* NULL: sliced */
    psld_statistics *real;
    double *points; /* [count][dim] */
    size_t count, dim;
} distance;

static void close_distance(void *state)
{
    distance *d = state;
    psld_features_free(d->features);
    psld_statistics_free(d->real);
    psld_release(d->points);
    psld_release(d);
}

static psld_status open_distance(const char *weights, int rank, void **state)
{
    *state = NULL;
    if (*weights && rank != 3)
        return psld_fail(PSLD_BAD_INPUT, "%s: features need images; this model's data are vectors", weights);
    distance *d = psld_alloc(1, sizeof *d);
    if (!d) return PSLD_NO_MEMORY;
    psld_status status = *weights ? psld_features_open(weights, &d->features) : PSLD_OK;
    if (status != PSLD_OK) {
        close_distance(d);
        return status;
    }
    *state = d;
    return PSLD_OK;
}

static psld_status add_features(psld_features *features, const psld_array *x, psld_statistics *statistics)
{
    psld_array *images;
    PSLD_TRY(psld_images_from_data(x, 0, &images));
    float *rows = psld_alloc(x->shape[0], psld_features_dim(features) * sizeof *rows);
    psld_status status = rows ? psld_features_extract(features, images, rows, NULL) : PSLD_NO_MEMORY;
    psld_array_free(images);
    if (status == PSLD_OK) status = psld_statistics_add(statistics, x->shape[0], rows);
    psld_release(rows);
    return status == PSLD_OK ? psld_statistics_finish(statistics) : status;
}

static psld_status find_statistics(psld_features *features, const psld_array *x, psld_statistics **statistics)
{
    PSLD_TRY(psld_statistics_create(psld_features_dim(features), statistics));
    psld_status status = add_features(features, x, *statistics);
    if (status == PSLD_OK) return PSLD_OK;
    psld_statistics_free(*statistics);
    *statistics = NULL;
    return status;
}

/* As doubles, [shape[0]][dim]; to be released. */
static psld_status find_points(const psld_array *x, size_t *dim, double **points)
{
    *dim = 1;
    for (int i = 1; i < x->rank; i++) *dim *= x->shape[i];
    *points = psld_alloc(x->shape[0], *dim * sizeof **points);
    if (!*points) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < x->shape[0] * *dim; i++) (*points)[i] = (double)((const float *)x->data)[i];
    return PSLD_OK;
}

static psld_status set_reference(void *state, const psld_array *data)
{
    distance *d = state;
    if (d->features) return find_statistics(d->features, data, &d->real);
    d->count = data->shape[0];
    return find_points(data, &d->dim, &d->points);
}

static psld_status measure_samples(void *state, const psld_array *samples, double *found)
{
    const distance *d = state;
    psld_status status;
    if (d->features) {
        psld_statistics *drawn;
        PSLD_TRY(find_statistics(d->features, samples, &drawn));
        status = psld_frechet_distance(drawn, d->real, found);
        psld_statistics_free(drawn);
        return status;
    }
    size_t dim;
    double *points;
    PSLD_TRY(find_points(samples, &dim, &points));
    status = psld_sliced_wasserstein(dim, samples->shape[0], points, d->count, d->points, DIRECTIONS, 0, found);
    psld_release(points);
    return status;
}

const psld_training_metric *psld_training_distance(void)
{
    static const psld_training_metric metric = {sizeof metric, open_distance, set_reference, measure_samples,
                                                close_distance};
    return &metric;
}
