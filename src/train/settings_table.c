/* The keys of data and training: one table with type, default, limits and help of each. */
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "model/networks/network.h"
#include "process/recipe_read.h"
#include "psld_train.h"
#include "train/settings_table.h"

#define DATA(field)  offsetof(psld_settings, data.field)
#define TRAIN(field) offsetof(psld_settings, train.field)

enum { FIXED = 0, FREE = 1 };

static const setting_row settings_table[] = {
    {"data", "path", SETTING_TEXT, DATA(path), 0, 0, "\"\"", NULL, FREE,
     "data to train on: images, vectors or toy:NAME"},
    {"data", "size", SETTING_WHOLE, DATA(size), 1, 4096, "1", NULL, FIXED,
     "height and width to which images are resized"},
    {"data", "channels", SETTING_WHOLE, DATA(channels), 1, 4096, "1", NULL, FIXED,
     "1: grey, 3: colour; of vectors, their length"},
    {"data", "fit", SETTING_WORD, DATA(stretch), 0, 0, "crop", "crop|stretch", FIXED,
     "what happens to images that are not square: the largest square in the middle, or stretched"},
    {"data", "resample", SETTING_WORD, DATA(resample), 0, 0, "lanczos",
     "lanczos|bilinear|bicubic|box|nearest|bilinear_plain", FIXED, "filter by which images are resized"},
    {"data", "flip", SETTING_FLAG, DATA(flip), 0, 0, "false", NULL, FIXED, "mirror images with probability 1/2"},
    {"data", "translate", SETTING_NUMBER, DATA(augment.translate), 0, 0.5, "0", NULL, FIXED,
     "shift images: standard deviation, as a fraction of their size"},
    {"data", "rotate", SETTING_NUMBER, DATA(augment.rotate), 0, 180, "0", NULL, FIXED,
     "rotate images by at most so many degrees in either direction"},
    {"data", "scale", SETTING_NUMBER, DATA(augment.scale), 0, 1, "0", NULL, FIXED,
     "magnify images: standard deviation of log2 of the factor"},
    {"data", "colour", SETTING_NUMBER, DATA(augment.colour), 0, 1, "0", NULL, FIXED,
     "change colours: standard deviation of log2 of contrast and saturation and of the hue in radians; twice that of "
     "the brightness"},
    {"data", "augment_prob", SETTING_NUMBER, DATA(augment.probability), 0, 1, "1", NULL, FIXED,
     "probability per sample of each of translate, rotate, scale and colour"},
    {"data", "crop_padding", SETTING_WHOLE, DATA(augment.crop_padding), 0, 4095, "0", NULL, FIXED,
     "pad images by so many pixels of their mirror image, then crop them to their size at a random position"},
    {"data", "classes", SETTING_NAMES, DATA(classes), 0, 0, "[]", NULL, FIXED,
     "names of classes in the order of their labels"},
    {"data", "held_out", SETTING_NUMBER, DATA(held_out), 0, 0.5, "auto", "auto", FIXED,
     "fraction of the data that is not trained on but used to measure the loss; auto: 0.01; with less than 6400 "
     "items, 64 of them; with less than 1280, 0.05"},
    {"data", "strict", SETTING_FLAG, DATA(strict), 0, 0, "false", NULL, FREE,
     "stop at a broken image instead of skipping it"},
    {"data", "skip_limit", SETTING_NUMBER, DATA(skip_limit), 0, 1, "0.05", NULL, FREE,
     "largest fraction of the images that may be broken and skipped, rounded up; the run stops if there are more"},
    {"data", "memory", SETTING_WHOLE, DATA(memory), 0, 1e15, "0", NULL, FREE,
     "bytes of decoded images kept in memory, the others go to data.cache; 0: the default of psld data"},
    {"data", "cache", SETTING_TEXT, DATA(cache), 0, 0, "\"\"", NULL, FREE,
     "folder for decoded images beyond data.memory"},
    {"train", "loss", SETTING_WORD, TRAIN(loss), 0, 0, "hsm", "hsm|dsm|cross_entropy|consistency|elbo", FIXED,
     "perturbation kernel given x_0 alone (hsm) or all of z_0 (dsm); cross_entropy for classifiers; consistency for "
     "sampling with one to four evaluations (psld tune); elbo: the variational bound in bits per dimension, by which a "
     "recipe can be learned, too (process.learn)"},
    {"train", "weighting", SETTING_WORD, TRAIN(weighting), 0, 0, "fid", "fid|nll|data", FIXED,
     "of the loss: none (fid); the likelihood weighting (s - s*)' 2 beta D (s - s*); or the error of the clean data"},
    {"train", "norm", SETTING_WORD, TRAIN(l1), 0, 0, "l2", "l2|l1", FIXED, "norm of the error of eps"},
    {"train", "reduce", SETTING_WORD, TRAIN(sum), 0, 0, "mean", "mean|sum", FIXED,
     "mean or sum over the elements of each sample"},
    {"train", "eps", SETTING_NUMBER, TRAIN(eps), 1e-12, 0.5, "1e-5", NULL, FIXED,
     "smallest time: times are drawn from [eps, 1]"},
    {"train", "times", SETTING_WORD, TRAIN(times), 0, 0, "uniform", "uniform|noise|importance", FIXED,
     "uniform; noise: a fraction of them at the noise levels where the data take shape; importance: by their weight in "
     "the bound on the likelihood (the default with loss: elbo)"},
    {"train", "noise_part", SETTING_NUMBER, TRAIN(noise_part), 0, 1, "0.5", NULL, FIXED,
     "with times: noise, the fraction of the times that is drawn by noise level; the others are uniform"},
    {"train", "noise_middle", SETTING_NUMBER, TRAIN(noise_middle), 1e-6, 1e6, "1", NULL, FIXED,
     "median of these noise levels"},
    {"train", "noise_spread", SETTING_NUMBER, TRAIN(noise_spread), 0, 10, "1.2", NULL, FIXED,
     "standard deviation of their logarithm: 1.2 reaches from a tenth of the median to ten times it"},
    {"train", "deviation", SETTING_NUMBER, TRAIN(deviation), 1e-6, 1e6, "0.5", NULL, FIXED,
     "with loss: consistency, standard deviation of the data, the scale of noise levels; measured if it is not given"},
    {"train", "consistency_stages", SETTING_WHOLE, TRAIN(consistency_stages), 1, 64, "8", NULL, FIXED,
     "with loss: consistency, number of stages in train.steps; each brings the two noise levels that are compared "
     "closer"},
    {"train", "consistency_q", SETTING_NUMBER, TRAIN(consistency_q), 1.0001, 1e6, "2", NULL, FIXED,
     "factor by which their distance shrinks in each stage"},
    {"train", "consistency_huber", SETTING_NUMBER, TRAIN(consistency_huber), 0, 1e6, "0.00054", NULL, FIXED,
     "with loss: consistency, differences below this (times the root of the dimension) count by their square; 0: none"},
    {"train", "label_dropout", SETTING_NUMBER, TRAIN(label_dropout), 0, 1, "0.1", NULL, FIXED,
     "with model.classes, fraction of the samples whose label is hidden from the network: it then also learns to "
     "predict without one, which classifier-free guidance needs"},
    {"train", "clean", SETTING_FLAG, TRAIN(clean), 0, 0, "false", NULL, FIXED,
     "classifiers: train on data without noise"},
    {"train", "batch", SETTING_WHOLE, TRAIN(batch), 1, 1e6, "128", NULL, FIXED, "samples per step, over all ranks"},
    {"train", "accumulate", SETTING_WHOLE, TRAIN(accumulate), 1, 1e6, "1", NULL, FIXED,
     "micro-batches per step and rank, whose gradients are added: more of them need less memory"},
    {"train", "reduce_precision", SETTING_WORD, TRAIN(reduce_precision), 0, 0, "fp32", "fp32|bf16", FREE,
     "type of the gradients that ranks send to each other; sums are in fp32 in either case"},
    {"train", "steps", SETTING_WHOLE, TRAIN(steps), 1, 1e12, "100000", NULL, FREE, "number of training steps"},
    {"train", "lr", SETTING_NUMBER, TRAIN(lr), 0, 1e3, "2e-4", NULL, FIXED, "learning rate"},
    {"train", "learn_lr", SETTING_NUMBER, TRAIN(learn_lr), 0, 1e3, "1e-3", NULL, FIXED,
     "learning rate of what process.learn names; warm-up and schedule are those of train.lr"},
    {"train", "warmup", SETTING_WHOLE, TRAIN(warmup), 0, 1e12, "5000", NULL, FIXED,
     "steps over which the learning rate rises from 0"},
    {"train", "schedule", SETTING_WORD, TRAIN(schedule), 0, 0, "constant", "constant|cosine|linear|inverse_sqrt", FIXED,
     "learning rate after warm-up: constant, falling to 0 at train.steps (cosine, linear), or as sqrt(warmup / step)"},
    {"train", "optimizer", SETTING_WORD, TRAIN(adamw), 0, 0, "adam", "adam|adamw", FIXED,
     "adam adds weight_decay to the gradient; adamw shrinks the weights themselves"},
    {"train", "beta1", SETTING_NUMBER, TRAIN(beta1), 0, 0.999999, "0.9", NULL, FIXED,
     "decay of Adam's average of the gradient"},
    {"train", "beta2", SETTING_NUMBER, TRAIN(beta2), 0, 0.9999999, "0.999", NULL, FIXED,
     "decay of Adam's average of the squared gradient"},
    {"train", "adam_eps", SETTING_NUMBER, TRAIN(adam_eps), 1e-30, 1, "1e-8", NULL, FIXED,
     "added to the denominator of Adam's update"},
    {"train", "weight_decay", SETTING_NUMBER, TRAIN(weight_decay), 0, 10, "0", NULL, FIXED,
     "weight decay; see optimizer"},
    {"train", "clip", SETTING_NUMBER, TRAIN(clip), 0, 1e30, "1", NULL, FIXED,
     "largest norm of the gradient; 0: no limit"},
    {"train", "ema", SETTING_NUMBERS, TRAIN(ema), 0, 0.9999999, "0.9999", NULL, FIXED,
     "decay of the moving average of the weights; of a list, the model has the first; 0: no average"},
    {"train", "ema_warmup", SETTING_FLAG, TRAIN(ema_warmup), 0, 0, "true", NULL, FIXED,
     "the decay at step k (from 0) is min(ema, (1 + k) / (10 + k)); false: ema from the beginning"},
    {"train", "precision", SETTING_WORD, TRAIN(bf16), 0, 0, "fp32", "fp32|bf16", FREE,
     "of products in networks: with bf16 their factors have 16 bits; sums, losses, weights and their update have 32"},
    {"train", "checkpoint_every", SETTING_WHOLE, TRAIN(checkpoint_every), 0, 1e12, "1000", NULL, FREE,
     "steps between checkpoints; 0: only at the end"},
    {"train", "checkpoint_minutes", SETTING_NUMBER, TRAIN(checkpoint_minutes), 0, 1e6, "10", NULL, FREE,
     "minutes between checkpoints, in addition; 0: only by steps"},
    {"train", "keep", SETTING_WHOLE, TRAIN(keep), 1, 1e6, "2", NULL, FREE, "number of checkpoints to keep"},
    {"train", "evaluate_every", SETTING_WHOLE, TRAIN(evaluate_every), 0, 1e12, "500", NULL, FREE,
     "steps between measurements of the loss on held-out data; 0: never"},
    {"train", "evaluate_count", SETTING_WHOLE, TRAIN(evaluate_count), 1, 1e9, "64", NULL, FREE,
     "held-out samples per measurement, each measured in all of ten bins of t"},
    {"train", "sample_every", SETTING_WHOLE, TRAIN(sample_every), 0, 1e12, "5000", NULL, FREE,
     "steps between pictures of samples; 0: never"},
    {"train", "sample_count", SETTING_WHOLE, TRAIN(sample_count), 1, 1e6, "36", NULL, FREE, "samples per picture"},
    {"train", "sample_nfe", SETTING_WHOLE, TRAIN(sample_nfe), 1, 1e6, "50", NULL, FREE,
     "network evaluations per sample of a picture"},
    {"train", "sampler", SETTING_TEXT, TRAIN(sampler), 0, 0, "sscs", NULL, FREE, "sampler that draws them"},
    {"train", "metric_every", SETTING_WHOLE, TRAIN(metric_every), 0, 1e12, "0", NULL, FREE,
     "steps between measurements of the distance between samples and data, by which the best model is kept; 0: never"},
    {"train", "metric_count", SETTING_WHOLE, TRAIN(metric_count), 2, 1e6, "1000", NULL, FREE,
     "samples drawn per measurement, and items of the data, held-out ones first"},
    {"train", "metric_weights", SETTING_TEXT, TRAIN(metric_weights), 0, 0, "\"\"", NULL, FREE,
     "feature network of images, for the Frechet distance; empty: sliced distance of pixels or points"},
    {"train", "tensorboard", SETTING_FLAG, TRAIN(tensorboard), 0, 0, "false", NULL, FREE,
     "also write event files for TensorBoard, in tensorboard/ of the run: losses and pictures of samples"},
    {"train", "init", SETTING_TEXT, TRAIN(init), 0, 0, "\"\"", NULL, FIXED, "model whose weights training starts from"},
    {NULL, "seed", SETTING_WHOLE, offsetof(psld_settings, seed), 0, 9e18, "0", NULL, FIXED,
     "seed of initial weights, order of data, times, noise and dropout"},
};

