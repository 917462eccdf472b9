/* What all kinds of model have in common. */
#ifndef PSLD_MODEL_MODEL_H
#define PSLD_MODEL_MODEL_H

#include "device/device.h"
#include "model/networks/network.h"
#include "model/networks/precondition.h"
#include "process/process_scales.h"
#include "process/recipe.h"
#include "sample/process_sample.h"
#include "sample/sources/classifier.h"
#include "sample/sources/source.h"

/* Buffers of one batch of a score network, in the network's precision. */
typedef struct psld_eval_buffers {
    size_t capacity, weight_capacity; /* capacity in states; the second is that of weight and grad_z */
    float *z, *t, *eps;
    float *one_hot; /* networks with labels */
    float *weight, *grad_z;
    psld_precondition *plans; /* networks of clean data */
} psld_eval_buffers;

struct psld_model {
    psld_model_kind kind;
    psld_recipe *recipe;         /* NULL: a classifier without a process, or a model of `process` */
    psld_process *process;       /* recipe with formulas, or NULL; such a model has no source */
    psld_process_scales *scales; /* deviations that are the unit of its eps */
    psld_recipe *learned;        /* that the network was trained for; `recipe`, unless another was asked for, */
    psld_source *native;         /* then `native` is the source for `learned`, and `source` translates it */
    psld_source *alone;          /* the source without guidance by the weak model, if there is one */
    psld_source *source;         /* NULL: a classifier */
    psld_model *weak;            /* or NULL */
    double weak_scale;
    psld_mixture *mixture;       /* exact models */
    psld_classifier *classifier; /* NULL: a score network */
    int rank;
    size_t shape[PSLD_MAX_RANK]; /* of the data */
    char *config;                /* YAML, overrides included */
    double *class_counts;        /* [psld_model_classes]: items per class in the data; NULL: unknown */
    double cfg;                  /* classifier-free guidance by default */
    double tuned;                /* the deviation of the data that it was tuned with for consistency; 0: it was not */
    /* networks */
    uint64_t steps; /* of training; 0: unknown */
    psld_network *network;
    psld_conditioning conditioning; /* of networks of clean data, and of exact models that stand for one */
    psld_tensors *file;             /* the file of the weights, which may still be mapped; NULL: none */
    psld_device *device;            /* opened for the model, or NULL */
    const psld_backend *backend;
    psld_runner *runners[2]; /* without and with gradients; made when first used, */
    size_t runner_batch[2];  /* for batches up to this */
    size_t at_once;          /* samples at a time that a caller asked for; 0: psld_model_batch */
    psld_eval_buffers rows;
};

enum { PSLD_LARGEST_BATCH = 4096 };
#define PSLD_CONFIG_NOTE     "psld.config"       /* the configuration */
#define PSLD_STEP_NOTE       "psld.step"         /* steps of training */
#define PSLD_COUNTS_NOTE     "psld.class_counts" /* items of the data per class */
#define PSLD_CFG_NOTE        "psld.cfg"          /* classifier-free guidance by default */
#define PSLD_WEAK_NOTE       "psld.weak"         /* the configuration of the weak model */
#define PSLD_WEAK_SCALE_NOTE "psld.weak_scale"
#define PSLD_WEAK_PREFIX     "weak."         /* prefix of the tensors of the weak model */
#define PSLD_STRONG_PREFIX   "ema_score_fn." /* and of the model, if there is a weak one */

/* The steps of training that a file notes; 0: unknown. */
uint64_t psld_model_read_steps(const psld_tensors *file);

/* The device and the backend that options ask for. */
psld_status psld_model_choose_backend(const psld_model_options *options, psld_device **device,
                                      const psld_backend **backend);
/* Makes model->runners[gradient] for `batch` samples, or for the largest batch of the network: runners divide larger
 * calls. */
