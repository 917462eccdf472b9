/* The FID network with formula weights against golden features, and files that are not it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "golden.h"
#include "inception_weights.h"
#include "kernels/backend.h"
#include "sanitized.h"
#include "starve.h"

static const char weights[] = "inception.safetensors";

static void must(psld_status status)
{
    if (status != PSLD_OK) fail_msg("%s", psld_error_text());
}

/* The names, the shapes and their order are those of the file that users download. */
static void check_shapes(const char *folder)
{
    json_t *json = golden_json(folder, "shapes.json");
    const json_t *list = json_object_get(json, "inception");
    psld_tensors *tensors;
    must(psld_tensors_open(weights, &tensors));
    assert_int_equal(tensors->count, json_array_size(list));
    for (size_t i = 0; i < tensors->count; i++) {
        const json_t *row = json_array_get(list, i), *shape = json_array_get(row, 1);
        const psld_tensor *tensor = psld_tensors_find(tensors, json_string_value(json_array_get(row, 0)));
        if (!tensor) fail_msg("no %s", json_string_value(json_array_get(row, 0)));
        assert_int_equal(tensor->rank, json_array_size(shape));
        for (int d = 0; d < tensor->rank; d++)
            assert_int_equal(tensor->shape[d], json_integer_value(json_array_get(shape, (size_t)d)));
    }
    printf("%s: %zu names and shapes\n", folder, tensors->count);
    psld_tensors_free(tensors);
    json_decref(json);
}

static void names_and_shapes(void **state)
{
    (void)state;
    const golden_list *list = golden_find("shapes.json");
    for (size_t i = 0; i < list->count; i++) check_shapes(list->folders[i]);
}

static void compare(const char *folder, const char *name, const float *found)
{
    psld_array *expected = golden_array(folder, name, PSLD_F32);
    double largest = 0, error = 0;
    assert_non_null(expected);
    for (size_t i = 0; i < expected->count; i++) {
        double e = (double)((const float *)expected->data)[i];
        largest = fmax(largest, fabs(e));
        error = fmax(error, fabs((double)found[i] - e));
    }
    golden_report(folder, name, error / largest, 1e-4);
    psld_array_free(expected);
}

/* Results of n images, [n] of each kind. */
typedef struct said {
    float features[4 * PSLD_INCEPTION_FEATURES], logits[4 * PSLD_INCEPTION_LOGITS], early[4 * PSLD_INCEPTION_EARLY];
} said;

static void look(psld_inception *net, size_t n, size_t height, size_t width, const float *x, said *out)
{
    psld_inception_result result = {out->features, out->logits, out->early};
    must(psld_inception_run(net, n, height, width, x, &result));
}

static void normalise(const psld_array *images, float *x)
{
    for (size_t i = 0; i < images->count; i++) x[i] = (((const float *)images->data)[i] - 128) / 128;
}

static void check_features(const char *folder)
{
    static said fast, alone;
    static float x[4 * 3 * 32 * 32];
    psld_array *images = golden_array(folder, "images_u8_nchw.npy", PSLD_F32);
    psld_inception *net;
    size_t n = images->shape[0], last = (n - 1) * 3 * 32 * 32;
    assert_true(n <= 4 && images->count == n * 3 * 32 * 32);
    normalise(images, x);
    must(psld_inception_open(weights, psld_backend_fastest(), &net));
    look(net, n, 32, 32, x, &fast);
    compare(folder, "feat64.npy", fast.early);
    compare(folder, "feat2048.npy", fast.features);
    compare(folder, "logits_unbiased.npy", fast.logits);
    look(net, 1, 32, 32, x + last, &alone); /* bits do not depend on company */
    assert_memory_equal(alone.features, fast.features + (n - 1) * PSLD_INCEPTION_FEATURES,
                        PSLD_INCEPTION_FEATURES * sizeof(float));
    psld_inception_free(net);
    psld_array_free(images);
}

static void golden_features(void **state)
{
    (void)state;
    const golden_list *list = golden_find("images_u8_nchw.npy");
    for (size_t i = 0; i < list->count; i++) check_features(list->folders[i]);
}

