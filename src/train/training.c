/* Training runs: opening them, taking steps, and what is written when. */
#include "train/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "data/data.h"
#include "train/checkpoint.h"
#include "train/metric.h"

_Static_assert((int)PSLD_AUGMENT_NUMBERS == (int)PSLD_AUGMENT_INPUTS, "networks are told all of it");

#define MAX_HELD_OUT ((uint64_t)1 << 20) /* toys have no end, and nobody measures on more */

void psld_training_defaults(psld_training_options *options)
{
    memset(options, 0, sizeof *options);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* Of what the settings say of images to be changed. */
static psld_status check_augmentation(const psld_training *t)
{
    const psld_augmentation *a = &t->settings.data.augment;
    int any = psld_augmentation_any(a);
    if (any && !psld_data_is_image(t->data))
        return psld_fail(PSLD_BAD_INPUT,
                         "data.translate, rotate, scale, colour, crop_padding: %s has no images; expected 0",
                         t->settings.data.path);
    if (a->crop_padding >= t->settings.data.size && a->crop_padding > 0)
        return psld_fail(PSLD_BAD_INPUT, "data.crop_padding: expected less than data.size = %lld, found %lld",
                         (long long)t->settings.data.size, (long long)a->crop_padding);
    if (t->network->config.augment && !any)
        return psld_fail(PSLD_BAD_INPUT, "model.augment: no image is changed; expected data.translate, rotate, scale, "
                                         "colour or crop_padding above 0");
    return PSLD_OK;
}

static psld_status check_objective(psld_training *t)
{
    int classifier = t->model->kind == PSLD_CLASSIFIER;
    const psld_settings *s = &t->settings;
    const psld_network_config *config = &t->network->config;
    t->objective = classifier ? &psld_objective_classifier : &psld_objective_score;
    if (classifier != (s->train.loss == PSLD_LOSS_ENTROPY))
        return psld_fail(PSLD_BAD_INPUT, "train.loss: expected %s for a %s",
                         classifier ? "cross_entropy" : "hsm or dsm", t->objective->name);
    if (!t->model->recipe) return psld_fail(PSLD_BAD_INPUT, "process is missing: the recipe that makes the noise");
    if (s->train.l1 && s->train.weighting != PSLD_WEIGH_EPS)
        return psld_fail(PSLD_BAD_INPUT, "train.norm: only the weighting fid has l1; expected l2");
    if (s->train.clean && config->noise_cond && config->embedding_type == PSLD_EMBED_FOURIER)
        return psld_fail(PSLD_BAD_INPUT, "model.embedding_type: fourier has no time 0, at which clean data stand; "
                                         "expected positional");
    if (s->train.schedule == PSLD_SCHEDULE_INVERSE_SQRT && s->train.warmup == 0)
        return psld_fail(PSLD_BAD_INPUT, "train.warmup: expected more than 0 for train.schedule = inverse_sqrt, "
                                         "which falls as sqrt(warmup / step)");
    if (classifier && psld_data_classes(t->data) != psld_model_classes(t->model))
        return psld_fail(PSLD_BAD_INPUT, "model.n_cls: the data have %zu classes, the classifier %zu",
                         psld_data_classes(t->data), psld_model_classes(t->model));
    for (uint64_t i = 0; classifier && i < psld_data_count(t->data); i++)
        if (psld_data_label(t->data, i) < 0)
            return psld_fail(PSLD_BAD_INPUT, "%s: item %llu of %llu has no class; expected all in folders of classes",
                             s->data.path, (unsigned long long)i + 1, (unsigned long long)psld_data_count(t->data));
    if (s->train.accumulate * t->ranks->count > s->train.batch)
        return psld_fail(PSLD_BAD_INPUT, "train.accumulate: %lld pieces on %d ranks are more than train.batch = %lld",
                         (long long)s->train.accumulate, t->ranks->count, (long long)s->train.batch);
    return PSLD_OK;
}

/* Weights of another model, by name; everything must fit. */
static psld_status start_from(const char *path, psld_network *network)
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
    return psld_fail(PSLD_BAD_INPUT, "train.init: %s is another network%s%s", path, i ? ", from here on: " : "",
                     i ? to->parameters[i - 1].name : "");
}

