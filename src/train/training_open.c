/* Opening a run: configuration, networks, trainer, data; then what was saved. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sized.h"
#include "data/data.h"
#include "train/metric.h"
#include "train/training.h"

_Static_assert((int)PSLD_AUGMENT_NUMBERS == (int)PSLD_AUGMENT_INPUTS, "networks are told all of it");

#define MAX_HELD_OUT ((uint64_t)1 << 20) /* toy sets are endless; this is enough to measure on */

/* Takes the weights of another model, by name; all must have the same shapes. */
static psld_status initialise_from(const char *path, psld_network *network)
{
    psld_model *other;
    PSLD_TRY(psld_model_open(path, NULL, &other));
    const psld_graph *to = network->graph, *from = other->network ? other->network->graph : NULL;
    int same = from && from->parameter_count == to->parameter_count;
    size_t i = 0;
    for (; same && i < to->parameter_count; i++) {
        const psld_parameter *a = &to->parameters[i], *b = &from->parameters[i];
        same = strcmp(a->name, b->name) == 0 && a->rank == b->rank && memcmp(a->shape, b->shape, sizeof a->shape) == 0;
    }
    if (same) psld_network_gather(other->network, network->weights);
    psld_model_free(other);
    if (same) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "train.init: %s has another network%s%s", path, i ? ", from here on: " : "",
                     i ? to->parameters[i - 1].name : "");
}

/* Makes the trained network, and the one for sampling, which has the average if there is one. */
static psld_status create_networks(psld_training *t)
{
    uint64_t seed = (uint64_t)t->settings.seed;
    PSLD_TRY(psld_model_from_config(t->yaml, seed, &t->model));
    psld_device_wish wish = {t->device, t->isa, t->settings.train.bf16 ? "bf16" : NULL};
    PSLD_TRY(psld_device_choose(&wish, &t->model->device, &t->model->backend));
    if (*t->settings.train.init) PSLD_TRY(initialise_from(t->settings.train.init, t->model->network));
    t->network = t->model->network;
    if (t->settings.train.ema.value[0] <= 0) return PSLD_OK;
    PSLD_TRY(psld_network_create(&t->model->network->config, &t->network));
    memcpy(t->network->weights, t->model->network->weights, t->network->graph->parameter_elements * sizeof(float));
    return PSLD_OK;
}

/* Samples of the largest micro-batch: the largest share of a rank, divided by train.accumulate. */
static size_t microbatch_size(const psld_training *t)
{
    uint64_t ranks = (uint64_t)t->ranks->count, parts = (uint64_t)t->settings.train.accumulate;
    uint64_t share = ((uint64_t)t->settings.train.batch + ranks - 1) / ranks;
    return (size_t)((share + parts - 1) / parts);
}

static psld_status create_trainer(psld_training *t)
{
    const psld_settings *s = &t->settings;
    psld_trainer_options o;
    psld_trainer_defaults(&o);
    o.backend = t->model->backend;
    o.batch = (int)microbatch_size(t);
    o.ranks = t->ranks;
    o.format = (psld_sum_format)s->train.reduce_precision;
    o.microbatches = (int)s->train.accumulate;
    o.rate = s->train.lr;
    o.beta1 = s->train.beta1;
    o.beta2 = s->train.beta2;
    o.epsilon = s->train.adam_eps;
    o.decay = s->train.weight_decay;
    o.adamw = s->train.adamw;
    o.warmup = (long)s->train.warmup;
    o.schedule = (psld_rate_schedule)s->train.schedule;
    o.total = (long)s->train.steps;
    o.clip = s->train.clip;
    o.ema = s->train.ema.value[0];
    o.more = s->train.ema.value + 1;
    o.more_count = s->train.ema.count - 1;
    o.ema_warmup = s->train.ema_warmup;
    o.average = o.ema > 0 ? t->model->network->weights : NULL;
    o.seed = (uint64_t)s->seed;
    t->objective->set_options(s, t->model, &o);
    if (t->learner) o.metric = (int)psld_objective_variables(t->model);
    o.by_z = t->learner != NULL;
    return psld_trainer_create(t->network, &o, &t->trainer);
}

static psld_status create_microbatch(psld_training *t)
{
    psld_microbatch *b = &t->microbatch;
    size_t dim = psld_model_size(t->model), target = t->objective->target_size(t->model);
    psld_trainer_options o = {0};
    t->objective->set_options(&t->settings, t->model, &o);
    if (t->learner) o.metric = (int)psld_objective_variables(t->model);
    psld_microbatch_sizes sizes = {
        .x = dim,
        .z = t->model->process ? (size_t)t->model->process->variables : dim * (size_t)t->model->recipe->spec.k,
        .target = target,
        .metric = (size_t)(o.metric * o.metric),
        .augment = t->network->config.augment ? PSLD_AUGMENT_NUMBERS : 0,
        .one_hot = (size_t)t->network->config.classes,
        .other = t->objective->aim != NULL,
        .base = t->objective->has_base || t->learner,
        .moves = t->learner != NULL,
        .out = t->model->kind == PSLD_CLASSIFIER ? psld_model_classes(t->model) : target,
    };
    PSLD_TRY(psld_microbatch_allocate(b, microbatch_size(t), &sizes));
    t->scale = t->settings.train.sum ? (double)target : 1;
    for (size_t i = 0; i < b->capacity; i++) b->weight[i] = (float)(t->scale / (double)t->settings.train.batch);
    return PSLD_OK;
}

