/* UNet2DModel of the diffusers package. JSON is read by the YAML reader (JSON is a subset), so that messages have lines
 * and keys. A missing key has the default of the class.
 *
 * A folder is that of a pipeline, with unet/ and scheduler/ in it, or unet/ itself. Without scheduler_config.json the
 * defaults of DDPMScheduler are used. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/foreign/foreign.h"
#include "model/networks/network.h"

enum { PATH = 4096, LARGEST = PSLD_MAX_CHANNELS };

static int is_there(const char *folder, const char *name, char path[PATH])
{
    return snprintf(path, PATH, "%s/%s", folder, name) < PATH && access(path, F_OK) == 0;
}

/* Finds the folder with config.json and the weights, and the scheduler's file ("" if there is none). */
typedef struct places {
    char config[PATH], unet[PATH], scheduler[PATH];
} places;

static int find_places(const char *folder, places *p)
{
    const char *inside = "scheduler/scheduler_config.json";
    snprintf(p->unet, sizeof p->unet, "%s", folder);
    if (is_there(folder, "unet/config.json", p->config)) {
        if (snprintf(p->unet, sizeof p->unet, "%s/unet", folder) >= PATH) return 0;
    } else if (!is_there(folder, "config.json", p->config)) {
        return 0;
    } else {
        inside = "../scheduler/scheduler_config.json";
    }
    if (!is_there(folder, inside, p->scheduler) && !is_there(folder, "scheduler_config.json", p->scheduler))
        p->scheduler[0] = 0;
    return 1;
}

int psld_foreign_is_folder(const char *path)
{
    struct stat about;
    char found[PATH];
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode) && !is_there(path, "model.safetensors", found) &&
           (is_there(path, "config.json", found) || is_there(path, "unet/config.json", found) ||
            is_there(path, "model_index.json", found));
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* The value of a key; NULL if it is missing or null. */
static const psld_node *key_given(const psld_node *map, const char *key)
{
    const psld_node *node = psld_node_get(map, key);
    const char *text = "";
    if (!node || psld_node_kind_of(node) != PSLD_NODE_SCALAR) return node;
    return psld_node_text(node, &text) == PSLD_OK && *text && strcmp(text, "null") != 0 ? node : NULL;
}

static psld_status get_whole(const psld_node *map, const char *key, int min, int otherwise, int *value)
{
    const psld_node *node = key_given(map, key);
    int64_t number = otherwise;
    if (node) PSLD_TRY(psld_node_integer(node, min, LARGEST, &number));
    *value = (int)number;
    return PSLD_OK;
}

static psld_status get_number(const psld_node *map, const char *key, double otherwise, double *value)
{
    const psld_node *node = key_given(map, key);
    *value = otherwise;
    return node ? psld_node_number(node, value) : PSLD_OK;
}

static psld_status get_flag(const psld_node *map, const char *key, int otherwise, int *value)
{
    const psld_node *node = key_given(map, key);
    *value = otherwise;
    return node ? psld_node_flag(node, value) : PSLD_OK;
}

static psld_status get_word(const psld_node *map, const char *key, const char *words, int otherwise, int *value)
{
    const psld_node *node = key_given(map, key);
    *value = otherwise;
    return node ? psld_node_choice(node, words, value) : PSLD_OK;
}

