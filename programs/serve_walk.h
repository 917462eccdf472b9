/* Shared by jobs that draw. */
#ifndef PSLD_PROGRAMS_SERVE_WALK_H
#define PSLD_PROGRAMS_SERVE_WALK_H

#include "sampling.h"
#include "serve_jobs.h"

/* The keys of all of them, for a table of serve_key. clang-format off: it would break every row. */
/* clang-format off */
#define SERVE_WALK_KEYS \
    {"process", NULL, SERVE_RECIPE}, {"seed", NULL, SERVE_OPTION}, {"quality", NULL, SERVE_OPTION}, \
    {"sampler", NULL, SERVE_OPTION}, {"nfe", NULL, SERVE_OPTION}, {"order", NULL, SERVE_OPTION}, \
    {"grid", NULL, SERVE_OPTION}, {"rho", NULL, SERVE_OPTION}, {"tol", NULL, SERVE_OPTION}, \
    {"eta", NULL, SERVE_OPTION}, {"detail", NULL, SERVE_OPTION}, {"eps", NULL, SERVE_OPTION}, \
    {"end_sigma", NULL, SERVE_OPTION}, {"clip", NULL, SERVE_OPTION}, {"threshold", NULL, SERVE_OPTION}, \
    {"corrector", NULL, SERVE_OPTION}, {"corrector_size", NULL, SERVE_OPTION}, \
    {"denoise", "--no-denoise", SERVE_UNLESS}, {"batch", NULL, SERVE_OPTION}, {"ode_group", NULL, SERVE_OPTION}, \
    {"weak", NULL, SERVE_PATH}, {"weak_scale", NULL, SERVE_OPTION}, {"use", NULL, SERVE_OPTION}, \
    {"label", NULL, SERVE_OPTION}, {"cfg", NULL, SERVE_OPTION}, {"cfg_range", NULL, SERVE_OPTION}, \
    {"quantize", NULL, SERVE_OPTION}
#define SERVE_GUIDANCE_KEYS {"classifier", NULL, SERVE_PATH}, {"scale", NULL, SERVE_OPTION}
/* clang-format on */

/* Takes "model" of a body, and reads the words by the options of a command. */
psld_status serve_walk_model(serve_job *job, const json_t *body);
/* Around parsing: 1 before it, 0 after it. */
void serve_walk_lock(int locks);
psld_status serve_walk_parse(const cli_command *command, const cli_option *options, const serve_words *words);
/* A failure that a command has reported as a message. */
psld_status serve_walk_checked(int exit_code);

/* Opens the model and what belongs to it, and tells the job its shape. */
psld_status serve_walk_open(serve_job *job, sampling_request *request, int classifier, sampling_job *s);
/* Refuses more samples than the server gives. */
psld_status serve_walk_check_number(const sampling_job *s, size_t n);
/* Keeps samples as a result, shortened to those that are drawn, unless something failed. */
void serve_walk_keep(serve_job *job, sampling_job *s, psld_status status, psld_array *samples);
/* n, nfe, sampler ... of what was drawn. */
json_t *serve_walk_result(const sampling_job *s, size_t n);

#endif
