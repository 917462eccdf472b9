/* Weights of other projects. A reader makes tensors with a psld configuration as a note, which then open like a model
 * file.
 *     NVIDIA's EDM     a pickle of a network with its preconditioning (edm.c)
 *     diffusers        a folder of a pipeline, or its unet/: config.json, weights, scheduler_config.json (diffusers.c)
 * No code in these files is run, and no file that they name is opened. */
#ifndef PSLD_MODEL_FOREIGN_H
#define PSLD_MODEL_FOREIGN_H

#include "io/tensors/tensors.h"
#include "model/networks/conditioning.h"
#include "process/recipe.h"

/* Opens weights of psld or of another project. */
psld_status psld_foreign_open(const char *path, psld_tensors **tensors);
/* Whether a folder is a model of diffusers. */
int psld_foreign_is_folder(const char *path);

/* Selects the tensors of the network and gives them our names; borrowed from `tensors`. *selected stays NULL if the
 * tensors are not of another project. */
psld_status psld_foreign_select(const psld_tensors *tensors, psld_tensors **selected);

/* Fails if sampling with a recipe would begin with far more noise than the network was trained for. */
psld_status psld_foreign_check_range(const psld_recipe *recipe, const psld_conditioning *how);

/* For the readers: the note that names the project of the tensors. */
#define PSLD_FOREIGN_NOTE "psld.foreign"
psld_status psld_edm_describe(const char *path, psld_tensors *tensors);
psld_status psld_diffusers_open(const char *folder, psld_tensors **tensors);

/* The configuration, a growing text. */
typedef struct psld_config_text {
    char text[1 << 20];
    size_t used;
    int full;
} psld_config_text;

void psld_config_put(psld_config_text *config, const char *format, ...) PSLD_PRINTF(2, 3);
/* Writes `process` and `denoiser`. `lines` is the map of `denoiser`, in braces. The process is vp, with a smaller beta
 * if the network was trained with less noise than vp has. */
psld_status psld_config_put_denoiser(psld_config_text *config, const char *path, const char *lines);
/* Stores the text as the configuration of the tensors. */
psld_status psld_config_note(const psld_config_text *config, const char *path, const char *project,
                             psld_tensors *tensors);

#endif
