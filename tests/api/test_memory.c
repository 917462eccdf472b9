/* Running out of memory at every single allocation of every public call: an error, no leak, no crash, no file left. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "psld_eval.h"
#include "psld_plot.h"

static psld_recipe *recipe;
static psld_mixture *mixture;
static psld_source *source;
static psld_array *array;
static psld_model *network;
static const char *sampler;

static const char model_yaml[] = "mixture: {weights: [0.5, 0.5], means: [[-1, 0], [1, 0]], scales: [0.1, 0.2]}\n"
                                 "process: {preset: psld, gamma: 0.02}\n";
static const char recipe_yaml[] = "{name: mine, D: [[0, 0], [0, 0.5]], Q: [[0, -0.5], [0.5, 0]], mass: [0.25]}";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* ---- The calls. Each releases what it made. ---------------------------------------------------------------------- */

/* A call that makes one object of a type, `made`. */
#define MAKES(name, type, call)    \
    static psld_status name(void)  \
    {                              \
        psld_##type *made;         \
        psld_status status = call; \
        psld_##type##_free(made);  \
        return status;             \
    }

MAKES(open_preset, recipe, psld_recipe_open("psld gamma=0.02 beta=[1, 8]", &made))
MAKES(open_recipe_file, recipe, psld_recipe_open("memory-recipe.yaml beta=4 name=other", &made))
MAKES(parse_recipe, recipe, psld_recipe_parse(recipe_yaml, "text", &made))

static psld_status copy_recipe(psld_recipe **made)
{
    psld_recipe_spec spec = *psld_recipe_get(recipe);
    spec.size = sizeof spec;
    return psld_recipe_create(&spec, made);
}
MAKES(create_recipe, recipe, copy_recipe(&made))

static const char process_yaml[] = "{name: bent, H: x^4/8 + m^2/2, D: [[0, 0], [0, 1 + 0.1/(1 + x^2)]], Q: [[0, -1], "
                                   "[1, 0]], beta: 2, steps: 10}";
static const char line_yaml[] = "{name: line, H: x^2/2, D: [[1]], Q: [[0]], beta: 1, steps: 100}";
MAKES(parse_process, process, psld_process_parse(process_yaml, "text", 1, &made))
MAKES(open_process, process, psld_process_open("psld gamma=0.3", 1, &made))

static psld_status zero_score(void *user, const psld_states *states, double *score)
{
    (void)user;
    for (size_t i = 0; i < states->n; i++) score[i] = 0;
    return PSLD_OK;
}

static psld_status use_process(void)
{
    psld_process *made;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    double z[8] = {0}, drift[8], H[4];
    options.nfe = 5;
    psld_status status = psld_process_parse(process_yaml, "text", 1, &made);
    if (status == PSLD_OK) status = psld_process_drift(made, 4, z, 0.5, drift, NULL);
    if (status == PSLD_OK) status = psld_process_energy(made, 4, z, H, drift);
    if (status == PSLD_OK) status = psld_process_simulate(made, 0, 0, 4, 0, 0.1, 4, z);
    if (status == PSLD_OK) status = psld_process_draw(made, 0, 0, 4, z);
    if (status == PSLD_OK) status = psld_process_sample(made, zero_score, NULL, &options, 0, 4, z, drift, NULL);
    options.sampler = "ode";
    options.tolerance = 0.1;
    if (status == PSLD_OK) status = psld_process_sample(made, zero_score, NULL, &options, 0, 4, z, drift, NULL);
    psld_process_free(made);
    return status;
}

static psld_status check_process(void)
{
    psld_process *made;
    psld_process_report report = PSLD_PROCESS_REPORT_EMPTY;
    psld_status status = psld_process_parse(line_yaml, "text", 1, &made);
    if (status == PSLD_OK) status = psld_process_check(made, 0, &report);
    psld_process_free(made);
    return status;
}

static psld_status find_exchange(void)
{
    psld_process *made;
    psld_exchange exchange = PSLD_EXCHANGE_EMPTY;
    psld_status status = psld_process_parse(process_yaml, "text", 1, &made);
    if (status == PSLD_OK) status = psld_process_exchange(made, 8, &exchange);
    psld_process_free(made);
    return status;
}

static psld_status plot_process(void)
{
    psld_process *made;
    psld_process_report report = PSLD_PROCESS_REPORT_EMPTY;
    psld_status status = psld_process_parse(process_yaml, "text", 1, &made);
    for (int i = 0; i < 2; i++) report.low[i] = -3, report.high[i] = 3;
    if (status == PSLD_OK) status = psld_plot_process(made, &report, "memory-output.svg");
    psld_process_free(made);
    return status;
}

static psld_status create_array(void)
{
    psld_array *made;
    const size_t shape[2] = {3, 4};
    psld_status status = psld_array_create(PSLD_F32, 2, shape, &made);
    psld_array_free(made);
    return status;
}

static psld_status save_array(void)
{
    return psld_array_save(array, "memory-output.npy");
}

