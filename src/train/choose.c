/* The choice of network and settings for data, and its reasons.
 *
 * With some hours of a processor, a network must see enough samples to learn well. So the rule is: take the largest
 * network of a list that sees as many samples as it needs within the time ("What is chosen" in
 * docs/reference/training.md says where the numbers come from). Steps then fill the time, since the learning rate falls
 * to 0 at the last one. */
#include "train/choose.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/model.h"
#include "train/settings.h"
#include "train/train_time.h"

typedef struct key_value {
    const char *key, *value;
} key_value;

static const key_value for_vectors[] = {
    {"process", "psld gamma=0.25"},
    {"model.name", "mlp"},
    {"model.nf", "128"},
    {"model.num_res_blocks", "4"},
    {"model.embedding_type", "fourier"},
    {"model.fourier_scale", "1"},
    {"train.batch", "512"},
    {"train.lr", "1e-3"},
    {"train.warmup", "200"},
    {"train.schedule", "cosine"},
    {"train.ema", "0.999"},
    {"train.sample_count", "2000"},
    {NULL, NULL},
};

static const key_value for_images[] = {
    {"process", "psld gamma=0.02"},
    {"model.name", "ncsnpp"},
    {"model.predicts", "data"},
    {"model.resblock_type", "ddpm"},
    {"model.resamp_with_conv", "false"},
    {"model.dropout", "0"},
    {"train.times", "noise"},
    {"train.noise_part", "0.95"},
    {"train.warmup", "200"},
    {"train.schedule", "cosine"},
    {"train.ema", "0.999"},
    {"train.sampler", "ancestral"},
    {"train.sample_nfe", "30"},
    {NULL, NULL},
};

static const key_value for_classifiers[] = {
    {"process", "psld gamma=0.02"},
    {"model.name", "ncsnpp_clf"},
    {"model.resblock_type", "ddpm"},
    {"model.resamp_with_conv", "false"},
    {"model.dropout", "0.1"},
    {"train.loss", "cross_entropy"},
    {"train.warmup", "200"},
    {"train.schedule", "cosine"},
    {"train.clip", "0"},
    {"train.ema", "0"},
    {NULL, NULL},
};

/* Networks for images, each more expensive than the one before. `places` is the largest side of the first level: larger
 * images are cut into patches. A network is chosen if it will see at least `samples`. */
typedef struct network_candidate {
    size_t places;
    const char *nf, *blocks, *batch, *lr;
    double samples;
} network_candidate;

static const network_candidate score_networks[] = {
    {32, "16", "1", "32", "2e-3", 0},     {32, "32", "1", "32", "1e-3", 1e5}, {32, "64", "1", "32", "5e-4", 6e5},
    {32, "64", "2", "32", "5e-4", 1.5e6}, {64, "64", "2", "32", "5e-4", 3e6}, {64, "128", "2", "64", "2e-4", 6e6},
};

static const network_candidate classifiers[] = {
    {32, "16", "1", "64", "1e-3", 0},
    {32, "32", "1", "64", "1e-3", 5e5},
    {32, "64", "2", "64", "5e-4", 1.5e6},
};

/* Training beyond this does not improve a network: passes over the data, and samples in all. */
enum { MAX_PASSES = 1000 };
#define MAX_VECTORS 1.024e7
#define MAX_LABELS  5e6 /* of classifiers */
#define MAX_IMAGES  1e9

/* The share of the time for steps; pictures, measurements and checkpoints take the rest. */
#define SHARE_OF_STEPS 0.93

static psld_status choose_keys(psld_yaml *yaml, const key_value *rows)
{
    for (; rows->key; rows++) PSLD_TRY(psld_settings_default(yaml, rows->key, rows->value));
    return PSLD_OK;
}

static psld_status choose_number(psld_yaml *yaml, const char *key, double number)
{
    char text[32];
    snprintf(text, sizeof text, "%.0f", number);
    return psld_settings_default(yaml, key, text);
}