/* The network that is trained and the one to use, which has the average if one is kept. */
static psld_status make_networks(psld_training *t)
{
    uint64_t seed = (uint64_t)t->settings.seed;
    PSLD_TRY(psld_model_from_config(t->yaml, seed, &t->model));
    if (*t->settings.train.init) PSLD_TRY(start_from(t->settings.train.init, t->model->network));
    t->network = t->model->network;
    if (t->settings.train.ema.value[0] <= 0) return PSLD_OK;
    PSLD_TRY(psld_network_create(&t->model->network->config, &t->network));
    memcpy(t->network->weights, t->model->network->weights, t->network->graph->parameter_elements * sizeof(float));
    return PSLD_OK;
}

/* Samples of the largest piece of the largest share. */
static size_t piece_size(const psld_training *t)
{
    uint64_t ranks = (uint64_t)t->ranks->count, pieces = (uint64_t)t->settings.train.accumulate;
    uint64_t share = ((uint64_t)t->settings.train.batch + ranks - 1) / ranks;
    return (size_t)((share + pieces - 1) / pieces);
}

static psld_status make_trainer(psld_training *t)
{
    const psld_settings *s = &t->settings;
    psld_trainer_options o;
    psld_trainer_defaults(&o);
    o.backend = t->model->backend;
    o.batch = (int)piece_size(t);
    o.ranks = t->ranks;
    o.pieces = (int)s->train.accumulate;
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
    t->objective->set_up(s, t->model, &o);
    return psld_trainer_create(t->network, &o, &t->trainer);
}

static psld_status make_batch(psld_training *t)
{
    psld_minibatch *b = &t->batch;
    size_t n = b->capacity = piece_size(t), dim = psld_model_size(t->model);
    size_t k = (size_t)t->model->recipe->spec.k, target = t->objective->target_size(t->model);
    size_t out = t->model->kind == PSLD_CLASSIFIER ? psld_model_classes(t->model) : target;
    size_t variables = target / dim, metric = t->settings.train.weighting == PSLD_WEIGH_EPS ? 0 : variables * variables;
    b->x = psld_alloc(n * dim, sizeof(float));
    b->label = psld_alloc(n, sizeof *b->label);
    b->t = psld_alloc(n, sizeof(double));
    b->time = psld_alloc(n, sizeof(float));
    b->z = psld_alloc(n * k * dim, sizeof(float));
    b->target = psld_alloc(n * target, sizeof(float));
    b->metric = metric ? psld_alloc(n * metric, sizeof(float)) : NULL;
    int told = t->network->config.augment;
    b->augment = told ? psld_alloc(n * PSLD_AUGMENT_NUMBERS, sizeof(float)) : NULL;
    b->weight = psld_alloc(n, sizeof(float));
    b->loss = psld_alloc(n, sizeof(float));
    b->out = psld_alloc(n * out, sizeof(float));
    b->hit = psld_alloc(n, 1);
    t->scale = t->settings.train.sum ? (double)target : 1;
    for (size_t i = 0; b->weight && i < n; i++) b->weight[i] = (float)(t->scale / (double)t->settings.train.batch);
    int all = b->x && b->label && b->t && b->time && b->z && b->target && (b->metric || !metric) &&
              (b->augment || !told) && b->weight && b->loss && b->out && b->hit;
    return all ? PSLD_OK : PSLD_NO_MEMORY;
}

static psld_snapshot snapshot_of(psld_training *t)
{
    return (psld_snapshot){.network = t->network,
                           .state = psld_trainer_state_of(t->trainer),
                           .config = t->config,
                           .prefix = t->objective->prefix,
                           .sums = (double *)&t->bins,
                           .sum_count = sizeof t->bins / sizeof(double),
                           .items = psld_data_count(t->data)};
}

/* Order and held-out part of the data depend on how many there are. */
static void compare_items(const psld_training *t, const psld_snapshot *before)
{
    unsigned long long now = psld_data_count(t->data);
    if (before->items != 0 && before->items != now)
        psld_log(PSLD_LOG_WARNING, "%s: has %llu items, %llu when the run was stopped: others are held out now",
                 t->settings.data.path, now, (unsigned long long)before->items);
}

