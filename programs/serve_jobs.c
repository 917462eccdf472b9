/* The list of jobs, and the workers. */
#include "serve_jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 16 };

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_there = PTHREAD_COND_INITIALIZER, worker_ended = PTHREAD_COND_INITIALIZER;
static serve_job *newest; /* a list to ever older ones */
static unsigned long last_number;
static int workers, stopping;
static pthread_t threads[WORKERS];

static const serve_kind *const kinds[] = {&serve_kind_draw,   &serve_kind_inpaint,     &serve_kind_restore,
                                          &serve_kind_encode, &serve_kind_interpolate, &serve_kind_animate};

/* ---- A job ------------------------------------------------------------------------------------------------------- */

int serve_job_is_finished(const serve_job *job)
{
    return job->state >= SERVE_DONE;
}

/* Releases what only the work needed. */
static void release_work(serve_job *job)
{
    if (job->own) job->kind->release(job);
    free(job->own);
    job->own = NULL;
    serve_files_close(&job->files);
}

void serve_job_release(serve_job *job)
{
    if (!job || atomic_fetch_sub(&job->holders, 1) > 1) return;
    release_work(job);
    for (size_t i = 0; i < job->array_count; i++) psld_array_free(job->arrays[i].array);
    json_decref(job->result);
    free(job->preview);
    free(job->command);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

static serve_job *create_job(const serve_kind *kind)
{
    serve_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    job->kind = kind;
    job->has_previews = 1;
    atomic_init(&job->holders, 1);
    pthread_mutex_init(&job->lock, NULL);
    job->listener.progress = serve_job_progress;
    job->listener.user = job;
    return job;
}

/* Under the job's lock. */
static void set_state(serve_job *job, serve_state state)
{
    job->state = state;
    job->state_news = atomic_fetch_add(&job->news, 1) + 1;
}

void serve_job_keep(serve_job *job, const char *name, psld_array *array)
{
    pthread_mutex_lock(&job->lock);
    if (array && job->array_count < SERVE_ARRAYS) {
        job->arrays[job->array_count].name = name;
        job->arrays[job->array_count++].array = array;
        array = NULL;
    }
    pthread_mutex_unlock(&job->lock);
    psld_array_free(array);
}

void serve_job_set_result(serve_job *job, json_t *result)
{
    pthread_mutex_lock(&job->lock);
    json_decref(job->result);
    job->result = result;
    pthread_mutex_unlock(&job->lock);
}

void serve_job_set_shape(serve_job *job, int is_image, int rank, const size_t *shape)
{
    pthread_mutex_lock(&job->lock);
    job->is_image = is_image;
    job->rank = rank;
    memcpy(job->shape, shape, (size_t)rank * sizeof *shape);
    set_state(job, job->state);
    pthread_mutex_unlock(&job->lock);
}

int serve_job_progress(void *user, uint64_t done, uint64_t total)
{
    serve_job *job = user;
    double now = cli_seconds();
    pthread_mutex_lock(&job->lock);
    job->done = done + job->part * total;
    job->total = total * (job->parts ? job->parts : 1);
    job->seconds = now - job->began;
    if (now - job->progressed >= 0.1) {
        job->progressed = now;
        job->progress_news = atomic_fetch_add(&job->news, 1) + 1;
    }
    pthread_mutex_unlock(&job->lock);
    return atomic_load(&job->cancels);
}

/* ---- As JSON ----------------------------------------------------------------------------------------------------- */

static json_t *sizes_as_json(int rank, const size_t *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(list, json_integer((json_int_t)shape[i]));
    return list;
}

void serve_job_put_progress(json_t *object, const serve_job *job)
{
    double left = job->done > 0 && job->state == SERVE_RUNNING
                      ? job->seconds * ((double)job->total / (double)job->done - 1)
                      : (double)NAN;
    json_object_set_new(object, "done", json_integer((json_int_t)job->done));
    json_object_set_new(object, "total", json_integer((json_int_t)job->total));
    json_object_set_new(object, "seconds", cli_json_number(job->seconds));
    json_object_set_new(object, "left", cli_json_number(left));
}

static json_t *arrays_as_json(const serve_job *job)
{
    json_t *object = json_object();
    for (size_t i = 0; serve_job_is_finished(job) && i < job->array_count; i++)
        json_object_set_new(object, job->arrays[i].name,
                            sizes_as_json(job->arrays[i].array->rank, job->arrays[i].array->shape));
    return object;
}

json_t *serve_job_json(serve_job *job)
{
    static const char *const states[] = {"waiting", "running", "done", "failed", "cancelled"};
    char id[32];
    json_t *object = json_object();
    snprintf(id, sizeof id, "%lu", job->number);
    json_object_set_new(object, "id", json_string(id));
    json_object_set_new(object, "kind", json_string(job->kind->name));
    pthread_mutex_lock(&job->lock);
    json_object_set_new(object, "state", json_string(states[job->state]));
    serve_job_put_progress(object, job);
    json_object_set_new(object, "command", json_string(job->command ? job->command : ""));
    json_object_set_new(object, "error", job->state == SERVE_FAILED ? json_string(job->error) : json_null());
    json_object_set_new(object, "model", *job->model_name ? json_string(job->model_name) : json_null());
    json_object_set_new(object, "image", json_boolean(job->is_image));
    json_object_set_new(object, "shape", sizes_as_json(job->rank, job->shape));
    json_object_set_new(object, "result", job->result ? json_deep_copy(job->result) : json_null());
    json_object_set_new(object, "arrays", arrays_as_json(job));
    pthread_mutex_unlock(&job->lock);
    return object;
}

/* ---- Workers ----------------------------------------------------------------------------------------------------- */

static void finish_job(serve_job *job, psld_status status)
{
    char text[sizeof job->error];
    if (status != PSLD_OK && status != PSLD_CANCELLED) cli_failed(status);
    serve_files_rename(&job->files, job->listener.message, text, sizeof text);
    if (!serve_text_is_clean(text, strlen(text)))
        for (char *c = text; *c; c++)
            if ((unsigned char)*c >= 0x80) *c = '?';
    release_work(job);
    pthread_mutex_lock(&job->lock);
    job->seconds = cli_seconds() - job->began;
    if (status == PSLD_OK) job->done = job->total;
    memcpy(job->error, text, sizeof text);
    set_state(job, status == PSLD_OK ? SERVE_DONE : status == PSLD_CANCELLED ? SERVE_CANCELLED : SERVE_FAILED);
    pthread_mutex_unlock(&job->lock);
}

static void work_on(serve_job *job)
{
    cli_listen(&job->listener);
    psld_status status = atomic_load(&job->cancels) ? PSLD_CANCELLED : job->kind->work(job);
    finish_job(job, status);
    cli_listen(NULL);
}

/* The oldest job that waits, now running and held; under the list's lock. */
static serve_job *next_job(void)
{
    serve_job *found = NULL;
    for (serve_job *job = newest; job; job = job->next)
        if (job->state == SERVE_WAITING) found = job;
    if (!found) return NULL;
    pthread_mutex_lock(&found->lock);
    found->began = cli_seconds();
    set_state(found, SERVE_RUNNING);
    pthread_mutex_unlock(&found->lock);
    atomic_fetch_add(&found->holders, 1);
    return found;
}

static size_t bytes_of(const serve_job *job)
{
    size_t bytes = 0;
    for (size_t i = 0; i < job->array_count; i++) bytes += job->arrays[i].array->count * sizeof(float);
    return bytes;
}

/* Old results make room; under the list's lock. */
static void prune_jobs(void)
{
    size_t count = 0, bytes = 0;
    for (serve_job **link = &newest; *link;) {
        serve_job *job = *link;
        int finished = serve_job_is_finished(job);
        count += (size_t)finished;
        bytes += finished ? bytes_of(job) : 0;
        if (finished && count > 1 && (count > SERVE_FINISHED || bytes > (size_t)SERVE_MEGABYTES << 20)) {
            *link = job->next;
            serve_job_release(job);
        } else {
            link = &job->next;
        }
    }
}

static void *worker(void *unused)
{
    pthread_mutex_lock(&list_lock);
    while (!stopping) {
        serve_job *job = next_job();
        if (!job) {
            pthread_cond_wait(&work_there, &list_lock);
            continue;
        }
        pthread_mutex_unlock(&list_lock);
        work_on(job);
        serve_job_release(job);
        pthread_mutex_lock(&list_lock);
        prune_jobs();
    }
    workers--;
    pthread_cond_signal(&worker_ended);
    pthread_mutex_unlock(&list_lock);
    return unused;
}

int serve_jobs_start(int count)
{
    pthread_mutex_lock(&list_lock);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[workers], NULL, worker, NULL) == 0) workers++;
    pthread_mutex_unlock(&list_lock);
    return workers == count;
}

