/* psld sample --timesteps: samples at exactly these timesteps of a network with discrete ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

enum { NUMBER_ROOM = 32 };

psld_status sample_reach_timesteps(const char *const *words, int count, sample_request *r, sample_job *job)
{
    double sigma_min, sigma_max, end;
    if (!r->timesteps || r->sampling.model.options.process || !psld_model_timesteps(job->sampling.model))
        return PSLD_OK;
    psld_status status = psld_model_sigma_range(job->sampling.model, &sigma_min, &sigma_max);
    if (status == PSLD_OK) status = psld_recipe_sigma(psld_model_recipe(job->sampling.model), 1, &end);
    if (status != PSLD_OK || end >= sigma_max) return status;
    /* sigma^2 = exp((beta_min + beta_max) / 2) - 1 */
    snprintf(r->process_room, sizeof r->process_room, "vp beta=[0.1,%.17g]", 2 * log1p(sigma_max * sigma_max) - 0.0999);
    r->sampling.model.options.process = r->process_room;
    sampling_close(&job->sampling);
    job->sampling = (sampling_job){0};
    return sampling_open(words, count, &r->sampling, 0, &job->sampling);
}

/* The times at which the process has the noise of the timesteps, as the text of a grid. */
static psld_status write_grid(const sample_job *job, const psld_array *timesteps, char *grid)
{
    const double *timestep = timesteps->data;
    for (size_t i = 0; i < timesteps->count; i++) {
        double t;
        psld_status status = psld_model_timestep_time(job->sampling.model, timestep[i], &t);
        if (status != PSLD_OK) return status;
        if (i && !(timestep[i] < timestep[i - 1]))
            return cli_bad_input("%s: expected decreasing timesteps, found %g after %g", job->request->timesteps,
                                 timestep[i], timestep[i - 1]);
        grid += snprintf(grid, NUMBER_ROOM, "%s%.17g", i ? "," : "", t);
    }
    return PSLD_OK;
}

static psld_status use_timesteps(sample_job *job, const psld_array *timesteps)
{
    psld_sample_options *o = &job->sampling.options;
    if (timesteps->count < 2) return cli_bad_input("%s: expected at least two timesteps", job->request->timesteps);
    job->grid = malloc(timesteps->count * NUMBER_ROOM);
    if (!job->grid) return PSLD_NO_MEMORY;
    psld_status status = write_grid(job, timesteps, job->grid);
    if (status != PSLD_OK) return status;
    o->grid = job->grid;
    o->nfe = 0;
    o->eps = 0;
    o->end_sigma = 0;
    return psld_sample_complete(psld_model_recipe(job->sampling.model), o);
}

psld_status sample_follow_timesteps(sample_job *job)
{
    psld_array *loaded = NULL, *timesteps = NULL;
    psld_status status = psld_array_load(job->request->timesteps, &loaded);
    if (status == PSLD_OK) status = psld_array_convert(loaded, PSLD_F64, &timesteps);
    if (status == PSLD_OK) status = use_timesteps(job, timesteps);
    psld_array_free(loaded);
    psld_array_free(timesteps);
    return status;
}