/* What was saved: a checkpoint comes first, so a model without one is not to be begun anew. */
static psld_status load_newest(psld_training *t)
{
    char folder[4096];
    int found = 0;
    psld_snapshot snapshot = snapshot_of(t);
    snprintf(folder, sizeof folder, "%s", psld_run_folder_file(t->run, "checkpoints"));
    PSLD_TRY(psld_checkpoint_load(&snapshot, folder, &found));
    const char *model = psld_run_folder_file(t->run, "model.safetensors");
    if (!found && access(model, F_OK) == 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: has no checkpoint to go on from, and training anew would replace %s",
                         folder, model);
    if (!found) return PSLD_OK;
    compare_items(t, &snapshot);
    t->model->steps = psld_training_steps(t);
    return psld_model_save(t->model, model); /* it may have been stopped before it came to this */
}

/* Goes on from the newest checkpoint, or begins. */
static psld_status resume(psld_training *t)
{
    PSLD_TRY(load_newest(t));
    PSLD_TRY(psld_run_folder_set_config(t->run, t->config));
    PSLD_TRY(psld_run_folder_log_from(t->run, psld_trainer_steps(t->trainer)));
    return psld_training_metric_resume(t);
}

/* Items that are held out. By default a hundredth; of small sets, where that would be too few to measure on, 64 or a
 * twentieth, whichever is less. */
static uint64_t held_out_count(double part, uint64_t count)
{
    uint64_t most = count / 2 < MAX_HELD_OUT ? count / 2 : MAX_HELD_OUT;
    double n = (double)count, wanted = part >= 0 ? ceil(part * n) : fmax(ceil(0.01 * n), fmin(64, ceil(0.05 * n)));
    return wanted < (double)most ? (uint64_t)wanted : most;
}

/* The data are cut in two: places of a fixed shuffle. */
static psld_status make_feeds(psld_training *t)
{
    uint64_t count = psld_data_count(t->data), held = held_out_count(t->settings.data.held_out, count);
    psld_feed_options train = {.seed = (uint64_t)t->settings.seed,
                               .flip = t->settings.data.flip,
                               .augment = t->settings.data.augment,
                               .begin = held,
                               .end = count,
                               .ahead = 2 * t->batch.capacity};
    psld_feed_options held_out = {.seed = train.seed, .end = held};
    t->feed_count[PSLD_PHASE_TRAIN] = count - held;
    t->feed_count[PSLD_PHASE_HELD_OUT] = held;
    PSLD_TRY(psld_feed_create(t->data, &train, &t->feeds[PSLD_PHASE_TRAIN]));
    return held ? psld_feed_create(t->data, &held_out, &t->feeds[PSLD_PHASE_HELD_OUT]) : PSLD_OK;
}

static psld_status make_parts(psld_training *t)
{
    PSLD_TRY(make_networks(t));
    PSLD_TRY(check_objective(t));
    PSLD_TRY(check_augmentation(t));
    PSLD_TRY(psld_training_check_picture(t));
    t->how = (psld_perturbation){.recipe = t->model->recipe,
                                 .mode = t->settings.train.loss == PSLD_LOSS_DSM ? PSLD_DSM : PSLD_HSM,
                                 .dim = psld_model_size(t->model),
                                 .eps = t->settings.train.eps,
                                 .by_noise = t->settings.train.by_noise ? t->settings.train.noise_part : 0,
                                 .noise_middle = t->settings.train.noise_middle,
                                 .noise_spread = t->settings.train.noise_spread,
                                 .weighting = t->settings.train.weighting,
                                 .data_deviation =
                                     psld_model_predicts_data(t->model) ? t->network->config.data_deviation : 0,
                                 .clean = t->settings.train.clean,
                                 .seed = (uint64_t)t->settings.seed};
    if (t->how.by_noise > 0) PSLD_TRY(psld_perturbation_tabulate(&t->how));
    PSLD_TRY(make_trainer(t));
    PSLD_TRY(make_batch(t));
    return make_feeds(t);
}

/* Rank 0 alone knows the folder; the others get its configuration, and its state. */
static psld_status configure(psld_training *t, const psld_training_options *options)
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

static void share_state(psld_training *t)
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

