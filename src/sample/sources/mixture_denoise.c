/* The denoiser of a mixture. Given y = x_0 + sigma n, the components have probabilities r_c, proportional to
 * w_c N(y; m_c, v_c) with v_c = s_c^2 + sigma^2, and by Tweedie's formula
 *     E[x_0 | y] = y + sigma^2 g,     g = sum_c r_c g_c,     g_c = (m_c - y) / v_c.
 * Components are added in one pass: what is there is scaled down when a likelier one comes. */
#include <math.h>

#include "sample/sources/mixture.h"

typedef struct posterior {
    double largest;       /* log of the density that sums are in units of */
    double sum;           /* of densities */
    double kept;          /* of density s^2 / v */
    double along;         /* of density (a . w), where a = y + sigma^2 g_c is the component's own answer */
    double *score, *bent; /* [dim]: of density g_c, and of density (a . w) g_c */
} posterior;

static void rescale(posterior *p, size_t dim, double factor)
{
    p->sum *= factor;
    p->kept *= factor;
    p->along *= factor;
    for (size_t j = 0; j < dim; j++) p->score[j] *= factor;
    for (size_t j = 0; p->bent && j < dim; j++) p->bent[j] *= factor;
}

static void add_component(const psld_mixture *mixture, size_t c, const double *y, double sigma, const double *weight,
                          posterior *p)
{
    size_t dim = mixture->dim;
    const double *mean = mixture->means + c * dim;
    double scale = mixture->scales[mixture->class_of[c]], variance = scale * scale + sigma * sigma, square = 0;
    for (size_t j = 0; j < dim; j++) square += (y[j] - mean[j]) * (y[j] - mean[j]);
    double log_density = mixture->log_weights[c] - (square / variance + (double)dim * log(variance)) / 2;
    if (log_density > p->largest) {
        rescale(p, dim, exp(p->largest - log_density));
        p->largest = log_density;
    }
    double density = exp(log_density - p->largest), along = 0;
    for (size_t j = 0; weight && j < dim; j++)
        along += weight[j] * (y[j] + sigma * sigma / variance * (mean[j] - y[j]));
    p->sum += density;
    p->kept += density * scale * scale / variance;
    p->along += density * along;
    for (size_t j = 0; j < dim; j++) p->score[j] += density * (mean[j] - y[j]) / variance;
    for (size_t j = 0; weight && j < dim; j++) p->bent[j] += density * along * (mean[j] - y[j]) / variance;
}

void psld_mixture_denoise(const psld_mixture *mixture, const double *y, double sigma, int32_t label,
                          const double *weight, double *x, double *grad)
{
    size_t dim = mixture->dim;
    posterior p = {.largest = -(double)INFINITY, .score = x, .bent = weight ? grad : NULL};
    for (size_t j = 0; j < dim; j++) x[j] = 0;
    for (size_t j = 0; weight && j < dim; j++) grad[j] = 0;
    for (size_t c = 0; c < mixture->components; c++)
        if (label < 0 || !mixture->label || mixture->label[c] == label) add_component(mixture, c, y, sigma, weight, &p);
    rescale(&p, dim, 1 / p.sum);
    for (size_t j = 0; weight && j < dim; j++) grad[j] += p.kept * weight[j] - p.along * p.score[j];
    for (size_t j = 0; j < dim; j++) x[j] = y[j] + sigma * sigma * p.score[j];
}
