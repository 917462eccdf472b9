/* Models of processes with formulas. They predict eps of the noisy variables in units of the deviations of the process
 * at each time, so that the score is -eps / deviation. */
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "model/model.h"
#include "sample/options.h"
#include "sample/process_sample.h"

/* How many copies of the variables of a recipe make the channels of a network. */
static psld_status count_copies(const psld_node *node, const psld_network_config *config, int *copies)
{
    psld_process *one;
    PSLD_TRY(psld_process_from_node(node, 1, &one));
    int n = one->variables;
    *copies = config->in_ch % n == 0 && config->in_ch <= PSLD_MAX_VARIABLES ? config->in_ch / n : 0;
    psld_process_free(one);
    if (*copies) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT,
                     "the network has %d channels in; a recipe of %d variables needs a multiple of these, at most %d",
                     config->in_ch, n, PSLD_MAX_VARIABLES);
}

psld_status psld_model_read_process(const psld_node *node, const psld_network_config *config, psld_model *model)
{
    int copies;
    if (config->kind != PSLD_NET_MLP || config->predicts != PSLD_OUTPUT_EPS || config->classes)
        return psld_fail(PSLD_BAD_INPUT,
                         "a recipe with formulas needs a network for vectors that predicts eps, without "
                         "classes (model.name: mlp)");
    PSLD_TRY(count_copies(node, config, &copies));
    PSLD_TRY(psld_process_from_node(node, copies, &model->process));
    if (config->out_ch != model->process->noisy_count)
        return psld_fail(PSLD_BAD_INPUT, "the network has %d channels out; recipe %s has %d variables with noise",
                         config->out_ch, model->process->name, model->process->noisy_count);
    return psld_process_scales_create(model->process, &model->scales);
}

typedef struct score_job {
    const psld_model *model;
    const psld_states *states;
    const float *eps;
    double *score;
} score_job;

static void score_range(void *context, size_t begin, size_t end)
{
    const score_job *job = context;
    size_t noisy = (size_t)job->model->process->noisy_count;
    for (size_t i = begin; i < end; i++) {
        double deviation[PSLD_MAX_VARIABLES];
        psld_process_scales_at(job->model->scales, job->states->t[i], deviation);
        for (size_t v = 0; v < noisy; v++) job->score[i * noisy + v] = -(double)job->eps[i * noisy + v] / deviation[v];
    }
}

psld_status psld_model_score(void *user, const psld_states *states, double *score)
{
    psld_model *model = user;
    size_t n = states->n, width = (size_t)model->process->variables, noisy = (size_t)model->process->noisy_count;
    float *z = psld_alloc(n * (width + 1 + noisy), sizeof *z);
    if (!z) return PSLD_NO_MEMORY;
    float *t = z + n * width, *eps = t + n;
    for (size_t i = 0; i < n * width; i++) z[i] = (float)states->z[i];
    for (size_t i = 0; i < n; i++) t[i] = (float)states->t[i];
    psld_status status = psld_model_run(model, n, z, t, NULL, eps);
    score_job job = {model, states, eps, score};
    if (status == PSLD_OK) psld_parallel(n, 256, score_range, &job);
    psld_release(z);
    return status;
}

psld_status psld_model_draw_process(psld_model *model, const psld_sample_options *options, uint64_t first, size_t count,
                                    const double *start, psld_process_batch_fn done, void *user, uint64_t *nfe)
{
    psld_sample_options own;
    PSLD_TRY(psld_sample_options_copy(options, &own));
    PSLD_TRY(psld_process_options_complete(model->process, &own));
    return psld_process_sample_batches(model->process, psld_model_score, model, &own, first, count, start, done, user,
                                       nfe);
}