/* A new folder is made last: a mistake leaves nothing behind. */
static psld_status open_in(psld_training *t, const char *folder, const psld_training_options *options)
{
    t->ranks = psld_distribution_now();
    if (t->ranks->rank != 0) folder = NULL;
    int goes_on = folder && psld_run_folder_exists(folder);
    if (folder && !goes_on) PSLD_TRY(psld_run_folder_check_new(folder));
    if (goes_on) PSLD_TRY(psld_run_folder_open(folder, &t->run));
    PSLD_TRY(configure(t, options));
    PSLD_TRY(make_parts(t));
    PSLD_TRY(psld_training_metric_open(t, options->metric));
    if (folder && !goes_on) PSLD_TRY(psld_run_folder_open(folder, &t->run));
    if (folder && !goes_on && psld_run_folder_exists(folder))
        return psld_fail(PSLD_IO, "%s: another process has begun a run in this folder", folder);
    if (t->run) PSLD_TRY(resume(t));
    if (t->run) PSLD_TRY(psld_training_page(t, NULL));
    share_state(t);
    t->saved = psld_trainer_steps(t->trainer);
    t->saved_at = psld_seconds();
    return PSLD_OK;
}

psld_status psld_training_open(const char *folder, const psld_training_options *options, psld_training **training)
{
    *training = NULL;
    psld_training *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = open_in(made, folder, options);
    if (status != PSLD_OK) {
        psld_training_free(made);
        return status;
    }
    *training = made;
    return PSLD_OK;
}

static void free_batch(psld_minibatch *b)
{
    void *const blocks[] = {b->augment, b->x,      b->label,  b->t,    b->time, b->z,
                            b->target,  b->metric, b->weight, b->loss, b->out,  b->hit};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) psld_release(blocks[i]);
}

