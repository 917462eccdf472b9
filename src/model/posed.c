/* Exact models in place of networks: the output of a perfect network of a kind, which `as` in their file names. They
 * show the error of a conditioning, a table of timesteps or a translation between processes, without the error of
 * training. */
#include "model/posed.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "sample/sources/mixture.h"

typedef struct posed_call {
    const psld_model *model;
    const psld_posed_batch *batch;
    size_t dim;
    double *room; /* [n][4 dim] */
} posed_call;

static void posed_answer(const posed_call *c, size_t i)
{
    const psld_posed_batch *b = c->batch;
    size_t dim = c->dim;
    double *y = c->room + i * 4 * dim, *x = y + dim, *weight = x + dim, *grad = weight + dim;
    double sigma = psld_conditioning_sigma(&c->model->conditioning, (double)b->time[i]);
    const float *u = b->u + i * dim;
    psld_scaling s;
    psld_conditioning_at(&c->model->conditioning, sigma, &s);
    for (size_t j = 0; j < dim; j++) y[j] = s.divide * (double)u[j];
    for (size_t j = 0; b->weight && j < dim; j++) weight[j] = (double)b->weight[i * dim + j] / s.scale;
    psld_mixture_denoise(c->model->mixture, y, sigma, b->label ? b->label[i] : -1, b->weight ? weight : NULL, x, grad);
    for (size_t j = 0; j < dim; j++) b->out[i * dim + j] = (float)((x[j] - s.keep * (double)u[j]) / s.scale);
    for (size_t j = 0; b->weight && j < dim; j++)
        b->by_u[i * dim + j] = (float)(s.divide * grad[j] - s.keep * weight[j]);
}

static void answer_range(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) posed_answer(context, i);
}

psld_status psld_posed_run(const psld_model *model, const psld_posed_batch *batch)
{
    posed_call call = {.model = model, .batch = batch, .dim = psld_model_size(model)};
    size_t work = call.dim * model->mixture->components;
    call.room = psld_alloc(batch->n, 4 * call.dim * sizeof *call.room);
    if (!call.room) return PSLD_NO_MEMORY;
    psld_parallel(batch->n, 4096 / work + 1, answer_range, &call);
    psld_release(call.room);
    return PSLD_OK;
}
