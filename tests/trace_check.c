#include "trace_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden_network.h"
#include "model/files/process_read.h"
#include "train/trainer.h"

typedef struct trace {
    const char *folder;
    json_t *about;
    psld_array *x0, *t, *eps; /* [steps][batch][...] */
    psld_network *network;
    psld_recipe *recipe;
    psld_trainer *trainer;
    size_t steps, batch, dim, k, predicted;
} trace;

static double trace_number(const trace *s, const char *key)
{
    return golden_number(json_object_get(s->about, key));
}

/* How far the numbers of a step are from those of the list `key`, relatively. */
static double trace_error(const trace *s, const char *key, size_t step, double found)
{
    return fabs(found / golden_number(json_array_get(json_object_get(s->about, key), step)) - 1);
}

/* z_t = mean map of (x_0, 0) + factor eps. */
static void perturb(const trace *s, double t, const float *x0, const float *eps, float *z)
{
    double mean[PSLD_MATRIX_SIZE], factor[PSLD_MATRIX_SIZE];
    assert_int_equal(psld_recipe_kernel(s->recipe, t, PSLD_HSM, mean, NULL, NULL), PSLD_OK);
    assert_int_equal(psld_recipe_factor(s->recipe, t, PSLD_HSM, factor, NULL), PSLD_OK);
    for (size_t a = 0; a < s->k; a++)
        for (size_t j = 0; j < s->dim; j++) {
            double sum = mean[s->k * a] * (double)x0[j];
            for (size_t b = 0; b < s->k; b++) sum += factor[s->k * a + b] * (double)eps[b * s->dim + j];
            z[a * s->dim + j] = (float)sum;
        }
}

/* Root mean square of found - expected over that of expected - start, of the tensors that the file has. */
static double relative_to_way(const trace *s, const char *file, const float *found, const float *start)
{
    char path[GOLDEN_PATH];
    psld_tensors *tensors;
    double off = 0, way = 0;
    size_t compared = 0;
    golden_path(s->folder, file, path);
    assert_int_equal(psld_tensors_open(path, &tensors), PSLD_OK);
    for (size_t i = 0; i < s->network->graph->parameter_count; i++) {
        const psld_parameter *p = &s->network->graph->parameters[i];
        const psld_tensor *tensor = psld_tensors_find(tensors, p->name);
        if (!tensor) continue;
        float *expected = malloc(p->count * sizeof *expected);
        assert_int_equal(tensor->count, p->count);
        psld_tensor_to_f32(tensor, expected);
        for (size_t j = 0; j < p->count; j++) {
            off += pow((double)found[p->offset + j] - (double)expected[j], 2);
            way += pow((double)expected[j] - (double)start[p->offset + j], 2);
        }
        free(expected);
        compared++;
    }
    assert_true(compared > 0 && compared == tensors->count);
    psld_tensors_free(tensors);
    return sqrt(off / way);
}

static void open_trainer(trace *s, const psld_backend *backend)
{
    psld_trainer_options options;
    psld_trainer_defaults(&options);
    options.backend = backend;
    options.batch = (int)s->batch;
    options.rate = trace_number(s, "lr");
    options.warmup = (long)trace_number(s, "warmup");
    options.clip = trace_number(s, "grad_clip");
    options.ema = trace_number(s, "ema_decay");
    assert_int_equal(psld_trainer_create(s->network, &options, &s->trainer), PSLD_OK);
}

static void open_trace(const char *folder, const psld_backend *backend, trace *s)
{
    char path[GOLDEN_PATH];
    psld_yaml *yaml;
    *s = (trace){.folder = folder, .about = golden_json(folder, "train.json")};
    s->x0 = golden_array(folder, "train_x0.npy", PSLD_F32);
    s->t = golden_array(folder, "train_t.npy", PSLD_F64);
    s->eps = golden_array(folder, "train_eps.npy", PSLD_F32);
    assert_true(s->x0 && s->t && s->eps);
    golden_path(folder, "config.yaml", path);
    assert_int_equal(psld_yaml_load(path, &yaml), PSLD_OK);
    assert_int_equal(psld_process_read(psld_yaml_root(yaml), &s->recipe), PSLD_OK);
    psld_yaml_free(yaml);
    s->steps = s->x0->shape[0];
    s->batch = s->x0->shape[1];
    s->dim = s->x0->count / s->steps / s->batch;
    s->k = (size_t)psld_recipe_get(s->recipe)->k;
    assert_string_equal(s->k > 1 ? golden_text(s->about, "mode") : "hsm", "hsm"); /* given x_0 alone */
    psld_network_config config = golden_config(folder);
    s->predicted = (size_t)config.out_ch * s->k / (size_t)config.in_ch;
    config.dropout = trace_number(s, "dropout");
    golden_weights(folder, path);
    s->network = golden_network(&config, path);
    open_trainer(s, backend);
}

static void close_trace(trace *s)
{
    psld_trainer_free(s->trainer);
    psld_network_free(s->network);
    psld_recipe_free(s->recipe);
    psld_array_free(s->x0);
    psld_array_free(s->t);
    psld_array_free(s->eps);
    json_decref(s->about);
}

/* One step; a network that predicts fewer variables than there are is trained on the last ones. */
static void trace_step(trace *s, size_t step, float *z, float *times, float *target, double *loss, double *norm)
{
    size_t said = s->predicted * s->dim;
    for (size_t i = 0; i < s->batch; i++) {
        size_t sample = step * s->batch + i;
        const float *eps = (const float *)s->eps->data + sample * s->k * s->dim;
        double time = ((const double *)s->t->data)[sample];
        times[i] = (float)time;
        perturb(s, time, (const float *)s->x0->data + sample * s->dim, eps, z + i * s->k * s->dim);
        memcpy(target + i * said, eps + (s->k - s->predicted) * s->dim, said * sizeof *target);
    }
    assert_int_equal(psld_trainer_step(s->trainer, (int)s->batch, 0, z, times, target, loss, norm), PSLD_OK);
}

void trace_check(const char *folder, const psld_backend *backend, double tolerance)
{
    trace s;
    open_trace(folder, backend, &s);
    size_t count = s.network->graph->parameter_elements, state = s.batch * s.k * s.dim;
    float *start = malloc(count * sizeof *start), *z = malloc(state * sizeof *z),
          *times = malloc(s.batch * sizeof *times), *target = malloc(state * sizeof *target);
    memcpy(start, s.network->weights, count * sizeof *start);
    double worst_loss = 0, worst_norm = 0, loss, norm;
    for (size_t k = 0; k < s.steps; k++) {
        trace_step(&s, k, z, times, target, &loss, &norm);
        worst_loss = fmax(worst_loss, trace_error(&s, "loss", k, loss));
        worst_norm = fmax(worst_norm, trace_error(&s, "grad_norm", k, norm));
    }
    golden_report(folder, "loss of training steps", worst_loss, tolerance);
    golden_report(folder, "their gradient norms", worst_norm, 5 * tolerance);
    assert_int_equal(psld_trainer_fetch(s.trainer), PSLD_OK);
    golden_report(folder, "weights after them, of the distance moved",
                  relative_to_way(&s, "train_final.safetensors", s.network->weights, start), 2e-3);
    golden_report(folder, "average of the weights, of the distance moved",
                  relative_to_way(&s, "train_final_ema.safetensors", psld_trainer_average(s.trainer), start), 2e-3);
    assert_int_equal(psld_trainer_steps(s.trainer), s.steps);
    free(start);
    free(z);
    free(times);
    free(target);
    close_trace(&s);
}
