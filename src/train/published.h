/* Configurations as the paper's authors publish them, made into ours.
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
    int64_t epochs;      /* how long to train, where it is said so; 0: it is not */
} psld_published;

/* Whether a configuration has this layout. */
int psld_published_matches(const psld_node *root);

/* Makes one into ours: its score network, or with `classifier`, or where it has no other, its classifier. One line of the
 * log names the keys that mean nothing here; `name` is that of the file. */
psld_status psld_published_read(const psld_node *root, const char *name, int classifier, psld_published *published);
void psld_published_clear(psld_published *published);

/* "diffusion.training.lr=1" without what the authors' scripts write before it ("dataset.", "+dataset."); NULL: is none of
 * theirs. */
const char *psld_published_override(const char *assignment);

#endif