/* The number of held-out items. The default is a hundredth; for small sets, where that would be too few, 64 or a
 * twentieth, whichever is less. */
static uint64_t held_out_count(double part, uint64_t count)
{
    uint64_t most = count / 2 < MAX_HELD_OUT ? count / 2 : MAX_HELD_OUT;
    double n = (double)count, wanted = part >= 0 ? ceil(part * n) : fmax(ceil(0.01 * n), fmin(64, ceil(0.05 * n)));
    return wanted < (double)most ? (uint64_t)wanted : most;
}

/* Divides the data into training and held-out items by their positions in a fixed shuffle. */
static psld_status create_loaders(psld_training *t)
{
    uint64_t count = psld_data_count(t->data), held = held_out_count(t->settings.data.held_out, count);
    psld_loader_options train = {.seed = (uint64_t)t->settings.seed,
                                 .flip = t->settings.data.flip,
                                 .augment = t->settings.data.augment,
                                 .begin = held,
                                 .end = count,
                                 .ahead = 2 * t->microbatch.capacity};
    psld_loader_options held_out = {.seed = train.seed, .end = held};
    t->item_count[PSLD_PHASE_TRAIN] = count - held;
    t->item_count[PSLD_PHASE_HELD_OUT] = held;
    PSLD_TRY(psld_loader_create(t->data, &train, &t->loaders[PSLD_PHASE_TRAIN]));
    return held ? psld_loader_create(t->data, &held_out, &t->loaders[PSLD_PHASE_HELD_OUT]) : PSLD_OK;
}

static psld_status set_perturbation(psld_training *t)
{
    const psld_settings *s = &t->settings;
    t->perturbation = (psld_perturbation){
        .recipe = t->model->recipe,
        .process = t->model->process,
        .scales = t->model->scales,
        .mode = s->train.loss == PSLD_LOSS_DSM ? PSLD_DSM : PSLD_HSM,
        .dim = psld_model_size(t->model),
        .t_min = s->train.eps,
        .by_noise = s->train.times == PSLD_TIMES_NOISE ? s->train.noise_part : 0,
        .by_trace = s->train.times == PSLD_TIMES_IMPORTANCE,
        .noise_middle = s->train.noise_middle,
        .noise_spread = s->train.noise_spread,
        .weighting = s->train.loss == PSLD_LOSS_ELBO ? PSLD_WEIGH_LIKELIHOOD : s->train.weighting,
        .cell = psld_training_cell(t),
        .data_deviation = psld_model_predicts_data(t->model) ? t->network->config.data_deviation : 0,
        .classes = (size_t)t->network->config.classes,
        .label_dropout = s->train.label_dropout,
        .clean = s->train.clean,
        .seed = (uint64_t)s->seed,
        .consistency = {.deviation = s->train.deviation,
                        .q = s->train.consistency_q,
                        .stages = s->train.consistency_stages,
                        .huber = s->train.consistency_huber,
                        .batch = (uint64_t)s->train.batch,
                        .steps = (uint64_t)s->train.steps}};
    t->bound = t->perturbation;
    t->bound.by_noise = 0;
    t->bound.by_trace = 1;
    t->bound.weighting = PSLD_WEIGH_LIKELIHOOD;
    return psld_training_tabulate(t);
}

/* The model keeps how many items of its data each class has: sampling draws labels with these frequencies. Of endless data
 * the first items are counted. */
static psld_status count_classes(psld_training *t)
{
    enum { OF_ENDLESS = 1 << 16 };
    size_t classes = (size_t)t->network->config.classes;
    uint64_t count = psld_data_count(t->data), stored = 0;
    if (classes == 0) return PSLD_OK;
    t->model->class_counts = psld_alloc(classes, sizeof *t->model->class_counts);
    if (!t->model->class_counts) return PSLD_NO_MEMORY;
    for (size_t y = 0; y < classes; y++) stored += psld_data_class_count(t->data, y);
    if (stored == 0 && count > OF_ENDLESS) count = OF_ENDLESS;
    for (uint64_t i = 0; i < count; i++) {
        int32_t label = psld_data_label(t->data, i);
        if (label >= 0) t->model->class_counts[label]++;
    }
    return PSLD_OK;
}

static psld_status create_parts(psld_training *t)
{
    PSLD_TRY(create_networks(t));
    t->objective = t->model->kind == PSLD_CLASSIFIER                 ? &psld_objective_classifier
                   : t->model->process                               ? &psld_objective_path
                   : t->settings.train.loss == PSLD_LOSS_CONSISTENCY ? &psld_objective_consistency
                   : t->settings.train.loss == PSLD_LOSS_ELBO        ? &psld_objective_elbo
                                                                     : &psld_objective_score;
    PSLD_TRY(psld_training_check(t));
    PSLD_TRY(count_classes(t));
    PSLD_TRY(psld_training_begin_learn(t));
    PSLD_TRY(set_perturbation(t));
    PSLD_TRY(create_trainer(t));
    PSLD_TRY(create_microbatch(t));
    return create_loaders(t);
}

