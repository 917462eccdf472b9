/* Progress of long work on a terminal, and durations in words. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "cli.h"

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *cli_duration(double seconds, char text[CLI_DURATION])
{
    static const struct unit {
        const char *large, *small;
        double size, part;
    } units[] = {{"d", "h", 86400, 3600}, {"h", "min", 3600, 60}, {"min", "s", 60, 1}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const struct unit *u = &units[i];
        if (seconds < u->size) continue;
        double large = floor(seconds / u->size);
        snprintf(text, CLI_DURATION, "%.0f %s %.0f %s", large, u->large, floor((seconds - large * u->size) / u->part),
                 u->small);
        return text;
    }
    snprintf(text, CLI_DURATION, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
    return text;
}

void cli_progress_begin(cli_progress *progress, const char *what)
{
    if (!cli_listener_get()) cli_signals_catch(note_interrupt, (int)(SA_RESTART | SA_RESETHAND), progress->before);
    progress->what = what;
    progress->began = cli_seconds();
    progress->shown = 0;
}

int cli_progress_report(void *user, uint64_t done, uint64_t total)
{
    cli_progress *progress = user;
    const cli_listener *listener = cli_listener_get();
    if (listener) return listener->progress ? listener->progress(listener->user, done, total) : 0;
    char text[CLI_DURATION], what[128], left[CLI_DURATION + 8] = "";
    double now = cli_seconds(), part = total ? (double)done / (double)total : 0;
    if (interrupted) return 1;
    if (!cli_terminal() || now - progress->shown < 0.1) return 0;
    progress->shown = now;
    snprintf(what, sizeof what, "%.100s %3.0f %%", progress->what, 100 * part);
    if (part > 0 && now - progress->began > 1)
        snprintf(left, sizeof left, "%s left", cli_duration((now - progress->began) * (1 - part) / part, text));
    const char *const pieces[] = {what, left};
    cli_line_show(part, pieces, 2);
    return 0;
}

void cli_progress_end(cli_progress *progress)
{
    if (cli_listener_get()) return;
    cli_signals_restore(progress->before);
    cli_line_clear();
}
