/* psld stop: asks the process that trains in a folder to end, by a file that it looks for between steps. This works
 * where signals do not: on other machines, and under launchers that kill the processes they have signalled. */
#include <stdio.h>
#include <time.h>

#include "cli.h"

/* Waits until no process trains in the folder. */
static psld_status wait_for_end(const char *stop_run, psld_run_info *info)
{
    const struct timespec pause = {.tv_nsec = 200000000};
    for (;;) {
        psld_status status = psld_run_inspect(stop_run, info);
        if (status != PSLD_OK || !info->running) return status;
        nanosleep(&pause, NULL);
    }
}

static int stop_training(const char *stop_run, int no_wait)
{
    psld_run_info info = PSLD_RUN_INFO_EMPTY;
    psld_status status = psld_run_stop(stop_run);
    if (status != PSLD_OK) return cli_failed(status);
    if (no_wait) {
        printf("%s: asked to stop after the current step; psld info %s shows when it has stopped\n", stop_run,
               stop_run);
        return EXIT_DONE;
    }
    fprintf(stderr, "psld: %s is asked to stop after the current step; Ctrl-C only ends the waiting\n", stop_run);
    status = wait_for_end(stop_run, &info);
    if (status != PSLD_OK) return cli_failed(status);
    printf("%s: stopped after step %llu of %llu, the last checkpoint is of step %llu; psld train -o %s continues\n",
           stop_run, (unsigned long long)info.step, (unsigned long long)info.steps, (unsigned long long)info.saved,
           stop_run);
    return EXIT_DONE;
}

static int stop_run(const cli_command *command, int argc, char **argv)
{
    const char *words[256];
    int count, exit_code, no_wait = 0;
    const cli_option options[] = {
        {"no-wait", 0, CLI_FLAG, NULL, "do not wait until the run has stopped", &no_wait, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 250) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count != 1) return cli_wrong_usage(command, "expected one folder of a run, found %d words", count);
    return stop_training(words[0], no_wait);
}

const cli_command command_stop = {
    .name = "stop",
    .summary = "stops a training run after its current step, with a checkpoint",
    .usage = "RUN [options]",
    .description = "Asks the process that trains in the folder RUN to stop, and waits until it has. The process may "
                   "run on another machine or\n"
                   "on several ranks: it looks for the file `stop` in RUN between steps, writes a checkpoint and "
                   "removes the file.\n\n"
                   "If nothing trains in RUN, the command fails and removes a leftover file `stop`.",
    .examples = "  psld stop run\n"
                "  psld stop /shared/run --no-wait\n",
    .run = stop_run,
};
