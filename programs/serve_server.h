/* What lives beside requests: connections and streams. */
#ifndef PSLD_PROGRAMS_SERVE_SERVER_H
#define PSLD_PROGRAMS_SERVE_SERVER_H

#include <spawn.h>

#include "serve.h"

/* Connections (serve_connections.c). A connection that has not sent a whole request in time, or takes its answer too
 * slowly, is closed: a client must not hold one for nothing. */
void serve_connections_notify(void *user, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode code);
typedef enum serve_phase { SERVE_RECEIVES, SERVE_ANSWERS, SERVE_STREAMS_ON, SERVE_IDLES } serve_phase;
void serve_connection_is(struct MHD_Connection *connection, serve_phase phase);
void serve_connections_look(void);

/* Streams of events (serve_stream.c). `next` gives the text that is to be sent next, from malloc: NULL when there is
 * nothing now, and it sets *end when there will be nothing more. It is asked again once `news`, which is called ten times
 * a second from another thread, says so. `release` is called once at the end. */
typedef char *(*serve_stream_fn)(void *user, int *end);
enum MHD_Result serve_stream_begin(serve_request *request, serve_stream_fn next, int (*news)(void *),
                                   void (*release)(void *), void *user);
/* An event as text, from malloc; `data` is one line. */
char *serve_event(const char *name, const char *data);
/* Called ten times a second; with `stop`, all streams end. */
void serve_streams_wake(int stop);

/* Attributes of processes that are started: signals as at the beginning of the program, and a group of their own, so that
 * Ctrl-C at the terminal does not reach them (serve_run_process.c). */
void serve_spawn_begin(posix_spawnattr_t *attributes);

/* Handlers of libmicrohttpd (serve_handle.c). */
void *serve_request_begin(void *user, const char *target, struct MHD_Connection *connection);
enum MHD_Result serve_request_handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                     const char *version, const char *data, size_t *size, void **context);
void serve_request_end(void *user, struct MHD_Connection *connection, void **context,
                       enum MHD_RequestTerminationCode code);

#endif
