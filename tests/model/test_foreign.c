/* Networks of other projects: every folder of golden/foreign, ours and the larger set. An EDM folder has network.pkl with
 * x, sigma, denoised; one of diffusers is a pipeline with x, timestep, out, and a walk along ddim20_timesteps. Both may
 * have label. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "golden.h"
#include "model/networks/conditioning.h"

typedef void (*check_fn)(const char *folder, psld_model *model, const char *how);

static double error_of(const psld_array *found, const psld_array *expected)
{
    double worst = 0, largest = 0;
    assert_int_equal(found->count, expected->count);
    for (size_t i = 0; i < found->count; i++) {
        double a = (double)((const float *)found->data)[i], b = (double)((const float *)expected->data)[i];
        worst = fmax(worst, isfinite(a) ? fabs(a - b) : (double)INFINITY);
        largest = fmax(largest, fabs(b));
    }
    return worst / largest;
}

static void compare(const char *folder, const char *file, psld_status status, psld_array *found, double tolerance,
                    const char *how)
{
    char what[128];
    if (status != PSLD_OK) fail_msg("%s: %s", folder, psld_error_text());
    psld_array *expected = golden_array(folder, file, PSLD_F32);
    snprintf(what, sizeof what, "%s, %s", file, how);
    golden_report(folder, what, error_of(found, expected), tolerance);
    psld_array_free(expected);
    psld_array_free(found);
}

/* Labels as int32, whatever whole numbers the file has; NULL when it is not there. */
static psld_array *golden_labels(const char *folder)
{
    psld_array *wide = golden_array(folder, "label.npy", PSLD_F64), *labels = NULL;
    if (!wide) return NULL;
    assert_int_equal(psld_array_create(PSLD_I32, 1, &wide->count, &labels), PSLD_OK);
    for (size_t i = 0; i < wide->count; i++) ((int32_t *)labels->data)[i] = (int32_t)((const double *)wide->data)[i];
    psld_array_free(wide);
    return labels;
}

/* ---- What is in the folders -------------------------------------------------------------------------------------- */

static void check_denoised(const char *folder, psld_model *model, const char *how)
{
    psld_array *x = golden_array(folder, "x.npy", PSLD_F32), *sigma = golden_array(folder, "sigma.npy", PSLD_F32);
    psld_array *label = golden_labels(folder), *found = NULL;
    psld_status status = psld_model_denoise(model, x, sigma, label, &found);
    compare(folder, "denoised.npy", status, found, 2e-5, how);
    if (label) {
        status = psld_model_denoise(model, x, sigma, NULL, &found);
        compare(folder, "denoised_unconditional.npy", status, found, 2e-5, how);
    }
    psld_array_free(x);
    psld_array_free(sigma);
    psld_array_free(label);
}

/* The times of the timesteps, as the text of a grid. */
static void write_grid(const psld_model *model, const psld_array *timesteps, char *grid, size_t size)
{
    for (size_t i = 0, used = 0; i < timesteps->count; i++) {
        double t;
        assert_int_equal(psld_model_timestep_time(model, ((const double *)timesteps->data)[i], &t), PSLD_OK);
        used += (size_t)snprintf(grid + used, size - used, "%s%.17g", i ? "," : "", t);
    }
}

static void check_walk(const char *folder, psld_model *model, const psld_array *x, const psld_array *label,
                       const char *how)
{
    static char grid[1 << 16];
    psld_array *timesteps = golden_array(folder, "ddim20_timesteps.npy", PSLD_F64), *found = NULL;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    psld_labels labels = PSLD_LABELS_DEFAULTS;
    if (!timesteps) return;
    write_grid(model, timesteps, grid, sizeof grid);
    options.sampler = "dpm";
    options.order = 1;
    options.denoise = 0;
    options.grid = grid;
    labels.label = label ? label->data : NULL;
    labels.count = label ? label->count : 0;
    if (label) options.labels = &labels;
    psld_status status = psld_model_sample(model, &options, 0, x->shape[0], x, 0, &found, NULL);
    compare(folder, "ddim20.npy", status, found, 1e-4, how);
    psld_array_free(timesteps);
}

static void check_output(const char *folder, psld_model *model, const char *how)
{
    psld_array *x = golden_array(folder, "x.npy", PSLD_F32), *t = golden_array(folder, "timestep.npy", PSLD_F64);
    psld_array *label = golden_labels(folder), *found = NULL;
    psld_status status = psld_model_output(model, x, t, label, &found);
    compare(folder, "out.npy", status, found, 2e-5, how);
    check_walk(folder, model, x, label, how);
    if (label) assert_int_equal(psld_model_output(model, x, t, NULL, &found), PSLD_BAD_ARGUMENT);
    psld_array_free(x);
    psld_array_free(t);
    psld_array_free(label);
}

/* ---- The folders ------------------------------------------------------------------------------------------------- */

static void check_opened(const char *path, const char *folder, int reference, const char *how, check_fn check)
{
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    psld_model *model;
    options.reference = reference;
    if (psld_model_open(path, &options, &model) != PSLD_OK) fail_msg("%s", psld_error_text());
    check(folder, model, how);
    psld_model_free(model);
}

/* As it is, with plain kernels, and as a file of ours. */
static void check_model(const char *path, const char *folder, check_fn check)
{
    psld_model *model;
    check_opened(path, folder, 0, "fast", check);
    check_opened(path, folder, 1, "reference", check);
    assert_int_equal(psld_model_open(path, NULL, &model), PSLD_OK);
    assert_int_equal(psld_model_save(model, "converted.safetensors"), PSLD_OK);
    psld_model_free(model);
    check_opened("converted.safetensors", folder, 0, "converted", check);
    remove("converted.safetensors");
    assert_int_not_equal(access("executed", F_OK), 0);
}

