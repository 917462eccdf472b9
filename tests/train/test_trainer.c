/* Training steps against the golden ones, and the update against its formula. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "kernels/adam.h"
#include "kernels/backend.h"
#include "model/files/process_read.h"
#include "model/networks/network.h"
#include "train/trainer.h"

/* ---- The update -------------------------------------------------------------------------------------------------- */

static void adam_formula(void **state)
{
    (void)state;
    enum { COUNT = 100003 };
    float *buffers[5];
    double w = 0.3, m = 0.1, v = 0.02, average = 0.2, g = -0.7;
    const float start[5] = {-0.7f, 0.3f, 0.1f, 0.02f, 0.2f};
    psld_adam adam = {1e-2, 0.9, 0.999, 1e-8, 0.01, 0.5, 0.95, 0.9, 7};
    for (int b = 0; b < 5; b++) {
        buffers[b] = malloc(COUNT * sizeof(float));
        for (size_t i = 0; i < COUNT; i++) buffers[b][i] = start[b];
    }
    psld_adam_update(&adam, COUNT, buffers[0], buffers[1], buffers[2], buffers[3], buffers[4]);
    double clipped = 0.5 * g + 0.01 * w;
    m = 0.9 * m + 0.1 * clipped;
    v = 0.999 * v + 0.001 * clipped * clipped;
    w = 0.9 * w - 1e-2 / (1 - pow(0.9, 7)) * m / (sqrt(v / (1 - pow(0.999, 7))) + 1e-8);
    average = 0.95 * average + 0.05 * w;
    for (size_t i = 0; i < COUNT; i += 777) {
        assert_true(fabs((double)buffers[1][i] - w) < 1e-7 && fabs((double)buffers[2][i] - m) < 1e-7);
        assert_true(fabs((double)buffers[3][i] - v) < 1e-8 && fabs((double)buffers[4][i] - average) < 1e-7);
    }
    double *chunks = malloc(psld_adam_chunks(COUNT) * sizeof *chunks);
    assert_true(fabs(psld_adam_sum_squares(COUNT, buffers[0], chunks) / (0.49 * COUNT) - 1) < 1e-6);
    free(chunks);
    for (int b = 0; b < 5; b++) free(buffers[b]);
}

/* ---- Golden steps ------------------------------------------------------------------------------------------------ */

static psld_array *load_floats(const char *name)
{
    char path[1024];
    psld_array *array, *floats;
    snprintf(path, sizeof path, "%s/tiny-ddpmpp/%s", golden_folder(), name);
    if (psld_array_load(path, &array) != PSLD_OK) return NULL;
    assert_int_equal(psld_array_convert(array, PSLD_F32, &floats), PSLD_OK);
    psld_array_free(array);
    return floats;
}

static psld_array *load_doubles(const char *name)
{
    char path[1024];
    psld_array *array;
    snprintf(path, sizeof path, "%s/tiny-ddpmpp/%s", golden_folder(), name);
    assert_int_equal(psld_array_load(path, &array), PSLD_OK);
    assert_int_equal(array->type, PSLD_F64);
    return array;
}

/* z_t = mean map of (x_0, 0) + factor eps. */
static void perturb(const psld_recipe *recipe, double t, size_t dim, const float *x0, const float *eps, float *z)
{
    double mean[4], factor[4];
    assert_int_equal(psld_recipe_kernel(recipe, t, PSLD_HSM, mean, NULL, NULL), PSLD_OK);
    assert_int_equal(psld_recipe_factor(recipe, t, PSLD_HSM, factor, NULL), PSLD_OK);
    for (size_t a = 0; a < 2; a++)
        for (size_t j = 0; j < dim; j++)
            z[a * dim + j] = (float)(mean[2 * a] * (double)x0[j] + factor[2 * a] * (double)eps[j] +
                                     factor[2 * a + 1] * (double)eps[dim + j]);
}