/* Only rank 0 uses the folder; the others get the configuration and the state from it. */
static psld_status configure_ranks(psld_training *t, const psld_training_options *options)
{
    uint64_t size = 0;
    if (t->ranks->rank == 0) {
        PSLD_TRY(psld_training_configure(t, options));
        size = strlen(t->config);
    }
    t->ranks->broadcast(&size, sizeof size);
    if (t->ranks->rank == 0) {
        t->ranks->broadcast(t->config, size);
        return PSLD_OK;
    }
    t->config = psld_alloc(size + 1, 1);
    if (!t->config) return PSLD_NO_MEMORY;
    t->ranks->broadcast(t->config, size);
    return psld_training_follow(t);
}

static void broadcast_state(psld_training *t)
{
    psld_trainer_state s = psld_trainer_state_of(t->trainer);
    t->ranks->broadcast(s.steps, sizeof *s.steps);
    t->ranks->broadcast(t->network->weights, s.count * sizeof(float));
    t->ranks->broadcast(s.m, s.count * sizeof(float));
    t->ranks->broadcast(s.v, s.count * sizeof(float));
    if (s.average) t->ranks->broadcast(s.average, s.count * sizeof(float));
    for (int i = 0; i < PSLD_MAX_AVERAGES && s.more[i]; i++) t->ranks->broadcast(s.more[i], s.count * sizeof(float));
    t->ranks->broadcast(&t->bins, sizeof t->bins);
}

/* A wrong name is refused before anything is read. */
static psld_status check_names(const psld_training *t)
{
    psld_device *device;
    const psld_backend *backend;
    PSLD_TRY(psld_device_choose(&(psld_device_wish){t->device, t->isa, NULL}, &device, &backend));
    psld_device_close(device);
    return PSLD_OK;
}

/* A new folder is created last, so that a mistake in the settings leaves no folder. */
static psld_status open_training(psld_training *t, const char *folder, const psld_training_options *options)
{
    t->ranks = psld_distribution_now();
    if (t->ranks->rank != 0) folder = NULL;
    int resumes = folder && psld_run_folder_exists(folder);
    if (folder && !resumes) PSLD_TRY(psld_run_folder_check_new(folder));
    if (resumes) PSLD_TRY(psld_run_folder_open(folder, &t->run));
    t->isa = options->isa;
    t->device = options->device;
    PSLD_TRY(check_names(t));
    PSLD_TRY(configure_ranks(t, options));
    PSLD_TRY(create_parts(t));
    PSLD_TRY(psld_training_metric_open(t, options->metric));
    if (folder && !resumes) PSLD_TRY(psld_run_folder_open(folder, &t->run));
    if (folder && !resumes && psld_run_folder_exists(folder))
        return psld_fail(PSLD_IO, "%s: another process has begun a run in this folder", folder);
    if (t->run) PSLD_TRY(psld_training_resume(t));
    if (t->run) PSLD_TRY(psld_training_page(t, NULL));
    broadcast_state(t);
    PSLD_TRY(psld_training_restore_learn(t));
    PSLD_TRY(psld_trainer_store(t->trainer));
    t->saved_step = psld_trainer_steps(t->trainer);
    t->saved_seconds = psld_seconds();
    return PSLD_OK;
}

static psld_status read_training_options(const psld_training_options *options, psld_training_options *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_training_options, options, own, PSLD_TRAINING_DEFAULTS));
    PSLD_FILL_UNSET(own->override_count, 0);
    PSLD_FILL_UNSET(own->classifier, 0);
    PSLD_FILL_UNSET(own->seconds, 0);
    if (own->override_count >= 0) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "override_count: expected at least 0, found %d", own->override_count);
}

psld_status psld_training_open(const char *folder, const psld_training_options *options, psld_training **training)
{
    psld_training_options own;
    *training = NULL;
    PSLD_TRY(read_training_options(options, &own));
    psld_training *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = open_training(made, folder, &own);
    if (status != PSLD_OK) {
        psld_training_free(made);
        return status;
    }
    *training = made;
    return PSLD_OK;
}

void psld_training_free(psld_training *t)
{
    if (!t) return;
    for (int i = 0; i < 2; i++) psld_loader_free(t->loaders[i]);
    psld_training_metric_close(t);
    psld_data_free(t->data);
    psld_trainer_free(t->trainer);
    psld_learner_free(t->learner);
    if (t->model && t->network != t->model->network) psld_network_free(t->network);
    psld_model_free(t->model);
    psld_microbatch_clear(&t->microbatch);
    psld_events_close(t->events);
    psld_run_folder_close(t->run);
    psld_settings_clear(&t->settings);
    psld_release(t->config);
    psld_yaml_free(t->yaml);
    psld_release(t);
}
