/* Score sources and their gradients: against differences, and against the network itself. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recipes.h"
#include "sample/sources/source.h"

static psld_recipe *open_recipe(const char *line)
{
    psld_recipe *recipe;
    if (psld_recipe_open(line, &recipe) != PSLD_OK) fail_msg("%s: %s", line, psld_error_text());
    return recipe;
}

/* Three components, two of one scale: nothing is symmetric. */
static psld_mixture *three(void)
{
    const double weights[3] = {0.3, 0.5, 0.2}, means[6] = {-0.8, 0.5, 0.6, -0.2, 0.1, 0.9},
                 scales[3] = {0.3, 0.15, 0.3};
    psld_mixture *mixture;
    assert_int_equal(psld_mixture_create(3, 2, weights, means, scales, &mixture), PSLD_OK);
    return mixture;
}

static double weighted_eps(psld_source *source, size_t count, const double *z, double t, const double *weight)
{
    double eps[2 * PSLD_MAX_K], sum = 0;
    assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, 2, z, &t), eps), PSLD_OK);
    for (size_t i = 0; i < count; i++) sum += weight[i] * eps[i];
    return sum;
}

/* Central differences of fourth order. */
static double difference(psld_source *source, size_t count, double *z, size_t i, double h, double t,
                         const double *weight)
{
    double kept = z[i], value[4];
    const double at[4] = {-2, -1, 1, 2};
    for (int p = 0; p < 4; p++) {
        z[i] = kept + at[p] * h;
        value[p] = weighted_eps(source, count, z, t, weight);
    }
    z[i] = kept;
    return (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * h);
}

static void check_gradient(const psld_recipe *recipe, psld_source *source, double t)
{
    size_t k = (size_t)recipe->spec.k, predicted = (size_t)recipe->predicted;
    double z[2 * PSLD_MAX_K] = {0}, weight[2 * PSLD_MAX_K] = {0}, eps[2 * PSLD_MAX_K], again[2 * PSLD_MAX_K];
    double gradient[2 * PSLD_MAX_K], numeric[2 * PSLD_MAX_K], largest = 0;
    for (size_t i = 0; i < 2 * k; i++) z[i] = 0.4 * sin(1 + 3 * (double)i) * recipe->deviation[i / 2];
    for (size_t i = 0; i < 2 * predicted; i++) weight[i] = cos(2 + 5 * (double)i);
    assert_int_equal(psld_source_gradient(source, &PSLD_STATES(1, 2, z, &t), weight, eps, gradient), PSLD_OK);
    assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, 2, z, &t), again), PSLD_OK);
    assert_memory_equal(eps, again, 2 * predicted * sizeof *eps);
    for (size_t i = 0; i < 2 * k; i++) {
        numeric[i] = difference(source, 2 * predicted, z, i, 2e-4 * recipe->deviation[i / 2], t, weight);
        largest = fmax(largest, fabs(numeric[i]));
    }
    for (size_t i = 0; i < 2 * k; i++)
        if (!(fabs(gradient[i] - numeric[i]) < 1e-6 * largest))
            fail_msg("%s, t = %g, z[%zu]: %.12g, by differences %.12g", recipe->spec.name, t, i, gradient[i],
                     numeric[i]);
}

static void gradient_of_a_mixture(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "told", "psld gamma=4 nu=0 factor=upper"};
    psld_mixture *mixture = three();
    for (int p = 0; p < 7; p++) {
        psld_recipe *recipe = p < 5 ? open_recipe(lines[p]) : random_recipe(3, p == 5 ? FULL_NOISE : CHAIN, 5);
        psld_source *source;
        assert_int_equal(psld_source_mixture(mixture, recipe, &source), PSLD_OK);
        for (double t = 0.03; t <= 1; t *= 3) check_gradient(recipe, source, t);
        psld_source_free(source);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
}

