/* Data distributed as a mixture of isotropic Gaussians has an exact score under every recipe:
 *     p_t(z) = sum_c w_c N(z; mu m_c, C_c),   C_c = kernel covariance with Var x_0 = scale_c^2,   mu = mean map's
 *       first column,
 *     grad log p_t = sum_c r_c C_c^-1 (mu m_c - z),   r_c = w_c N(...) / sum.
 * Components of equal scale share C, so the sum needs only their total weight and mean. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/threads.h"
#include "process/recipe.h"
#include "sample/source.h"

struct psld_mixture {
    size_t components, dim;
    double *log_weights; /* [components] */
    double *means;       /* [components][dim] */
    size_t classes;      /* number of distinct scales */
    double *scales;      /* [classes] */
    size_t *class_of;    /* [components] */
};

static psld_status check_mixture(size_t components, size_t dim, const double *weights, const double *means,
                                 const double *scales)
{
    double sum = 0;
    if (components < 1 || dim < 1)
        return psld_fail(PSLD_BAD_INPUT, "mixture: expected at least one component and one dimension");
    for (size_t c = 0; c < components; c++) {
        if (!(weights[c] > 0) || !isfinite(weights[c]))
            return psld_fail(PSLD_BAD_INPUT, "mixture: weights[%zu]: expected a positive number, found %g", c,
                             weights[c]);
        if (!(scales[c] >= 0) || !isfinite(scales[c]))
            return psld_fail(PSLD_BAD_INPUT, "mixture: scales[%zu]: expected a number of at least 0, found %g", c,
                             scales[c]);
        for (size_t j = 0; j < dim; j++)
            if (!isfinite(means[c * dim + j]))
                return psld_fail(PSLD_BAD_INPUT, "mixture: means[%zu][%zu]: expected a finite number", c, j);
        sum += weights[c];
    }
    if (fabs(sum - 1) > 1e-6)
        return psld_fail(PSLD_BAD_INPUT, "mixture: weights: expected a sum of 1, found %.9g", sum);
    return PSLD_OK;
}

static size_t find_class(psld_mixture *mixture, double scale)
{
    for (size_t g = 0; g < mixture->classes; g++)
        if (mixture->scales[g] == scale) return g;
    mixture->scales[mixture->classes] = scale;
    return mixture->classes++;
}

static psld_status allocate(psld_mixture *mixture)
{
    mixture->log_weights = psld_alloc(mixture->components, sizeof(double));
    mixture->means = mixture->log_weights ? psld_alloc(mixture->components, mixture->dim * sizeof(double)) : NULL;
    mixture->scales = mixture->means ? psld_alloc(mixture->components, sizeof(double)) : NULL;
    mixture->class_of = mixture->scales ? psld_alloc(mixture->components, sizeof(size_t)) : NULL;
    return mixture->class_of ? PSLD_OK : PSLD_NO_MEMORY;
}

psld_status psld_mixture_create(size_t components, size_t dim, const double *weights, const double *means,
                                const double *scales, psld_mixture **mixture)
{
    *mixture = NULL;
    PSLD_TRY(check_mixture(components, dim, weights, means, scales));
    psld_mixture *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->components = components;
    made->dim = dim;
    if (allocate(made) != PSLD_OK) {
        psld_mixture_free(made);
        return PSLD_NO_MEMORY;
    }
    double sum = 0;
    for (size_t c = 0; c < components; c++) sum += weights[c];
    for (size_t c = 0; c < components; c++) made->log_weights[c] = log(weights[c] / sum);
    for (size_t c = 0; c < components; c++) made->class_of[c] = find_class(made, scales[c]);
    memcpy(made->means, means, components * dim * sizeof(double));
    *mixture = made;
    return PSLD_OK;
}

void psld_mixture_free(psld_mixture *mixture)
{
    if (!mixture) return;
    psld_release(mixture->log_weights);
    psld_release(mixture->means);
    psld_release(mixture->scales);
    psld_release(mixture->class_of);
    psld_release(mixture);
}

