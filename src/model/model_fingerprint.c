/* A number that tells models apart. */
#include <string.h>

#include "model/model.h"

/* Eight bytes at a time, mixed as FNV-1a does and turned so that high bits reach low ones. No defence against someone
 * who wants two models to look the same. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* The weights as they are in one buffer, zeros between them included. */
static uint64_t mix_weights(uint64_t hash, const psld_network *network)
{
    const psld_graph *graph = network->graph;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const psld_parameter *p = &graph->parameters[i];
        size_t end = i + 1 < graph->parameter_count ? p[1].offset : graph->parameter_elements;
        hash = mix(hash, network->at[i], p->count * sizeof(float));
        for (size_t left = (end - p->offset - p->count) / 2; left > 0; left--) hash = mix(hash, &(uint64_t){0}, 8);
    }
    return hash;
}

uint64_t psld_model_fingerprint(const psld_model *model)
{
    uint64_t hash = mix(0xcbf29ce484222325u, model->config, strlen(model->config));
    if (model->network) hash = mix_weights(hash, model->network);
    if (model->weak) {
        uint64_t weak = psld_model_fingerprint(model->weak);
        hash = mix(mix(hash, &weak, sizeof weak), &model->weak_scale, sizeof model->weak_scale);
    }
    if (!model->recipe) return hash;
    const psld_recipe_spec *r = &model->recipe->spec;
    size_t k = (size_t)r->k, aux = k - 1;
    hash = mix(hash, r->D, k * k * sizeof *r->D);
    hash = mix(hash, r->Q, k * k * sizeof *r->Q);
    hash = mix(hash, r->mass, aux * sizeof *r->mass);
    hash = mix(hash, r->init, aux * sizeof *r->init);
    const double rest[4] = {r->beta_min, r->beta_max, r->stabiliser, (double)r->upper};
    hash = mix(hash, rest, sizeof rest);
    if (r->mode == PSLD_DSM) hash = mix(hash, "dsm", 3);
    /* an upper factor of several channels was once read with these reversed */
    if (r->natural || (r->upper && model->recipe->predicted > 1))
        hash = mix(hash, model->recipe->order, k * sizeof *model->recipe->order);
    return hash;
}