static psld_status save_text(void)
{
    return psld_text_save("text", "memory-output.npy");
}

static psld_status claim_folder(void)
{
    psld_folder_lock *claim;
    psld_status status = psld_folder_lock_take(".", &claim);
    psld_folder_lock_free(claim);
    return status;
}

static psld_status save_arrays(void)
{
    const char *const names[2] = {"a", "b"};
    const psld_array *const arrays[2] = {array, array};
    return psld_npz_save("memory-output.npz", 2, names, arrays);
}

MAKES(load_array, array, psld_array_load("memory-input.npy", &made))
MAKES(convert_array, array, psld_array_convert(array, PSLD_F32, &made))

static psld_status create_mixture(void)
{
    psld_mixture *made;
    const double weights[2] = {0.5, 0.5}, means[2] = {-1, 1}, scales[2] = {0.1, 0.2};
    psld_status status = psld_mixture_create(2, 1, weights, means, scales, &made);
    psld_mixture_free(made);
    return status;
}

static psld_status predict_nothing(void *user, const psld_states *states, double *eps)
{
    (void)user, (void)eps, (void)states;
    return PSLD_OK;
}

MAKES(create_callback, source,
      psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = predict_nothing}, &made))
MAKES(create_differentiable_callback, source,
      psld_source_callback(&(psld_callback){.size = sizeof(psld_callback), .predict = predict_nothing}, &made))

static psld_status create_exact_source(void)
{
    psld_source *made;
    double z[4] = {0.1, 0.2, 0.3, 0.4}, t = 0.5, eps[4], gradient[4];
    psld_status status = psld_source_mixture(mixture, recipe, &made);
    if (status == PSLD_OK) status = psld_source_predict(made, &PSLD_STATES(1, 2, z, &t), eps);
    if (status == PSLD_OK) status = psld_source_gradient(made, &PSLD_STATES(1, 2, z, &t), eps, NULL, gradient);
    psld_source_free(made);
    return status;
}

static psld_status classify_nothing(void *user, const psld_states *states, const int32_t *label, double *log_p,
                                    double *grad_z)
{
    (void)user, (void)label, (void)log_p, (void)grad_z, (void)states;
    return PSLD_OK;
}

MAKES(create_own_classifier, classifier, psld_classifier_callback(classify_nothing, NULL, 2, &made))

static psld_status guide_source(void)
{
    psld_source *base = NULL, *made = NULL;
    psld_classifier *classifier = NULL;
    double z[4] = {0.1, 0.2, 0.3, 0.4}, t = 0.5, eps[4];
    psld_status status = psld_source_mixture(mixture, recipe, &base);
    if (status == PSLD_OK) status = psld_classifier_mixture(mixture, recipe, &classifier);
    if (status == PSLD_OK) status = psld_source_guide(base, recipe, classifier, 1, 2, &made);
    if (status == PSLD_OK) status = psld_source_predict(made, &PSLD_STATES(1, 2, z, &t), eps);
    psld_source_free(made);
    psld_classifier_free(classifier);
    psld_source_free(base);
    return status;
}

/* One task with every kind of table, by one method. */
static psld_status restore_source(const char *task_name, const char *method)
{
    psld_task task = PSLD_TASK_DEFAULTS;
    psld_restore_options options = PSLD_RESTORE_DEFAULTS;
    psld_operator *op = NULL;
    psld_source *base = NULL, *made = NULL;
    const unsigned char known[2] = {1, 0};
    double z[4] = {0.1, 0.2, 0.3, 0.4}, t = 0.5, eps[4], y[2] = {0};
    const double x[2] = {0.5, -0.5}, matrix[2] = {1, 2};
    task.name = task_name;
    task.rank = 1;
    task.shape[0] = 2;
    task.known = known;
    task.matrix = matrix;
    task.rows = 1;
    options.method = method;
    psld_status status = psld_operator_create(&task, &op);
    if (status == PSLD_OK) status = psld_operator_measure(op, x, 0.1, 0, 0, y);
    if (status == PSLD_OK) status = psld_source_mixture(mixture, recipe, &base);
    if (status == PSLD_OK) status = psld_source_restore(base, recipe, op, y, &options, &made);
    if (status == PSLD_OK) status = psld_source_predict(made, &PSLD_STATES(1, 2, z, &t), eps);
    psld_source_free(made);
    psld_source_free(base);
    psld_operator_free(op);
    return status;
}

static psld_status restore_inpaint(void)
{
    return restore_source("inpaint", "posterior");
}

static psld_status restore_deblur(void)
{
    return restore_source("deblur", "diffused");
}

static psld_status restore_linear(void)
{
    return restore_source("linear", "isotropic");
}