void psld_training_free(psld_training *t)
{
    if (!t) return;
    for (int i = 0; i < 2; i++) psld_feed_free(t->feeds[i]);
    psld_training_metric_close(t);
    psld_data_free(t->data);
    psld_trainer_free(t->trainer);
    if (t->model && t->network != t->model->network) psld_network_free(t->network);
    psld_model_free(t->model);
    free_batch(&t->batch);
    psld_run_folder_close(t->run);
    psld_settings_clear(&t->settings);
    psld_release(t->config);
    psld_yaml_free(t->yaml);
    psld_release(t);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* n samples to train on from their numbers to what the network is given. */
static psld_status prepare(psld_training *t, uint64_t first, size_t n)
{
    psld_minibatch *b = &t->batch;
    PSLD_TRY(psld_feed_take(t->feeds[PSLD_PHASE_TRAIN], first, n, b->x, b->label));
    if (b->augment) psld_feed_augmentation(t->feeds[PSLD_PHASE_TRAIN], first, n, b->augment);
    return t->objective->fill(&t->how, PSLD_PHASE_TRAIN, first, n, b);
}

/* What a step has counted, on this rank and then on all. */
typedef struct step_sums {
    double loss;
    double failed; /* ranks that could not read their data */
    psld_bins bins;
} step_sums;

/* The pieces of a step: its samples are step * batch + 0 ... batch - 1. A rank that cannot read its data goes through
 * the step all the same, with those of an earlier one, since others wait for its sums; then no rank takes the step. */
static psld_status add_pieces(psld_training *t, uint64_t step, step_sums *sums)
{
    psld_minibatch *b = &t->batch;
    uint64_t batch = (uint64_t)t->settings.train.batch, done, end;
    psld_status status = PSLD_OK;
    psld_distribution_share(t->ranks, batch, &done, &end);
    while (done < end && (status == PSLD_OK || t->ranks->count > 1)) {
        size_t n = end - done < b->capacity ? (size_t)(end - done) : b->capacity;
        if (status == PSLD_OK) status = prepare(t, step * batch + done, n);
        psld_microbatch piece = {.n = (int)n,
                                 .first = done,
                                 .z = b->z,
                                 .t = b->time,
                                 .target = b->target,
                                 .metric = b->metric,
                                 .augment = b->augment,
                                 .weight = b->weight,
                                 .loss = b->loss,
                                 .out = t->objective->looks_at_output ? b->out : NULL,
                                 .last = done + n == end};
        psld_trainer_add(t->trainer, &piece);
        for (size_t i = 0; i < n; i++) sums->loss += t->scale * (double)b->loss[i] / (double)batch;
        if (t->objective->looks_at_output) t->objective->judge(&t->settings, t->model, n, b);
        psld_bins_add(&sums->bins, n, b->t, b->loss, b->hit);
        done += n;
    }
    sums->failed = status != PSLD_OK;
    t->ranks->sum(&sums->loss, sizeof *sums / sizeof(double));
    if (sums->failed > 0) psld_trainer_drop(t->trainer);
    if (sums->failed > 0 && status == PSLD_OK) status = psld_fail(PSLD_IO, "another rank cannot read its data");
    return status;
}

/* n held-out samples, which batch.x has, at times of one bin. */
static psld_status evaluate_bin(psld_training *t, int bin, uint64_t first, size_t n, psld_bins *bins)
{
    psld_minibatch *b = &t->batch;
    if (!(psld_perturbation_share(&t->how, bin) > 0)) return PSLD_OK;
    PSLD_TRY(t->objective->fill(&t->how, (psld_phase)(PSLD_PHASE_HELD_OUT + bin), first, n, b));
    PSLD_TRY(psld_model_run(t->model, n, b->z, b->time, b->out));
    t->objective->judge(&t->settings, t->model, n, b);
    psld_bins_add(bins, n, b->t, b->loss, b->hit);
    return PSLD_OK;
}

static psld_status evaluate(psld_training *t, psld_bins *bins)
{
    psld_minibatch *b = &t->batch;
    uint64_t held = t->feed_count[PSLD_PHASE_HELD_OUT], count = (uint64_t)t->settings.train.evaluate_count;
    uint64_t done, end;
    psld_distribution_share(t->ranks, count < held ? count : held, &done, &end);
    psld_model_changed(t->model);
    while (done < end) {
        size_t n = end - done < b->capacity ? (size_t)(end - done) : b->capacity;
        PSLD_TRY(psld_feed_take(t->feeds[PSLD_PHASE_HELD_OUT], done, n, b->x, b->label));
        for (int bin = 0; bin < PSLD_BINS; bin++) PSLD_TRY(evaluate_bin(t, bin, done, n, bins));
        done += n;
    }
    t->ranks->sum((double *)bins, sizeof *bins / sizeof(double));
    for (int bin = 0; bin < PSLD_BINS; bin++) psld_bins_weigh(bins, bin, psld_perturbation_share(&t->how, bin));
    return PSLD_OK;
}

/* The model has the raw weights, and the trained network the averaged ones, until it is called again. */
static void swap_weights(psld_training *t)
{
    float *a = t->network->weights, *b = t->model->network->weights;
    for (size_t i = 0; i < t->network->graph->parameter_elements; i++) {
        float swap = a[i];
        a[i] = b[i];
        b[i] = swap;
    }
}

psld_status psld_training_evaluate(psld_training *t, int raw, psld_bins *bins)
{
    int swapped = raw && t->network != t->model->network;
    if (swapped) swap_weights(t);
    psld_status status = evaluate(t, bins);
    if (swapped) swap_weights(t);
    return status;
}

/* Measures on held-out data, and says it in the report. */
static psld_status measure_held_out(psld_training *t, psld_bins *held, psld_training_report *report)
{
    psld_bins raw = {0};
    if (t->feed_count[PSLD_PHASE_HELD_OUT] == 0) return PSLD_OK;
    PSLD_TRY(psld_training_evaluate(t, 0, held));
    report->held_out = t->scale * psld_bins_loss(held);
    if (t->objective->looks_at_output) report->accuracy = psld_bins_accuracy(held);
    if (t->network == t->model->network) return PSLD_OK;
    PSLD_TRY(psld_training_evaluate(t, 1, &raw));
    report->held_out_raw = t->scale * psld_bins_loss(&raw);
    return PSLD_OK;
}

/* ---- The log ----------------------------------------------------------------------------------------------------- */

/* A line of JSON as it grows. */
typedef struct line {
    char text[8192];
    size_t used;
} line;

static void put(line *l, const char *text)
{
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%s", text);
}

static void put_key(line *l, const char *set, const char *what)
{
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, ", \"%s%s\": ", set, what);
}

/* JSON has no number that is not finite: null stands for it. */
static void put_number(line *l, int digits, double number)
{
    char text[32] = "null";
    if (isfinite(number)) psld_text_print(text, sizeof text, "%.*g", digits, number);
    put(l, text);
}

/* The mean of each bin, null where there is nothing. */
static void put_bins(line *l, double scale, const double *sums, const double *counts)
{
    put(l, "[");
    for (int i = 0; i < PSLD_BINS; i++) {
        if (i) put(l, ", ");
        put_number(l, 6, counts[i] > 0 ? scale * sums[i] / counts[i] : (double)NAN);
    }
    put(l, "]");
}