/* The source of a network is the network, called in double: the same numbers to the last bit. */
static void gradient_of_a_network(void **state)
{
    (void)state;
    FILE *file = fopen("source-network.yaml", "w");
    assert_non_null(file);
    fputs("process: psld\ndata: {size: 4, channels: 1}\n"
          "model: {name: ncsnpp, nf: 4, ch_mult: [1], num_res_blocks: 1, attn_resolutions: [4], init_scale: 1}\n",
          file);
    fclose(file);
    enum { N = 3, DIM = 16 };
    psld_model *model;
    psld_array *z, *t, *weight, *out, *gradient;
    const size_t shape[4] = {N, 2, 4, 4};
    double eps[N * 2 * DIM], grad_z[N * 2 * DIM];
    assert_int_equal(psld_model_create("source-network.yaml", NULL, 3, &model), PSLD_OK);
    assert_int_equal(psld_array_create(PSLD_F64, 4, shape, &z), PSLD_OK);
    assert_int_equal(psld_array_create(PSLD_F64, 4, shape, &weight), PSLD_OK);
    assert_int_equal(psld_array_create(PSLD_F64, 1, shape, &t), PSLD_OK);
    for (size_t i = 0; i < z->count; i++) ((double *)z->data)[i] = sin((double)i);
    for (size_t i = 0; i < z->count; i++) ((double *)weight->data)[i] = cos(2 + 3 * (double)i);
    for (size_t i = 0; i < N; i++) ((double *)t->data)[i] = 0.2 + 0.3 * (double)i;
    assert_int_equal(psld_model_evaluate(model, z, t, weight, NULL, &out, &gradient), PSLD_OK);
    assert_int_equal(psld_source_gradient(psld_model_source(model), &PSLD_STATES(N, DIM, z->data, t->data),
                                          weight->data, eps, grad_z),
                     PSLD_OK);
    double largest = 0;
    for (size_t i = 0; i < z->count; i++) {
        assert_true(eps[i] == (double)((float *)out->data)[i]);
        assert_true(grad_z[i] == (double)((float *)gradient->data)[i]);
        largest = fmax(largest, fabs(grad_z[i]));
    }
    assert_true(largest > 1e-3);
    psld_array_free(z);
    psld_array_free(t);
    psld_array_free(weight);
    psld_array_free(out);
    psld_array_free(gradient);
    psld_model_free(model);
}

static psld_status nothing(void *user, const psld_states *states, double *eps)
{
    size_t n = states->n, dim = states->dim;
    (void)user;
    memset(eps, 0, n * dim * sizeof *eps);
    return PSLD_OK;
}

static psld_status twice(void *user, const psld_states *states, const double *weight, double *eps, double *grad_z)
{
    size_t n = states->n, dim = states->dim;
    (void)user, (void)eps;
    for (size_t i = 0; i < n * dim; i++) grad_z[i] = 2 * weight[i];
    return PSLD_OK;
}

static void callbacks(void **state)
{
    (void)state;
    psld_source *source;
    double z = 1, t = 0.5, weight = 3, gradient = 0;
    assert_int_equal(psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = nothing}, &source),
                     PSLD_OK);
    assert_false(psld_source_has_gradient(source));
    assert_int_equal(psld_source_gradient(source, &PSLD_STATES(1, 1, &z, &t), &weight, NULL, &gradient),
                     PSLD_BAD_ARGUMENT);
    assert_string_equal(psld_error_text(),
                        "score source: it has no gradient: use a network, a mixture, or a callback with one");
    psld_source_free(source);
    assert_int_equal(
        psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = nothing, .gradient = twice},
                             &source),
        PSLD_OK);
    assert_true(psld_source_has_gradient(source));
    assert_int_equal(psld_source_gradient(source, &PSLD_STATES(1, 1, &z, &t), &weight, NULL, &gradient), PSLD_OK);
    assert_true(gradient == 6);
    psld_source_free(source);
}

/* ---- Guided by a weaker one -------------------------------------------------------------------------------------- */

