/* Networks of NVIDIA's EDM. The reader of the pickle (io/tensors/persistent.c) returns notes: "class" and "init.KEY" of
 * the preconditioning, "model.class" and "model.init.KEY" of the network in it. Missing values have the default of the
 * class. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/foreign/foreign.h"

enum { LARGEST = 1 << 20 };
#define WORD_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.,[] "

typedef struct reader {
    const char *path;
    const psld_tensors *tensors;
} reader;

static const char *argument(const reader *r, const char *prefix, const char *key, const char *otherwise)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", prefix, key);
    const char *text = psld_tensors_note(r->tensors, name);
    if (!text || strcmp(text, "null") == 0) return otherwise;
    /* the text is inserted into a configuration, so it must be a value and nothing else */
    return text[strspn(text, WORD_LETTERS)] ? "something_else" : text;
}

static psld_status read_whole(const reader *r, const char *key, const char *otherwise, int64_t min, int64_t *value)
{
    const char *text = argument(r, "model.init.", key, otherwise);
    if (text && psld_text_integer(text, value) && *value >= min && *value <= LARGEST) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: %s of the network: expected a whole number of at least %lld, found %.40s",
                     r->path, key, (long long)min, text ? text : "none");
}

/* ---- The network ------------------------------------------------------------------------------------------------- */

/* Translates a word of EDM's configuration to ours. */
static psld_status translate_word(const reader *r, const char *key, const char *otherwise, const char *const pairs[][2],
                                  const char **ours)
{
    const char *text = argument(r, "model.init.", key, otherwise);
    for (int i = 0; pairs[i][0]; i++) {
        *ours = pairs[i][1];
        if (strcmp(text, pairs[i][0]) == 0) return PSLD_OK;
    }
    return psld_fail(PSLD_BAD_INPUT, "%s: %s of the network: expected %s, %s or another supported word, found %.40s",
                     r->path, key, pairs[0][0], pairs[1][0], text);
}

static psld_status put_song(const reader *r, psld_config_text *c, int64_t channels)
{
    static const char *const embeddings[][2] = {{"positional", "positional"}, {"fourier", "fourier"}, {NULL, NULL}};
    static const char *const encoders[][2] = {
        {"standard", "none"}, {"skip", "input_skip"}, {"residual", "residual"}, {NULL, NULL}};
    static const char *const decoders[][2] = {{"standard", "none"}, {"skip", "output_skip"}, {NULL, NULL}};
    const char *embedding, *encoder, *decoder, *filter = argument(r, "model.init.", "resample_filter", "[1, 1]");
    int64_t noise, emb;
    PSLD_TRY(translate_word(r, "embedding_type", "positional", embeddings, &embedding));
    PSLD_TRY(translate_word(r, "encoder_type", "standard", encoders, &encoder));
    PSLD_TRY(translate_word(r, "decoder_type", "standard", decoders, &decoder));
    PSLD_TRY(read_whole(r, "channel_mult_noise", "1", 1, &noise));
    PSLD_TRY(read_whole(r, "channel_mult_emb", "4", 1, &emb));
    psld_config_put(c,
                    "  name: songunet\n  ch_mult: %s\n  num_res_blocks: %s\n  attn_resolutions: %s\n"
                    "  embedding_type: %s\n  progressive_input: %s\n  progressive: %s\n  fir_kernel: %s\n"
                    "  embedding_channels: %lld\n  time_channels: %lld\n",
                    argument(r, "model.init.", "channel_mult", "[1, 2, 2, 2]"),
                    argument(r, "model.init.", "num_blocks", "4"),
                    argument(r, "model.init.", "attn_resolutions", "[16]"), embedding, encoder, decoder, filter,
                    (long long)(channels * noise), (long long)(channels * emb));
    return PSLD_OK;
}

static psld_status put_adm(const reader *r, psld_config_text *c, int64_t channels)
{
    int64_t emb;
    PSLD_TRY(read_whole(r, "channel_mult_emb", "4", 1, &emb));
    psld_config_put(c,
                    "  name: adm\n  ch_mult: %s\n  num_res_blocks: %s\n  attn_resolutions: %s\n  head_channels: 64\n"
                    "  embedding_channels: %lld\n  time_channels: %lld\n",
                    argument(r, "model.init.", "channel_mult", "[1, 2, 3, 4]"),
                    argument(r, "model.init.", "num_blocks", "3"),
                    argument(r, "model.init.", "attn_resolutions", "[32, 16, 8]"), (long long)channels,
                    (long long)(channels * emb));
    return PSLD_OK;
}