/* Images of 299 x 299 are not resized; resizing one of constant colour changes nothing. */
static void sizes(void **state)
{
    static said small, large;
    (void)state;
    psld_inception *net;
    float *x = calloc(3 * 299 * 299, sizeof *x);
    must(psld_inception_open(weights, psld_backend_fastest(), &net));
    for (size_t i = 0; i < 3 * 299 * 299; i++) x[i] = (float)(i / (299 * 299)) * 0.4F - 0.3F;
    look(net, 1, 299, 299, x, &large);
    for (size_t i = 0; i < 3 * 5 * 7; i++) x[i] = (float)(i / (5 * 7)) * 0.4F - 0.3F;
    look(net, 1, 5, 7, x, &small);
    for (size_t i = 0; i < PSLD_INCEPTION_FEATURES; i++)
        assert_true(fabsf(small.features[i] - large.features[i]) <= 1e-4F * (1 + fabsf(large.features[i])));
    free(x);
    psld_inception_free(net);
}

static void refuses(const char *path, const char *text)
{
    psld_inception *net;
    assert_int_not_equal(psld_inception_open(path, psld_backend_fastest(), &net), PSLD_OK);
    assert_null(net);
    if (!strstr(psld_error_text(), text)) fail_msg("no \"%s\" in: %s", text, psld_error_text());
    assert_non_null(strstr(psld_error_text(), path));
    assert_null(strchr(psld_error_text(), '\n'));
}

/* Writes the first `count` tensors of the weights, with another shape for `reshaped`. */
static void write_other(const char *path, size_t count, const char *reshaped)
{
    psld_tensors *from, *to;
    must(psld_tensors_open(weights, &from));
    must(psld_tensors_create(&to));
    for (size_t i = 0; i < from->count && i < count; i++) {
        psld_tensor *t = &from->items[i];
        size_t shape[PSLD_MAX_RANK];
        memcpy(shape, t->shape, sizeof shape);
        if (strcmp(t->name, reshaped) == 0) shape[0]--;
        must(psld_tensors_add(to, t->name, t->type, t->rank, shape, t->data));
    }
    must(psld_tensors_save(to, PSLD_SAFETENSORS, path));
    psld_tensors_free(to);
    psld_tensors_free(from);
}

static void wrong_files(void **state)
{
    (void)state;
    refuses("nowhere.pth",
            "pt_inception-2015-12-05-6726825d.pth from the releases of pytorch-fid and of torch-fidelity, "
            "SHA-256 6726825d");
    write_other("other.safetensors", 1000, "fc.weight");
    refuses("other.safetensors", "weights of another network, in which fc.weight has another shape");
    write_other("other.safetensors", 100, "");
    refuses("other.safetensors", "weights of another network, without");
    unlink("other.safetensors");
}

static psld_status opened(void)
{
    psld_inception *net;
    static float x[3 * 4 * 4];
    static said out;
    psld_inception_result result = {out.features, NULL, NULL};
    psld_status status = psld_inception_open(weights, psld_backend_fastest(), &net);
    if (status == PSLD_OK) status = psld_inception_run(net, 1, 4, 4, x, &result);
    psld_inception_free(net);
    return status;
}

static void starving(void **state)
{
    (void)state;
    /* every allocation in turn would open the file some hundred times: the first, and some further on */
    for (long n = 1; n < 3000; n = n < 12 ? n + 1 : n * 3) {
        long live = psld_alloc_live();
        psld_alloc_fail_at(n);
        psld_status status = opened();
        int failed = psld_alloc_failed();
        psld_alloc_fail_at(0);
        assert_int_equal(psld_alloc_live(), live);
        assert_int_equal(status, failed ? PSLD_NO_MEMORY : PSLD_OK);
        if (!failed) break;
    }
}

static int set_up(void **state)
{
    (void)state;
    return write_formula_weights(weights, PSLD_SAFETENSORS) != PSLD_OK;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_shapes), cmocka_unit_test(golden_features), cmocka_unit_test(sizes),
        cmocka_unit_test(wrong_files),      cmocka_unit_test(starving),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
