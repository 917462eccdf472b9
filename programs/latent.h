/* Shared by psld encode and psld interpolate: data to states at t = 1, and back. */
#ifndef PSLD_PROGRAMS_LATENT_H
#define PSLD_PROGRAMS_LATENT_H

#include "cli.h"
#include "labels.h"

enum { LATENT_WORDS = 4096, LATENT_NFE = 200 };
#define LATENT_SAMPLER "collapsed"

typedef struct latent_request {
    cli_model model;
    psld_sample_options options;
    label_request labels;
    long nfe, order;
    int fit;
} latent_request;

#define LATENT_OPTIONS(l)                                                                                            \
    {"sampler",                                                                                                      \
     0,                                                                                                              \
     CLI_TEXT,                                                                                                       \
     "NAME",                                                                                                         \
     "a deterministic sampler: collapsed (default), dpm, collapsed-heun, heun, euler-ode",                           \
     &(l).options.sampler,                                                                                           \
     "collapsed|dpm|collapsed-heun|heun|euler-ode"},                                                                 \
        {"nfe", 0, CLI_COUNT, "N", "evaluations in each direction (default 200)", &(l).nfe, NULL},                   \
        {"order", 0, CLI_COUNT, "N", "order of dpm and collapsed: 1 to 3 (default 3)", &(l).order, NULL},            \
        {"grid", 0, CLI_TEXT, "NAME", "time grid, as in psld sample", &(l).options.grid, NULL},                      \
        {"eps", 0, CLI_NUMBER, "T", "time of the data (default 1e-3)", &(l).options.eps, NULL},                      \
        {"end-sigma",                                                                                                \
         0,                                                                                                          \
         CLI_NUMBER,                                                                                                 \
         "S",                                                                                                        \
         "time of the data by its effective noise S, instead of --eps",                                              \
         &(l).options.end_sigma,                                                                                     \
         NULL},                                                                                                      \
        LABEL_OPTIONS((l).labels),                                                                                   \
        {"fit", 0, CLI_FLAG, NULL, "resize pictures of another size to the model's", &(l).fit, NULL},                \
        {"process", 0, CLI_TEXT, "RECIPE", "another recipe than the model's own", &(l).model.options.process, NULL}, \
    {                                                                                                                \
        "seed", 0, CLI_SEED, "S", "seed of the auxiliary variables of the data (default 0)", &(l).options.seed, NULL \
    }

typedef struct latent_job {
    const latent_request *request;
    psld_sample_options options;
    psld_model *model;
    label_choice labels;
    psld_array *x; /* data, float32 [n, channels, ...] */
    psld_array *z; /* states, float32 [n, k * channels, ...] */
    uint64_t nfe;
} latent_job;

void latent_defaults(latent_request *request);
/* Opens the model and reads the data; latent_close also after a failure. latent_settle converts options given as text;
 * call latent_begin after it, when job->model is open. */
psld_status latent_open(latent_request *request, const char *model, const char *const *files, int count,
                        latent_job *job);
psld_status latent_settle(latent_request *request);
psld_status latent_begin(const latent_request *request, const char *model, const char *const *files, int count,
                         latent_job *job);
void latent_close(latent_job *job);
psld_status latent_encode(latent_job *job);
psld_status latent_decode(latent_job *job, const psld_array *z, psld_array **x);
/* Root mean square and mean absolute difference between the data and the decoded data. */
void latent_compare(const psld_array *x, const psld_array *again, double *rms, double *absolute);
/* For two encoded data: checks that they are two, and computes n states on the arc from one to the other. */
psld_status latent_check_pair(const latent_job *job, const char *a, const char *b);
psld_status latent_between(const latent_job *job, size_t n, psld_array **between);

#endif