/* Root mean square of found - expected over that of expected - start. */
static double relative_to_way(const psld_network *network, const char *file, const float *found, const float *start)
{
    char path[1024];
    psld_tensors *tensors;
    double off = 0, way = 0;
    snprintf(path, sizeof path, "%s/tiny-ddpmpp/%s", golden_folder(), file);
    assert_int_equal(psld_tensors_open(path, &tensors), PSLD_OK);
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        const psld_tensor *tensor = psld_tensors_find(tensors, p->name);
        assert_non_null(tensor);
        float *expected = malloc(p->count * sizeof *expected);
        psld_tensor_to_f32(tensor, expected);
        for (size_t j = 0; j < p->count; j++) {
            off += pow((double)found[p->offset + j] - (double)expected[j], 2);
            way += pow((double)expected[j] - (double)start[p->offset + j], 2);
        }
        free(expected);
    }
    psld_tensors_free(tensors);
    return sqrt(off / way);
}

typedef struct setting {
    psld_network *network;
    psld_recipe *recipe;
    psld_trainer *trainer;
} setting;

static void set_up(setting *s, const json_t *golden, int batch)
{
    char path[1024];
    psld_yaml *yaml;
    psld_tensors *tensors;
    psld_network_config config;
    psld_trainer_options options;
    snprintf(path, sizeof path, "%s/tiny-ddpmpp/config.yaml", golden_folder());
    assert_int_equal(psld_yaml_load(path, &yaml), PSLD_OK);
    assert_int_equal(psld_network_config_read(psld_yaml_root(yaml), NULL, &config), PSLD_OK);
    assert_int_equal(psld_process_read(psld_yaml_root(yaml), &s->recipe), PSLD_OK);
    config.dropout = golden_number(json_object_get(golden, "dropout"));
    psld_yaml_free(yaml);
    snprintf(path, sizeof path, "%s/tiny-ddpmpp/model.safetensors", golden_folder());
    assert_int_equal(psld_tensors_open(path, &tensors), PSLD_OK);
    assert_int_equal(psld_network_create(&config, &s->network), PSLD_OK);
    assert_int_equal(psld_network_load(s->network, tensors, ""), PSLD_OK);
    psld_tensors_free(tensors);
    psld_trainer_defaults(&options);
    options.backend = psld_backend_fastest();
    options.batch = batch;
    options.rate = golden_number(json_object_get(golden, "lr"));
    options.warmup = (long)golden_number(json_object_get(golden, "warmup"));
    options.clip = golden_number(json_object_get(golden, "grad_clip"));
    options.ema = golden_number(json_object_get(golden, "ema_decay"));
    assert_int_equal(psld_trainer_create(s->network, &options, &s->trainer), PSLD_OK);
}

static void golden_steps(void **state)
{
    (void)state;
    json_t *golden = golden_json("tiny-ddpmpp/train.json");
    if (!golden) skip();
    psld_array *x0 = load_floats("train_x0.npy"), *t = load_doubles("train_t.npy"), *eps = load_floats("train_eps.npy");
    size_t steps = x0->shape[0], batch = x0->shape[1], dim = x0->count / steps / batch;
    setting s;
    set_up(&s, golden, (int)batch);
    size_t count = s.network->graph->parameter_elements;
    float *start = malloc(count * sizeof *start), *z = malloc(batch * 2 * dim * sizeof *z),
          *times = malloc(batch * sizeof *times);
    memcpy(start, s.network->weights, count * sizeof *start);
    double worst_loss = 0, worst_norm = 0;
    for (size_t k = 0; k < steps; k++) {
        const float *noise = (const float *)eps->data + k * batch * 2 * dim;
        double loss, norm;
        for (size_t i = 0; i < batch; i++) {
            double time = ((const double *)t->data)[k * batch + i];
            times[i] = (float)time;
            perturb(s.recipe, time, dim, (const float *)x0->data + (k * batch + i) * dim, noise + i * 2 * dim,
                    z + i * 2 * dim);
        }
        assert_int_equal(psld_trainer_step(s.trainer, (int)batch, 0, z, times, noise, &loss, &norm), PSLD_OK);
        worst_loss =
            fmax(worst_loss, fabs(loss / golden_number(json_array_get(json_object_get(golden, "loss"), k)) - 1));
        worst_norm =
            fmax(worst_norm, fabs(norm / golden_number(json_array_get(json_object_get(golden, "grad_norm"), k)) - 1));
    }
    double weights = relative_to_way(s.network, "train_final.safetensors", s.network->weights, start);
    double average = relative_to_way(s.network, "train_final_ema.safetensors", psld_trainer_average(s.trainer), start);
    printf("tiny-ddpmpp, %zu steps: loss off by %.2g (2e-6), gradient norm %.2g (1e-5), weights %.2g and average %.2g "
           "of the way (2e-3)\n",
           steps, worst_loss, worst_norm, weights, average);
    assert_true(worst_loss <= 2e-6 && worst_norm <= 1e-5 && weights <= 2e-3 && average <= 2e-3);
    assert_int_equal(psld_trainer_steps(s.trainer), steps);
    free(start);
    free(z);
    free(times);
    psld_trainer_free(s.trainer);
    psld_network_free(s.network);
    psld_recipe_free(s.recipe);
    psld_array_free(x0);
    psld_array_free(t);
    psld_array_free(eps);
    json_decref(golden);
}

