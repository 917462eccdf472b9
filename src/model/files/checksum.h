/* The checksum of model files and checkpoints, a note in the file: without it, damaged weights would draw other
 * pictures without any error. CRC-32 of 158 MB takes 41 ms of one processor, much less than one evaluation of such a
 * network, so it is compared whenever a model is opened. */
#ifndef PSLD_MODEL_CHECKSUM_H
#define PSLD_MODEL_CHECKSUM_H

#include "io/tensors/tensors.h"

enum { PSLD_CHECKSUM_SIZE = 16 };

#define PSLD_CHECKSUM_NOTE "psld.checksum"
/* Notes of checkpoints, in addition to their configuration. */
#define PSLD_CHECKPOINT_VERSION "psld.checkpoint"
#define PSLD_CHECKPOINT_STEP    "psld.step"
#define PSLD_CHECKPOINT_ITEMS   "psld.items"
#define PSLD_CHECKPOINT_RECIPE  "psld.recipe" /* as learned, instead of that of the configuration */

/* Covers the notes that describe the model, and names and elements of all tensors. */
void psld_checksum(const psld_tensors *tensors, char text[PSLD_CHECKSUM_SIZE]);
/* Adds the checksum of tensors that are to be written, as a note. */
psld_status psld_checksum_note(psld_tensors *tensors);
/* Fails if the file is damaged, by this checksum or by those of a zip archive. Safetensors files of other programs have
 * no checksum; they pass. */
psld_status psld_checksum_verify(const psld_tensors *tensors, const char *path);

#endif
