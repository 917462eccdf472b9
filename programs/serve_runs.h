/* Training runs: those of the folder are watched; those that this server has started, as processes of their own, are
 * stopped and resumed, too. */
#ifndef PSLD_PROGRAMS_SERVE_RUNS_H
#define PSLD_PROGRAMS_SERVE_RUNS_H

/* Called ten times a second: notices processes that have ended, and reads what they write. */
void serve_runs_look(void);
/* Asks all processes of ours to stop with a checkpoint; waits for that long, and returns how many are left. */
void serve_runs_stop(void);
int serve_runs_wait(double seconds);

#endif
