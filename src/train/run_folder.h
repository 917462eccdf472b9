/* The folder of a run: config.yaml, log.jsonl, loss.png, index.html, model.safetensors, checkpoints/, samples/, and a
 * lock that keeps a second process out. docs/reference/training.md describes it. */
#ifndef PSLD_TRAIN_RUN_FOLDER_H
#define PSLD_TRAIN_RUN_FOLDER_H

#include "io/yaml/yaml.h"

typedef struct psld_run_folder psld_run_folder;

/* Makes the folder if it does not exist, locks it, and removes files that a killed process left half written. */
psld_status psld_run_folder_open(const char *path, psld_run_folder **run);
/* Fails if a run may not begin in an existing folder: it has data or other files in it. */
psld_status psld_run_folder_check_new(const char *path);
/* Whether a folder has a run, that is, a configuration. */
int psld_run_folder_exists(const char *path);
/* Whether a process is training in a folder. */
int psld_run_folder_is_busy(const char *path);
void psld_run_folder_close(psld_run_folder *run);

/* Whether psld_run_stop was called for this run. */
int psld_run_folder_asked_to_stop(psld_run_folder *run);

const char *psld_run_folder_path(const psld_run_folder *run);
/* The path of a file in the folder, valid until the next call. */
const char *psld_run_folder_file(psld_run_folder *run, const char *name);

/* config.yaml; *yaml is NULL when there is none. */
psld_status psld_run_folder_config(psld_run_folder *run, psld_yaml **yaml);
psld_status psld_run_folder_set_config(psld_run_folder *run, const char *text);

/* Removes the lines of the log after `step`, and opens it for appending. Damaged lines are removed, with a warning. */
psld_status psld_run_folder_log_from(psld_run_folder *run, long step);
/* Appends a line, newline added. */
psld_status psld_run_folder_log(psld_run_folder *run, const char *line);
/* Makes sure that all lines so far are on the disk. */
psld_status psld_run_folder_sync(psld_run_folder *run);

#endif
