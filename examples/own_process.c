/* A process of one's own with a score of one's own: standard normal data, whose score under any recipe is that of a
 * Gaussian with the covariance that the kernel gives it. Prints the variance of the samples, which should be 1. */
#include <psld.h>
#include <stdio.h>
#include <stdlib.h>

/* Standard normal data: p_t is N(0, C), C = cov + mu mu', so the score is -C^-1 z. Here k = 2, and both variables are
 * predicted. */
static psld_status predict_score(void *user, const psld_states *states, double *score)
{
    const psld_recipe *recipe = user;
    double mean[4], cov[4];
    size_t dim = states->dim;
    for (size_t i = 0; i < states->n; i++) {
        if (i == 0 || states->t[i] != states->t[i - 1]) { /* most states of a batch share their time */
            psld_status status = psld_recipe_kernel(recipe, states->t[i], PSLD_HSM, mean, cov, NULL);
            if (status != PSLD_OK) return status;
        }
        double xx = cov[0] + mean[0] * mean[0], xm = cov[1] + mean[0] * mean[2], mm = cov[3] + mean[2] * mean[2];
        double det = xx * mm - xm * xm;
        for (size_t j = 0; j < dim; j++) {
            double x = states->z[(2 * i) * dim + j], m = states->z[(2 * i + 1) * dim + j];
            score[(2 * i) * dim + j] = -(mm * x - xm * m) / det;
            score[(2 * i + 1) * dim + j] = -(xx * m - xm * x) / det;
        }
    }
    return PSLD_OK;
}

int main(void)
{
    enum { N = 4000 };
    psld_recipe *recipe = NULL;
    psld_source *source = NULL;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    double *z = calloc(2 * N, sizeof *z), sum = 0;
    options.sampler = "sscs";
    options.nfe = 200;
    psld_status status = z ? psld_recipe_open("psld gamma=0.3 nu=3 m_inv=5 beta=[1, 12]", &recipe) : PSLD_NO_MEMORY;
    psld_callback callback = PSLD_CALLBACK_DEFAULTS;
    callback.predicts = PSLD_PREDICTS_SCORE;
    callback.predict = predict_score;
    callback.recipe = callback.user = recipe;
    if (status == PSLD_OK) status = psld_source_callback(&callback, &source);
    if (status == PSLD_OK) status = psld_sample(recipe, source, &options, 0, N, 1, NULL, z, NULL);
    for (size_t i = 0; i < N && z; i++) sum += z[2 * i] * z[2 * i] / N;
    if (status == PSLD_OK)
        printf("variance of %d samples: %.3f (data: 1)\n", N, sum);
    else
        fprintf(stderr, "%s\n", psld_error_text());
    psld_source_free(source);
    psld_recipe_free(recipe);
    free(z);
    return status != PSLD_OK;
}