static psld_status predict_with_many_components(void)
{
    static double weights[300], means[600], scales[300];
    psld_mixture *many;
    psld_source *made = NULL;
    double z[4] = {0.1, 0.2, 0.3, 0.4}, t = 0.5, eps[4];
    for (int c = 0; c < 300; c++) weights[c] = 1.0 / 300, means[c] = 0.01 * c, scales[c] = 0.1;
    psld_status status = psld_mixture_create(300, 2, weights, means, scales, &many);
    if (status == PSLD_OK) status = psld_source_mixture(many, recipe, &made);
    if (status == PSLD_OK) status = psld_source_predict(made, &PSLD_STATES(1, 2, z, &t), eps);
    psld_source_free(made);
    psld_mixture_free(many);
    return status;
}

static psld_status denoise(void)
{
    double z[4] = {0.1, 0.2, 0.3, 0.4}, t = 0.5, x[2];
    psld_source *made;
    psld_status status = psld_source_mixture(mixture, recipe, &made);
    if (status == PSLD_OK) status = psld_source_denoise(made, recipe, &PSLD_STATES(1, 2, z, &t), x);
    psld_source_free(made);
    return status;
}

static psld_status encode(void)
{
    double x[6] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, z[12];
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    psld_source *made;
    options.sampler = "dpm";
    options.nfe = 3;
    psld_status status = psld_source_mixture(mixture, recipe, &made);
    if (status == PSLD_OK) status = psld_encode(recipe, made, &options, 0, 3, 2, x, z, NULL);
    psld_source_free(made);
    return status;
}

static psld_status translate_and_clip(void)
{
    double z[4] = {0.1, 0.2, 0.3, 0.4}, t = 0.5, eps[4];
    psld_source *made = NULL, *translated = NULL, *clipped = NULL;
    psld_status status = psld_source_mixture(mixture, recipe, &made);
    if (status == PSLD_OK) status = psld_source_translate(made, recipe, recipe, &translated);
    if (status == PSLD_OK) status = psld_source_clip(translated, recipe, 1, 0.9, &clipped);
    if (status == PSLD_OK) status = psld_source_predict(clipped, &PSLD_STATES(1, 2, z, &t), eps);
    psld_source_free(clipped);
    psld_source_free(translated);
    psld_source_free(made);
    return status;
}

static psld_status draw_mixture(void)
{
    double z[3 * 4];
    return psld_mixture_draw(mixture, recipe, 0.5, 0, 0, 3, z);
}

static psld_status sample(void)
{
    double z[20 * 4];
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.sampler = sampler;
    options.nfe = 6;
    options.tolerance = 0.1;
    options.batch = 7;
    options.corrector = strcmp(sampler, "em") == 0;
    return psld_sample(recipe, source, &options, 0, 20, 2, NULL, z, NULL);
}

MAKES(open_model, model, psld_model_open("memory-model.yaml", NULL, &made))

static psld_status open_model_with_process(void)
{
    psld_model *made;
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.process = "vp beta=4";
    psld_status status = psld_model_open("memory-model.yaml", &options, &made);
    psld_model_free(made);
    return status;
}

/* ---- Networks ---------------------------------------------------------------------------------------------------- */

static const char network_yaml[] =
    "process: psld\ndata: {size: 4, channels: 1}\n"
    "model: {name: ncsnpp, nf: 4, ch_mult: [1], num_res_blocks: 1, attn_resolutions: [4]}\n";

static const char classifier_yaml[] =
    "process: psld\ndata: {size: 4, channels: 1, classes: [one, two]}\n"
    "model: {name: ncsnpp_clf, nf: 4, ch_mult: [1], num_res_blocks: 1, attn_resolutions: [], n_cls: 2}\n";

static psld_status classify(void)
{
    psld_model *made;
    double z[32] = {0}, t = 0.5, gradient[32];
    size_t label = 0;
    const int32_t one = 1;
    psld_status status = psld_model_create("memory-classifier.yaml", NULL, 0, &made);
    if (status == PSLD_OK) status = psld_model_label(made, "two", &label);
    if (status == PSLD_OK)
        status =
            psld_classifier_evaluate(psld_model_classifier(made), &PSLD_STATES(1, 16, z, &t), &one, NULL, gradient);
    psld_model_free(made);
    return status;
}

MAKES(create_network, model, psld_model_create("memory-network.yaml", NULL, 0, &made))
MAKES(open_network, model, psld_model_open("memory-network.safetensors", NULL, &made))
MAKES(open_checkpoint, model, psld_model_open("memory-network.pt", NULL, &made))

static psld_status save_network(void)
{
    return psld_model_save(network, "memory-output.safetensors");
}

static psld_status save_checkpoint(void)
{
    return psld_model_save(network, "memory-output.pt");
}

static psld_status evaluate_network(void)
{
    psld_model *made;
    psld_array *z = NULL, *t = NULL, *out = NULL, *gradient = NULL;
    const size_t shape[4] = {2, 2, 4, 4};
    psld_status status = psld_model_open("memory-network.safetensors", NULL, &made);
    if (status == PSLD_OK) status = psld_array_create(PSLD_F32, 4, shape, &z);
    if (status == PSLD_OK) status = psld_array_create(PSLD_F32, 1, shape, &t);
    if (status == PSLD_OK) status = psld_model_evaluate(made, z, t, z, NULL, &out, &gradient);
    psld_array_free(z);
    psld_array_free(t);
    psld_array_free(out);
    psld_array_free(gradient);
    psld_model_free(made);
    return status;
}