static psld_status copy_mixture(const psld_mixture *mixture, psld_mixture **copy)
{
    *copy = psld_copy_bytes(mixture, sizeof *mixture);
    if (!*copy) return PSLD_NO_MEMORY;
    if (allocate(*copy) != PSLD_OK) {
        psld_mixture_free(*copy);
        *copy = NULL;
        return PSLD_NO_MEMORY;
    }
    memcpy((*copy)->log_weights, mixture->log_weights, mixture->components * sizeof(double));
    memcpy((*copy)->means, mixture->means, mixture->components * mixture->dim * sizeof(double));
    memcpy((*copy)->scales, mixture->scales, mixture->classes * sizeof(double));
    memcpy((*copy)->class_of, mixture->class_of, mixture->components * sizeof(size_t));
    return PSLD_OK;
}

size_t psld_mixture_dim(const psld_mixture *mixture)
{
    return mixture->dim;
}

double psld_mixture_density(const psld_mixture *mixture, const double *x)
{
    double density = 0;
    for (size_t c = 0; c < mixture->components; c++) {
        double scale = mixture->scales[mixture->class_of[c]], square = 0;
        if (scale == 0) continue; /* a point mass has no density */
        for (size_t j = 0; j < mixture->dim; j++) {
            double difference = (x[j] - mixture->means[c * mixture->dim + j]) / scale;
            square += difference * difference;
        }
        density += exp(mixture->log_weights[c] - square / 2) / pow(scale * 2.5066282746310002, (double)mixture->dim);
    }
    return density;
}

void psld_mixture_moments(const psld_mixture *mixture, double *mean, double *cov)
{
    size_t dim = mixture->dim;
    memset(mean, 0, dim * sizeof *mean);
    memset(cov, 0, dim * dim * sizeof *cov);
    for (size_t c = 0; c < mixture->components; c++)
        for (size_t j = 0; j < dim; j++) mean[j] += exp(mixture->log_weights[c]) * mixture->means[c * dim + j];
    for (size_t c = 0; c < mixture->components; c++) {
        double weight = exp(mixture->log_weights[c]), scale = mixture->scales[mixture->class_of[c]];
        const double *m = mixture->means + c * dim;
        for (size_t i = 0; i < dim; i++)
            for (size_t j = 0; j < dim; j++)
                cov[i * dim + j] += weight * ((i == j) * scale * scale + (m[i] - mean[i]) * (m[j] - mean[j]));
    }
}

/* ---- Exact draws ------------------------------------------------------------------------------------------------- */

static size_t choose_component(const psld_mixture *mixture, uint64_t seed, uint64_t sample)
{
    double u;
    psld_random_uniform(seed, PSLD_FOR_CHOICE, sample, 0, 0, 1, &u);
    size_t c = 0;
    for (; c + 1 < mixture->components; c++) {
        u -= exp(mixture->log_weights[c]);
        if (u < 0) break;
    }
    return c;
}

psld_status psld_mixture_draw(const psld_mixture *mixture, const psld_recipe *recipe, double t, uint64_t seed,
                              uint64_t first, size_t count, double *z)
{
    size_t k = (size_t)recipe->spec.k, dim = mixture->dim;
    if (!(t >= 0 && t <= 1)) return psld_fail(PSLD_BAD_ARGUMENT, "time: expected a number in [0, 1], found %g", t);
    psld_gaussian *kernels = psld_alloc(mixture->classes, sizeof *kernels);
    double *noise = kernels ? psld_alloc(k * dim, sizeof *noise) : NULL;
    if (!noise) {
        psld_release(kernels);
        return PSLD_NO_MEMORY;
    }
    for (size_t g = 0; g < mixture->classes; g++)
        psld_kernel(recipe, t, PSLD_HSM, mixture->scales[g] * mixture->scales[g], &kernels[g]);
    for (size_t i = 0; i < count; i++) {
        size_t c = choose_component(mixture, seed, first + i);
        const psld_gaussian *kernel = &kernels[mixture->class_of[c]];
        psld_random_normal(seed, PSLD_FOR_DATA, first + i, 0, 0, k * dim, noise);
        for (size_t a = 0; a < k; a++)
            for (size_t j = 0; j < dim; j++) {
                double sum = kernel->mean[a * k] * mixture->means[c * dim + j];
                for (size_t b = 0; b <= a; b++) sum += kernel->factor[a * k + b] * noise[b * dim + j];
                z[(i * k + a) * dim + j] = sum;
            }
    }
    psld_release(noise);
    psld_release(kernels);
    return PSLD_OK;
}

