#include "sample/sources/mixture.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "process/recipe.h"

static psld_status check_mixture(size_t components, size_t dim, const double *weights, const double *means,
                                 const double *scales)
{
    double sum = 0;
    if (components < 1 || dim < 1)
        return psld_fail(PSLD_BAD_INPUT, "mixture: expected at least one component and one dimension");
    PSLD_TRY(psld_check_doubles("mixture", components, dim, PSLD_MAX_K)); /* states of it must fit, too */
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

static size_t scale_class(psld_mixture *mixture, double scale)
{
    for (size_t g = 0; g < mixture->classes; g++)
        if (mixture->scales[g] == scale) return g;
    mixture->scales[mixture->classes] = scale;
    return mixture->classes++;
}

static psld_status allocate_mixture(psld_mixture *mixture)
{
    mixture->label = NULL;
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
    if (allocate_mixture(made) != PSLD_OK) {
        psld_mixture_free(made);
        return PSLD_NO_MEMORY;
    }
    double sum = 0;
    for (size_t c = 0; c < components; c++) sum += weights[c];
    for (size_t c = 0; c < components; c++) made->log_weights[c] = log(weights[c] / sum);
    for (size_t c = 0; c < components; c++) made->class_of[c] = scale_class(made, scales[c]);
    memcpy(made->means, means, components * dim * sizeof(double));
    *mixture = made;
    return PSLD_OK;
}

/* The number of classes; fails unless each of them has a component. */
static psld_status count_labels(size_t components, const int32_t *label, size_t *labels)
{
    *labels = 0;
    for (size_t c = 0; c < components; c++) {
        if (label[c] < 0 || (size_t)label[c] >= components)
            return psld_fail(PSLD_BAD_INPUT, "mixture: labels[%zu]: expected a class from 0 to %zu, found %d", c,
                             components - 1, (int)label[c]);
        if ((size_t)label[c] >= *labels) *labels = (size_t)label[c] + 1;
    }
    for (size_t y = 0; y < *labels; y++) {
        size_t c = 0;
        while (c < components && (size_t)label[c] != y) c++;
        if (c == components) return psld_fail(PSLD_BAD_INPUT, "mixture: labels: no component has class %zu", y);
    }
    return PSLD_OK;
}

psld_status psld_mixture_label(const psld_mixture *mixture, const int32_t *label, psld_mixture **labelled)
{
    size_t labels;
    psld_mixture *made;
    *labelled = NULL;
    PSLD_TRY(count_labels(mixture->components, label, &labels));
    PSLD_TRY(psld_mixture_copy(mixture, &made));
    psld_release(made->label);
    made->labels = labels;
    made->label = psld_copy_bytes(label, mixture->components * sizeof *label);
    if (!made->label) {
        psld_mixture_free(made);
        return PSLD_NO_MEMORY;
    }
    *labelled = made;
    return PSLD_OK;
}

size_t psld_mixture_classes(const psld_mixture *mixture)
{
    return mixture->labels;
}

double psld_mixture_frequency(const psld_mixture *mixture, size_t label)
{
    double sum = 0;
    for (size_t c = 0; c < mixture->components; c++)
        if (mixture->label && (size_t)mixture->label[c] == label) sum += exp(mixture->log_weights[c]);
    return sum;
}

void psld_mixture_free(psld_mixture *mixture)
{
    if (!mixture) return;
    psld_release(mixture->label);
    psld_release(mixture->log_weights);
    psld_release(mixture->means);
    psld_release(mixture->scales);
    psld_release(mixture->class_of);
    psld_release(mixture);
}

psld_status psld_mixture_copy(const psld_mixture *mixture, psld_mixture **copy)
{
    *copy = psld_copy_bytes(mixture, sizeof *mixture);
    if (!*copy) return PSLD_NO_MEMORY;
    if (allocate_mixture(*copy) != PSLD_OK) {
        psld_mixture_free(*copy);
        *copy = NULL;
        return PSLD_NO_MEMORY;
    }
    memcpy((*copy)->log_weights, mixture->log_weights, mixture->components * sizeof(double));
    memcpy((*copy)->means, mixture->means, mixture->components * mixture->dim * sizeof(double));
    memcpy((*copy)->scales, mixture->scales, mixture->classes * sizeof(double));
    memcpy((*copy)->class_of, mixture->class_of, mixture->components * sizeof(size_t));
    if (!mixture->label) return PSLD_OK;
    (*copy)->label = psld_copy_bytes(mixture->label, mixture->components * sizeof *mixture->label);
    if ((*copy)->label) return PSLD_OK;
    psld_mixture_free(*copy);
    *copy = NULL;
    return PSLD_NO_MEMORY;
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
    if (!(t >= 0 && t <= 1)) return psld_fail(PSLD_BAD_ARGUMENT, "t: expected a time in [0, 1], found %g", t);
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
