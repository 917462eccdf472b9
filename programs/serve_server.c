/* The server: its socket, its threads, its end. */
#define _GNU_SOURCE
#include "serve_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "serve_jobs.h"
#include "serve_runs.h"
#include "serve_uploads.h"

enum { TICK_NANOSECONDS = 100000000 };

serve_server serve;

/* ---- The socket -------------------------------------------------------------------------------------------------- */

/* The first address of a name that a socket can listen on; -1: there is none, and *why says so. */
static int listen_on(const char *host, int port, const char **why)
{
    char service[16];
    struct addrinfo *found = NULL, hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    int yes = 1, fd = -1;
    snprintf(service, sizeof service, "%d", port);
    int failed = getaddrinfo(host, service, &hints, &found);
    *why = failed ? gai_strerror(failed) : "";
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
        if (fd < 0) continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 128) == 0) break;
        *why = strerror(errno);
        close(fd);
        fd = -1;
    }
    if (found) freeaddrinfo(found);
    return fd;
}

static int port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

static struct MHD_Daemon *start_daemon(int fd)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    /* clang-format off */
    return MHD_start_daemon(flags, 0, NULL, NULL, serve_request_handle, NULL,
                            MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_THREAD_POOL_SIZE, (unsigned)SERVE_HTTP_THREADS,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)SERVE_CONNECTIONS,
                            MHD_OPTION_CONNECTION_TIMEOUT, 60U,
                            MHD_OPTION_URI_LOG_CALLBACK, serve_request_begin, NULL,
                            MHD_OPTION_NOTIFY_COMPLETED, serve_request_end, NULL,
                            MHD_OPTION_NOTIFY_CONNECTION, serve_connections_notify, NULL,
                            MHD_OPTION_END);
    /* clang-format on */
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

static void ignore_signal(int number)
{
    (void)number;
}

/* Signals that ask to end are waited for by the main thread alone: blocked before any other thread is made. */
static void block_signals(sigset_t *asking, struct sigaction before[CLI_SIGNALS])
{
    cli_signals_catch(ignore_signal, 0, before);
    sigemptyset(asking);
    sigaddset(asking, SIGINT);
    sigaddset(asking, SIGTERM);
    if (before[CLI_SIGNALS - 1].sa_handler != SIG_IGN) sigaddset(asking, SIGHUP);
    pthread_sigmask(SIG_BLOCK, asking, NULL);
}

static void wait_for_signal(const sigset_t *asking)
{
    const struct timespec tick = {.tv_nsec = TICK_NANOSECONDS};
    for (unsigned ticks = 0;; ticks++) {
        if (sigtimedwait(asking, NULL, &tick) > 0) return;
        serve_streams_wake(0);
        if (ticks % 5 == 0) serve_connections_look();
        serve_runs_look();
    }
}

/* Whatever still waits for something: runs have been told, and nothing else is on the disk. */
static void end_at_once(int number)
{
    (void)number;
    _exit(EXIT_DONE);
}

static void set_last_moment(void)
{
    const struct itimerval moment = {.it_value = {.tv_usec = 950000}};
    signal(SIGALRM, end_at_once);
    setitimer(ITIMER_REAL, &moment, NULL);
}

/* Runs write their checkpoints while the rest ends. Work that does not end in time is left to the end of the process:
 * nothing that it does is on the disk. */
static void end_all(void)
{
    serve_runs_stop();
    set_last_moment();
    serve_jobs_stop();
    serve_streams_wake(1);
    MHD_stop_daemon(serve.daemon);
    int left = serve_runs_wait(0.7);
    if (left)
        cli_complain("%d run%s still at work on a step, and will stop with a checkpoint", left,
                     left > 1 ? "s are" : " is");
    if (!serve_jobs_ended(0.2)) _exit(EXIT_DONE);
    serve_jobs_free();
    serve_uploads_free();
}

/* ---- The beginning ----------------------------------------------------------------------------------------------- */

static void open_browser(const char *url)
{
    extern char **environ;
    char *words[] = {(char *)(uintptr_t) "xdg-open", (char *)(uintptr_t)url, NULL};
    pid_t child;
    posix_spawnattr_t attributes;
    serve_spawn_begin(&attributes);
    int failed = posix_spawnp(&child, words[0], NULL, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    if (failed) cli_complain("--open: xdg-open: %s; open the address yourself", strerror(failed));
}

static int print_address(const serve_options *o)
{
    char url[512];
    const char *host = serve.names.any && *serve.machine ? serve.machine : o->host;
    int is_six = strchr(host, ':') != NULL;
    snprintf(url, sizeof url, "http://%s%s%s:%d/?token=%s", is_six ? "[" : "", host, is_six ? "]" : "",
             serve.names.port, serve.token);
    printf("%s\n", url);
    if (fflush(stdout) != 0) return cli_output_failed();
    cli_say("psld: serving %s; Ctrl-C ends it\n", serve_folder_path(serve.folder));
    if (o->open) open_browser(url);
    return EXIT_DONE;
}

static void set_names(const serve_options *o, int port)
{
    gethostname(serve.machine, sizeof serve.machine - 1);
    serve.names = (serve_names){.bound = o->host, .machine = serve.machine, .port = port};
    serve.names.any = strcmp(o->host, "0.0.0.0") == 0 || strcmp(o->host, "::") == 0;
    snprintf(serve.cookie, sizeof serve.cookie, "psld_%d", port);
}

int serve_until_signal(const serve_options *o)
{
    const char *why;
    sigset_t asking;
    struct sigaction before[CLI_SIGNALS];
    serve.device = o->device;
    serve.folder = serve_folder_open(o->folder);
    if (!serve.folder) return cli_complain("%s: expected a folder: %s", o->folder, strerror(errno)), EXIT_FAILED;
    serve_access_make_token(serve.token);
    if (!*serve.token) return cli_complain("no random numbers for a token"), EXIT_FAILED;
    int fd = listen_on(o->host, o->port, &why), exit_code = EXIT_FAILED;
    if (fd < 0) {
        cli_complain("cannot listen on %s, port %d: %s", o->host, o->port, why);
    } else {
        set_names(o, port_of(fd));
        block_signals(&asking, before);
        serve.daemon = serve_jobs_start(o->jobs) ? start_daemon(fd) : NULL;
        if (!serve.daemon) cli_complain("cannot start the threads of the server");
    }
    if (serve.daemon) exit_code = print_address(o);
    if (serve.daemon && exit_code == EXIT_DONE) wait_for_signal(&asking);
    if (serve.daemon) end_all();
    serve_folder_close(serve.folder);
    return exit_code;
}
