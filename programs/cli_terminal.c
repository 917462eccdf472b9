/* The progress line on a terminal, which is rewritten in place, and messages that do not run into it.
 *
 * The line is shortened to the width of the terminal by leaving out the least important parts, so it never wraps: a
 * wrapped line cannot be erased. All other output to standard error erases it first. */
#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

enum { USUAL_COLUMNS = 80, LONGEST_LINE = 512, LONGEST_BAR = 24 };

static int is_shown; /* there is a line to clear */

int cli_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* https://no-color.org: any value except an empty one. */
static int has_colour(void)
{
    const char *none = getenv("NO_COLOR");
    return cli_terminal() && !(none && *none);
}

static size_t columns(void)
{
    struct winsize size = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL_COLUMNS;
}

/* Prints "[#####-----] ", as wide as the line allows; returns its width on the screen. */
static size_t format_bar(double part, size_t room, char text[LONGEST_LINE])
{
    size_t width = room < LONGEST_BAR ? room : LONGEST_BAR, done;
    text[0] = 0;
    if (room < 8 || !(part >= 0)) return 0;
    done = (size_t)((part < 1 ? part : 1) * (double)width);
    char marks[LONGEST_BAR + 1];
    memset(marks, '#', done);
    memset(marks + done, '-', width - done);
    marks[width] = 0;
    snprintf(text, LONGEST_LINE, has_colour() ? "\033[36m[%s]\033[0m " : "[%s] ", marks);
    return width + 3;
}

void cli_line_show(double part, const char *const *pieces, size_t count)
{
    char text[LONGEST_LINE] = "", bar[LONGEST_LINE];
    size_t room = columns() - 1, used = 0;
    if (!cli_terminal()) return;
    if (room >= LONGEST_LINE) room = LONGEST_LINE - 1;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(pieces[i]) + (i ? 2 : 0);
        if (!*pieces[i]) continue;
        if (used + length > room && i > 0) break; /* the following parts are less important */
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i ? ", " : "", (int)(room - used), pieces[i]);
    }
    format_bar(part, room > used + 3 ? room - used - 3 : 0, bar);
    flockfile(stderr);
    fprintf(stderr, "\r%s%s\033[K", bar, text);
    fflush(stderr);
    is_shown = 1;
    funlockfile(stderr);
}

void cli_line_clear(void)
{
    if (!is_shown) return;
    is_shown = 0;
    fputs("\r\033[K", stderr);
}

void cli_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    flockfile(stderr);
    cli_line_clear();
    vfprintf(stderr, format, args);
    fflush(stderr);
    funlockfile(stderr);
    va_end(args);
}

/* Colour for the first words of a message: errors red, warnings yellow. */
static const char *terminal_colour(const char *message)
{
    if (!has_colour()) return "";
    return strncmp(message, "warning: ", 9) == 0 ? "\033[33m" : "\033[31m";
}

void cli_complain(const char *format, ...)
{
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    for (char *c = message; *c; c++)
        if (iscntrl((unsigned char)*c)) *c = '?';
    if (cli_listener_get()) {
        snprintf(cli_listener_get()->message, sizeof message, "%s", message);
        return;
    }
    const char *colour = terminal_colour(message);
    cli_say("%spsld:%s %s\n", colour, *colour ? "\033[0m" : "", message);
}

/* ---- Ctrl-C outside of cancellable work -------------------------------------------------------------------------- */

/* While files are opened, read and written. Only calls that are allowed in a signal handler. */
static void report_interrupt(int number)
{
    static const char clear[] = "\r\033[K",
                      message[] = "psld: interrupted; finished files are kept, and no file is incomplete\n";
    if (is_shown) (void)!write(STDERR_FILENO, clear, sizeof clear - 1);
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
    signal(number, SIG_DFL);
    raise(number);
}

void cli_interrupts_begin(void)
{
    struct sigaction before, action = {.sa_handler = report_interrupt};
    sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL); /* a background job goes on */
}
