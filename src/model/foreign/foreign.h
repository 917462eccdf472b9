/* Weights of other projects: each becomes tensors with a configuration of ours as a note, and then opens as a model file
 * does.
 *     NVIDIA's EDM     a pickle of a network with its preconditioning (edm.c)
 *     diffusers        a folder of a pipeline, or its unet/: config.json, weights, scheduler_config.json (diffusers.c)
 * Nothing in them is run, and no file is opened that one of them names. */
#ifndef PSLD_MODEL_FOREIGN_H
#define PSLD_MODEL_FOREIGN_H

#include "io/tensors/tensors.h"
#include "model/networks/conditioning.h"
#include "process/recipe.h"

/* Opens weights of any kind: ours, or of another project. */
psld_status psld_foreign_open(const char *path, psld_tensors **tensors);
/* Whether a folder is one of diffusers. */
int psld_foreign_is_folder(const char *path);

/* The tensors of the network under the names that it has in ours; borrowed from `tensors`. *selected stays NULL where the
 * tensors are of no other project. */
psld_status psld_foreign_select(const psld_tensors *tensors, psld_tensors **selected);

/* Fails if a recipe begins with far more noise than a network was trained for. */
psld_status psld_foreign_check_range(const psld_recipe *recipe, const psld_conditioning *how);

/* For the readers: which project tensors are of is a note, */
#define PSLD_FOREIGN_NOTE "psld.foreign"
psld_status psld_edm_describe(const char *path, psld_tensors *tensors);
psld_status psld_diffusers_open(const char *folder, psld_tensors **tensors);

/* and the configuration is text that grows. */
typedef struct psld_config_text {
    char text[1 << 20];
    size_t used;
    int full;
} psld_config_text;

void psld_config_put(psld_config_text *config, const char *format, ...) PSLD_PRINTF(2, 3);
/* `process` and `denoiser`: `lines` is the map of the latter, in braces. The process is vp; if that begins with more
 * noise than the network knows, with a smaller beta. */
psld_status psld_config_put_denoiser(psld_config_text *config, const char *path, const char *lines);
/* Makes it the configuration of the tensors. */
psld_status psld_config_note(const psld_config_text *config, const char *path, const char *project,
                             psld_tensors *tensors);

#endif
