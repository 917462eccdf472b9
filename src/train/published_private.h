/* A conversion of a published configuration, for the files published*.c. */
#ifndef PSLD_TRAIN_PUBLISHED_PRIVATE_H
#define PSLD_TRAIN_PUBLISHED_PRIVATE_H

#include "io/yaml/yaml.h"

enum { LONGEST = 1024, LONGEST_PATH = 256 };

typedef struct conversion {
    const char *name;             /* of the file */
    const psld_node *root, *part; /* part: the map with data, model and training */
    const char *section;          /* the name of that map: "diffusion", "clf", or "" for the root */
    int classifier;
    psld_yaml *ours;
    int64_t epochs, devices;
    int no_average, afhq;
    char passed[LONGEST]; /* names of ignored keys */
    size_t used;
} conversion;

/* Whether a key has a value: it is not empty, null or "???". */
int psld_conversion_is_given(const psld_node *node);
psld_status psld_conversion_set(conversion *a, const char *key, const char *value);
/* Sets one of our keys to the same value: a scalar, or a list of scalars. */
psld_status psld_conversion_copy(conversion *a, const psld_node *node, const char *key);
/* Adds a key to the list of ignored ones. */
void psld_conversion_ignore(conversion *a, const char *path, const psld_node *node);
/* Converts all keys of a map and of the maps in it. `path` is its name in the file. */
psld_status psld_conversion_map(conversion *a, const char *path, const psld_node *map);

#endif
