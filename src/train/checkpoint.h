/* Checkpoints: the state of a run between two steps, in one safetensors file (format: docs/reference/training.md).
 *
 * A file is written under another name, synced and renamed, so it is whole or not there; a checksum of everything in it
 * finds what a disk has done to it since. */
#ifndef PSLD_TRAIN_CHECKPOINT_H
#define PSLD_TRAIN_CHECKPOINT_H

#include "model/networks/network.h"
#include "train/trainer.h"

/* What is saved and set: the network's weights and the trainer's state. `prefix` goes before the names of weights
 * ("score_fn."), and with "ema_" before it before those of the average, as in published checkpoints. */
typedef struct psld_snapshot {
    psld_network *network;
    psld_trainer_state state;
    const char *config; /* YAML */
    const char *prefix;
    double *sums; /* what a run has counted since its last measurement */
    size_t sum_count;
    double *learned; /* a recipe's parameters and their state, or NULL */
    size_t learned_count;
    const psld_recipe *recipe; /* that they stand for: noted, so that a checkpoint is a model, too */
    uint64_t items;            /* of the data; 0: not known */
} psld_snapshot;

/* Writes folder/step-<steps>.safetensors, then removes all but the newest `keep` of them. */
psld_status psld_checkpoint_save(const psld_snapshot *snapshot, const char *folder, int keep);

/* Sets the network and the trainer from the newest checkpoint that is whole; damaged ones before it are named as warnings
 * and set aside: renamed to step-<steps>.safetensors.damaged. *found is 0 when there is none at all; when there are some
 * but none is whole, or the one to go on from is of another configuration than the snapshot's, it fails. */
psld_status psld_checkpoint_load(psld_snapshot *snapshot, const char *folder, int *found);

/* How many there are, and the step of the newest (0: none). */
psld_status psld_checkpoint_count(const char *folder, size_t *count, long *newest);

#endif
