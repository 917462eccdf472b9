/* For a mixture of one scale s, with y = x_0 + sigma n the sufficient statistic of a state (docs/explanation/recipe.md),
 *     r_c ~ w_c exp((y.m_c - |m_c|^2 / 2) / (s^2 + sigma^2)),    E[x_0 | y] = (sigma^2 sum_c r_c m_c + s^2 y) / (s^2 + sigma^2).
 * Both sums are matrix products, over all states of a time. */
#include "eval/empirical.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "eval/linear.h"
#include "process/recipe.h"

enum { LEAST_SIZE = 16384 }; /* components times dimension: below this, matrix products do not pay */

/* ---- Mixtures of data -------------------------------------------------------------------------------------------- */

static psld_status read_means(psld_data *data, size_t components, size_t dim, double *means)
{
    float *x = psld_alloc(dim, sizeof *x);
    psld_status status = x ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t c = 0; status == PSLD_OK && c < components; c++) {
        uint64_t index = c;
        status = psld_data_read(data, 1, &index, x, NULL);
        for (size_t j = 0; j < dim; j++) means[c * dim + j] = x[j];
    }
    psld_release(x);
    return status;
}

psld_status psld_empirical_mixture(psld_data *data, size_t components, double scale, psld_mixture **mixture)
{
    size_t shape[PSLD_MAX_RANK], dim = 1;
    int rank = psld_data_shape(data, shape);
    *mixture = NULL;
    for (int i = 0; i < rank; i++) dim *= shape[i];
    if (components > psld_data_count(data)) components = (size_t)psld_data_count(data);
    PSLD_TRY(psld_check_doubles("mixture of data", components, dim, 1));
    double *means = psld_alloc(components, dim * sizeof *means);
    double *rest = means ? psld_alloc(components, 2 * sizeof *rest) : NULL;
    psld_status status = rest ? read_means(data, components, dim, means) : PSLD_NO_MEMORY;
    for (size_t c = 0; status == PSLD_OK && c < components; c++) {
        rest[c] = 1 / (double)components;
        rest[components + c] = scale;
    }
    if (status == PSLD_OK) status = psld_mixture_create(components, dim, rest, means, rest + components, mixture);
    psld_release(rest);
    psld_release(means);
    return status;
}

/* ---- The source -------------------------------------------------------------------------------------------------- */

typedef struct empirical_source {
    const psld_mixture *mixture;
    psld_source *base; /* that this callback belongs to */
    psld_recipe recipe;
    double *transposed; /* [dim][components] */
    double *constant;   /* [components]: |m_c|^2 / 2 */
} empirical_source;

typedef struct statistic {
    double gain[PSLD_MAX_K], variance; /* y = gain . z, sigma^2 */
} statistic;

static void find_statistic(const psld_recipe *recipe, double t, statistic *s)
{
    psld_gaussian kernel;
    int k = recipe->spec.k;
    double inverse[PSLD_MATRIX_SIZE], white[PSLD_MAX_K] = {0}, strength = 0;
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, inverse);
    for (int a = 0; a < k; a++) {
        for (int b = 0; b <= a; b++) white[a] += inverse[a * k + b] * kernel.mean[b * k];
        strength += white[a] * white[a];
    }
    s->variance = 1 / strength;
    for (int b = 0; b < k; b++) {
        s->gain[b] = 0;
        for (int a = b; a < k; a++) s->gain[b] += inverse[a * k + b] * white[a] / strength;
    }
}

typedef struct posterior_job {
    const empirical_source *own;
    double variance; /* s^2 + sigma^2 */
    double *r;       /* [n][components]: products y.m_c, then probabilities */
} posterior_job;

static void find_posteriors(void *context, size_t begin, size_t end)
{
    const posterior_job *job = context;
    const psld_mixture *mixture = job->own->mixture;
    for (size_t i = begin; i < end; i++) {
        double *r = job->r + i * mixture->components, largest = -INFINITY, sum = 0;
        for (size_t c = 0; c < mixture->components; c++) {
            r[c] = mixture->log_weights[c] + (r[c] - job->own->constant[c]) / job->variance;
            largest = fmax(largest, r[c]);
        }
        for (size_t c = 0; c < mixture->components; c++) sum += r[c] = exp(r[c] - largest);
        for (size_t c = 0; c < mixture->components; c++) r[c] /= sum;
    }
}