void psld_choice_add_reason(psld_choice *choice, const char *format, ...)
{
    size_t used = strlen(choice->reasons);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(choice->reasons + used, sizeof choice->reasons - used, format, arguments);
    va_end(arguments);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

/* The cost of a network on this machine. */
typedef struct network_cost {
    double seconds; /* per step */
    double batch;
    double steps;   /* of the document; 0: not given */
    double picture; /* evaluations per picture of samples */
    double parameters;
} network_cost;

/* Samples that the network will see: as many as the time allows, or fewer if train.steps is given. */
static double samples_seen(const psld_choice *choice, const network_cost *cost)
{
    double steps = floor(SHARE_OF_STEPS * choice->seconds / cost->seconds);
    if (cost->steps > 0) steps = fmin(steps, cost->steps);
    return steps * cost->batch;
}

static psld_status measure_model(psld_model *model, const psld_choice *choice, network_cost *cost)
{
    enum { REPETITIONS = 3 };
    size_t share = ((size_t)cost->batch + (size_t)choice->ranks - 1) / (size_t)choice->ranks, bytes;
    cost->parameters = (double)psld_model_parameters(model);
    return psld_time_training_step(model, share, REPETITIONS, NULL, &cost->seconds, &bytes);
}

/* Times steps of the network that a document describes; the document gets the defaults of all keys. */
static psld_status measure_network_cost(psld_yaml *yaml, const psld_choice *choice, network_cost *cost)
{
    psld_settings settings;
    psld_model *model;
    const psld_node *train = psld_node_get(psld_yaml_root(yaml), "train");
    int says_steps = psld_node_get(train, "steps") != NULL;
    PSLD_TRY(psld_settings_complete(yaml));
    PSLD_TRY(psld_settings_read(yaml, &settings));
    cost->batch = (double)settings.train.batch;
    cost->steps = says_steps ? (double)settings.train.steps : 0;
    cost->picture = (double)(settings.train.sample_count * settings.train.sample_nfe);
    psld_settings_clear(&settings);
    PSLD_TRY(psld_model_from_config(yaml, 0, &model));
    psld_status status = measure_model(model, choice, cost);
    psld_model_free(model);
    return status;
}

static psld_status copy_document(const psld_yaml *yaml, psld_yaml **copy)
{
    char *text;
    *copy = NULL;
    PSLD_TRY(psld_yaml_text(yaml, &text));
    psld_status status = psld_yaml_parse(text, strlen(text), "data", copy);
    psld_release(text);
    return status;
}

/* Measures a copy, so that the document does not get the defaults. */
static psld_status measure_copy(const psld_yaml *yaml, const psld_choice *choice, network_cost *cost)
{
    psld_yaml *copy;
    PSLD_TRY(copy_document(yaml, &copy));
    psld_status status = measure_network_cost(copy, choice, cost);
    psld_yaml_free(copy);
    return status;
}

static double most_samples(const psld_choice *choice)
{
    if (choice->rank == 1) return MAX_VECTORS;
    return fmin(choice->classes ? MAX_LABELS : MAX_IMAGES, MAX_PASSES * (double)choice->items);
}

/* The number of steps, rounded: as many as the time allows, but no more than are useful. */
static double steps_for(const psld_choice *choice, const network_cost *cost)
{
    enum { FEWEST = 100 };
    double samples = fmin(samples_seen(choice, cost), most_samples(choice));
    double steps = fmax(floor(samples / cost->batch), FEWEST), unit = steps < 4000 ? 10 : 100;
    return floor(steps / unit) * unit;
}

static void explain_steps(psld_choice *choice, const network_cost *cost, double steps)
{
    double minutes = steps * cost->seconds / SHARE_OF_STEPS / 60;
    psld_choice_add_reason(choice, "%.0f steps of %.0f samples: %.3g samples/s on this machine now, about %.3g %s",
                           steps, cost->batch, cost->batch / cost->seconds, minutes < 120 ? minutes : minutes / 60,
                           minutes < 120 ? "minutes" : "hours");
    if (choice->rank == 3)
        psld_choice_add_reason(choice, ", %.3g passes over the data", steps * cost->batch / (double)choice->items);
    psld_choice_add_reason(choice, "\n");
}

/* How often something is done in a run of so many samples, if each time costs as much as training on `each` of them:
 * as often as 3 % of the time allow. */
static double repetitions_for(double samples, double each, double fewest, double most)
{
    return fmin(fmax(floor(0.03 * samples / each), fewest), most);
}

/* Spreads measurements, pictures and checkpoints over the steps. An evaluation costs a third of a training sample; a
 * measurement makes one of each of 64 samples in ten bins, with averaged and with raw weights. */
static psld_status choose_steps_and_intervals(psld_yaml *yaml, psld_choice *choice, const network_cost *cost)
{
    enum { CHECKPOINTS = 20, MEASUREMENTS = 40, PICTURES = 10 };
    double steps = cost->steps > 0 ? cost->steps : steps_for(choice, cost), samples = steps * cost->batch;
    double measurement = 64 * 10 * 2 / 3.0, picture = cost->picture / 3;
    PSLD_TRY(choose_number(yaml, "train.steps", steps));
    PSLD_TRY(choose_number(yaml, "train.evaluate_every",
                           ceil(steps / repetitions_for(samples, measurement, 4, MEASUREMENTS))));
    PSLD_TRY(choose_number(yaml, "train.sample_every", ceil(steps / repetitions_for(samples, picture, 1, PICTURES))));
    PSLD_TRY(choose_number(yaml, "train.checkpoint_every", ceil(steps / CHECKPOINTS)));
    explain_steps(choice, cost, steps);
    return PSLD_OK;
}

psld_status psld_choose_steps(psld_yaml *yaml, psld_choice *choice)
{
    network_cost cost;
    char assignment[64];
    choice->reasons[0] = 0;
    PSLD_TRY(measure_copy(yaml, choice, &cost));
    cost.steps = 0;
    double steps = steps_for(choice, &cost);
    snprintf(assignment, sizeof assignment, "train.steps=%.0f", steps);
    explain_steps(choice, &cost, steps);
    return psld_yaml_override(yaml, assignment);
}

/* ---- Networks for images ----------------------------------------------------------------------------------------- */

/* The size of patches for a network whose first level has about `places` per side. */
typedef struct image_layout {
    size_t patch, levels, size; /* `size` is that of images; the levels must be able to halve it */
} image_layout;

static image_layout plan_image_layout(size_t size, size_t places)
{
    image_layout l = {.patch = 1, .levels = 3};
    while (size / l.patch > places + places / 4) l.patch *= 2;
    for (size_t n = places; n > 32; n /= 2) l.levels++;
    while (l.levels > 1 && size / l.patch < (size_t)3 << (l.levels - 1)) l.levels--;
    size_t step = l.patch << (l.levels - 1);
    l.size = size < step ? step : size / step * step;
    return l;
}

static psld_status choose_network(psld_yaml *yaml, const psld_choice *choice, const network_candidate *row)
{
    static const char *const widths[] = {"", "[1]", "[1, 2]", "[1, 2, 4]", "[1, 1, 2, 4]"};
    size_t height = choice->shape[1], width = choice->shape[2];
    image_layout l = plan_image_layout(height < width ? height : width, row->places);
    char text[32];
    PSLD_TRY(choose_number(yaml, "data.size", (double)l.size));
    if (l.patch > 1) PSLD_TRY(choose_number(yaml, "model.patch", (double)l.patch));
    snprintf(text, sizeof text, "[%zu]", l.size / l.patch >> (l.levels - 1));
    PSLD_TRY(psld_settings_default(yaml, "model.attn_resolutions", choice->classes ? "[]" : text));
    PSLD_TRY(psld_settings_default(yaml, "model.ch_mult", widths[l.levels]));
    PSLD_TRY(psld_settings_default(yaml, "model.nf", row->nf));
    PSLD_TRY(psld_settings_default(yaml, "model.num_res_blocks", row->blocks));
    PSLD_TRY(psld_settings_default(yaml, "train.batch", row->batch));
    return psld_settings_default(yaml, "train.lr", row->lr);
}

static psld_status measure_candidate(const psld_yaml *yaml, const psld_choice *choice, const network_candidate *row,
                                     network_cost *cost)
{
    psld_yaml *copy;
    PSLD_TRY(copy_document(yaml, &copy));
    psld_status status = choose_network(copy, choice, row);
    if (status == PSLD_OK) status = measure_network_cost(copy, choice, cost);
    psld_yaml_free(copy);
    return status;
}

/* Tries larger and larger networks while the time allows the samples that they need. */
static psld_status find_largest_network(const psld_yaml *yaml, psld_choice *choice, const network_candidate *rows,
                                        size_t count, const network_candidate **best, network_cost *cost)
{
    const psld_node *model = psld_node_get(psld_yaml_root(yaml), "model");
    int is_fixed = psld_node_get(model, "nf") != NULL;
    network_cost next;
    *best = rows;
    PSLD_TRY(measure_candidate(yaml, choice, rows, cost));
    for (size_t i = 1; i < count && !is_fixed; i++) {
        if (samples_seen(choice, cost) < rows[i].samples) break; /* the smaller one already sees too few */
        PSLD_TRY(measure_candidate(yaml, choice, &rows[i], &next));
        double samples = samples_seen(choice, &next);
        if (samples < rows[i].samples) {
            psld_choice_add_reason(
                choice, "a larger one (model.nf %s, %.2fM parameters) would see %.3g samples, and needs %.3g\n",
                rows[i].nf, next.parameters / 1e6, samples, rows[i].samples);
            break;
        }
        *best = &rows[i];
        *cost = next;
    }
    return PSLD_OK;
}

static psld_status choose_for_images(psld_yaml *yaml, psld_choice *choice)
{
    const network_candidate *rows = choice->classes ? classifiers : score_networks, *best;
    size_t count = choice->classes ? sizeof classifiers / sizeof *rows : sizeof score_networks / sizeof *rows;
    network_cost cost;
    if (choice->shape[0] == 3) PSLD_TRY(psld_settings_default(yaml, "data.flip", "true"));
    /* Drawings need training at more noise than photographs: docs/measurements/training.md. */
    if (choice->shape[0] == 1 && !choice->classes) PSLD_TRY(psld_settings_default(yaml, "train.noise_middle", "2"));
    PSLD_TRY(choose_keys(yaml, choice->classes ? for_classifiers : for_images));
    if (choice->classes) PSLD_TRY(choose_number(yaml, "model.n_cls", (double)choice->classes));
    PSLD_TRY(find_largest_network(yaml, choice, rows, count, &best, &cost));
    PSLD_TRY(choose_network(yaml, choice, best));
    return choose_steps_and_intervals(yaml, choice, &cost);
}

psld_status psld_choose(psld_yaml *yaml, psld_choice *choice)
{
    choice->reasons[0] = 0;
    PSLD_TRY(choose_number(yaml, "data.channels", (double)choice->shape[0]));
    if (choice->rank == 3) return choose_for_images(yaml, choice);
    network_cost cost;
    PSLD_TRY(choose_keys(yaml, for_vectors));
    PSLD_TRY(measure_copy(yaml, choice, &cost));
    return choose_steps_and_intervals(yaml, choice, &cost);
}
