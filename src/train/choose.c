#include "train/choose.h"

#include <stdio.h>

#include "train/settings.h"

typedef struct choice {
    const char *key, *value;
} choice;

static const choice for_vectors[] = {
    {"process", "psld gamma=0.25"},
    {"model.name", "mlp"},
    {"model.nf", "128"},
    {"model.num_res_blocks", "4"},
    {"model.embedding_type", "fourier"},
    {"model.fourier_scale", "1"},
    {"train.batch", "512"},
    {"train.steps", "20000"},
    {"train.lr", "1e-3"},
    {"train.warmup", "200"},
    {"train.schedule", "cosine"},
    {"train.ema", "0.999"},
    {"train.sample_count", "2000"},
    {"train.checkpoint_every", "2000"},
    {"train.evaluate_every", "1000"},
    {NULL, NULL},
};

static const choice for_images[] = {
    {"process", "psld gamma=0.01"},
    {"model.name", "ncsnpp"},
    {"model.num_res_blocks", "2"},
    {"model.resblock_type", "biggan"},
    {"model.embedding_type", "fourier"},
    {"model.fourier_scale", "16"},
    {"model.fir", "true"},
    {"model.dropout", "0.1"},
    {"train.lr", "2e-4"},
    {"train.warmup", "1000"},
    {"train.ema", "0.9995"},
    {"train.checkpoint_every", "500"},
    {"train.sample_every", "1000"},
    {NULL, NULL},
};

static const choice for_classifiers[] = {
    {"process", "psld gamma=0.01"},
    {"model.name", "ncsnpp_clf"},
    {"model.num_res_blocks", "2"},
    {"model.resblock_type", "biggan"},
    {"model.embedding_type", "positional"},
    {"model.dropout", "0.1"},
    {"train.loss", "cross_entropy"},
    {"train.lr", "2e-4"},
    {"train.warmup", "500"},
    {"train.clip", "0"},
    {"train.ema", "0"},
    {"train.steps", "20000"},
    {"train.checkpoint_every", "500"},
    {NULL, NULL},
};

/* Networks by the size of images: as large as a processor can train in hours or days. The levels end at 7 or 8 pixels,
 * and attention looks at about 16. */
static const struct {
    size_t size; /* at most */
    const char *nf, *ch_mult, *attention, *batch, *steps;
} networks[] = {
    {16, "64", "[1, 2]", "[8]", "64", "40000"},
    {32, "64", "[1, 2, 2]", "[16, 14, 12]", "64", "60000"},
    {64, "64", "[1, 2, 2, 2]", "[16, 14, 12]", "32", "100000"},
    {128, "64", "[1, 1, 2, 2, 4]", "[16, 14, 12]", "16", "200000"},
    {4096, "64", "[1, 1, 2, 2, 4, 4]", "[16, 14, 12]", "8", "400000"},
};

static psld_status put_all(psld_yaml *yaml, const choice *choices)
{
    for (; choices->key; choices++) PSLD_TRY(psld_settings_default(yaml, choices->key, choices->value));
    return PSLD_OK;
}

static psld_status put_network(psld_yaml *yaml, size_t size)
{
    size_t row = 0;
    while (size > networks[row].size) row++;
    PSLD_TRY(psld_settings_default(yaml, "model.nf", networks[row].nf));
    PSLD_TRY(psld_settings_default(yaml, "model.ch_mult", networks[row].ch_mult));
    PSLD_TRY(psld_settings_default(yaml, "model.attn_resolutions", networks[row].attention));
    PSLD_TRY(psld_settings_default(yaml, "train.batch", networks[row].batch));
    return psld_settings_default(yaml, "train.steps", networks[row].steps);
}

/* The largest size up to `size` that the levels can halve. */
static size_t size_for_levels(size_t size)
{
    size_t halvings = size <= 16    ? 1
                      : size <= 32  ? 2
                      : size <= 64  ? 3
                      : size <= 128 ? 4
                                    : 5,
           step = (size_t)1 << halvings;
    return size < step ? step : size / step * step;
}

psld_status psld_choose(psld_yaml *yaml, int rank, const size_t *shape, size_t classes)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", shape[0]);
    PSLD_TRY(psld_settings_default(yaml, "data.channels", text));
    if (rank == 1) return put_all(yaml, for_vectors);
    size_t size = size_for_levels(shape[1] < shape[2] ? shape[1] : shape[2]);
    snprintf(text, sizeof text, "%zu", size);
    PSLD_TRY(psld_settings_default(yaml, "data.size", text));
    if (shape[0] == 3) PSLD_TRY(psld_settings_default(yaml, "data.flip", "true"));
    PSLD_TRY(put_all(yaml, classes ? for_classifiers : for_images));
    if (classes) {
        snprintf(text, sizeof text, "%zu", classes);
        PSLD_TRY(psld_settings_default(yaml, "model.n_cls", text));
    }
    return put_network(yaml, size);
}