static int each_folder(const char *file, int is_folder, check_fn check)
{
    char roots[GOLDEN_ROOTS][GOLDEN_PATH];
    int checked = 0;
    golden_roots(roots);
    for (int r = 0; r < GOLDEN_ROOTS; r++) {
        char root[GOLDEN_PATH], folder[GOLDEN_PATH], path[GOLDEN_PATH];
        struct dirent **entries;
        golden_path(roots[r], "foreign", root);
        int count = scandir(root, &entries, NULL, alphasort);
        for (int i = 0; i < count; i++) {
            golden_path(root, entries[i]->d_name, folder);
            if (entries[i]->d_name[0] != '.' && golden_path(folder, file, path) && ++checked)
                check_model(is_folder ? folder : path, folder, check);
            free(entries[i]);
        }
        if (count >= 0) free(entries);
    }
    return checked;
}

static void edm(void **state)
{
    (void)state;
    if (!each_folder("network.pkl", 0, check_denoised)) skip_for("no folder of golden/foreign has network.pkl");
}

static void diffusers(void **state)
{
    (void)state;
    if (!each_folder("unet/config.json", 1, check_output)) skip_for("no folder of golden/foreign has unet/config.json");
}

/* ---- Between a state and a network ------------------------------------------------------------------------------- */

static void read_denoiser(const char *text, psld_conditioning *c)
{
    psld_yaml *yaml;
    assert_int_equal(psld_yaml_parse(text, strlen(text), "test", &yaml), PSLD_OK);
    if (psld_conditioning_read(psld_yaml_root(yaml), c) != PSLD_OK) fail_msg("%s", psld_error_text());
    psld_yaml_free(yaml);
}

/* Timesteps and noise are inverse to each other, also between rows; whole timesteps come back as such. */
static void timesteps(void **state)
{
    static const char *const schedules[] = {"linear", "scaled_linear", "squaredcos_cap_v2", "sigmoid"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        char text[128];
        psld_conditioning c;
        psld_scaling s;
        snprintf(text, sizeof text, "{kind: timesteps, schedule: %s}", schedules[i]);
        read_denoiser(text, &c);
        for (double t = 0; t <= 999; t += 0.25) {
            psld_conditioning_at(&c, psld_conditioning_sigma(&c, t), &s);
            assert_true(fabs(s.time - t) < 1e-7);
            if (t == floor(t)) assert_true((double)(float)s.time == t || t == 0);
        }
        psld_conditioning_clear(&c);
    }
}

/* abar of the linear schedule, as a product of long doubles. */
static void linear_table(void **state)
{
    psld_conditioning c;
    long double left = 1;
    (void)state;
    read_denoiser("{kind: timesteps}", &c);
    for (int i = 0; i < 1000; i++) {
        left *= 1 - (1e-4L + (0.02L - 1e-4L) * i / 999);
        double sigma = (double)sqrtl((1 - left) / left);
        assert_true(fabs(c.sigma[i] / sigma - 1) < 1e-12);
    }
    psld_conditioning_clear(&c);
}

/* Whatever F stands for, the same clean data and noise give the same X. */
static void predictions(void **state)
{
    static const char *const names[] = {"epsilon", "sample", "v_prediction"};
    (void)state;
    for (int i = 0; i < 3; i++)
        for (double sigma = 0.01; sigma < 150; sigma *= 3) {
            char text[128];
            psld_conditioning c;
            psld_scaling s;
            double x = 0.3, n = -1.2, y = x + sigma * n, root = sqrt(1 + sigma * sigma);
            const double f[3] = {n, x, (n - sigma * x) / root};
            snprintf(text, sizeof text, "{kind: timesteps, predicts: %s}", names[i]);
            read_denoiser(text, &c);
            psld_conditioning_at(&c, sigma, &s);
            assert_true(fabs(s.keep * (y / s.divide) + s.scale * f[i] - x) < 1e-12 * root);
            psld_conditioning_clear(&c);
        }
}

/* Outside of the range nothing jumps; with no noise left the data are what is seen. */
static void range(void **state)
{
    static const char *const texts[] = {"{kind: timesteps}", "{kind: ve}", "{kind: vp}", "{kind: iddpm}",
                                        "{kind: timesteps, predicts: sample}"};
    (void)state;
    for (int i = 0; i < 5; i++) {
        psld_conditioning c;
        psld_scaling inside, outside;
        read_denoiser(texts[i], &c);
        for (int end = 0; end < 2; end++) {
            double sigma = end ? c.sigma_max : c.sigma_min;
            psld_conditioning_within(&c, sigma, &inside);
            psld_conditioning_within(&c, sigma * (end ? 1 + 1e-9 : 1 - 1e-9), &outside);
            assert_true(fabs(outside.keep / outside.divide - inside.keep / inside.divide) < 1e-7);
            assert_true(fabs(outside.scale - inside.scale) < 1e-7 * (1 + fabs(inside.scale)));
            assert_true(fabs(outside.time - inside.time) < 1e-3);
        }
        psld_conditioning_within(&c, 1e-9, &outside);
        assert_true(fabs(outside.keep / outside.divide - 1) < 1e-9 && fabs(outside.scale) < 1e-9);
        psld_conditioning_clear(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edm),          cmocka_unit_test(diffusers),   cmocka_unit_test(timesteps),
        cmocka_unit_test(linear_table), cmocka_unit_test(predictions), cmocka_unit_test(range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