/* Fails if a key has another value than the only supported one. */
static psld_status expect_word(const psld_node *map, const char *key, const char *word)
{
    int position;
    return get_word(map, key, word, 0, &position);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

#define DOWN_BLOCKS "DownBlock2D|AttnDownBlock2D|ResnetDownsampleBlock2D"
#define UP_BLOCKS   "UpBlock2D|AttnUpBlock2D|ResnetUpsampleBlock2D"

/* Reads the kinds of the blocks of a path: for each, its position among `words`. */
enum { PLAIN, WITH_ATTENTION, BY_BLOCK };

static psld_status read_blocks(const psld_node *map, const char *key, const char *words, const char *otherwise,
                               int levels, int kinds[PSLD_MAX_LEVELS])
{
    const psld_node *list = key_given(map, key);
    if (!list) {
        for (int i = 0; i < levels; i++) kinds[i] = otherwise[i] == 'A' ? WITH_ATTENTION : PLAIN;
        return levels == 4 ? PSLD_OK
                           : psld_node_fail(map, "%s is missing; its default has 4 blocks, expected %d", key, levels);
    }
    if (psld_node_kind_of(list) != PSLD_NODE_LIST || psld_node_size(list) != (size_t)levels)
        return psld_node_fail(list, "expected as many blocks as block_out_channels has numbers, %d", levels);
    for (int i = 0; i < levels; i++) PSLD_TRY(psld_node_choice(psld_node_at(list, (size_t)i), words, &kinds[i]));
    return PSLD_OK;
}

static int common_divisor(int a, int b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Channels of the levels as a width and its multiples. */
static psld_status read_channels(const psld_node *map, int *levels, int *width, int channels[PSLD_MAX_LEVELS])
{
    static const int initial[4] = {224, 448, 672, 896};
    const psld_node *list = key_given(map, "block_out_channels");
    *levels = 4;
    *width = 0;
    if (list && (psld_node_kind_of(list) != PSLD_NODE_LIST || psld_node_size(list) < 1 ||
                 psld_node_size(list) > PSLD_MAX_LEVELS))
        return psld_node_fail(list, "expected a list of 1 to %d numbers", PSLD_MAX_LEVELS);
    if (list) *levels = (int)psld_node_size(list);
    for (int i = 0; i < *levels; i++) {
        int64_t number = list ? 0 : initial[i];
        if (list) PSLD_TRY(psld_node_integer(psld_node_at(list, (size_t)i), 1, LARGEST, &number));
        channels[i] = (int)number;
        *width = common_divisor(channels[i], *width);
    }
    return PSLD_OK;
}

/* Writes the levels of one kind as a list; the finest level is 1. `turned`: blocks are listed from the coarsest. */
static void put_levels(psld_config_text *c, const char *key, const int *kinds, int levels, int turned, int kind,
                       int also_kind)
{
    int found = 0;
    psld_config_put(c, "  %s: [", key);
    for (int level = 0; level < levels; level++) {
        int is = kinds[turned ? levels - 1 - level : level];
        if (is == kind || is == also_kind) psld_config_put(c, "%s%d", found++ ? ", " : "", level + 1);
    }
    psld_config_put(c, "]\n");
}

/* downsample_type and upsample_type concern only blocks with attention. */
static psld_status put_blocks(const psld_node *map, psld_config_text *c, int *first_channels)
{
    int levels, width, channels[PSLD_MAX_LEVELS], down[PSLD_MAX_LEVELS], up[PSLD_MAX_LEVELS], down_type, up_type,
        layers;
    PSLD_TRY(read_channels(map, &levels, &width, channels));
    PSLD_TRY(read_blocks(map, "down_block_types", DOWN_BLOCKS, "DAAA", levels, down));
    PSLD_TRY(read_blocks(map, "up_block_types", UP_BLOCKS, "AAAU", levels, up));
    PSLD_TRY(get_word(map, "downsample_type", "conv|resnet", 0, &down_type));
    PSLD_TRY(get_word(map, "upsample_type", "conv|resnet", 0, &up_type));
    PSLD_TRY(get_whole(map, "layers_per_block", 1, 2, &layers));
    psld_config_put(c, "  nf: %d\n  ch_mult: [", width);
    for (int i = 0; i < levels; i++) psld_config_put(c, "%s%d", i ? ", " : "", channels[i] / width);
    psld_config_put(c, "]\n  num_res_blocks: %d\n", layers);
    put_levels(c, "attn_down", down, levels, 0, WITH_ATTENTION, -1);
    put_levels(c, "attn_up", up, levels, 1, WITH_ATTENTION, -1);
    put_levels(c, "block_down", down, levels, 0, BY_BLOCK, down_type ? WITH_ATTENTION : -1);
    put_levels(c, "block_up", up, levels, 1, BY_BLOCK, up_type ? WITH_ATTENTION : -1);
    *first_channels = channels[0];
    return PSLD_OK;
}

/* ---- The rest of the network ------------------------------------------------------------------------------------- */

static psld_status put_norms(const psld_node *map, psld_config_text *c)
{
    int groups, middle, shifted, attention, heads = 8, activation, no_middle;
    double eps, scale;
    const psld_node *dim = psld_node_get(map, "attention_head_dim"), *mid = psld_node_get(map, "mid_block_type");
    PSLD_TRY(get_whole(map, "norm_num_groups", 1, 32, &groups));
    PSLD_TRY(get_whole(map, "attn_norm_num_groups", 1, 0, &middle));
    PSLD_TRY(get_number(map, "norm_eps", 1e-5, &eps));
    PSLD_TRY(get_number(map, "mid_block_scale_factor", 1, &scale));
    PSLD_TRY(get_word(map, "resnet_time_scale_shift", "default|scale_shift", 0, &shifted));
    PSLD_TRY(get_flag(map, "add_attention", 1, &attention));
    PSLD_TRY(get_word(map, "act_fn", "silu|swish|relu", 0, &activation));
    PSLD_TRY(expect_word(map, "mid_block_type", "UNetMidBlock2D"));
    no_middle = mid && !key_given(map, "mid_block_type");
    if (dim) PSLD_TRY(get_whole(map, "attention_head_dim", 1, 0, &heads)); /* null: one head; missing: 8 channels */
    if (middle == 0 && shifted) middle = -1;
    psld_config_put(c,
                    "  norm_groups: %d\n  norm_eps: %.17g\n  mid_attn_groups: %d\n  mid_scale: %.17g\n"
                    "  scale_shift: %s\n  without_mid_attention: %s\n  without_middle: %s\n  head_channels: %d\n"
                    "  nonlinearity: %s\n",
                    groups, eps, middle, scale, shifted ? "true" : "false", attention ? "false" : "true",
                    no_middle ? "true" : "false", heads, activation == 2 ? "relu" : "swish");
    return PSLD_OK;
}

static psld_status put_time(const psld_node *map, psld_config_text *c, int first_channels)
{
    int time, flip, pad, centre;
    double shift;
    PSLD_TRY(expect_word(map, "time_embedding_type", "positional"));
    PSLD_TRY(get_whole(map, "time_embedding_dim", 1, 4 * first_channels, &time));
    PSLD_TRY(get_number(map, "freq_shift", 0, &shift));
    PSLD_TRY(get_flag(map, "flip_sin_to_cos", 1, &flip));
    PSLD_TRY(get_whole(map, "downsample_padding", 0, 1, &pad));
    PSLD_TRY(get_flag(map, "center_input_sample", 0, &centre));
    psld_config_put(c,
                    "  embedding_channels: %d\n  time_channels: %d\n  freq_shift: %.17g\n  cos_first: %s\n"
                    "  down_pad: %d\n  centre_input: %s\n",
                    first_channels, time, shift, flip ? "true" : "false", pad, centre ? "true" : "false");
    return PSLD_OK;
}

/* Labels that are embedded like times may be any number; the default is as many as timesteps. */
static psld_status put_labels(const psld_node *map, psld_config_text *c)
{
    enum { TIMESTEPS = 1000 };
    int classes, timestep = key_given(map, "class_embed_type") != NULL;
    PSLD_TRY(get_whole(map, "num_class_embeds", 1, 0, &classes));
    PSLD_TRY(expect_word(map, "class_embed_type", "timestep"));
    if (timestep && classes == 0) classes = TIMESTEPS;
    psld_config_put(c, "  classes: %d\n  class_embedding: %s\n", classes, timestep ? "timestep" : "table");
    return PSLD_OK;
}

static psld_status read_size(const psld_node *map, int *size)
{
    const psld_node *node = key_given(map, "sample_size");
    int64_t height = 0, width = 0;
    if (!node) return psld_node_fail(map, "sample_size is missing: the height and width of images");
    if (psld_node_kind_of(node) != PSLD_NODE_LIST) return get_whole(map, "sample_size", 1, 0, size);
    if (psld_node_size(node) != 2) return psld_node_fail(node, "expected one number or two");
    PSLD_TRY(psld_node_integer(psld_node_at(node, 0), 1, PSLD_MAX_IMAGE, &height));
    PSLD_TRY(psld_node_integer(psld_node_at(node, 1), 1, PSLD_MAX_IMAGE, &width));
    *size = (int)height;
    return height == width ? PSLD_OK : psld_node_fail(node, "expected square images");
}

static psld_status put_unet(const psld_node *map, psld_config_text *c)
{
    int size = 0, in, out, first_channels;
    PSLD_TRY(expect_word(map, "_class_name", "UNet2DModel"));
    PSLD_TRY(read_size(map, &size));
    PSLD_TRY(get_whole(map, "in_channels", 1, 3, &in));
    PSLD_TRY(get_whole(map, "out_channels", 1, 3, &out));
    if (out != in && out != 2 * in)
        return psld_node_fail(map, "out_channels: expected %d or %d, found %d", in, 2 * in, out);
    psld_config_put(c, "data: {size: %d, channels: %d}\nmodel:\n  name: unet2d\n  in_ch: %d\n  out_ch: %d\n", size, in,
                    in, in);
    psld_config_put(c, "  learned_variance: %s\n", out == in ? "false" : "true");
    PSLD_TRY(put_blocks(map, c, &first_channels));
    PSLD_TRY(put_norms(map, c));
    PSLD_TRY(put_time(map, c, first_channels));
    return put_labels(map, c);
}

/* ---- The scheduler ----------------------------------------------------------------------------------------------- */

/* Reads the noise of schedulers with a table of betas. */
#define SCHEDULERS                                                                                                \
    "DDPMScheduler|DDIMScheduler|PNDMScheduler|DDPMParallelScheduler|DDIMParallelScheduler|DDIMInverseScheduler|" \
    "LMSDiscreteScheduler|EulerDiscreteScheduler|EulerAncestralDiscreteScheduler|HeunDiscreteScheduler|"          \
    "KDPM2DiscreteScheduler|KDPM2AncestralDiscreteScheduler|DPMSolverMultistepScheduler|"                         \
    "DPMSolverSinglestepScheduler|DPMSolverSDEScheduler|DEISMultistepScheduler|UniPCMultistepScheduler|"          \
    "SASolverScheduler"

/* What the network predicts, in the form of old files and of new ones. */
static psld_status read_prediction(const psld_node *map, int *prediction)
{
    int epsilon;
    PSLD_TRY(get_flag(map, "predict_epsilon", 1, &epsilon));
    return get_word(map, "prediction_type", "epsilon|sample|v_prediction", epsilon ? 0 : 1, prediction);
}

static psld_status put_betas(const psld_node *list, psld_config_text *lines)
{
    if (psld_node_kind_of(list) != PSLD_NODE_LIST) return psld_node_fail(list, "expected a list of numbers");
    psld_config_put(lines, ", schedule: table, betas: [");
    for (size_t i = 0; i < psld_node_size(list); i++) {
        double beta;
        PSLD_TRY(psld_node_number(psld_node_at(list, i), &beta));
        psld_config_put(lines, "%s%.17g", i ? ", " : "", beta);
    }
    psld_config_put(lines, "]");
    return PSLD_OK;
}

static psld_status write_schedule(const psld_node *map, psld_config_text *lines)
{
    static const char *const schedules[] = {"linear", "scaled_linear", "squaredcos_cap_v2", "sigmoid"};
    static const char *const predictions[] = {"epsilon", "sample", "v_prediction"};
    int steps, schedule, prediction, rescaled;
    double start, end;
    const psld_node *betas = key_given(map, "trained_betas");
    PSLD_TRY(expect_word(map, "_class_name", SCHEDULERS));
    PSLD_TRY(get_whole(map, "num_train_timesteps", 2, 1000, &steps));
    PSLD_TRY(get_number(map, "beta_start", 1e-4, &start));
    PSLD_TRY(get_number(map, "beta_end", 0.02, &end));
    PSLD_TRY(get_word(map, "beta_schedule", "linear|scaled_linear|squaredcos_cap_v2|sigmoid", 0, &schedule));
    PSLD_TRY(read_prediction(map, &prediction));
    PSLD_TRY(get_flag(map, "rescale_betas_zero_snr", 0, &rescaled));
    if (rescaled)
        return psld_node_fail(key_given(map, "rescale_betas_zero_snr"),
                              "expected false: a last timestep without any data has no finite noise");
    psld_config_put(lines, "{kind: timesteps, predicts: %s", predictions[prediction]);
    if (betas)
        PSLD_TRY(put_betas(betas, lines));
    else
        psld_config_put(lines, ", schedule: %s, steps: %d, beta_start: %.17g, beta_end: %.17g", schedules[schedule],
                        steps, start, end);
    psld_config_put(lines, "}");
    return PSLD_OK;
}

static psld_status put_scheduler(const places *p, psld_config_text *c)
{
    psld_yaml *yaml = NULL;
    psld_config_text *lines = psld_alloc(1, sizeof *lines);
    if (!lines) return PSLD_NO_MEMORY;
    psld_status status = p->scheduler[0] ? psld_yaml_load_found(p->scheduler, &yaml)
                                         : psld_yaml_parse("{}", 2, "scheduler_config.json", &yaml);
    if (status == PSLD_OK) status = write_schedule(psld_yaml_root(yaml), lines);
    if (status == PSLD_OK && lines->full) status = psld_fail(PSLD_BAD_INPUT, "%s: is too long", p->scheduler);
    if (status == PSLD_OK)
        status = psld_config_put_denoiser(c, p->scheduler[0] ? p->scheduler : p->config, lines->text);
    psld_yaml_free(yaml);
    psld_release(lines);
    return status;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static psld_status write_config(const places *p, psld_config_text *c)
{
    psld_yaml *yaml;
    PSLD_TRY(psld_yaml_load_found(p->config, &yaml));
    psld_status status = put_unet(psld_yaml_root(yaml), c);
    psld_yaml_free(yaml);
    return status == PSLD_OK ? put_scheduler(p, c) : status;
}

static psld_status open_weights(const places *p, psld_tensors **tensors)
{
    static const char *const names[] = {"diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin",
                                        "diffusion_pytorch_model.fp16.safetensors", "diffusion_pytorch_model.fp16.bin"};
    char path[PATH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_there(p->unet, names[i], path)) return psld_tensors_open(path, tensors);
    return psld_fail(PSLD_BAD_INPUT, "%s: has no weights: expected %s or %s", p->unet, names[0], names[1]);
}

psld_status psld_diffusers_open(const char *folder, psld_tensors **tensors)
{
    *tensors = NULL;
    struct {
        places places;
        psld_config_text config;
    } *own = psld_alloc(1, sizeof *own);
    if (!own) return PSLD_NO_MEMORY;
    psld_status status =
        find_places(folder, &own->places)
            ? write_config(&own->places, &own->config)
            : psld_fail(PSLD_BAD_INPUT,
                        "%s: has no unet/config.json; expected the folder of a pipeline with a UNet2DModel", folder);
    if (status == PSLD_OK) status = open_weights(&own->places, tensors);
    if (status == PSLD_OK) status = psld_config_note(&own->config, folder, "diffusers", *tensors);
    if (status != PSLD_OK) {
        psld_tensors_free(*tensors);
        *tensors = NULL;
    }
    psld_release(own);
    return status;
}