/* States of the same time; y [n][dim] and r [n][components] are scratch memory. */
static psld_status denoise_time(const empirical_source *own, const psld_states *states, double *y, double *r,
                                double *out)
{
    const psld_mixture *mixture = own->mixture;
    size_t n = states->n, dim = states->dim, k = (size_t)own->recipe.spec.k;
    double square = mixture->scales[0] * mixture->scales[0];
    statistic s;
    find_statistic(&own->recipe, states->t[0], &s);
    memset(y, 0, n * dim * sizeof *y);
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < k; a++)
            for (size_t j = 0; j < dim; j++) y[i * dim + j] += s.gain[a] * states->z[(i * k + a) * dim + j];
    PSLD_TRY(psld_linear_products(dim, n, y, mixture->components, mixture->means, r));
    posterior_job job = {own, square + s.variance, r};
    psld_parallel(n, 16, find_posteriors, &job);
    PSLD_TRY(psld_linear_products(mixture->components, n, r, dim, own->transposed, out));
    for (size_t i = 0; i < n * dim; i++) out[i] = (s.variance * out[i] + square * y[i]) / job.variance;
    return PSLD_OK;
}

static psld_status predict_empirical(void *user, const psld_states *states, double *out)
{
    const empirical_source *own = user;
    size_t dim = states->dim, state = (size_t)own->recipe.spec.k * dim;
    double *y = psld_alloc(states->n, dim * sizeof *y);
    double *r = y ? psld_alloc(states->n, own->mixture->components * sizeof *r) : NULL;
    psld_status status = r ? PSLD_OK : PSLD_NO_MEMORY;
    for (size_t begin = 0, end; status == PSLD_OK && begin < states->n; begin = end) {
        end = psld_states_same_time(states, begin);
        psld_states part = psld_states_part(states, begin, end, state);
        status = denoise_time(own, &part, y, r, out + begin * dim);
    }
    psld_release(r);
    psld_release(y);
    return status;
}

static void release_empirical(void *user)
{
    empirical_source *own = user;
    psld_source_free(own->base);
    psld_release(own->transposed);
    psld_release(own->constant);
    psld_release(own);
}

/* The callback lives as long as the source around it. */
static psld_status predict_by_base(void *user, const psld_states *states, double *out)
{
    empirical_source *own = user;
    return psld_source_predict(own->base, states, out);
}

static psld_status prepare_means(empirical_source *own)
{
    size_t components = own->mixture->components, dim = own->mixture->dim;
    const double *means = own->mixture->means;
    own->transposed = psld_alloc(components, dim * sizeof(double));
    own->constant = own->transposed ? psld_alloc(components, sizeof(double)) : NULL;
    if (!own->constant) return PSLD_NO_MEMORY;
    for (size_t c = 0; c < components; c++)
        for (size_t j = 0; j < dim; j++) {
            double m = means[c * dim + j];
            own->transposed[j * components + c] = m;
            own->constant[c] += m * m / 2;
        }
    return PSLD_OK;
}

static psld_status create_by_products(const psld_mixture *mixture, const psld_recipe *recipe, psld_source **source)
{
    psld_callback callback = PSLD_CALLBACK_DEFAULTS;
    empirical_source *own = psld_alloc(1, sizeof *own);
    if (!own) return PSLD_NO_MEMORY;
    own->mixture = mixture;
    own->recipe = *recipe;
    callback.predicts = PSLD_PREDICTS_DATA;
    callback.recipe = recipe;
    callback.predict = predict_empirical;
    callback.user = own;
    psld_status status = prepare_means(own);
    if (status == PSLD_OK) status = psld_source_callback(&callback, &own->base);
    if (status != PSLD_OK) {
        release_empirical(own);
        return status;
    }
    int exact = own->base->exact;
    PSLD_TRY(psld_source_create(recipe, predict_by_base, release_empirical, own, source));
    (*source)->exact = exact;
    return PSLD_OK;
}

psld_status psld_empirical_source(const psld_mixture *mixture, const psld_recipe *recipe, psld_source **source)
{
    int large = mixture->components * mixture->dim >= LEAST_SIZE;
    *source = NULL;
    if (!large || mixture->classes > 1) return psld_source_mixture(mixture, recipe, source);
    return create_by_products(mixture, recipe, source);
}
