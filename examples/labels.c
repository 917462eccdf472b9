/* Classes: two clusters of points, each a class, drawn by label and with classifier-free guidance. Prints where the samples
 * of each class lie: with guidance they lie farther from the other class. */
#include <psld.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 2000 }; /* samples; every second one has label 1 */

static psld_status open_clusters(psld_mixture **clusters)
{
    const double weights[2] = {0.5, 0.5}, means[4] = {-1, 0, 1, 0}, scales[2] = {0.5, 0.5};
    const int32_t label[2] = {0, 1};
    psld_mixture *plain = NULL;
    psld_status status = psld_mixture_create(2, 2, weights, means, scales, &plain);
    if (status == PSLD_OK) status = psld_mixture_label(plain, label, clusters);
    psld_mixture_free(plain);
    return status;
}

/* The mean of the first coordinate for each label. */
static psld_status print_means(const psld_recipe *recipe, psld_source *score, double cfg, double *z)
{
    const int32_t label[2] = {0, 1};
    psld_labels labels = PSLD_LABELS_DEFAULTS;
    labels.label = label;
    labels.count = 2;
    labels.cfg = cfg;
    psld_source *labelled = NULL;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.nfe = 50;
    psld_status status = psld_source_label(score, recipe, &labels, &labelled);
    if (status == PSLD_OK) status = psld_sample(recipe, labelled, &options, 0, N, 2, NULL, z, NULL);
    psld_source_free(labelled);
    if (status != PSLD_OK) return status;

    double mean[2] = {0, 0};
    size_t dim = 2 * (size_t)psld_recipe_get(recipe)->k; /* of a state */
    for (size_t i = 0; i < N; i++) mean[i % 2] += z[i * dim] / (N / 2);
    printf("cfg %g: class 0 around %.2f, class 1 around %.2f\n", cfg, mean[0], mean[1]);
    return PSLD_OK;
}

int main(void)
{
    psld_recipe *recipe = NULL;
    psld_mixture *clusters = NULL;
    psld_source *score = NULL;
    double *z = NULL;
    psld_status status = psld_recipe_open("psld", &recipe);
    if (status == PSLD_OK) status = open_clusters(&clusters);
    if (status == PSLD_OK) status = psld_source_mixture(clusters, recipe, &score);
    if (status == PSLD_OK) {
        z = calloc(2 * N * (size_t)psld_recipe_get(recipe)->k, sizeof *z);
        if (!z) status = PSLD_NO_MEMORY;
    }
    if (status == PSLD_OK)
        printf("%zu classes; a label is %s\n", psld_source_classes(score),
               psld_source_needs_label(score) ? "needed" : "optional");
    if (status == PSLD_OK) status = print_means(recipe, score, 1, z);
    if (status == PSLD_OK) status = print_means(recipe, score, 3, z);
    if (status != PSLD_OK) fprintf(stderr, "%s\n", psld_error_text());
    psld_source_free(score);
    psld_mixture_free(clusters);
    psld_recipe_free(recipe);
    free(z);
    return status != PSLD_OK;
}
