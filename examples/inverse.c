/* Conditions on an exact model: data are a mixture of two Gaussians on a line, at -1 and 1. Prints what is known in closed
 * form beside what sampling finds: a class by guidance, a measurement by restoration, and the likelihood of a point. */
#include <math.h>
#include <psld_eval.h>
#include <stdio.h>

enum { N = 2000 };

/* Mean of the data x of N samples from a source. */
static psld_status find_mean(const psld_recipe *recipe, psld_source *source, double *mean)
{
    static double z[2 * N]; /* x and its momentum */
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = "ancestral";
    psld_status status = psld_sample(recipe, source, &options, 0, N, 1, NULL, z, NULL);
    *mean = 0;
    for (int i = 0; i < N; i++) *mean += z[2 * i] / N;
    return status;
}

/* The score of class 1 is the score plus the gradient of log p(class 1 | z_t, t). */
static psld_status sample_class(const psld_mixture *mixture, const psld_recipe *recipe, psld_source *source)
{
    psld_classifier *classifier = NULL;
    psld_source *guided = NULL;
    const double z[2] = {0.2, 0}, t = 0.3;
    const int32_t label = 1;
    const double one[2] = {1, 0};
    double log_p, gradient[2], eps[2], slope[2], mean;
    psld_status status = psld_classifier_mixture(mixture, recipe, &classifier);
    if (status == PSLD_OK) status = psld_source_predict(source, &PSLD_STATES(1, 1, z, &t), eps);
    if (status == PSLD_OK) status = psld_source_gradient(source, &PSLD_STATES(1, 1, z, &t), one, NULL, slope);
    if (status == PSLD_OK) printf("eps_x at z = (0.2, 0), t = 0.3: %.3f, its slope in x: %.3f\n", eps[0], slope[0]);
    if (status == PSLD_OK)
        status = psld_classifier_evaluate(classifier, &PSLD_STATES(1, 1, z, &t), &label, &log_p, gradient);
    if (status == PSLD_OK) status = psld_source_guide(source, recipe, classifier, 1, 1, &guided);
    if (status == PSLD_OK) status = find_mean(recipe, guided, &mean);
    if (status == PSLD_OK)
        printf("p(class 1 | z = (0.2, 0), t = 0.3): %.2f\nmean of class 1: %.2f (exact: 1)\n", exp(log_p), mean);
    psld_source_free(guided);
    psld_classifier_free(classifier);
    return status;
}

/* y = x + noise of deviation 0.5 was measured as 1. Bayes' rule: each component's mean moves half-way to y. */
static psld_status sample_posterior(const psld_recipe *recipe, psld_source *source)
{
    const double y = 1;
    double mean;
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_restore_options options = PSLD_RESTORE_DEFAULTS;
    psld_operator *op = NULL;
    psld_source *restored = NULL;
    task.name = "denoise";
    task.rank = 1;
    task.shape[0] = 1;
    options.noise = 0.5;
    psld_status status = psld_operator_create(&task, &op);
    if (status == PSLD_OK && psld_source_has_gradient(source))
        status = psld_source_restore(source, recipe, op, &y, &options, &restored);
    if (status == PSLD_OK) status = find_mean(recipe, restored, &mean);
    double far = exp(-2.0 * 2.0), near = 1; /* p(y | component): variance 0.25 + 0.25 */
    if (status == PSLD_OK) printf("mean given y = 1: %.2f (exact: %.2f)\n", mean, near / (far + near));
    psld_source_free(restored);
    psld_operator_free(op);
    return status;
}

/* The density of a point by the probability flow, and the state from which the flow returns to it. */
static psld_status follow_flow(const psld_mixture *mixture, const psld_recipe *recipe, psld_source *source)
{
    const double x = 0.3;
    double log_p, z[2], back[2], mean, variance;
    psld_likelihood_options likelihood = PSLD_LIKELIHOOD_DEFAULTS;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = "collapsed";
    options.nfe = 100;
    options.denoise = 0;
    psld_mixture_moments(mixture, &mean, &variance);
    psld_status status = psld_likelihood(recipe, source, &likelihood, 0, 1, 1, &x, &log_p, NULL);
    if (status == PSLD_OK) status = psld_encode(recipe, source, &options, 0, 1, 1, &x, z, NULL);
    if (status == PSLD_OK) status = psld_sample(recipe, source, &options, 0, 1, 1, z, back, NULL);
    if (status == PSLD_OK)
        printf("data: mean %.2f, variance %.2f\nlog p(0.3): at least %.2f (exact: %.2f)\n0.3 there and back: %.2f\n",
               mean, variance, log_p, log(psld_mixture_density(mixture, &x)), back[0]);
    return status;
}

int main(void)
{
    const double weights[2] = {0.5, 0.5}, means[2] = {-1, 1}, scales[2] = {0.5, 0.5};
    psld_recipe *recipe = NULL;
    psld_mixture *mixture = NULL;
    psld_source *source = NULL;
    psld_status status = psld_recipe_open("psld", &recipe);
    if (status == PSLD_OK) status = psld_mixture_create(2, 1, weights, means, scales, &mixture);
    if (status == PSLD_OK) status = psld_source_mixture(mixture, recipe, &source);
    if (status == PSLD_OK) status = sample_class(mixture, recipe, source);
    if (status == PSLD_OK) status = sample_posterior(recipe, source);
    if (status == PSLD_OK) status = follow_flow(mixture, recipe, source);
    if (status != PSLD_OK) fprintf(stderr, "%s\n", psld_error_text());
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
    return status != PSLD_OK;
}
