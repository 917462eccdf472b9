/* psld serve: shared by its parts. A request is parsed (serve_url.h), checked (serve_access.c), found in the table of
 * routes (serve_routes.c) and answered by one of the functions declared here.
 *
 * Threads: those of libmicrohttpd answer requests; workers run jobs (serve_jobs.h); the main thread waits for signals,
 * and ten times a second looks after streams, slow connections and runs (serve_server.c). */
#ifndef PSLD_PROGRAMS_SERVE_H
#define PSLD_PROGRAMS_SERVE_H

#include <microhttpd.h>
#include <pthread.h>
#include <sys/types.h>

#include "cli.h"
#include "serve_folder.h"
#include "serve_url.h"

enum {
    SERVE_BODY = 1 << 20,
    SERVE_UPLOAD = 32 << 20,
    SERVE_UPLOAD_PIXELS = 16 << 20,
    SERVE_UPLOADS = 32,
    SERVE_STREAMS = 64,
    SERVE_CONNECTIONS = 256,
    SERVE_HTTP_THREADS = 4,
    SERVE_SAMPLES = 1024,
    SERVE_POINTS = 20000,
    SERVE_TOKEN = 33,
};

typedef struct serve_options {
    const char *folder, *host;
    const char *device; /* of runs and jobs; NULL: what each chooses by itself */
    int port, jobs, open;
} serve_options;

typedef struct serve_server {
    struct MHD_Daemon *daemon;
    char token[SERVE_TOKEN], cookie[32], machine[256];
    serve_names names;
    serve_folder *folder;
    const char *device; /* as in serve_options */
} serve_server;

/* A process has one server. */
extern serve_server serve;

/* Serves until a signal asks to end. Returns the exit code. */
int serve_until_signal(const serve_options *options);

/* ---- A request --------------------------------------------------------------------------------------------------- */

typedef struct serve_request {
    struct MHD_Connection *connection;
    serve_url url;
    const char *wrong; /* with the address, or NULL */
    const struct serve_route *route;
    const char *method;
    char *body;
    size_t body_size, body_room, body_limit;
    int began, is_too_large;
    json_t *json; /* the body of routes that take JSON */
} serve_request;

typedef enum MHD_Result (*serve_handler)(serve_request *request);
typedef struct serve_route {
    const char *method, *path; /* "*" stands for one part */
    serve_handler handle;
    int takes; /* what body: */
} serve_route;
enum { SERVE_NO_BODY, SERVE_JSON_BODY, SERVE_BYTES_BODY };

/* The route of a request; NULL and the status of the refusal if there is none. */
const serve_route *serve_route_find(const serve_url *url, const char *method, unsigned *status);
/* Whether a request may be answered: 0, or the status of the refusal and its reason. */
unsigned serve_access_check(const serve_request *request, const char **why);
/* Whether a request has the token, in one of the possible places. */
int serve_access_has_token(const serve_request *request);
void serve_access_make_token(char token[SERVE_TOKEN]);

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

/* Each owns its arguments from then on, and returns the result of a handler. */
enum MHD_Result serve_answer_json(serve_request *request, unsigned status, json_t *json);
/* Bytes that `release` frees; `name`: the file name for saving, or NULL. */
enum MHD_Result serve_answer_bytes(serve_request *request, void *bytes, size_t size, void (*release)(void *),
                                   const char *type, const char *name);
/* A regular file from its beginning. */
enum MHD_Result serve_answer_file(serve_request *request, int fd, const char *type, const char *name);
/* Any response. */
enum MHD_Result serve_answer(serve_request *request, unsigned status, struct MHD_Response *response);
enum MHD_Result serve_refuse(serve_request *request, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* 422 with the library's message, in which descriptors of `files` are replaced by names. */
enum MHD_Result serve_refuse_status(serve_request *request, psld_status status, const serve_files *files);
/* The status of HTTP for one of serve_folder. */
unsigned serve_http_status(serve_found found);

/* JSON with all digits, from malloc. */
char *serve_json_text(const json_t *json);
/* Refuses keys of an object that are not in the NULL-terminated list. Returns the first such key, or NULL. */
const char *serve_json_unknown(const json_t *object, const char *const *known);
/* A whole number between two limits: a parameter of the address, or the default. Returns 0 if it is something else. */
int serve_number(const serve_request *request, const char *name, long least, long most, long *number);

/* ---- What is served ---------------------------------------------------------------------------------------------- */

enum MHD_Result serve_page(serve_request *request);
enum MHD_Result serve_about(serve_request *request);
enum MHD_Result serve_recipe_get(serve_request *request);
enum MHD_Result serve_recipe_post(serve_request *request);
enum MHD_Result serve_files_list(serve_request *request);
enum MHD_Result serve_file_get(serve_request *request);
enum MHD_Result serve_model_get(serve_request *request);
enum MHD_Result serve_save(serve_request *request);
enum MHD_Result serve_uploads_post(serve_request *request);
enum MHD_Result serve_uploads_get(serve_request *request);
enum MHD_Result serve_uploads_delete(serve_request *request);
enum MHD_Result serve_jobs_post(serve_request *request);
enum MHD_Result serve_jobs_list(serve_request *request);
enum MHD_Result serve_jobs_get(serve_request *request);
enum MHD_Result serve_jobs_delete(serve_request *request);
enum MHD_Result serve_jobs_array(serve_request *request);
enum MHD_Result serve_jobs_events(serve_request *request);
enum MHD_Result serve_runs_list(serve_request *request);
enum MHD_Result serve_runs_post(serve_request *request);
enum MHD_Result serve_run_get(serve_request *request);
enum MHD_Result serve_run_log(serve_request *request);
enum MHD_Result serve_run_events(serve_request *request);
enum MHD_Result serve_run_resume(serve_request *request);
enum MHD_Result serve_run_stop(serve_request *request);
enum MHD_Result serve_sweeps_list(serve_request *request);
enum MHD_Result serve_sweep_get(serve_request *request);

/* ---- Recipes ----------------------------------------------------------------------------------------------------- */

/* A recipe as a request has it: a text or an object. Files that it needs are added to `files`. */
psld_status serve_recipe_open(const json_t *given, serve_files *files, psld_recipe **recipe);
/* The same as a text for psld_recipe_open, for options of the library; free(). */
psld_status serve_recipe_text(const json_t *given, serve_files *files, char **text);
/* The answer on a recipe, or `valid: false`. */
json_t *serve_recipe_describe(const psld_recipe *recipe);
/* The recipe as a file; free(). */
char *serve_recipe_yaml(const psld_recipe *recipe);

#endif
