/* Server-sent events. A stream without news is suspended, so it costs only its connection; the main thread wakes it. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve_server.h"

enum { CHUNK = 1 << 16, HEARTBEAT = 50 }; /* tenths of a second */

typedef struct stream {
    struct stream *next, **link;
    struct MHD_Connection *connection;
    serve_stream_fn ask;
    void (*release)(void *);
    void *user;
    char *text; /* what is being sent */
    size_t used, size;
    int (*news)(void *user);
    int has_ended;
    int waited, is_suspended; /* under `lock` */
} stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stream *all;
static int count;
static atomic_int stopping;

char *serve_event(const char *name, const char *data)
{
    size_t size = strlen(name) + strlen(data) + 32;
    char *text = malloc(size);
    if (text) snprintf(text, size, "event: %s\ndata: %s\n\n", name, data);
    return text;
}

/* The next text to send into s->text. */
static void ask_stream(stream *s)
{
    free(s->text);
    s->used = 0;
    s->text = s->ask(s->user, &s->has_ended);
    s->size = s->text ? strlen(s->text) : 0;
}

/* Whether a comment is due: a client that has gone is noticed only when something is sent. Suspends the stream if
 * not. */
static int rest_or_beat(stream *s)
{
    pthread_mutex_lock(&lock);
    int beats = s->waited >= HEARTBEAT;
    if (beats) s->waited = 0;
    if (!beats && !stopping) {
        s->is_suspended = 1;
        MHD_suspend_connection(s->connection);
    }
    pthread_mutex_unlock(&lock);
    return beats;
}

static ssize_t stream_read(void *user, uint64_t position, char *to, size_t room)
{
    stream *s = user;
    (void)position;
    if (s->used == s->size && !s->has_ended && !stopping) ask_stream(s);
    if (s->used < s->size) {
        size_t part = s->size - s->used < room ? s->size - s->used : room;
        memcpy(to, s->text + s->used, part);
        s->used += part;
        return (ssize_t)part;
    }
    if (s->has_ended || stopping) return MHD_CONTENT_READER_END_OF_STREAM;
    if (!rest_or_beat(s)) return 0;
    memcpy(to, ":\n\n", 3);
    return 3;
}

static void stream_free(void *user)
{
    stream *s = user;
    pthread_mutex_lock(&lock);
    *s->link = s->next;
    if (s->next) s->next->link = s->link;
    count--;
    pthread_mutex_unlock(&lock);
    if (s->release) s->release(s->user);
    free(s->text);
    free(s);
}

enum MHD_Result serve_stream_begin(serve_request *request, serve_stream_fn next, int (*news)(void *),
                                   void (*release)(void *), void *user)
{
    stream *s = malloc(sizeof *s);
    pthread_mutex_lock(&lock);
    int full = !s || count == SERVE_STREAMS || stopping;
    if (!full) {
        *s = (stream){.next = all,
                      .link = &all,
                      .connection = request->connection,
                      .ask = next,
                      .release = release,
                      .user = user,
                      .news = news};
        if (all) all->link = &s->next;
        all = s;
        count++;
    }
    pthread_mutex_unlock(&lock);
    if (full) {
        free(s);
        if (release) release(user);
        return serve_refuse(request, 429, "too many streams of events: at most %d at once", SERVE_STREAMS);
    }
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK, stream_read, s, stream_free);
    if (!response) {
        stream_free(s);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    serve_connection_is(request->connection, SERVE_STREAMS_ON);
    return serve_answer(request, 200, response);
}

void serve_streams_wake(int stop)
{
    pthread_mutex_lock(&lock);
    stopping |= stop;
    for (stream *s = all; s; s = s->next) {
        s->waited++;
        if (!s->is_suspended || (!stop && s->waited < HEARTBEAT && !s->news(s->user))) continue;
        s->is_suspended = 0;
        MHD_resume_connection(s->connection);
    }
    pthread_mutex_unlock(&lock);
}
