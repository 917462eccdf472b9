/* Signals, which only the program handles. Those that ask it to end are requests. A reader that goes away, or a
 * limit on file sizes, is an error of the write and does not end the program. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const int asking[CLI_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/* The library reads data by calls that can fail, except model files, which are mapped. */
static void on_lost_bytes(int number)
{
    static const char message[] = "psld: a file became shorter, or could not be read, while it was in use\n";
    (void)number;
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
    _exit(EXIT_FAILED);
}

void cli_signals_begin(void)
{
    struct sigaction lost = {.sa_handler = on_lost_bytes};
    sigaction(SIGBUS, &lost, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* A hang-up may come twice, from the terminal and from the shell: the second must not interrupt what the first
 * began. If it was ignored (nohup), it stays ignored. */
void cli_signals_catch(void (*handler)(int), int flags, struct sigaction before[CLI_SIGNALS])
{
    for (int i = 0; i < CLI_SIGNALS; i++) {
        struct sigaction action = {.sa_handler = handler, .sa_flags = asking[i] == SIGHUP ? SA_RESTART : flags};
        sigaction(asking[i], NULL, &before[i]);
        if (asking[i] == SIGHUP && before[i].sa_handler == SIG_IGN) continue;
        sigaction(asking[i], &action, NULL);
    }
}

void cli_signals_restore(const struct sigaction before[CLI_SIGNALS])
{
    for (int i = 0; i < CLI_SIGNALS; i++) sigaction(asking[i], &before[i], NULL);
}

int cli_reader_gone(int fd)
{
    struct pollfd look = {.fd = fd};
    return poll(&look, 1, 0) == 1 && (look.revents & (POLLERR | POLLHUP)) != 0;
}

int cli_output_failed(void)
{
    if (cli_reader_gone(STDOUT_FILENO))
        return 128 + SIGPIPE; /* no message if the user closed the pipe (as head does) */
    cli_complain("cannot write to standard output");
    return EXIT_FAILED;
}