static void put_set(line *l, const psld_training *t, const char *set, const psld_bins *bins)
{
    put_key(l, set, "_by_t");
    put_bins(l, t->scale, bins->loss, bins->count);
    if (!t->objective->looks_at_output) return;
    put_key(l, set, "_accuracy");
    put_number(l, 6, psld_bins_accuracy(bins));
    put_key(l, set, "_accuracy_by_t");
    put_bins(l, 1, bins->hits, bins->count);
}

static void put_step(line *l, const psld_training_report *r)
{
    const struct {
        const char *key;
        int digits;
        double number;
    } rows[] = {{"loss", 9, r->loss}, {"norm", 6, r->norm}, {"rate", 6, r->rate}, {"seconds", 4, r->seconds}};
    l->used = (size_t)snprintf(l->text, sizeof l->text, "{\"step\": %llu", (unsigned long long)r->step);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_key(l, rows[i].key, "");
        put_number(l, rows[i].digits, rows[i].number);
    }
}

/* A step's line; with what was measured after it, if anything. */
static psld_status log_step(psld_training *t, const psld_training_report *r, const psld_bins *held)
{
    line l;
    if (!t->run) return PSLD_OK;
    put_step(&l, r);
    if (!isnan(r->metric)) {
        put_key(&l, "metric", "");
        put_number(&l, 9, r->metric);
    }
    if (held) put_set(&l, t, "loss", &t->bins);
    if (held && !isnan(r->held_out)) {
        put_key(&l, "held_out", "");
        put_number(&l, 9, r->held_out);
        put_set(&l, t, "held_out", held);
    }
    if (!isnan(r->held_out_raw)) {
        put_key(&l, "held_out_raw", "");
        put_number(&l, 9, r->held_out_raw);
    }
    put(&l, "}");
    return psld_run_folder_log(t->run, l.text);
}

/* ---- What happens after a step ----------------------------------------------------------------------------------- */

static int due(const psld_training *t, int64_t every, int at_end)
{
    long step = psld_trainer_steps(t->trainer);
    return (every > 0 && step % every == 0) || (at_end && step >= t->settings.train.steps);
}

psld_status psld_training_save(psld_training *t)
{
    char folder[4096];
    if (!t->run) return PSLD_OK;
    psld_snapshot snapshot = snapshot_of(t);
    t->model->steps = psld_training_steps(t);
    PSLD_TRY(psld_run_folder_sync(t->run));
    snprintf(folder, sizeof folder, "%s", psld_run_folder_file(t->run, "checkpoints"));
    PSLD_TRY(psld_checkpoint_save(&snapshot, folder, (int)t->settings.train.keep));
    t->saved = psld_trainer_steps(t->trainer);
    t->saved_at = psld_seconds();
    return psld_model_save(t->model, psld_run_folder_file(t->run, "model.safetensors"));
}

/* The checkpoint comes last: what belongs to its step is there once it is. A distance that cannot be measured (`so_far`)
 * or a picture that cannot be made ends the run, but loses nothing of it. */
static psld_status after_step(psld_training *t, psld_status so_far)
{
    psld_status picture = so_far;
    int draws = due(t, t->settings.train.sample_every, t->settings.train.sample_every > 0);
    if (!t->run) return so_far;
    if (picture == PSLD_OK && draws) picture = psld_training_picture(t);
    if (picture != PSLD_OK) {
        psld_training_save(t);
        return picture;
    }
    double pause = 60 * t->settings.train.checkpoint_minutes;
    int is_time = pause > 0 && psld_seconds() - t->saved_at >= pause;
    if (is_time || due(t, t->settings.train.checkpoint_every, 1)) {
        PSLD_TRY(psld_training_plot(t));
        PSLD_TRY(psld_training_save(t));
    } else if (!draws) {
        return PSLD_OK;
    }
    return psld_training_page(t, NULL);
}

/* Data that cannot be read end a run, but lose nothing of it: there is a checkpoint of its last step, and a line in the
 * log if the step was taken (`report` not NULL). */