static psld_status differentiate_network(void)
{
    psld_model *made;
    double z[32] = {0}, weight[32] = {1}, t = 0.5, gradient[32];
    psld_status status = psld_model_create("memory-network.yaml", NULL, 0, &made);
    if (status == PSLD_OK)
        status = psld_source_gradient(psld_model_source(made), &PSLD_STATES(1, 16, z, &t), weight, NULL, gradient);
    psld_model_free(made);
    return status;
}

static psld_status contrast_network(void)
{
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    options.weak = "memory-network.safetensors";
    psld_model *made, *both = NULL;
    double z[32] = {0}, weight[32] = {1}, t = 0.5, gradient[32], eps[32];
    psld_status status = psld_model_open("memory-network.safetensors", &options, &made);
    if (status == PSLD_OK)
        status = psld_source_gradient(psld_model_source(made), &PSLD_STATES(1, 16, z, &t), weight, NULL, gradient);
    if (status == PSLD_OK) status = psld_model_save(made, "memory-both.safetensors");
    if (status == PSLD_OK) status = psld_model_open("memory-both.safetensors", NULL, &both);
    if (status == PSLD_OK) status = psld_source_predict(psld_model_source(both), &PSLD_STATES(1, 16, z, &t), eps);
    psld_model_free(both);
    psld_model_free(made);
    return status;
}

static psld_status sample_network(void)
{
    psld_model *made;
    psld_trajectory *trajectory = NULL;
    psld_array *start = NULL, *x = NULL;
    const size_t shape[4] = {2, 2, 4, 4};
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    options.nfe = 3;
    psld_status status = psld_model_open("memory-network.safetensors", NULL, &made);
    if (status == PSLD_OK) status = psld_array_create(PSLD_F32, 4, shape, &start);
    if (status == PSLD_OK) status = psld_trajectory_create(made, 0, 1, 2, &trajectory);
    if (status == PSLD_OK) {
        psld_trajectory_watch(trajectory, &options);
        status = psld_model_sample(made, &options, 0, 2, start, 0, &x, NULL);
    }
    psld_trajectory_free(trajectory);
    psld_array_free(start);
    psld_array_free(x);
    psld_model_free(made);
    return status;
}

static void count_kernel(void *user, const psld_kernel_time *time)
{
    size_t *kernels = user;
    *kernels += time->size == sizeof *time;
}

static psld_status plan_network(void)
{
    char *text = NULL;
    size_t kernels = 0;
    psld_model *made;
    psld_status status = psld_model_open("memory-network.safetensors", NULL, &made);
    if (status == PSLD_OK) status = psld_model_plan(made, 1, &text);
    psld_text_free(text);
    text = NULL;
    if (status == PSLD_OK) status = psld_model_profile(made, 1, 1, count_kernel, &kernels, &text);
    psld_text_free(text);
    psld_model_free(made);
    return status;
}

static psld_status time_network(void)
{
    double seconds;
    size_t bytes;
    psld_model *made;
    psld_status status = psld_model_open("memory-network.safetensors", NULL, &made);
    if (status == PSLD_OK) status = psld_model_time(made, 1, 1, &seconds, &bytes);
    if (status == PSLD_OK) status = psld_model_time_training(made, 1, 1, &seconds, &bytes);
    psld_model_free(made);
    return status;
}

static void ignore_tensor(void *user, const char *name, const char *type, int rank, const size_t *shape)
{
    (void)user, (void)name, (void)type, (void)rank, (void)shape;
}

static psld_status list_tensors(void)
{
    return psld_tensors_list("memory-network.pt", ignore_tensor, NULL);
}

static psld_status list_arrays(void)
{
    return psld_npz_list("memory-input.npz", ignore_tensor, NULL);
}

static psld_status encode_image(void)
{
    const size_t shape[3] = {3, 2, 2};
    psld_array *image;
    void *bytes = NULL;
    size_t size;
    PSLD_TRY(psld_array_create(PSLD_U8, 3, shape, &image));
    psld_status status = psld_image_encode(image, &bytes, &size);
    psld_bytes_free(bytes);
    psld_array_free(image);
    return status;
}

static psld_status encode_array(void)
{
    const size_t shape[2] = {3, 2};
    psld_array *made;
    void *bytes = NULL;
    size_t size;
    PSLD_TRY(psld_array_create(PSLD_F32, 2, shape, &made));
    psld_status status = psld_array_encode(made, &bytes, &size);
    psld_bytes_free(bytes);
    psld_array_free(made);
    return status;
}

static psld_status draw_sheet(void)
{
    const size_t shape[4] = {3, 1, 2, 2};
    psld_array *images, *sheet = NULL;
    PSLD_TRY(psld_array_create(PSLD_U8, 4, shape, &images));
    psld_status status = psld_images_sheet(images, 2, &sheet);
    psld_array_free(sheet);
    psld_array_free(images);
    return status;
}

