#include <stdlib.h>
#include <sys/socket.h>

#include "serve_server.h"

/* Seconds that each phase may take, from when it began. */
static const double patience[] = {
    [SERVE_RECEIVES] = 10, [SERVE_ANSWERS] = 120, [SERVE_STREAMS_ON] = 1e12, [SERVE_IDLES] = 20};

typedef struct connection {
    struct connection *next, **link;
    int fd;
    double until;
} connection;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static connection *all;

static void connection_add(struct MHD_Connection *from, void **context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_CONNECTION_FD);
    connection *c = info ? malloc(sizeof *c) : NULL;
    *context = c;
    if (!c) return;
    *c = (connection){
        .next = all, .link = &all, .fd = info->connect_fd, .until = cli_seconds() + patience[SERVE_RECEIVES]};
    if (all) all->link = &c->next;
    all = c;
}

static void connection_remove(connection *c)
{
    if (!c) return;
    *c->link = c->next;
    if (c->next) c->next->link = c->link;
    free(c);
}

/* The descriptor is closed after this returns, so a reused descriptor is never shut down. */
void serve_connections_notify(void *user, struct MHD_Connection *from, void **context,
                              enum MHD_ConnectionNotificationCode code)
{
    (void)user;
    pthread_mutex_lock(&lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_add(from, context);
    else
        connection_remove(*context);
    pthread_mutex_unlock(&lock);
}

void serve_connection_is(struct MHD_Connection *from, serve_phase phase)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    connection *c = info ? info->socket_context : NULL;
    if (!c) return;
    pthread_mutex_lock(&lock);
    c->until = cli_seconds() + patience[phase];
    pthread_mutex_unlock(&lock);
}

void serve_connections_look(void)
{
    double now = cli_seconds();
    pthread_mutex_lock(&lock);
    for (connection *c = all; c; c = c->next)
        if (now > c->until) shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_unlock(&lock);
}