/* What lies beyond the better of two mixtures as seen from the worse one, for every kind of recipe. */
static void contrast_of_mixtures(void **state)
{
    (void)state;
    static const char *const lines[] = {"vp", "cld", "psld gamma=0.02", "told"};
    static const double scales[] = {1, 1.5, 3, 0};
    const double one = 1, middle[2] = {0, 0}, wide = 0.8;
    psld_mixture *mixture = three(), *blurred;
    assert_int_equal(psld_mixture_create(1, 2, &one, middle, &wide, &blurred), PSLD_OK);
    for (int p = 0; p < 4; p++) {
        psld_recipe *recipe = open_recipe(lines[p]);
        psld_source *base, *weak, *source;
        size_t count = 2 * (size_t)recipe->predicted;
        assert_int_equal(psld_source_mixture(mixture, recipe, &base), PSLD_OK);
        assert_int_equal(psld_source_mixture(blurred, recipe, &weak), PSLD_OK);
        for (int s = 0; s < 4; s++) {
            const double z[2 * PSLD_MAX_K] = {0.3, -0.2, 0.1, 0.4, -0.3, 0.2}, t = 0.2;
            double eps[2 * PSLD_MAX_K], strong[2 * PSLD_MAX_K], poor[2 * PSLD_MAX_K];
            assert_int_equal(psld_source_autoguide(base, weak, recipe, scales[s], &source), PSLD_OK);
            assert_int_equal(psld_source_predict(base, &PSLD_STATES(1, 2, z, &t), strong), PSLD_OK);
            assert_int_equal(psld_source_predict(weak, &PSLD_STATES(1, 2, z, &t), poor), PSLD_OK);
            assert_int_equal(psld_source_predict(source, &PSLD_STATES(1, 2, z, &t), eps), PSLD_OK);
            for (size_t i = 0; i < count; i++) {
                double expected = scales[s] * strong[i] + (1 - scales[s]) * poor[i];
                assert_true(fabs(eps[i] - expected) < 1e-13 * (1 + fabs(strong[i]) + fabs(poor[i])));
            }
            check_gradient(recipe, source, t);
            psld_source_free(source);
        }
        assert_int_equal(psld_source_autoguide(base, weak, recipe, (double)NAN, &source), PSLD_BAD_ARGUMENT);
        assert_null(source);
        psld_source_free(base);
        psld_source_free(weak);
        psld_recipe_free(recipe);
    }
    psld_mixture_free(mixture);
    psld_mixture_free(blurred);
}

static psld_model *make_network(const char *text, uint64_t seed, const char *path)
{
    psld_model *model;
    FILE *file = fopen("contrast.yaml", "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    if (psld_model_create("contrast.yaml", NULL, seed, &model) != PSLD_OK) fail_msg("%s", psld_error_text());
    if (psld_model_save(model, path) != PSLD_OK) fail_msg("%s", psld_error_text());
    return model;
}

static psld_array *draw_from(const char *path, const char *weak, double scale)
{
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    psld_sample_options reverse = PSLD_SAMPLE_DEFAULTS;
    psld_model *model;
    psld_array *x;
    options.weak = weak;
    options.weak_scale = scale;
    reverse.nfe = 4;
    if (psld_model_open(path, &options, &model) != PSLD_OK) fail_msg("%s", psld_error_text());
    assert_int_equal(psld_model_sample(model, &reverse, 0, 3, NULL, 0, &x, NULL), PSLD_OK);
    psld_model_free(model);
    return x;
}

static void expect_same(psld_array *a, psld_array *b, int same)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(memcmp(a->data, b->data, a->count * sizeof(float)) == 0, same);
    psld_array_free(a);
    psld_array_free(b);
}