/* ---- The score --------------------------------------------------------------------------------------------------- */

/* One class of components at one time. Of z only y = gain z matters for telling its components apart: the
 * observation x_0 + noise of variance 1 / strength that z amounts to (docs/recipe.md, sufficient statistic). */
typedef struct class_at_time {
    double mu[PSLD_MAX_K];              /* first column of the mean map */
    double gain[PSLD_MAX_K];            /* C^-1 mu / strength */
    double strength;                    /* mu' C^-1 mu */
    double whiten[PSLD_MATRIX_SIZE];    /* L^-1, L L' = C, lower */
    double precision[PSLD_MATRIX_SIZE]; /* C^-1 */
    double log_volume;                  /* sum of log L_aa */
} class_at_time;

/* Consecutive states with the same time. */
typedef struct run {
    double t;
    size_t begin, end;
    psld_status status;
    double factor[PSLD_MATRIX_SIZE]; /* what turns a score into eps: eps = -factor' s */
} run;

typedef struct exact_score {
    psld_recipe *recipe; /* copies of its own */
    psld_mixture *mixture;
    run *runs;
    class_at_time *classes; /* [runs][mixture->classes] */
    size_t run_capacity, class_capacity;
    /* of the call under way */
    const double *z;
    double *eps;
    atomic_int out_of_memory;
} exact_score;

