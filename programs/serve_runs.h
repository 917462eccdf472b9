/* Training runs: those of the folder are watched; those that this server has started, as processes of their own, are
 * stopped and resumed, too. */
#ifndef PSLD_PROGRAMS_SERVE_RUNS_H
#define PSLD_PROGRAMS_SERVE_RUNS_H

#include "serve.h"

/* Processes of ours (serve_run_process.c). Called ten times a second: notices those that have ended, and reads what they
 * write. */
void serve_runs_look(void);
/* Asks all to stop with a checkpoint; waits for that long, and returns how many are left. */
void serve_runs_stop(void);
int serve_runs_wait(double seconds);

enum { SERVE_RUNS = 2, SERVE_OUTPUT = 4096 };
typedef enum serve_run_state { SERVE_RUN_NONE, SERVE_RUN_WORKS, SERVE_RUN_ENDED, SERVE_RUN_FAILED } serve_run_state;
/* What is known of a process of ours that trains, or has trained, in a folder: its last output, clean text. */
serve_run_state serve_run_process(const char *path, char output[SERVE_OUTPUT]);
/* Starts `psld train` with these words in the folder that is served. 0, or the status to refuse it with, and why. */
unsigned serve_run_start(const char *path, const char *const *words, const char **why);
/* The signal that asks it to stop after its step. */
void serve_run_signal(const char *path);
/* The paths of processes that have left no folder of a run behind. */
void serve_run_each_process(void (*each)(void *user, const char *path), void *user);

/* The log of a run as curves (serve_run_log.c): steps after `after` up to `until`, from byte *offset of the file on, which
 * becomes that of the first line that is not whole. NULL: there is nothing new, or no memory. */
json_t *serve_log_curves(int fd, long *offset, double after, double until, size_t points);

/* All files of a kind in the folder, as /api/files lists them. */
json_t *serve_files_of_kind(const char *kind);

/* What the folder `fd` of a run says; a moment old at most, unless it was to be forgotten. */
psld_status serve_run_inspect(const char *path, int fd, psld_run_info *info);
void serve_run_forget(const char *path);
/* The last line of an output that is not empty. */
const char *serve_run_last_line(char *output);
/* The run that a request names, as JSON; NULL: it was refused, and *result is what to return. */
json_t *serve_run_of(serve_request *request, const char *path, enum MHD_Result *result);
/* A run as JSON; NULL: it is none. */
json_t *serve_run_json(const char *path);
json_t *serve_run_samples(const char *path);

#endif
