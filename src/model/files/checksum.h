/* The checksum of model files and checkpoints, a note of their own: damage to weights would draw other pictures without
 * a word. CRC-32 of 158 MB takes 41 ms of one processor, little beside one evaluation of such a network, so that it is
 * compared whenever a model is opened. */
#ifndef PSLD_MODEL_CHECKSUM_H
#define PSLD_MODEL_CHECKSUM_H

#include "io/tensors/tensors.h"

enum { PSLD_CHECKSUM_SIZE = 16 };

#define PSLD_CHECKSUM_NOTE "psld.checksum"
/* Notes that checkpoints have beside their configuration. */
#define PSLD_CHECKPOINT_VERSION "psld.checkpoint"
#define PSLD_CHECKPOINT_STEP    "psld.step"
#define PSLD_CHECKPOINT_ITEMS   "psld.items"
#define PSLD_CHECKPOINT_RECIPE  "psld.recipe" /* as learned, instead of that of the configuration */

/* Of the notes that say what a model is, and of names and elements of all tensors. */
void psld_checksum(const psld_tensors *tensors, char text[PSLD_CHECKSUM_SIZE]);
/* Notes the checksum of tensors to be written. */
psld_status psld_checksum_note(psld_tensors *tensors);
/* Fails if the file is damaged: by this checksum, or by what a zip archive has of its own. A safetensors file without
 * one, as others write them, passes. */
psld_status psld_checksum_verify(const psld_tensors *tensors, const char *path);

#endif