void serve_jobs_stop(void)
{
    pthread_mutex_lock(&list_lock);
    stopping = 1;
    for (serve_job *job = newest; job; job = job->next) atomic_store(&job->cancels, 1);
    pthread_cond_broadcast(&work_there);
    pthread_mutex_unlock(&list_lock);
}

int serve_jobs_ended(double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(1e9 * seconds);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&list_lock);
    int count = workers, late = 0;
    for (; workers > 0 && !late; count = workers) late = pthread_cond_timedwait(&worker_ended, &list_lock, &until) != 0;
    pthread_mutex_unlock(&list_lock);
    return count == 0;
}

void serve_jobs_free(void)
{
    for (int i = 0; i < WORKERS; i++)
        if (threads[i]) pthread_join(threads[i], NULL);
    while (newest) {
        serve_job *job = newest;
        newest = job->next;
        serve_job_release(job);
    }
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

serve_job *serve_job_find(const char *number)
{
    char *end;
    unsigned long wanted = strtoul(number, &end, 10);
    serve_job *found = NULL;
    if (*number < '0' || *number > '9' || *end) return NULL;
    pthread_mutex_lock(&list_lock);
    for (serve_job *job = newest; job && !found; job = job->next)
        if (job->number == wanted) found = job;
    if (found) atomic_fetch_add(&found->holders, 1);
    pthread_mutex_unlock(&list_lock);
    return found;
}

serve_job *serve_job_of(serve_request *request, enum MHD_Result *refused)
{
    const char *number = request->url.segments[2];
    serve_job *job = serve_job_find(number);
    if (!job) *refused = serve_refuse(request, 404, "there is no job %.40s", number);
    return job;
}

static int add_job(serve_job *job)
{
    int busy = 0;
    pthread_mutex_lock(&list_lock);
    for (const serve_job *other = newest; other; other = other->next) busy += !serve_job_is_finished(other);
    if (busy < SERVE_JOBS && !stopping) {
        job->number = ++last_number;
        job->next = newest;
        newest = job;
        atomic_fetch_add(&job->holders, 1);
        pthread_cond_signal(&work_there);
    }
    pthread_mutex_unlock(&list_lock);
    return busy < SERVE_JOBS;
}

static enum MHD_Result refuse_options(serve_request *request, serve_job *job)
{
    char text[2048];
    serve_files_rename(&job->files, job->listener.message, text, sizeof text);
    serve_job_release(job);
    return serve_refuse(request, 422, "%s", text);
}

enum MHD_Result serve_jobs_post(serve_request *request)
{
    const char *name = json_string_value(json_object_get(request->json, "kind"));
    const serve_kind *kind = NULL;
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0) kind = kinds[i];
    if (!kind)
        return serve_refuse(request, 400, "kind: expected draw, inpaint, restore, encode, interpolate or animate");
    serve_job *job = create_job(kind);
    if (!job) return serve_refuse(request, 500, "out of memory");
    cli_listen(&job->listener);
    psld_status status = kind->prepare(job, request->json);
    if (status != PSLD_OK) cli_failed(status);
    cli_listen(NULL);
    if (status != PSLD_OK) return refuse_options(request, job);
    if (json_is_true(json_object_get(request->json, "dry"))) {
        json_t *answer = json_pack("{s:s}", "command", job->command);
        serve_job_release(job);
        return serve_answer_json(request, 200, answer);
    }
    if (!add_job(job)) {
        serve_job_release(job);
        return serve_refuse(request, 429, "too many jobs: at most %d wait or run at once", SERVE_JOBS);
    }
    enum MHD_Result result = serve_answer_json(request, 202, serve_job_json(job));
    serve_job_release(job);
    return result;
}

