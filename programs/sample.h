/* psld sample in parts: cmd_sample.c has the options and the order of the work, sample_file.c and sample_folder.c the
 * outputs, sample_estimate.c the estimate of the cost. */
#ifndef PSLD_PROGRAMS_SAMPLE_H
#define PSLD_PROGRAMS_SAMPLE_H

#include "sampling.h"

typedef struct sample_request {
    sampling_request sampling;
    const char *z0, *start, *trajectory_path, *timesteps;
    char process_room[64]; /* of sample_reach_timesteps */
    int estimate;
} sample_request;

/* A model, and the samples to draw from it. */
typedef struct sample_job {
    const sample_request *request;
    sampling_job sampling;
    psld_array *start; /* initial states, float64 [n][k * dim], or NULL */
    size_t n;
    size_t made; /* samples that are in the output */
    char *grid;  /* the times of --timesteps, or NULL */
} sample_job;

/* psld_model_draw for samples first ... first + count - 1 of the job, with progress: `before` samples of the job are
 * finished already. */
psld_status sample_draw(sample_job *job, size_t first, size_t count, size_t before, psld_samples_fn take, void *user);

/* Each draws all samples and writes them. After an interruption the drawn samples are written, and PSLD_CANCELLED is
 * returned. */
psld_status sample_to_file(sample_job *job);
psld_status sample_to_folder(sample_job *job);

/* Opens the model again if timesteps are asked for that have more noise than its recipe reaches: under a vp that does. */
psld_status sample_reach_timesteps(const char *const *words, int count, sample_request *r, sample_job *job);
/* Makes the given timesteps the times of the sampler. */
psld_status sample_follow_timesteps(sample_job *job);

/* Measures a few evaluations and prints an estimate for all. */
psld_status sample_estimate(sample_job *job);

/* The number of samples that step together. */
size_t sample_group(const sample_job *job);
/* The samples that this rank draws, in whole groups. */
void sample_share(const sample_job *job, size_t *begin, size_t *end);

#endif