static psld_status give_up(psld_training *t, psld_status status, const psld_training_report *report)
{
    enum { TEXT = 800 };
    char why[TEXT];
    double all_are_here = 0;
    long step = psld_trainer_steps(t->trainer);
    snprintf(why, sizeof why, "%s", psld_error_text());
    int is_saved = t->run && (!report || log_step(t, report, NULL) == PSLD_OK) &&
                   (t->saved == step || psld_training_save(t) == PSLD_OK);
    t->ranks->sum(&all_are_here, 1); /* a rank that fails ends the others: not before it is written */
    if (!is_saved) return psld_fail(status, "%s", why);
    return psld_fail(status, "%s; stopped after step %ld, with a checkpoint", why, step);
}

psld_status psld_training_step(psld_training *t, psld_training_report *report)
{
    psld_bins held = {0};
    step_sums sums = {0};
    double began = psld_seconds();
    long step = psld_trainer_steps(t->trainer);
    *report = (psld_training_report){.step = (uint64_t)step + 1,
                                     .steps = (uint64_t)t->settings.train.steps,
                                     .samples = (uint64_t)t->settings.train.batch,
                                     .held_out = (double)NAN,
                                     .accuracy = (double)NAN,
                                     .held_out_raw = (double)NAN,
                                     .metric = (double)NAN};
    psld_status status = add_pieces(t, (uint64_t)step, &sums);
    if (status != PSLD_OK) return give_up(t, status, NULL);
    report->loss = sums.loss;
    report->rate = psld_trainer_rate_now(t->trainer);
    PSLD_TRY(psld_trainer_update(t->trainer, report->loss, &report->norm));
    psld_bins_merge(&t->bins, &sums.bins);
    report->seconds = psld_seconds() - began;
    int measure = due(t, t->settings.train.evaluate_every, t->settings.train.evaluate_every > 0);
    if (measure) status = measure_held_out(t, &held, report);
    if (status != PSLD_OK) return t->ranks->count > 1 ? status : give_up(t, status, report);
    psld_status metric = PSLD_OK;
    if (due(t, t->settings.train.metric_every, t->settings.train.metric_every > 0))
        metric = psld_training_metric_measure(t, &report->metric);
    PSLD_TRY(log_step(t, report, measure ? &held : NULL));
    if (measure) t->bins = (psld_bins){0};
    return after_step(t, metric);
}

psld_model *psld_training_model(psld_training *t)
{
    psld_model_changed(t->model);
    return t->model;
}

const char *psld_training_config(const psld_training *t)
{
    return t->config;
}

const char *psld_training_reasons(const psld_training *t)
{
    return t->choice.reasons;
}

const psld_data *psld_training_data(const psld_training *t)
{
    return t->data;
}

size_t psld_training_bytes(const psld_training *t)
{
    return psld_trainer_bytes(t->trainer);
}

uint64_t psld_training_steps(const psld_training *t)
{
    return (uint64_t)psld_trainer_steps(t->trainer);
}

/* ---- The whole run ----------------------------------------------------------------------------------------------- */

/* Whether to stop now: the same on all ranks. `stop` is what the watcher of this one says. */
static int is_to_stop(psld_training *t, double stop)
{
    const double pause = 0.2; /* a look at the folder may cost more than a step, over a network */
    double now = psld_seconds();
    if (t->run && now - t->looked_at >= pause) {
        t->looked_at = now;
        if (psld_run_folder_asked_to_stop(t->run)) stop = 1;
    }
    t->ranks->sum(&stop, 1); /* any of the ranks may have been told */
    return stop != 0;
}

static psld_status run_steps(psld_training *t, psld_training_fn watch, void *user)
{
    while (psld_trainer_steps(t->trainer) < t->settings.train.steps) {
        psld_training_report report;
        PSLD_TRY(psld_training_step(t, &report));
        if (!is_to_stop(t, watch && watch(user, &report))) continue;
        if (t->saved != psld_trainer_steps(t->trainer)) PSLD_TRY(psld_training_save(t));
        return psld_fail(PSLD_CANCELLED, "stopped after step %llu", (unsigned long long)report.step);
    }
    return PSLD_OK;
}

/* The page says why a run ended before its time. That it cannot be written is nothing beside the reason itself. */
psld_status psld_training_run(psld_training *t, psld_training_fn watch, void *user)
{
    char why[1024];
    psld_status status = run_steps(t, watch, user);
    if (status == PSLD_OK || !t->run) return status;
    snprintf(why, sizeof why, "%s", psld_error_text());
    (void)psld_training_page(t, why);
    return psld_fail(status, "%s", why);
}
