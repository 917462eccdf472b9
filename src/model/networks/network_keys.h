/* The keys of `model`: one table, from which they are read, checked and listed. */
#ifndef PSLD_MODEL_NETWORK_KEYS_H
#define PSLD_MODEL_NETWORK_KEYS_H

#include "model/networks/network.h"

/* The defaults of all keys. */
void psld_network_keys_default(psld_network_config *config);
/* Fails with the first key of a map that is not in the table. */
psld_status psld_network_keys_check(const psld_node *map);
/* Reads what the map has; keys that are absent, null or "???" leave the configuration as it is. */
psld_status psld_network_keys_read(const psld_node *map, psld_network_config *config);

/* Reads the kind of network alone. */
psld_status psld_network_keys_kind(const psld_node *map, psld_network_kind *kind);
/* A bit, 1 << psld_network_kind, for each kind of network that a key has an effect on; 0 for an unknown key. */
int psld_network_key_kinds(const char *key);

/* Reads one whole number of a map in the same way. */
psld_status psld_network_read_int(const psld_node *map, const char *key, int min, int max, int *value);

#endif
