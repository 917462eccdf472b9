/* The events of a job: its state, its progress, and what is predicted. A stream sends the newest events; those for
 * which it had no time are left out. */
#include <stdlib.h>
#include <string.h>

#include "serve_jobs.h"
#include "serve_server.h"

typedef struct watch {
    serve_job *job;
    unsigned seen, state, progress, preview; /* news that have been told */
} watch;

static char *state_event(serve_job *job, int *end)
{
    json_t *json = serve_job_json(job);
    char *data = serve_json_text(json), *event = data ? serve_event("state", data) : NULL;
    static const char last[] = "event: end\ndata: {}\n\n";
    json_decref(json);
    free(data);
    if (!event || !*end) return event;
    char *both = realloc(event, strlen(event) + sizeof last);
    if (!both) return event;
    return strcat(both, last);
}

static char *progress_event(serve_job *job)
{
    json_t *json = json_object();
    pthread_mutex_lock(&job->lock);
    serve_job_put_progress(json, job);
    pthread_mutex_unlock(&job->lock);
    char *data = serve_json_text(json), *event = data ? serve_event("progress", data) : NULL;
    json_decref(json);
    free(data);
    return event;
}

static int has_news(void *user)
{
    watch *w = user;
    return atomic_load(&w->job->news) != w->seen;
}

static char *next_event(void *user, int *end)
{
    watch *w = user;
    serve_job *job = w->job;
    char *preview = NULL;
    w->seen = atomic_load(&job->news);
    pthread_mutex_lock(&job->lock);
    int state = job->state_news != w->state, progress = job->progress_news != w->progress;
    if (!state && job->preview_news != w->preview) preview = strdup(job->preview);
    int finished = state && serve_job_is_finished(job);
    if (state) w->state = job->state_news;
    if (!state && !preview) w->progress = job->progress_news;
    if (preview) w->preview = job->preview_news;
    pthread_mutex_unlock(&job->lock);
    *end = finished;
    return state ? state_event(job, end) : preview ? preview : progress ? progress_event(job) : NULL;
}

static void release_watch(void *user)
{
    watch *w = user;
    atomic_fetch_sub(&w->job->watchers, 1);
    serve_job_release(w->job);
    free(w);
}

enum MHD_Result serve_jobs_events(serve_request *request)
{
    enum MHD_Result result = MHD_NO;
    serve_job *job = serve_job_of(request, &result);
    if (!job) return result;
    watch *w = malloc(sizeof *w);
    if (!w) {
        serve_job_release(job);
        return serve_refuse(request, 500, "out of memory");
    }
    atomic_fetch_add(&job->watchers, 1);
    *w = (watch){.job = job, .seen = atomic_load(&job->news) - 1, .state = atomic_load(&job->news) + 1};
    return serve_stream_begin(request, next_event, has_news, release_watch, w);
}
