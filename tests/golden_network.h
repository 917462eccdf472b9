/* The networks of golden folders. Weights that follow from the formula of formula.h need no file. */
#ifndef PSLD_TESTS_GOLDEN_NETWORK_H
#define PSLD_TESTS_GOLDEN_NETWORK_H

#include "formula.h"
#include "golden.h"
#include "io/tensors/tensors.h"
#include "io/yaml/yaml.h"
#include "model/networks/network.h"

static inline psld_network_config golden_config(const char *folder)
{
    char path[GOLDEN_PATH];
    psld_yaml *yaml = NULL;
    psld_network_config config;
    golden_path(folder, "config.yaml", path);
    if (psld_yaml_load(path, &yaml) != PSLD_OK) fail_msg("%s", psld_error_text());
    if (psld_network_config_read(psld_yaml_root(yaml), NULL, &config) != PSLD_OK) fail_msg("%s", psld_error_text());
    psld_yaml_free(yaml);
    return config;
}

/* The weights by the formula, in a file of the working directory. */
static inline void golden_write_formula(const char *folder, char path[GOLDEN_PATH])
{
    psld_network_config config = golden_config(folder);
    psld_network *network = NULL;
    psld_tensors *tensors = NULL;
    assert_int_equal(psld_network_create(&config, &network), PSLD_OK);
    formula_weights(network);
    assert_int_equal(psld_tensors_create(&tensors), PSLD_OK);
    for (size_t i = 0; i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        size_t shape[4] = {(size_t)p->shape[0], (size_t)p->shape[1], (size_t)p->shape[2], (size_t)p->shape[3]};
        psld_tensors_add(tensors, p->name, PSLD_ELEMENT_F32, p->rank, shape, network->weights + p->offset);
    }
    snprintf(path, GOLDEN_PATH, "formula-%s.safetensors", golden_name(folder));
    if (psld_tensors_save(tensors, PSLD_SAFETENSORS, path) != PSLD_OK) fail_msg("%s", psld_error_text());
    psld_tensors_free(tensors);
    psld_network_free(network);
}

/* The folder's file of weights, or else one with the weights by the formula. */
static inline void golden_weights(const char *folder, char path[GOLDEN_PATH])
{
    if (golden_path(folder, "model.safetensors", path) || golden_path(folder, "model.ckpt", path)) return;
    golden_write_formula(folder, path);
}

/* What the names of the tensors begin with before the network's own: of a checkpoint's two copies the average. */
static inline const char *golden_prefix(const psld_tensors *tensors)
{
    static const char *const prefixes[] = {"ema_score_fn.", "clf_fn.", "score_fn."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        for (size_t j = 0; j < tensors->count; j++)
            if (strncmp(tensors->items[j].name, prefixes[i], strlen(prefixes[i])) == 0) return prefixes[i];
    return "";
}

static inline psld_network *golden_network(const psld_network_config *config, const char *path)
{
    psld_network *network = NULL;
    psld_tensors *tensors = NULL;
    assert_int_equal(psld_network_create(config, &network), PSLD_OK);
    if (psld_tensors_open(path, &tensors) != PSLD_OK) fail_msg("%s", psld_error_text());
    if (psld_network_load(network, tensors, golden_prefix(tensors)) != PSLD_OK) fail_msg("%s", psld_error_text());
    psld_tensors_free(tensors);
    return network;
}

#endif