/* ---- Ranks ------------------------------------------------------------------------------------------------------- */

/* The sum over two ranks that have the same numbers. */
static void begin_double(float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) numbers[i] *= 2;
}

static void nothing(void) {}

/* The norm of the gradient and the weights that a step leaves. */
static double step_among(const psld_distribution *ranks, float *weights, size_t room)
{
    enum { SIZE = 8, BATCH = 3 };
    const char *text = "data: {size: 8}\nmodel: {in_ch: 2, out_ch: 2, nf: 8, ch_mult: [1, 2], num_res_blocks: 1}";
    psld_yaml *yaml;
    psld_network_config config;
    psld_network *network;
    psld_trainer_options options;
    psld_trainer *trainer;
    float z[BATCH * 2 * SIZE * SIZE], target[BATCH * 2 * SIZE * SIZE], t[BATCH] = {0.1f, 0.5f, 0.9f};
    double loss, norm;
    for (int i = 0; i < BATCH * 2 * SIZE * SIZE; i++) z[i] = sinf((float)i), target[i] = cosf((float)(3 * i));
    assert_int_equal(psld_yaml_parse(text, strlen(text), "small", &yaml), PSLD_OK);
    assert_int_equal(psld_network_config_read(psld_yaml_root(yaml), NULL, &config), PSLD_OK);
    psld_yaml_free(yaml);
    assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
    psld_network_initialise(network, 4);
    psld_trainer_defaults(&options);
    options.backend = psld_backend_fastest();
    options.batch = BATCH;
    options.ranks = ranks;
    assert_int_equal(psld_trainer_create(network, &options, &trainer), PSLD_OK);
    assert_int_equal(psld_trainer_step(trainer, BATCH, 0, z, t, target, &loss, &norm), PSLD_OK);
    assert_true(network->graph->parameter_elements <= room);
    memcpy(weights, network->weights, network->graph->parameter_elements * sizeof *weights);
    psld_trainer_free(trainer);
    psld_network_free(network);
    return norm;
}

static void equal_ranks(void **state)
{
    (void)state;
    enum { ROOM = 100000 };
    const psld_distribution two = {.count = 2, .begin_sum = begin_double, .poke = nothing, .finish = nothing};
    float *alone = calloc(ROOM, sizeof *alone), *together = calloc(ROOM, sizeof *together);
    double norm = step_among(NULL, alone, ROOM);
    assert_true(norm > 0 && step_among(&two, together, ROOM) == norm); /* twice a half, to the bit */
    assert_memory_equal(alone, together, ROOM * sizeof *alone);
    free(alone);
    free(together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(adam_formula), cmocka_unit_test(golden_steps),
                                       cmocka_unit_test(equal_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