static psld_status parse_model(void)
{
    psld_model *model;
    PSLD_TRY(
        psld_model_parse("{mixture: {weights: [1], means: [[0, 1]], scales: 1}, process: vp}", "text", NULL, &model));
    psld_model_free(model);
    return PSLD_OK;
}

static psld_status inspect_image(void)
{
    const char *format;
    size_t shape[3];
    return psld_image_inspect("memory-data/1.png", &format, shape);
}

static psld_status ask_model(void)
{
    uint64_t steps, planned;
    psld_model *made;
    PSLD_TRY(psld_model_open("memory-network.safetensors", NULL, &made));
    psld_status status = psld_model_trained(made, &steps, &planned);
    psld_model_free(made);
    return status;
}

static psld_status convert_tensors(void)
{
    return psld_tensors_convert("memory-network.pt", "memory-output.safetensors");
}

static psld_status read_data(void)
{
    const uint64_t index[2] = {0, 0};
    float x[2 * 12];
    uint8_t pixels[2 * 12];
    psld_data *made;
    PSLD_TRY(psld_data_open("memory-data", NULL, &made));
    psld_status status = psld_data_check(made, NULL, NULL);
    if (status == PSLD_OK) status = psld_data_read(made, 2, index, x, NULL);
    if (status == PSLD_OK) status = psld_data_read_u8(made, 2, index, pixels, NULL);
    psld_data_free(made);
    return status;
}

static psld_status draw_toys(void)
{
    const uint64_t index = 5;
    float x[2];
    psld_data *made;
    PSLD_TRY(psld_data_open("toy:moons", NULL, &made));
    psld_status status = psld_data_read(made, 1, &index, x, NULL);
    psld_data_free(made);
    return status;
}

MAKES(load_image, array, psld_image_load("memory-data/1.png", &made))

static psld_status write_images(void)
{
    const size_t shape[4] = {2, 3, 2, 2};
    psld_array *x, *images = NULL, *larger = NULL;
    PSLD_TRY(psld_array_create(PSLD_F32, 4, shape, &x));
    psld_status status = psld_images_from_data(x, 0, &images);
    if (status == PSLD_OK) status = psld_images_enlarge(images, 2, &larger);
    if (status == PSLD_OK) status = psld_image_grid(larger, 0, "memory-output.png");
    psld_array_free(images);
    psld_array_free(larger);
    psld_array_free(x);
    return status;
}

