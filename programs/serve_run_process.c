/* Runs that this server has started: `psld train` as a separate process, so that training reaches its checkpoint even
 * if the server fails. Its output comes by a pipe: if the server is gone, the pipe has no reader, and training stops
 * after its step. */
#define _GNU_SOURCE /* pipe2, posix_spawn_file_actions_addchdir_np */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve_runs.h"
#include "serve_server.h"

enum { REMEMBERED = 32 };

typedef struct process {
    char path[1024]; /* of its run; "": none */
    pid_t pid;       /* 0: it has ended */
    int output;      /* pipe; -1: closed */
    int failed;
    double ended;
    char text[SERVE_OUTPUT];
    size_t used;
} process;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static process all[REMEMBERED];

static process *find_process(const char *path)
{
    for (size_t i = 0; i < REMEMBERED; i++)
        if (*all[i].path && strcmp(all[i].path, path) == 0) return &all[i];
    return NULL;
}

/* ---- Their output ------------------------------------------------------------------------------------------------ */

/* The last bytes stay. */
static void keep_output(process *p, const char *text, size_t size)
{
    if (size >= sizeof p->text / 2) {
        text += size - sizeof p->text / 2 + 1;
        size = sizeof p->text / 2 - 1;
    }
    if (p->used + size >= sizeof p->text) {
        size_t kept = sizeof p->text / 2;
        if (kept > p->used) kept = p->used;
        memmove(p->text, p->text + p->used - kept, kept);
        p->used = kept;
    }
    memcpy(p->text + p->used, text, size);
    p->used += size;
}

static void read_output(process *p)
{
    char text[4096];
    ssize_t got;
    if (p->output < 0) return;
    while ((got = read(p->output, text, sizeof text)) > 0) keep_output(p, text, (size_t)got);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    close(p->output);
    p->output = -1;
}

static void look_at(process *p)
{
    int status;
    if (!*p->path) return; /* none: its descriptor would be 0 */
    read_output(p);
    if (!p->pid || waitpid(p->pid, &status, WNOHANG) != p->pid) return;
    read_output(p);
    if (p->output >= 0) close(p->output);
    p->output = -1;
    p->pid = 0;
    p->ended = cli_seconds();
    /* 128 and more: a signal has asked it to stop. */
    p->failed = !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) < 128);
}

void serve_runs_look(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < REMEMBERED; i++) look_at(&all[i]);
    pthread_mutex_unlock(&lock);
}

serve_run_state serve_run_process(const char *path, char output[SERVE_OUTPUT])
{
    output[0] = 0;
    pthread_mutex_lock(&lock);
    process *p = find_process(path);
    serve_run_state state = !p          ? SERVE_RUN_NONE
                            : p->pid    ? SERVE_RUN_WORKS
                            : p->failed ? SERVE_RUN_FAILED
                                        : SERVE_RUN_ENDED;
    if (p) {
        memcpy(output, p->text, p->used);
        output[p->used] = 0;
    }
    pthread_mutex_unlock(&lock);
    for (char *c = output; *c; c++)
        if (((unsigned char)*c < 0x20 && *c != '\n') || (unsigned char)*c >= 0x7f) *c = *c == '\r' ? '\n' : '?';
    return state;
}

void serve_run_each_process(void (*each)(void *user, const char *path), void *user)
{
    char paths[REMEMBERED][sizeof all->path];
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < REMEMBERED; i++) memcpy(paths[i], all[i].path, sizeof paths[i]);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < REMEMBERED; i++)
        if (*paths[i]) each(user, paths[i]);
}

/* ---- Starting ---------------------------------------------------------------------------------------------------- */

void serve_spawn_begin(posix_spawnattr_t *attributes)
{
    static const int changed[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGALRM};
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) sigaddset(&usual, changed[i]);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &usual);
}

/* In the folder that is served, with no descriptor but the three. */
static int spawn_train(char *const *argv, int output, pid_t *pid)
{
    extern char **environ;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    serve_spawn_begin(&attributes);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&files, serve_folder_path(serve.folder));
    int failed = posix_spawn(pid, "/proc/self/exe", &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

/* A free entry, or that of the process that ended first. */
static process *place_for(const char *path)
{
    process *place = find_process(path);
    for (size_t i = 0; !place && i < REMEMBERED; i++)
        if (!*all[i].path) place = &all[i];
    if (place) return place;
    for (size_t i = 0; i < REMEMBERED; i++)
        if (!all[i].pid && (!place || all[i].ended < place->ended)) place = &all[i];
    return place;
}

static unsigned start_process(process *p, const char *path, char *const *argv, const char **why)
{
    int ends[2];
    *why = "cannot start a process";
    if (pipe2(ends, O_CLOEXEC) != 0) return 500;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *p = (process){.output = ends[0]};
    int failed = spawn_train(argv, ends[1], &p->pid);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        *p = (process){.output = -1};
        return 500;
    }
    snprintf(p->path, sizeof p->path, "%s", path);
    return 0;
}

unsigned serve_run_start(const char *path, const char *const *words, const char **why)
{
    char *argv[128] = {(char *)(uintptr_t) "psld", (char *)(uintptr_t) "train"};
    int count = 2, working = 0;
    for (; *words && count < 127; words++) argv[count++] = (char *)(uintptr_t)*words;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < REMEMBERED; i++) working += all[i].pid != 0;
    process *p = place_for(path);
    unsigned status = 0;
    *why = "it is being trained already";
    if (p && p->pid)
        status = 409;
    else if (working >= SERVE_RUNS || !p)
        status = 429, *why = "two runs of this server are at work already";
    else if (strlen(path) >= sizeof p->path)
        status = 400, *why = "the path is too long";
    else
        status = start_process(p, path, argv, why);
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- Stopping ---------------------------------------------------------------------------------------------------- */

void serve_run_signal(const char *path)
{
    pthread_mutex_lock(&lock);
    const process *p = find_process(path);
    if (p && p->pid) kill(p->pid, SIGTERM);
    pthread_mutex_unlock(&lock);
}

void serve_runs_stop(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < REMEMBERED; i++)
        if (all[i].pid) kill(all[i].pid, SIGTERM);
    pthread_mutex_unlock(&lock);
}

int serve_runs_wait(double seconds)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    double until = cli_seconds() + seconds;
    for (;;) {
        int left = 0;
        serve_runs_look();
        for (size_t i = 0; i < REMEMBERED; i++) left += all[i].pid != 0;
        if (!left || cli_seconds() > until) return left;
        nanosleep(&pause, NULL);
    }
}
