/* A number that identifies a model. */
#include <string.h>

#include "base/hash.h"
#include "model/model.h"

/* The weights in one buffer, with the zeros between them. */
static uint64_t hash_weights(uint64_t hash, const psld_network *network)
{
    const psld_graph *graph = network->graph;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        size_t end = i + 1 < graph->parameter_count ? p[1].offset : graph->parameter_elements;
        hash = psld_hash_words(hash, network->at[i], p->count * sizeof(float));
        for (size_t left = (end - p->offset - p->count) / 2; left > 0; left--)
            hash = psld_hash_words(hash, &(uint64_t){0}, 8);
    }
    return hash;
}

uint64_t psld_model_fingerprint(const psld_model *model)
{
    uint64_t hash = psld_hash_words(PSLD_HASH_START, model->config, strlen(model->config));
    if (model->network) hash = hash_weights(hash, model->network);
    if (model->weak) {
        uint64_t weak = psld_model_fingerprint(model->weak);
        hash = psld_hash_words(psld_hash_words(hash, &weak, sizeof weak), &model->weak_scale, sizeof model->weak_scale);
    }
    if (!model->recipe) return hash;
    const psld_recipe_spec *r = &model->recipe->spec;
    size_t k = (size_t)r->k, aux = k - 1;
    hash = psld_hash_words(hash, r->D, k * k * sizeof *r->D);
    hash = psld_hash_words(hash, r->Q, k * k * sizeof *r->Q);
    hash = psld_hash_words(hash, r->mass, aux * sizeof *r->mass);
    hash = psld_hash_words(hash, r->init, aux * sizeof *r->init);
    const double rest[4] = {r->beta_min, r->beta_max, r->stabiliser, (double)r->upper};
    hash = psld_hash_words(hash, rest, sizeof rest);
    if (r->mode == PSLD_DSM) hash = psld_hash_words(hash, "dsm", 3);
    /* an earlier version read upper factors of several channels in reversed order: its numbers must differ */
    if (r->natural || (r->upper && model->recipe->predicted > 1))
        hash = psld_hash_words(hash, model->recipe->order, k * sizeof *model->recipe->order);
    return hash;
}
