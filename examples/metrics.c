/* Metrics on arrays: two sets of points are compared by their moments (Frechet distance), by a kernel (KID), by their
 * neighbours (precision and recall) and by projections (sliced Wasserstein distance). Features of images are compared in
 * the same way: with the weights of a network (psld_features_open) and a picture as arguments, its features are shown too.
 */
#include <psld_eval.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, DIM = 2 };

/* Draws of two Gaussians around (+-1, shift). */
static psld_status draw_points(double shift, uint64_t seed, psld_array **points)
{
    const double weights[2] = {0.5, 0.5}, scales[2] = {0.5, 0.5}, means[4] = {-1, shift, 1, shift};
    const size_t shape[2] = {N, DIM};
    psld_mixture *mixture = NULL;
    psld_recipe *recipe = NULL;
    psld_status status = psld_array_create(PSLD_F64, 2, shape, points);
    if (status == PSLD_OK) status = psld_recipe_open("vp", &recipe);
    if (status == PSLD_OK) status = psld_mixture_create(2, DIM, weights, means, scales, &mixture);
    if (status == PSLD_OK) status = psld_mixture_draw(mixture, recipe, 0, seed, 0, N, (*points)->data);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
    return status;
}

/* Mean and covariance. Features may come a few at a time: here they come in two parts. */
static psld_status find_statistics(const psld_array *points, psld_statistics **statistics)
{
    psld_array *rows = NULL;
    psld_status status = psld_array_convert(points, PSLD_F32, &rows);
    if (status == PSLD_OK) status = psld_statistics_create(DIM, statistics);
    for (size_t first = 0; first < N && status == PSLD_OK; first += N / 2)
        status = psld_statistics_add(*statistics, N / 2, (const float *)rows->data + first * DIM);
    if (status == PSLD_OK) status = psld_statistics_finish(*statistics);
    psld_array_free(rows);
    return status;
}

static psld_status compare_moments(const psld_array *a, const psld_array *b)
{
    psld_statistics *of_a = NULL, *of_b = NULL, *loaded = NULL;
    double distance;
    psld_status status = find_statistics(a, &of_a);
    if (status == PSLD_OK) status = find_statistics(b, &of_b);
    /* statistics of a data set are kept as a file */
    if (status == PSLD_OK) status = psld_statistics_save(of_b, "statistics.npz");
    if (status == PSLD_OK) status = psld_statistics_load("statistics.npz", &loaded);
    if (status == PSLD_OK) status = psld_frechet_distance(of_a, loaded, &distance);
    if (status == PSLD_OK)
        printf("rows %llu, dim %zu, mean y %.2f, var x %.2f\nfrechet distance      %.3f\n",
               (unsigned long long)psld_statistics_count(of_b), psld_statistics_dim(of_b),
               psld_statistics_mean(of_b)[1], psld_statistics_cov(of_b)[0], distance);
    psld_statistics_free(of_a);
    psld_statistics_free(of_b);
    psld_statistics_free(loaded);
    return status;
}

static psld_status compare_samples(const psld_array *a, const psld_array *b)
{
    psld_kid_options kid = PSLD_KID_DEFAULTS;
    double mean, deviation, precision, recall, distance;
    kid.subsets = 20;
    kid.subset_size = 200;
    psld_status status = psld_kid(a, b, &kid, &mean, &deviation);
    if (status == PSLD_OK) status = psld_precision_recall(a, b, 3, &precision, &recall);
    if (status == PSLD_OK) status = psld_sliced_wasserstein(DIM, N, a->data, N, b->data, 64, 0, &distance);
    if (status == PSLD_OK)
        printf("kernel distance       %.3f\nprecision, recall     %.2f %.2f\nsliced wasserstein    %.3f\n", mean,
               precision, recall, distance);
    return status;
}

/* Every row says with certainty one of two classes, each as often: the score is their number. */
static psld_status score_logits(void)
{
    const size_t shape[2] = {100, 2};
    psld_array *logits = NULL;
    double mean, deviation;
    psld_status status = psld_array_create(PSLD_F64, 2, shape, &logits);
    for (size_t i = 0; status == PSLD_OK && i < logits->count; i++)
        ((double *)logits->data)[i] = i / 2 % 2 == i % 2 ? 20 : -20;
    if (status == PSLD_OK) status = psld_inception_score(logits, 10, 0, &mean, &deviation);
    if (status == PSLD_OK) printf("inception score       %.3f\n", mean);
    psld_array_free(logits);
    return status;
}

/* What a network says of a picture. */
static psld_status show_features(const char *weights, const char *path)
{
    psld_features *network = NULL;
    psld_array *image = NULL;
    psld_status status = psld_features_open(weights, &network);
    if (status == PSLD_OK) status = psld_image_load(path, &image);
    size_t dim = network ? psld_features_dim(network) : 0, classes = network ? psld_features_classes(network) : 0;
    float *features = calloc(dim + classes + 1, sizeof *features);
    if (status == PSLD_OK) {
        psld_array one = *image; /* [channels, height, width] as [1, channels, height, width] */
        one.rank = 4;
        one.shape[0] = 1;
        for (int i = 0; i < 3; i++) one.shape[i + 1] = image->shape[i];
        status = features ? psld_features_extract(network, &one, features, features + dim) : PSLD_NO_MEMORY;
    }
    if (status == PSLD_OK) printf("%zu features, the first %g; %zu classes\n", dim, (double)features[0], classes);
    free(features);
    psld_array_free(image);
    psld_features_free(network);
    return status;
}

int main(int argc, char **argv)
{
    psld_array *real = NULL, *generated = NULL;
    psld_status status = draw_points(0, 1, &real);
    if (status == PSLD_OK) status = draw_points(0.5, 2, &generated);
    if (status == PSLD_OK) status = compare_moments(real, generated);
    if (status == PSLD_OK) status = compare_samples(generated, real);
    if (status == PSLD_OK) status = score_logits();
    if (status == PSLD_OK && argc == 3) status = show_features(argv[1], argv[2]);
    if (status != PSLD_OK) fprintf(stderr, "%s\n", psld_error_text());
    psld_array_free(real);
    psld_array_free(generated);
    return status != PSLD_OK;
}
