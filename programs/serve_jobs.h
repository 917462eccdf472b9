/* Jobs: work that takes longer than an answer. A request describes it as options of a command (serve_job_options.c); a
 * worker runs it (serve_job_*.c), with the functions of the command; the results are kept for a while as arrays.
 *
 * A job is reference-counted: the list of jobs, its worker, and every answer and stream that uses it hold it. Fields
 * that change during the work are protected by its lock. */
#ifndef PSLD_PROGRAMS_SERVE_JOBS_H
#define PSLD_PROGRAMS_SERVE_JOBS_H

#include <stdatomic.h>

#include "serve.h"

enum { SERVE_JOBS = 16, SERVE_FINISHED = 64, SERVE_ARRAYS = 6, SERVE_MEGABYTES = 512, SERVE_ARGUMENTS = 96 };

typedef enum serve_state { SERVE_WAITING, SERVE_RUNNING, SERVE_DONE, SERVE_FAILED, SERVE_CANCELLED } serve_state;

typedef struct serve_job serve_job;

/* The functions of a kind of job: a table in each serve_job_*.c. */
typedef struct serve_kind {
    const char *name;
    /* From the body of a request, before it is accepted: PSLD_OK, or what is wrong with it as a message. */
    psld_status (*prepare)(serve_job *job, const json_t *body);
    psld_status (*work)(serve_job *job);
    void (*release)(serve_job *job); /* what prepare and work have in `own` */
} serve_kind;
extern const serve_kind serve_kind_draw, serve_kind_inpaint, serve_kind_restore, serve_kind_encode,
    serve_kind_interpolate, serve_kind_animate;

struct serve_job {
    const serve_kind *kind;
    unsigned long number;
    serve_job *next;
    atomic_int holders, cancels, watchers; /* watchers: open streams, for whom previews are made */
    atomic_uint news;                      /* grows with every change that streams tell of */
    cli_listener listener;
    serve_files files;
    char *command;        /* the command line that does the same */
    char model_name[512]; /* as the client calls it */
    int has_previews;
    void *own; /* of its kind */

    pthread_mutex_t lock;
    _Atomic serve_state state; /* written under both locks, that of the list too where it begins or ends waiting */
    uint64_t done, total;
    unsigned part, parts; /* the work has so many parts of equal length; 0: one */
    double began, seconds;
    char error[2048];
    json_t *result;
    int is_image, rank;
    size_t shape[PSLD_MAX_RANK];
    struct serve_array {
        const char *name;
        psld_array *array;
    } arrays[SERVE_ARRAYS];
    size_t array_count;
    unsigned state_news, progress_news, preview_news; /* `news` when each changed last */
    char *preview;                                    /* the newest, as an event */
    double previewed, progressed;                     /* when, in seconds */
};

/* The workers. Returns 0 when they cannot be made. serve_jobs_stop cancels all; serve_jobs_ended waits for that long. */
int serve_jobs_start(int workers);
void serve_jobs_stop(void);
int serve_jobs_ended(double seconds);
void serve_jobs_free(void);

/* A job by its number, held; NULL: there is none. */
serve_job *serve_job_find(const char *number);
void serve_job_release(serve_job *job);

/* The job that a request names, held; NULL: it was refused, and *refused is what to return. */
serve_job *serve_job_of(serve_request *request, enum MHD_Result *refused);
int serve_job_is_finished(const serve_job *job);
/* Adds done, total, seconds and left; under the job's lock. */
void serve_job_put_progress(json_t *object, const serve_job *job);

/* For workers. An array becomes a result; the job owns it. */
void serve_job_keep(serve_job *job, const char *name, psld_array *array);
/* Progress of a part of the whole; other than 0: it is cancelled. */
int serve_job_progress(void *job, uint64_t done, uint64_t total);
void serve_job_set_result(serve_job *job, json_t *result);
/* Sets the shape of the data, once the model is open. */
void serve_job_set_shape(serve_job *job, int is_image, int rank, const size_t *shape);

/* A job as JSON; its lock is taken here. */
json_t *serve_job_json(serve_job *job);

/* Part of an array of a finished job, by name: items first ... first + count - 1 as a new array, which may be fewer. NULL:
 * there is none. */
psld_array *serve_job_part(serve_job *job, const char *name, size_t first, size_t count);
/* A PNG of the pictures of an array, [n, c, h, w], or [n, frames, c, h, w] row by row, which becomes the former. Free the
 * bytes with psld_bytes_free. */
psld_status serve_sheet_encode(psld_array *part, size_t columns, size_t zoom, void **bytes, size_t *size);

/* ---- Options (serve_job_options.c) ------------------------------------------------------------------------------- */

/* The words of a command line, from the keys of a body. */
typedef struct serve_words {
    int count;
    char *words[SERVE_ARGUMENTS];
} serve_words;
int serve_words_add(serve_words *words, const char *word);
void serve_words_free(serve_words *words);

/* A key of the body and the option of the command that it becomes; its value is a text, a number or true. */
typedef enum serve_value {
    SERVE_OPTION, /* a value: text or number */
    SERVE_SWITCH, /* true adds the option */
    SERVE_UNLESS, /* false adds the option */
    SERVE_PATH,   /* a file of the folder */
    SERVE_RECIPE, /* a recipe */
    SERVE_THING,  /* a picture or data: path, upload, item of a job */
    SERVE_ELSE,   /* read by the kind itself */
} serve_value;
typedef struct serve_key {
    const char *key;
    const char *option; /* "--cfg-range"; NULL: "--" and the key, '_' as '-' */
    serve_value value;
} serve_key;
/* Reads the keys of a body that are in the table (key NULL ends it), and refuses others. Files that they name are
 * opened into job->files. Words are added in the order of the table. */
psld_status serve_take_keys(serve_job *job, const json_t *body, const serve_key *keys, serve_words *words);
/* The command line: `command` and the words as a shell would take them, with names in place of descriptors. */
char *serve_command_line(const serve_job *job, const char *command, const serve_words *words, const char *out);

/* A thing as a file that the library can read. */
psld_status serve_thing_open(serve_files *files, const char *thing, const char **path);

/* A model of the folder; `raw`... options as they are. */
psld_status serve_model_open(serve_files *files, const char *name, const psld_model_options *options,
                             psld_model **model);

/* ---- Previews (serve_preview.c) ---------------------------------------------------------------------------------- */

/* Makes itself the watcher of options: tells the streams of a job what the model predicts. The source and the recipe must
 * live as long as the options are used. */
typedef struct serve_preview {
    serve_job *job;
    const psld_source *source;
    const psld_recipe *recipe;
    double cost;        /* seconds that the last one took */
    psld_watch_fn next; /* a watcher that was there before */
    void *next_user;
} serve_preview;
void serve_preview_watch(serve_preview *preview, serve_job *job, const psld_source *source, const psld_recipe *recipe,
                         psld_sample_options *options);

#endif