static psld_status measure_distance(void)
{
    const double points[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    double distance;
    return psld_sliced_wasserstein(2, 2, points, 2, points + 4, 3, 0, &distance);
}

static psld_status plot_recipes(void)
{
    const psld_recipe *const one = recipe;
    return psld_plot_recipes(&one, 1, "memory-output.svg");
}

static psld_status plot_points(void)
{
    const double points[4] = {0, 1, 2, 3};
    return psld_plot_points(mixture, points, 2, "points", "memory-output.png");
}

static psld_status plot_curves(void)
{
    const double x[3] = {1, 2, 3}, y[3] = {3, 1, 2};
    const psld_curve curve = {"curve", 3, x, y, 0, 1};
    return psld_plot_curves("title", "x", "y", 0, 1, &curve, 1, "memory-output.svg");
}

/* ---- Training ---------------------------------------------------------------------------------------------------- */

static const char training_yaml[] =
    "process: psld\ndata: {path: \"toy:moons\", channels: 2}\n"
    "model: {name: mlp, nf: 4, num_res_blocks: 1}\n"
    "train: {batch: 4, accumulate: 2, steps: 2, ema: [0.5, 0.9], weighting: nll, sample_nfe: 2,\n"
    "  checkpoint_every: 1, sample_every: 2, sample_count: 3, evaluate_every: 1, metric_every: 1, metric_count: 3}\n";

/* A run of two steps with all that may come after them; it goes on from its own checkpoint the next time. */
static psld_status train(void)
{
    psld_training *made;
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    options.config = "memory-training.yaml";
    options.metric = psld_training_distance();
    psld_status status = psld_training_open("memory-run", &options, &made);
    if (status == PSLD_OK) status = psld_training_run(made, NULL, NULL);
    psld_training_free(made);
    if (status == PSLD_OK) (void)!system("rm -rf memory-run");
    return status;
}

static psld_status look_at_run(void)
{
    psld_run_info info = PSLD_RUN_INFO_EMPTY;
    return psld_run_inspect("memory-look", &info);
}

/* ---- Evaluation -------------------------------------------------------------------------------------------------- */

static psld_features *features; /* of a classifier */

static const char sweep_yaml[] = "models: [memory-model.yaml]\nprocesses: [vp]\nmetrics: swd,fid\nsamplers: [em, ode]\n"
                                 "nfe: [2]\ntolerances: [0.3]\nnumber: 4\n";
static const char inpainting_yaml[] =
    "models: {net: memory-network.safetensors}\ndata: memory-images\nweights: memory-classifier.safetensors\n"
    "samplers: [em]\nnfe: [2]\nnumber: 2\ninpaint: {images: memory-images, masks: memory-images}\n";

static psld_status open_for_model(const char *path, psld_set **set)
{
    psld_model *model;
    psld_data_options options = PSLD_DATA_DEFAULTS;
    *set = NULL;
    psld_status status = psld_model_open(path, NULL, &model);
    if (status == PSLD_OK) status = psld_model_data_options(model, &options);
    if (status == PSLD_OK) status = psld_set_open_as("memory-images", 0, &options, set);
    psld_model_free(model);
    return status;
}

MAKES(open_image_set, set, psld_set_open("memory-images", 0, &made))
MAKES(open_fitted_set, set, open_for_model("memory-network.safetensors", &made))
MAKES(open_row_set, set, psld_set_open("memory-input.npy", 0, &made))
MAKES(open_statistics_set, set, psld_set_open("memory-statistics.npz", 0, &made))
MAKES(open_features, features, psld_features_open("memory-classifier.safetensors", &made))

/* Few evaluations are enough to fail at. */
static void cheap_sampling(psld_sample_options *options)
{
    *options = (psld_sample_options)PSLD_SAMPLE_DEFAULTS;
    options->nfe = 2;
    options->batch = 0;
}

static psld_status compare_points(void)
{
    psld_model *exact;
    psld_set *drawn = NULL, *real = NULL;
    psld_sample_options sampling;
    psld_compare_options options = PSLD_COMPARE_DEFAULTS;
    psld_comparison comparison = PSLD_COMPARISON_EMPTY;
    cheap_sampling(&sampling);
    options.metrics = PSLD_FRECHET | PSLD_KID | PSLD_PRECISION_RECALL | PSLD_SLICED;
    options.kid_subsets = 2, options.kid_subset_size = 4;
    psld_status status = psld_model_open("memory-model.yaml", NULL, &exact);
    if (status == PSLD_OK) status = psld_set_model(exact, &sampling, 5, 0, &drawn);
    if (status == PSLD_OK) status = psld_set_open("toy:moons", 5, &real);
    if (status == PSLD_OK) status = psld_compare(drawn, real, NULL, &options, &comparison);
    psld_set_free(drawn);
    psld_set_free(real);
    psld_model_free(exact);
    return status;
}

static psld_status compare_images(void)
{
    psld_set *set;
    psld_compare_options options = PSLD_COMPARE_DEFAULTS;
    psld_comparison comparison = PSLD_COMPARISON_EMPTY;
    options.metrics = PSLD_FRECHET | PSLD_INCEPTION_SCORE;
    options.splits = 2;
    psld_status status = psld_set_open("memory-images", 0, &set);
    if (status == PSLD_OK) status = psld_compare(set, set, features, &options, &comparison);
    if (status == PSLD_OK) status = psld_compare_page(set, set, 2, NULL, NULL, "memory-output.png");
    psld_set_free(set);
    return status;
}

static psld_status reduce_set(void)
{
    psld_set *set;
    psld_array *rows = NULL;
    psld_statistics *statistics = NULL;
    psld_status status = psld_set_open("memory-images", 0, &set);
    if (status == PSLD_OK) status = psld_set_features(set, features, NULL, NULL, &rows);
    if (status == PSLD_OK) status = psld_set_statistics(set, features, NULL, NULL, &statistics);
    psld_array_free(rows);
    psld_statistics_free(statistics);
    psld_set_free(set);
    return status;
}

static psld_status measure_likelihood(void)
{
    psld_model *exact;
    psld_set *set = NULL;
    psld_nll nll = PSLD_NLL_EMPTY;
    psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
    options.tolerance = 0.3;
    psld_status status = psld_model_open("memory-model.yaml", NULL, &exact);
    if (status == PSLD_OK) status = psld_set_open("toy:moons", 2, &set);
    if (status == PSLD_OK) status = psld_model_nll(exact, set, &options, &nll);
    psld_set_free(set);
    psld_model_free(exact);
    return status;
}

static psld_status sweep(const char *path)
{
    psld_sweep *made;
    psld_sweep_result result = PSLD_SWEEP_RESULT_EMPTY;
    char key[1024];
    double seconds;
    psld_status status = psld_sweep_open(path, NULL, 0, &made);
    size_t cells = status == PSLD_OK ? psld_sweep_count(made) : 0;
    for (size_t i = 0; status == PSLD_OK && i < cells; i++) {
        status = psld_sweep_key(made, i, key, sizeof key);
        if (status == PSLD_OK) status = psld_sweep_estimate(made, i, &seconds);
        if (status == PSLD_OK) status = psld_sweep_run(made, i, NULL, NULL, &result);
    }
    psld_sweep_free(made);
    return status;
}

static psld_status sweep_points(void)
{
    return sweep("memory-sweep.yaml");
}

/* The samples of this one are psld_set_inpainted_as. */
static psld_status sweep_inpainting(void)
{
    return sweep("memory-inpainting.yaml");
}

/* ---- The walk through all failures ------------------------------------------------------------------------------- */

static void exhaust(const char *name, psld_status (*call)(void))
{
    static const char *const outputs[] = {"memory-output.npy",         "memory-output.svg", "memory-output.png",
                                          "memory-output.safetensors", "memory-output.pt",  "memory-output.npz"};
    for (long n = 1;; n++) {
        for (int i = 0; i < 6; i++) unlink(outputs[i]);
        long live = psld_alloc_live();
        psld_alloc_fail_at(n);
        psld_status status = call();
        int failed = psld_alloc_failed();
        psld_alloc_fail_at(0);
        if (!failed) {
            if (status != PSLD_OK) fail_msg("%s: %s", name, psld_error_text());
            assert_true(n > 1);
            printf("%-30s %ld allocations\n", name, n - 1);
            return;
        }
        if (status != PSLD_NO_MEMORY) fail_msg("%s, allocation %ld: status %d, not out of memory", name, n, status);
        assert_non_null(strstr(psld_error_text(), "memory"));
        for (int i = 0; i < 6; i++) assert_int_not_equal(access(outputs[i], F_OK), 0);
        /* a source keeps the room it has grown, so that it need not grow again */
        if (call != sample && psld_alloc_live() != live)
            fail_msg("%s, allocation %ld: %ld blocks leaked", name, n, psld_alloc_live() - live);
    }
}

static void every_public_call(void **state)
{
    (void)state;
    exhaust("recipe_open, preset", open_preset);
    exhaust("recipe_open, file", open_recipe_file);
    exhaust("process_parse", parse_process);
    exhaust("process_open", open_process);
    exhaust("process_drift, energy, simulate, draw, sample", use_process);
    exhaust("process_check", check_process);
    exhaust("process_exchange", find_exchange);
    exhaust("plot_process", plot_process);
    exhaust("recipe_parse", parse_recipe);
    exhaust("recipe_create", create_recipe);
    exhaust("array_create", create_array);
    exhaust("array_save", save_array);
    exhaust("npz_save", save_arrays);
    exhaust("text_save", save_text);
    exhaust("claim_folder", claim_folder);
    exhaust("array_load", load_array);
    exhaust("array_convert", convert_array);
    exhaust("mixture_create", create_mixture);
    exhaust("source_callback", create_callback);
    exhaust("source_callback_gradient", create_differentiable_callback);
    exhaust("source_mixture", create_exact_source);
    exhaust("classifier_callback", create_own_classifier);
    exhaust("source_guide", guide_source);
    exhaust("source_restore, inpaint", restore_inpaint);
    exhaust("source_restore, deblur", restore_deblur);
    exhaust("source_restore, linear", restore_linear);
    exhaust("source_predict, many components", predict_with_many_components);
    exhaust("source_denoise", denoise);
    exhaust("encode", encode);
    exhaust("source_translate, source_clip", translate_and_clip);
    exhaust("mixture_draw", draw_mixture);
    exhaust("model_open", open_model);
    exhaust("model_open, process", open_model_with_process);
    exhaust("data_read", read_data);
    exhaust("data_read, toy", draw_toys);
    exhaust("image_load", load_image);
    exhaust("image_grid", write_images);
    exhaust("image_inspect", inspect_image);
    exhaust("image_encode", encode_image);
    exhaust("array_encode", encode_array);
    exhaust("images_sheet", draw_sheet);
    exhaust("model_parse", parse_model);
    exhaust("sliced_wasserstein", measure_distance);
    exhaust("plot_points", plot_points);
    exhaust("plot_curves", plot_curves);
    exhaust("plot_recipes", plot_recipes);
}

static void every_call_on_networks(void **state)
{
    (void)state;
    exhaust("model_create", create_network);
    exhaust("model_open, safetensors", open_network);
    exhaust("model_label, classifier_evaluate", classify);
    exhaust("model_open, checkpoint", open_checkpoint);
    exhaust("model_save, safetensors", save_network);
    exhaust("model_save, checkpoint", save_checkpoint);
    exhaust("model_evaluate", evaluate_network);
    exhaust("source_gradient, network", differentiate_network);
    exhaust("source_contrast, models with a weak one", contrast_network);
    exhaust("sample, network", sample_network);
    exhaust("model_plan", plan_network);
    exhaust("model_time", time_network);
    exhaust("tensors_list", list_tensors);
    exhaust("npz_list", list_arrays);
    exhaust("model_trained", ask_model);
    exhaust("tensors_convert", convert_tensors);
}

static void every_call_on_runs(void **state)
{
    psld_training *made;
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    (void)state;
    options.config = "memory-training.yaml";
    options.metric = psld_training_distance();
    write_file("memory-training.yaml", training_yaml);
    assert_int_equal(system("rm -rf memory-run memory-look"), 0);
    assert_int_equal(psld_training_open("memory-look", &options, &made), PSLD_OK);
    psld_training_free(made);
    exhaust("training", train);
    exhaust("run_look", look_at_run);
}

static void save_evaluation_files(void)
{
    const size_t shape[3] = {1, 4, 4};
    psld_array *image;
    psld_model *classifier;
    psld_statistics *statistics;
    mkdir("memory-images", 0777);
    assert_int_equal(psld_array_create(PSLD_U8, 3, shape, &image), PSLD_OK);
    assert_int_equal(psld_image_save(image, "memory-images/1.png"), PSLD_OK);
    ((uint8_t *)image->data)[5] = 200;
    assert_int_equal(psld_image_save(image, "memory-images/2.png"), PSLD_OK);
    psld_array_free(image);
    assert_int_equal(psld_model_create("memory-classifier.yaml", NULL, 0, &classifier), PSLD_OK);
    assert_int_equal(psld_model_save(classifier, "memory-classifier.safetensors"), PSLD_OK);
    psld_model_free(classifier);
    assert_int_equal(psld_statistics_create(2, &statistics), PSLD_OK);
    assert_int_equal(psld_statistics_add(statistics, 3, (const float[6]){1, 2, 3, 5, 8, 13}), PSLD_OK);
    assert_int_equal(psld_statistics_finish(statistics), PSLD_OK);
    assert_int_equal(psld_statistics_save(statistics, "memory-statistics.npz"), PSLD_OK);
    psld_statistics_free(statistics);
    write_file("memory-sweep.yaml", sweep_yaml);
    write_file("memory-inpainting.yaml", inpainting_yaml);
}

static void every_call_of_evaluation(void **state)
{
    (void)state;
    save_evaluation_files();
    assert_int_equal(psld_features_open("memory-classifier.safetensors", &features), PSLD_OK);
    exhaust("set_open, images", open_image_set);
    exhaust("set_open_as", open_fitted_set);
    exhaust("set_open, rows", open_row_set);
    exhaust("set_open, statistics", open_statistics_set);
    exhaust("features_open", open_features);
    exhaust("set_model, compare", compare_points);
    exhaust("compare, compare_page", compare_images);
    exhaust("set_features, set_statistics", reduce_set);
    exhaust("model_nll", measure_likelihood);
    exhaust("sweep", sweep_points);
    exhaust("sweep, set_inpainted", sweep_inpainting);
    psld_features_free(features);
}

static void every_sampler(void **state)
{
    (void)state;
    for (int i = 0; psld_sampler_at(i) && (sampler = psld_sampler_at(i)->name); i++) exhaust(sampler, sample);
}

static int set_up(void **state)
{
    const double weights[2] = {0.5, 0.5}, means[4] = {-1, 0, 1, 0}, scales[2] = {0.1, 0.2};
    const size_t shape[2] = {2, 3};
    (void)state;
    psld_threads_set(1); /* which allocation comes n-th must not depend on timing */
    write_file("memory-model.yaml", model_yaml);
    write_file("memory-recipe.yaml", recipe_yaml);
    if (psld_recipe_open("psld", &recipe) != PSLD_OK) return 1;
    if (psld_mixture_create(2, 2, weights, means, scales, &mixture) != PSLD_OK) return 1;
    if (psld_source_mixture(mixture, recipe, &source) != PSLD_OK) return 1;
    if (psld_array_create(PSLD_F64, 2, shape, &array) != PSLD_OK) return 1;
    const size_t image_shape[3] = {3, 2, 2};
    psld_array *image = NULL;
    mkdir("memory-data", 0777);
    if (psld_array_create(PSLD_U8, 3, image_shape, &image) != PSLD_OK) return 1;
    if (psld_image_save(image, "memory-data/1.png") != PSLD_OK) return 1;
    psld_array_free(image);
    write_file("memory-network.yaml", network_yaml);
    write_file("memory-classifier.yaml", classifier_yaml);
    if (psld_model_create("memory-network.yaml", NULL, 0, &network) != PSLD_OK) return 1;
    if (psld_model_save(network, "memory-network.safetensors") != PSLD_OK) return 1;
    if (psld_model_save(network, "memory-network.pt") != PSLD_OK) return 1;
    const char *const name = "a";
    const psld_array *const one = array;
    if (psld_npz_save("memory-input.npz", 1, &name, &one) != PSLD_OK) return 1;
    return psld_array_save(array, "memory-input.npy") != PSLD_OK;
}

static int tear_down(void **state)
{
    (void)state;
    psld_model_free(network);
    psld_array_free(array);
    psld_source_free(source);
    psld_mixture_free(mixture);
    psld_recipe_free(recipe);
    return psld_alloc_live() != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_public_call), cmocka_unit_test(every_call_on_networks),
                                       cmocka_unit_test(every_call_on_runs), cmocka_unit_test(every_call_of_evaluation),
                                       cmocka_unit_test(every_sampler)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