const setting_row *psld_settings_row(int index)
{
    return index >= 0 && index < (int)(sizeof settings_table / sizeof *settings_table) ? &settings_table[index] : NULL;
}

void psld_settings_row_name(const setting_row *row, char name[SETTING_NAME_SIZE])
{
    snprintf(name, SETTING_NAME_SIZE, "%s%s%s", row->section ? row->section : "", row->section ? "." : "", row->name);
}

/* Key `index` of a table of another layer, under the name of its section. Past the last, the length of that table is
 * subtracted from *index, and 0 returned. */
static int section_key(int (*row)(int, psld_key *), const char *section, int *index, psld_key *key)
{
    static _Thread_local char text[SETTING_NAME_SIZE];
    int found = row(*index, key), rows = 0;
    if (!found) {
        for (psld_key other; row(rows, &other);) rows++;
        *index -= rows;
        return 0;
    }
    snprintf(text, sizeof text, "%s%s%s", section, *section ? "." : "", key->name);
    key->name = text;
    return 1;
}

static int process_key(int index, psld_key *key)
{
    *key = (psld_key){.name = "process",
                      .type = "recipe",
                      .initial = "",
                      .help = "preset with overrides (psld gamma=0.02), file, or the keys below"};
    return index == 0;
}

static int settings_key(int index, psld_key *key)
{
    static const char *const types[] = {
        [SETTING_WHOLE] = "whole number", [SETTING_NUMBER] = "number", [SETTING_NUMBERS] = "number or list",
        [SETTING_FLAG] = "yes or no",     [SETTING_WORD] = "word",     [SETTING_TEXT] = "text",
        [SETTING_NAMES] = "list of names"};
    static _Thread_local char name[SETTING_NAME_SIZE];
    const setting_row *row = psld_settings_row(index);
    if (!row) return 0;
    psld_settings_row_name(row, name);
    *key = (psld_key){.name = name,
                      .type = types[row->kind],
                      .initial = row->initial,
                      .choices = row->words,
                      .min = row->min,
                      .max = row->max,
                      .may_change = row->may_change,
                      .help = row->help};
    return 1;
}

static int find_key(int index, psld_key *key)
{
    return section_key(process_key, "", &index, key) || section_key(psld_recipe_key, "process", &index, key) ||
           section_key(psld_network_key, "model", &index, key) || settings_key(index, key);
}

int psld_training_key_info(int index, psld_key *key)
{
    psld_key own = PSLD_KEY_EMPTY;
    if (index < 0 || psld_sized_check(key, sizeof own, "PSLD_KEY_EMPTY") != PSLD_OK) return 0;
    if (!find_key(index, &own)) return 0;
    psld_sized_write(key, &own);
    return 1;
}
