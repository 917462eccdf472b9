/* Checkpoints: the state of a run between two steps, in one safetensors file (format: docs/reference/training.md).
 *
 * A file is written under another name, synced and renamed, so it is complete or absent; a checksum of its contents
 * detects later damage. */
#ifndef PSLD_TRAIN_CHECKPOINT_H
#define PSLD_TRAIN_CHECKPOINT_H

#include "model/networks/network.h"
#include "train/trainer.h"

/* What is saved and restored: the network's weights and the trainer's state. Names of weights begin with `prefix`
 * ("score_fn."), those of the average with "ema_" and `prefix`, as in published checkpoints. */
typedef struct psld_snapshot {
    psld_network *network;
    psld_trainer_state state;
    const char *config; /* YAML */
    const char *prefix;
    double *sums; /* losses since the last measurement */
    size_t sum_count;
    double *learned; /* a recipe's parameters and their state, or NULL */
    size_t learned_count;
    const psld_recipe *recipe; /* that they stand for: noted, so that a checkpoint is a model, too */
    uint64_t items;            /* of the data; 0: unknown */
} psld_snapshot;

/* Writes folder/step-<steps>.safetensors, then removes all but the newest `keep` of them. */
psld_status psld_checkpoint_save(const psld_snapshot *snapshot, const char *folder, int keep);

/* Sets the network and the trainer from the newest complete checkpoint. Damaged ones are skipped with a warning and
 * renamed to step-<steps>.safetensors.damaged. *found is 0 if there is no checkpoint. Fails if all are damaged, or if
 * the checkpoint has another configuration than the snapshot. */
psld_status psld_checkpoint_load(psld_snapshot *snapshot, const char *folder, int *found);

/* The number of checkpoints, and the step of the newest (0: none). */
psld_status psld_checkpoint_count(const char *folder, size_t *count, long *newest);

#endif