enum MHD_Result serve_jobs_list(serve_request *request)
{
    json_t *list = json_array();
    pthread_mutex_lock(&list_lock);
    for (serve_job *job = newest; job; job = job->next) json_array_append_new(list, serve_job_json(job));
    pthread_mutex_unlock(&list_lock);
    return serve_answer_json(request, 200, json_pack("{s:o}", "jobs", list));
}

enum MHD_Result serve_jobs_get(serve_request *request)
{
    enum MHD_Result result = MHD_NO;
    serve_job *job = serve_job_of(request, &result);
    if (!job) return result;
    result = serve_answer_json(request, 200, serve_job_json(job));
    serve_job_release(job);
    return result;
}

/* Takes a job off the list; under the list's lock. */
static void drop_job(serve_job *job)
{
    serve_job **link = &newest;
    while (*link && *link != job) link = &(*link)->next;
    if (!*link) return;
    *link = job->next;
    serve_job_release(job);
}

enum MHD_Result serve_jobs_delete(serve_request *request)
{
    enum MHD_Result result = MHD_NO;
    serve_job *job = serve_job_of(request, &result);
    if (!job) return result;
    pthread_mutex_lock(&list_lock);
    atomic_store(&job->cancels, 1);
    int finished = serve_job_is_finished(job), waits = job->state == SERVE_WAITING;
    if (waits) {
        pthread_mutex_lock(&job->lock);
        set_state(job, SERVE_CANCELLED);
        pthread_mutex_unlock(&job->lock);
        release_work(job);
    }
    if (finished) drop_job(job);
    pthread_mutex_unlock(&list_lock);
    result = serve_answer_json(request, 200, serve_job_json(job));
    serve_job_release(job);
    return result;
}