/* Two files or one that has both: the same samples, and those of the better one alone when that is asked for. */
static void weak_model_in_a_file(void **state)
{
    (void)state;
    static const char strong[] = "process: psld\ndata: {size: 4, channels: 1}\n"
                                 "model: {name: ncsnpp, nf: 8, ch_mult: [1], num_res_blocks: 1, init_scale: 1}\n";
    static const char weak[] = "process: psld\ndata: {size: 4, channels: 1}\n"
                               "model: {name: ncsnpp, predicts: data, nf: 4, ch_mult: [1], num_res_blocks: 1}\n";
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    psld_model *model;
    psld_model_free(make_network(strong, 1, "strong.safetensors"));
    psld_model_free(make_network(weak, 2, "weak.safetensors"));
    options.weak = "weak.safetensors";
    options.weak_scale = 2;
    assert_int_equal(psld_model_open("strong.safetensors", &options, &model), PSLD_OK);
    assert_int_equal(psld_model_save(model, "both.safetensors"), PSLD_OK);
    assert_int_equal(psld_model_save(model, "strong.pt"), PSLD_OK);
    psld_model_free(model);
    expect_same(draw_from("strong.safetensors", "weak.safetensors", 2), draw_from("both.safetensors", NULL, 0), 1);
    expect_same(draw_from("strong.safetensors", "weak.safetensors", 0), draw_from("both.safetensors", NULL, 1.5), 1);
    expect_same(draw_from("strong.safetensors", NULL, 0), draw_from("both.safetensors", "", 0), 1);
    expect_same(draw_from("strong.safetensors", NULL, 0), draw_from("both.safetensors", NULL, 0), 0);
    options = (psld_model_options)PSLD_MODEL_DEFAULTS;
    options.config = "contrast.yaml";
    psld_model_free(make_network(strong, 1, "strong.safetensors"));
    assert_int_equal(psld_model_open("strong.pt", &options, &model), PSLD_OK);
    psld_model_free(model);
}

static void weak_models_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *why;
    } rows[] = {
        {"process: psld\ndata: {size: 8, channels: 1}\nmodel: {name: ncsnpp, nf: 4, ch_mult: [1], num_res_blocks: 1}\n",
         "other.safetensors: the weak model and the model have data of different shapes"},
        {"process: cld\ndata: {size: 4, channels: 1}\nmodel: {name: ncsnpp, nf: 4, ch_mult: [1], num_res_blocks: 1}\n",
         "other.safetensors: the weak model has recipe cld, the model that it guides has psld"},
        {"process: {preset: psld, factor: upper}\ndata: {size: 4, channels: 1}\n"
         "model: {name: ncsnpp, nf: 4, ch_mult: [1], num_res_blocks: 1}\n",
         "other.safetensors: the weak model has recipe psld, the model that it guides has psld: factor is upper, "
         "not lower"},
        {"process: psld\ndata: {size: 4, channels: 1}\n"
         "model: {name: ncsnpp_clf, n_cls: 2, nf: 4, ch_mult: [1], num_res_blocks: 1}\n",
         "other.safetensors: autoguidance needs two score models, found a classifier"},
    };
    psld_model *model;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        psld_model_options options = PSLD_MODEL_DEFAULTS;
        options.weak = "other.safetensors";
        psld_model_free(make_network(rows[i].config, 1, "other.safetensors"));
        assert_int_equal(psld_model_open("strong.safetensors", &options, &model), PSLD_BAD_INPUT);
        assert_null(model);
        if (!strstr(psld_error_text(), rows[i].why)) fail_msg("%s", psld_error_text());
    }
    psld_model_options absent = PSLD_MODEL_DEFAULTS;
    absent.weak = "absent.safetensors";
    assert_int_not_equal(psld_model_open("strong.safetensors", &absent, &model), PSLD_OK);
    assert_non_null(strstr(psld_error_text(), "absent.safetensors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradient_of_a_mixture), cmocka_unit_test(gradient_of_a_network),
                                       cmocka_unit_test(contrast_of_mixtures),  cmocka_unit_test(weak_model_in_a_file),
                                       cmocka_unit_test(weak_models_refused),   cmocka_unit_test(callbacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