static void prepare_class(const psld_recipe *recipe, double t, double scale, class_at_time *out)
{
    psld_gaussian kernel;
    double transposed[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k;
    psld_kernel(recipe, t, PSLD_HSM, scale * scale, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, out->whiten);
    psld_matrix_transpose(k, out->whiten, transposed);
    psld_matrix_multiply(k, transposed, out->whiten, out->precision);
    out->log_volume = out->strength = 0;
    for (int a = 0; a < k; a++) {
        double white = 0;
        for (int b = 0; b <= a; b++) white += out->whiten[a * k + b] * kernel.mean[b * k];
        out->strength += white * white;
        out->mu[a] = kernel.mean[a * k];
        out->log_volume += log(kernel.factor[a * k + a]);
    }
    for (int a = 0; a < k; a++) {
        out->gain[a] = 0;
        for (int b = 0; b < k; b++) out->gain[a] += out->precision[a * k + b] * out->mu[b] / out->strength;
    }
}

static void prepare_runs(void *context, size_t begin, size_t end)
{
    exact_score *score = context;
    for (size_t r = begin; r < end; r++) {
        run *now = &score->runs[r];
        now->status = psld_recipe_factor(score->recipe, now->t, PSLD_HSM, now->factor, NULL);
        for (size_t g = 0; now->status == PSLD_OK && g < score->mixture->classes; g++)
            prepare_class(score->recipe, now->t, score->mixture->scales[g],
                          &score->classes[r * score->mixture->classes + g]);
    }
}

/* Numbers a state needs on its way: one range of states shares them. */
typedef struct scratch {
    double *r;      /* [components]: posterior probabilities */
    double *weight; /* [classes]: their sums over a class, */
    double *mean;   /* [classes][dim]: and means */
    double *y;      /* [classes][dim] */
} scratch;

static size_t scratch_size(const psld_mixture *mixture)
{
    return mixture->components + mixture->classes * (1 + 2 * mixture->dim);
}

static scratch lay_out_scratch(const psld_mixture *mixture, double *room)
{
    scratch s = {.r = room};
    s.weight = s.r + mixture->components;
    s.mean = s.weight + mixture->classes;
    s.y = s.mean + mixture->classes * mixture->dim;
    return s;
}

/* What y leaves of z, |L^-1 (z - mu y)|^2 summed over coordinates: the same for all components of a class. */
static double squared_rest(int k, size_t dim, const class_at_time *at, const double *y, const double *z)
{
    double sum = 0;
    for (size_t j = 0; j < dim; j++)
        for (int a = 0; a < k; a++) {
            double white = 0;
            for (int b = 0; b <= a; b++) white += at->whiten[a * k + b] * (z[(size_t)b * dim + j] - at->mu[b] * y[j]);
            sum += white * white;
        }
    return sum;
}

/* Log of each component's share in the density at z, up to a common constant. */
static void log_shares(const psld_mixture *mixture, int k, const class_at_time *classes, const double *z,
                       const scratch *s)
{
    size_t dim = mixture->dim;
    for (size_t g = 0; g < mixture->classes; g++) {
        double *y = s->y + g * dim;
        for (size_t j = 0; j < dim; j++) {
            y[j] = 0;
            for (int a = 0; a < k; a++) y[j] += classes[g].gain[a] * z[(size_t)a * dim + j];
        }
        /* with one class alone this is common to all */
        double rest = mixture->classes > 1 ? squared_rest(k, dim, &classes[g], y, z) : 0;
        s->weight[g] = -(double)dim * classes[g].log_volume - rest / 2;
    }
    for (size_t c = 0; c < mixture->components; c++) {
        size_t g = mixture->class_of[c];
        const double *y = s->y + g * dim, *m = mixture->means + c * dim;
        double square = 0;
        for (size_t j = 0; j < dim; j++) square += (y[j] - m[j]) * (y[j] - m[j]);
        s->r[c] = mixture->log_weights[c] + s->weight[g] - classes[g].strength * square / 2;
    }
}

/* Turns the shares into posterior probabilities, and sums them up by class. */
static void summarise(const psld_mixture *mixture, const scratch *s)
{
    double largest = s->r[0], sum = 0;
    for (size_t c = 1; c < mixture->components; c++) largest = s->r[c] > largest ? s->r[c] : largest;
    for (size_t c = 0; c < mixture->components; c++) sum += s->r[c] = exp(s->r[c] - largest);
    memset(s->weight, 0, mixture->classes * (1 + mixture->dim) * sizeof(double)); /* and s->mean, which follows it */
    for (size_t c = 0; c < mixture->components; c++) {
        size_t g = mixture->class_of[c];
        double r = s->r[c] / sum;
        s->weight[g] += r;
        for (size_t j = 0; j < mixture->dim; j++)
            s->mean[g * mixture->dim + j] += r * mixture->means[c * mixture->dim + j];
    }
}

static void predict_state(const exact_score *score, const run *now, const class_at_time *classes, const double *z,
                          const scratch *work, double *eps)
{
    size_t dim = score->mixture->dim;
    int k = score->recipe->spec.k, predicted = score->recipe->predicted;
    const int *order = score->recipe->order + k - predicted;
    log_shares(score->mixture, k, classes, z, work);
    summarise(score->mixture, work);
    for (size_t j = 0; j < dim; j++) {
        double s[PSLD_MAX_K] = {0}, pull[PSLD_MAX_K];
        for (size_t g = 0; g < score->mixture->classes; g++) {
            for (int a = 0; a < k; a++)
                pull[a] = classes[g].mu[a] * work->mean[g * dim + j] - work->weight[g] * z[(size_t)a * dim + j];
            for (int a = 0; a < k; a++)
                for (int b = 0; b < k; b++) s[a] += classes[g].precision[a * k + b] * pull[b];
        }
        for (int b = 0; b < predicted; b++) {
            double sum = 0;
            for (int a = b; a < predicted; a++) sum += now->factor[order[a] * k + order[b]] * s[order[a]];
            eps[(size_t)b * dim + j] = -sum;
        }
    }
}

static void predict_range(void *context, size_t begin, size_t end)
{
    exact_score *score = context;
    const psld_mixture *mixture = score->mixture;
    size_t k = (size_t)score->recipe->spec.k, predicted = (size_t)score->recipe->predicted, r = 0;
    double stack[256], *room = stack;
    if (scratch_size(mixture) > sizeof stack / sizeof *stack) room = psld_alloc(scratch_size(mixture), sizeof *room);
    if (!room) {
        atomic_store(&score->out_of_memory, 1);
        return;
    }
    scratch work = lay_out_scratch(mixture, room);
    for (size_t i = begin; i < end; i++) {
        while (i >= score->runs[r].end) r++;
        predict_state(score, &score->runs[r], &score->classes[r * mixture->classes], score->z + i * k * mixture->dim,
                      &work, score->eps + i * predicted * mixture->dim);
    }
    if (room != stack) psld_release(room);
}

static psld_status find_runs(exact_score *score, size_t n, const double *t, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || t[i] != t[i - 1]) {
            PSLD_TRY(psld_grow((void **)&score->runs, &score->run_capacity, *count + 1, sizeof *score->runs));
            score->runs[*count].t = t[i];
            score->runs[(*count)++].begin = i;
        }
        score->runs[*count - 1].end = i + 1;
    }
    return psld_grow((void **)&score->classes, &score->class_capacity, *count * score->mixture->classes,
                     sizeof *score->classes);
}

