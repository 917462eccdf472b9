/* Settings of a training run: one table of keys with defaults and checks. Run folders and model files carry the
 * configuration with all keys filled in. */
#ifndef PSLD_TRAIN_SETTINGS_H
#define PSLD_TRAIN_SETTINGS_H

#include <stdint.h>

#include "data/augment.h"
#include "io/yaml/yaml.h"
#include "train/trainer.h"

typedef enum psld_loss_kind {
    PSLD_LOSS_HSM,
    PSLD_LOSS_DSM,
    PSLD_LOSS_ENTROPY,
    PSLD_LOSS_CONSISTENCY,
    PSLD_LOSS_ELBO
} psld_loss_kind;

typedef enum psld_times { PSLD_TIMES_UNIFORM, PSLD_TIMES_NOISE, PSLD_TIMES_IMPORTANCE } psld_times;

/* One number or a list of them. */
typedef struct psld_number_list {
    double value[PSLD_MAX_AVERAGES];
    size_t count;
} psld_number_list;

/* Fields have the names of their keys; docs/reference/training.md explains them. */
typedef struct psld_settings {
    struct {
        const char *path, *cache;
        int64_t size, channels, memory;
        int stretch, flip, strict; /* fit: crop or stretch */
        int resample;              /* psld_resample */
        double held_out;           /* -1: auto */
        double skip_limit;
        psld_augmentation augment;
        const char **classes;
        size_t class_count;
    } data;
    struct {
        int loss;      /* psld_loss_kind */
        int weighting; /* psld_weighting */
        int l1;        /* norm: l2 or l1 */
        int sum;       /* reduce: mean or sum */
        int times;     /* psld_times */
        double noise_part, noise_middle, noise_spread;
        double deviation, consistency_q, consistency_huber;
        int64_t consistency_stages;
        int clean, adamw, ema_warmup, tensorboard;
        int bf16;     /* precision: fp32 or bf16 */
        int schedule; /* psld_rate_schedule */
        double label_dropout;
        int reduce_precision; /* psld_sum_format */
        double learn_lr;
        double eps, lr, beta1, beta2, adam_eps, weight_decay, clip, checkpoint_minutes;
        psld_number_list ema;
        int64_t batch, accumulate, steps, warmup, keep;
        int64_t checkpoint_every, sample_every, evaluate_every, evaluate_count, sample_count, sample_nfe;
        int64_t metric_every, metric_count;
        const char *sampler, *init, *metric_weights;
    } train;
    int64_t seed;
} psld_settings;

/* Adds the defaults of all keys that are missing in the document. */
psld_status psld_settings_complete(psld_yaml *yaml);
/* The same for one key, which is needed before the others are known. */
psld_status psld_settings_fill(psld_yaml *yaml, const char *key);
/* If an earlier version wrote a run's configuration, sets the missing keys to the behaviour of that version, in both
 * configurations, so that the run continues with the same bits. */
psld_status psld_settings_inherit(psld_yaml *before, psld_yaml *now);
/* Reads and checks a document; fails with unknown keys. Fields of absent keys are 0. Texts are borrowed
 * from it. Release what it allocates with psld_settings_clear. */
psld_status psld_settings_read(const psld_yaml *yaml, psld_settings *settings);
void psld_settings_clear(psld_settings *settings);

/* Fails with the first key that must not differ when a run is continued; `path` is that of the run, or of its
 * checkpoint. */
psld_status psld_settings_compare(const psld_yaml *before, const psld_yaml *now, const char *path);

/* Sets "key=value" unless the document has the key. */
psld_status psld_settings_default(psld_yaml *yaml, const char *key, const char *value);

#endif
