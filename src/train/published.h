/* Configurations as the paper's authors publish them, converted into ours.
 *
 *     diffusion: {data: {root, image_size, hflip, ...}, model: {score_fn: {...}, sde: {...}}, training: {...}}
 *     clf:       {data: {...}, model: {clf_fn: {...}}, training: {...}}
 * or the inside of one of these at the top. "???" stands for a value that is still to be given. */
#ifndef PSLD_TRAIN_PUBLISHED_H
#define PSLD_TRAIN_PUBLISHED_H

#include "io/yaml/yaml.h"
#include "process/recipe.h"

typedef struct psld_published {
    psld_yaml *ours;     /* all but the process */
    psld_recipe *recipe; /* the process */
    int64_t epochs;      /* how long to train; 0: not given */
} psld_published;

/* Whether a configuration has this layout. */
int psld_published_matches(const psld_node *root);

/* Converts its score network, or its classifier if `classifier` is set or there is no other. One line of the log names the
 * ignored keys; `name` is the name of the file. */
psld_status psld_published_read(const psld_node *root, const char *name, int classifier, psld_published *published);
void psld_published_clear(psld_published *published);

/* "diffusion.training.lr=1" without the "dataset." or "+dataset." of the authors' scripts; NULL if it is not one of their
 * keys. */
const char *psld_published_override(const char *assignment);

#endif
