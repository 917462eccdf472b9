/* The keys of `model`: one table, from which they are read, checked and listed. */
#ifndef PSLD_MODEL_NETWORK_KEYS_H
#define PSLD_MODEL_NETWORK_KEYS_H

#include "model/networks/network.h"

/* What a configuration without any of the keys means. */
void psld_network_keys_default(psld_network_config *config);
/* Fails with the first key of a map that is none of these. */
psld_status psld_network_keys_check(const psld_node *map);
/* Reads what the map has; keys that are absent, null or "???" leave the configuration as it is. */
psld_status psld_network_keys_read(const psld_node *map, psld_network_config *config);

/* The kind alone. */
psld_status psld_network_keys_kind(const psld_node *map, psld_network_kind *kind);
/* A bit, 1 << psld_network_kind, for each kind of networks on which a key has an effect; 0 for what is no key. */
int psld_network_key_kinds(const char *key);

/* One whole number of a map that is read in the same way. */
psld_status psld_network_read_int(const psld_node *map, const char *key, int min, int max, int *value);

#endif