psld_status psld_model_prepare(psld_model *model, int gradient, size_t batch);
/* The caller asks for so many samples at a time. A device that is not the CPU then takes as many or fails; but
 * psld_model_batch is what nobody asked for, and cut to what fits. */
void psld_model_ask_batch(psld_model *model, int batch);

/* The network as callback of a score source (eps, and the gradient of sum(weight eps) by z if wanted), and as callback
 * of a classifier. `user` is the model. */
psld_status psld_model_predict(void *user, const psld_states *states, double *eps);
psld_status psld_model_differentiate(void *user, const psld_states *states, const double *weight, double *eps,
                                     double *grad_z);
psld_status psld_model_classify(void *user, const psld_states *states, const int32_t *label, double *log_p,
                                double *grad_z);

/* Number of classes of labels or of a classifier. Exact models without labels have a class for each component. */
size_t psld_model_all_classes(const psld_model *model);
/* one_hot [n][classes] from labels [n]: zeros for -1, and for NULL. */
void psld_labels_one_hot(size_t n, const int32_t *label, size_t classes, float *one_hot);
/* The input `label` of a network, [n][psld_network_label_width]. */
void psld_model_tell_labels(const psld_network_config *config, size_t n, const int32_t *label, float *to);
/* Labels [n] of any type as int32, for a model that takes them. */
psld_status psld_model_read_given(const psld_model *model, const psld_array *label, size_t n, psld_array **numbers);

/* The score of the noisy variables, [n][noisy], of a model with formulas: a psld_score_fn, `user` being the model. */
psld_status psld_model_score(void *user, const psld_states *states, double *score);
/* Sets the process and its scales from a map with formulas and the channels of the network. */
psld_status psld_model_read_process(const psld_node *node, const psld_network_config *config, psld_model *model);
/* Samples of such a model in batches of states. */
psld_status psld_model_draw_process(psld_model *model, const psld_sample_options *options, uint64_t first, size_t count,
                                    const double *start, psld_process_batch_fn done, void *user, uint64_t *nfe);
/* Fails for models with formulas. */
psld_status psld_model_need_recipe(const psld_model *model, const char *path);
/* Numbers in one sample of the data. */
size_t psld_model_size(const psld_model *model);
/* Whether the model is an exact model that stands for a network: posed.h. */
int psld_model_is_posed(const psld_model *model);
/* Whether the model's network, or the one it stands for, predicts clean data: precondition.h. */
int psld_model_predicts_data(const psld_model *model);

/* Fills a zeroed model from the YAML of an exact model. */
psld_status psld_model_read_exact(const psld_node *root, const char *process, psld_model *model);
/* The same from weights, or (path NULL) with initial weights of `seed`. */
psld_status psld_model_read_network(const char *path, const psld_model_options *options, uint64_t seed,
                                    psld_model *model);

/* The weak network in a file of weights; NULL: none. Its weights stay in the file, which must outlive it. */
psld_status psld_model_read_weak(const char *path, const psld_tensors *file, const psld_model_options *options,
                                 psld_model **weak, double *scale);
/* The source without guidance by a weak model. */
psld_source *psld_model_unguided_source(psld_model *model);

/* The network of a configuration with initial weights of `seed`. */
psld_status psld_model_from_config(const psld_yaml *yaml, uint64_t seed, psld_model **model);
/* Evaluates the network on n samples, with its own input and time: its output, or logits, into `out`. one_hot
 * [n][classes] are the labels of a network that takes them; NULL for others. */
psld_status psld_model_run(psld_model *model, size_t n, const float *z, const float *t, const float *one_hot,
                           float *out);
/* Reads class counts and guidance from the notes of a file of weights. */
psld_status psld_model_read_labels(const char *path, const psld_tensors *file, psld_model *model);
/* Copies the weights into memory of the model, so that they can be changed, and closes their file. */
psld_status psld_model_own(psld_model *model);
/* Call this after changing the weights of model->network. */
void psld_model_changed(psld_model *model);

#endif