static psld_status predict_exactly(void *user, size_t n, size_t dim, const double *z, const double *t, double *eps)
{
    exact_score *score = user;
    size_t runs = 0;
    if (dim != score->mixture->dim)
        return psld_fail(PSLD_BAD_ARGUMENT, "mixture: states have %zu dimensions, the mixture %zu", dim,
                         score->mixture->dim);
    PSLD_TRY(find_runs(score, n, t, &runs));
    psld_parallel(runs, 4, prepare_runs, score);
    for (size_t r = 0; r < runs; r++)
        if (score->runs[r].status != PSLD_OK) /* again, in this thread, for the text */
            return psld_recipe_factor(score->recipe, score->runs[r].t, PSLD_HSM, score->runs[r].factor, NULL);
    score->z = z;
    score->eps = eps;
    atomic_store(&score->out_of_memory, 0);
    psld_parallel(n, 4096 / (dim * score->mixture->components) + 1, predict_range, score);
    if (atomic_load(&score->out_of_memory)) return psld_fail(PSLD_NO_MEMORY, "out of memory in the score of a mixture");
    return PSLD_OK;
}

static void release_score(void *user)
{
    exact_score *score = user;
    psld_recipe_free(score->recipe);
    psld_mixture_free(score->mixture);
    psld_release(score->runs);
    psld_release(score->classes);
    psld_release(score);
}

psld_status psld_source_mixture(const psld_mixture *mixture, const psld_recipe *recipe, psld_source **source)
{
    *source = NULL;
    exact_score *score = psld_alloc(1, sizeof *score);
    if (!score) return PSLD_NO_MEMORY;
    score->recipe = psld_copy_bytes(recipe, sizeof *recipe);
    psld_status status = score->recipe ? copy_mixture(mixture, &score->mixture) : PSLD_NO_MEMORY;
    if (status != PSLD_OK) {
        release_score(score);
        return status;
    }
    PSLD_TRY(psld_source_create(predict_exactly, release_score, score, source));
    (*source)->exact = 1;
    return PSLD_OK;
}