static psld_status put_network(const reader *r, psld_config_text *c)
{
    const char *kind = argument(r, "", "model.class", "nothing");
    int64_t channels, in, out, classes, augment, size;
    int is_song = strcmp(kind, "SongUNet") == 0, is_adm = strcmp(kind, "DhariwalUNet") == 0;
    if (!is_song && !is_adm)
        return psld_fail(PSLD_BAD_INPUT, "%s: the network is of class %.60s; expected SongUNet or DhariwalUNet",
                         r->path, kind);
    PSLD_TRY(read_whole(r, "img_resolution", NULL, 1, &size));
    PSLD_TRY(read_whole(r, "in_channels", NULL, 1, &in));
    PSLD_TRY(read_whole(r, "out_channels", NULL, 1, &out));
    PSLD_TRY(read_whole(r, "label_dim", "0", 0, &classes));
    PSLD_TRY(read_whole(r, "augment_dim", "0", 0, &augment));
    PSLD_TRY(read_whole(r, "model_channels", is_song ? "128" : "192", 1, &channels));
    if (out != in && out != 2 * in)
        return psld_fail(PSLD_BAD_INPUT, "%s: out_channels of the network: expected %lld or %lld, found %lld", r->path,
                         (long long)in, (long long)(2 * in), (long long)out);
    psld_config_put(c, "data: {size: %lld, channels: %lld}\nmodel:\n", (long long)size, (long long)in);
    PSLD_TRY((is_song ? put_song : put_adm)(r, c, channels));
    psld_config_put(c, "  in_ch: %lld\n  out_ch: %lld\n  learned_variance: %s\n  nf: %lld\n  classes: %lld\n",
                    (long long)in, (long long)in, out == in ? "false" : "true", (long long)channels,
                    (long long)classes);
    if (augment) psld_config_put(c, "  augment_inputs: %lld\n", (long long)augment);
    return PSLD_OK;
}

/* ---- The preconditioning ----------------------------------------------------------------------------------------- */

typedef struct precond_class {
    const char *name, *kind;
    const char *keys[6][2]; /* EDM's name, our name */
} precond_class;

static const precond_class classes[] = {
    {"EDMPrecond",
     "edm",
     {{"sigma_data", "sigma_data"}, {"sigma_min", "sigma_min"}, {"sigma_max", "sigma_max"}, {NULL, NULL}}},
    {"VPPrecond",
     "vp",
     {{"beta_d", "beta_d"}, {"beta_min", "beta_min"}, {"M", "steps"}, {"epsilon_t", "epsilon_t"}, {NULL, NULL}}},
    {"VEPrecond", "ve", {{"sigma_min", "sigma_min"}, {"sigma_max", "sigma_max"}, {NULL, NULL}}},
    {"iDDPMPrecond", "iddpm", {{"C_1", "c1"}, {"C_2", "c2"}, {"M", "steps"}, {NULL, NULL}}},
};

static psld_status put_preconditioning(const reader *r, psld_config_text *c)
{
    const char *name = argument(r, "", "class", "nothing");
    const precond_class *found = NULL;
    char lines[512];
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(name, classes[i].name) == 0) found = &classes[i];
    if (!found)
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: an object of class %.60s; expected EDMPrecond, VPPrecond, VEPrecond or iDDPMPrecond",
                         r->path, name);
    size_t used = (size_t)snprintf(lines, sizeof lines, "{kind: %s", found->kind);
    for (int i = 0; found->keys[i][0]; i++) {
        const char *value = argument(r, "init.", found->keys[i][0], NULL);
        if (value && strlen(value) < 64)
            used += (size_t)snprintf(lines + used, sizeof lines - used, ", %s: %s", found->keys[i][1], value);
    }

    snprintf(lines + used, sizeof lines - used, "}");
    return psld_config_put_denoiser(c, r->path, lines);
}

psld_status psld_edm_describe(const char *path, psld_tensors *tensors)
{
    reader r = {path, tensors};
    psld_config_text *config = psld_alloc(1, sizeof *config);
    if (!config) return PSLD_NO_MEMORY;
    psld_status status = put_preconditioning(&r, config);
    if (status == PSLD_OK) status = put_network(&r, config);
    if (status == PSLD_OK) status = psld_config_note(config, path, "edm", tensors);
    psld_release(config);
    return status;
}
