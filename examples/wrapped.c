/* Sources around sources: the exact score of a mixture under one recipe becomes that of another recipe, is clipped, and
 * is guided away from a weaker model. Each is asked for the clean data that it predicts at one state. */
#include <psld.h>
#include <stdio.h>

/* The process dx = -beta/2 x dt + sqrt(beta) dw, as matrices and as text. */
static psld_status make_recipes(psld_recipe **from_matrices, psld_recipe **from_text)
{
    psld_recipe_spec spec = PSLD_RECIPE_SPEC_DEFAULTS;
    spec.beta_min = 0.1;
    spec.beta_max = 20;
    psld_status status = psld_recipe_create(&spec, from_matrices);
    if (status != PSLD_OK) return status;
    return psld_recipe_parse("{D: [[0, 0], [0, 0.6]], Q: [[0, -0.5], [0.5, 0]], mass: 0.25, beta: 8}", "example",
                             from_text);
}

static psld_status print_clean(const char *what, psld_source *source, const psld_recipe *recipe, const double *z,
                               double t)
{
    double x[2];
    psld_status status = psld_source_denoise(source, recipe, &PSLD_STATES(1, 2, z, &t), x);
    if (status == PSLD_OK) printf("%-22s (%.3f, %.3f)\n", what, x[0], x[1]);
    return status;
}

static psld_status print_sources(const psld_recipe *vp, const psld_recipe *other, psld_source *sharp,
                                 psld_source *blurred)
{
    const double state[4] = {1.2, -0.4, 0.1, 0.2}; /* x, and for the other recipe its momentum */
    double sigma, t;
    psld_source *clipped = NULL, *guided = NULL, *translated = NULL;
    psld_status status = psld_source_clip(sharp, vp, 0.5, 0, &clipped);
    if (status == PSLD_OK) status = psld_source_autoguide(sharp, blurred, vp, 2, &guided);
    if (status == PSLD_OK) status = psld_source_translate(sharp, vp, other, &translated);
    if (status == PSLD_OK) status = print_clean("exact", sharp, vp, state, 0.3);
    if (status == PSLD_OK) status = print_clean("clipped to 0.5", clipped, vp, state, 0.3);
    if (status == PSLD_OK) status = print_clean("weaker model", blurred, vp, state, 0.3);
    if (status == PSLD_OK) status = print_clean("guided away from it", guided, vp, state, 0.3);
    /* the time at which the other recipe has the same effective noise */
    if (status == PSLD_OK) status = psld_recipe_sigma(vp, 0.3, &sigma);
    if (status == PSLD_OK) status = psld_recipe_time(other, sigma, &t);
    if (status == PSLD_OK) status = print_clean("under another recipe", translated, other, state, t);
    psld_source_free(translated);
    psld_source_free(guided);
    psld_source_free(clipped);
    return status;
}

int main(void)
{
    const double weights[2] = {0.5, 0.5}, means[4] = {-1, 0, 1, 0}, scales[2] = {0.3, 0.3}, wide[2] = {0.6, 0.6};
    psld_recipe *vp = NULL, *other = NULL;
    psld_mixture *mixture = NULL, *smooth = NULL;
    psld_source *sharp = NULL, *blurred = NULL;
    psld_status status = make_recipes(&vp, &other);
    if (status == PSLD_OK) status = psld_mixture_create(2, 2, weights, means, scales, &mixture);
    if (status == PSLD_OK) status = psld_mixture_create(2, 2, weights, means, wide, &smooth);
    if (status == PSLD_OK) status = psld_source_mixture(mixture, vp, &sharp);
    if (status == PSLD_OK) status = psld_source_mixture(smooth, vp, &blurred);
    if (status == PSLD_OK) status = print_sources(vp, other, sharp, blurred);
    if (status != PSLD_OK) fprintf(stderr, "%s\n", psld_error_text());
    psld_source_free(blurred);
    psld_source_free(sharp);
    psld_mixture_free(smooth);
    psld_mixture_free(mixture);
    psld_recipe_free(other);
    psld_recipe_free(vp);
    return status != PSLD_OK;
}
