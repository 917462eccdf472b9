#include "model/networks/precondition.h"

#include <string.h>

#include "sample/samplers/multistep.h"

psld_status psld_precondition_plan(const psld_recipe *recipe, double deviation, double t, psld_precondition *p)
{
    psld_conditioning ours = psld_conditioning_ours(deviation);
    return psld_precondition_plan_as(recipe, &ours, t, p);
}

psld_status psld_precondition_plan_as(const psld_recipe *recipe, const psld_conditioning *how, double t,
                                      psld_precondition *p)
{
    psld_scaling s;
    psld_collapsed_frame frame;
    psld_denoiser denoiser;
    PSLD_TRY(psld_collapsed_frame_plan(recipe, 0, t, &frame));
    PSLD_TRY(psld_denoiser_plan(recipe, 0, t, &denoiser));
    psld_conditioning_within(how, frame.sigma, &s);
    memset(p, 0, sizeof *p);
    p->k = denoiser.k;
    p->predicted = denoiser.predicted;
    p->time = s.time;
    p->keep = s.keep;
    p->scale = s.scale;
    for (int a = 0; a < p->k; a++) p->input[a] = frame.sigma * frame.inverse[a] / s.divide;
    for (int i = 0; i < p->predicted; i++) {
        p->gain[i] = -denoiser.gain[i] * p->scale;
        for (int a = 0; a < p->k; a++)
            p->linear[i * p->k + a] = denoiser.white[i * p->k + a] - denoiser.gain[i] * p->keep * p->input[a];
    }
    return PSLD_OK;
}

void psld_precondition_input(const psld_precondition *p, size_t dim, const double *z, float *u)
{
    for (size_t j = 0; j < dim; j++) {
        double sum = 0;
        for (int a = 0; a < p->k; a++) sum += p->input[a] * z[(size_t)a * dim + j];
        u[j] = (float)sum;
    }
}

void psld_precondition_eps(const psld_precondition *p, size_t dim, const double *z, const float *f, double *eps)
{
    for (int i = 0; i < p->predicted; i++)
        for (size_t j = 0; j < dim; j++) {
            double sum = p->gain[i] * (double)f[j];
            for (int a = 0; a < p->k; a++) sum += p->linear[i * p->k + a] * z[(size_t)a * dim + j];
            eps[(size_t)i * dim + j] = sum;
        }
}

void psld_precondition_weight(const psld_precondition *p, size_t dim, const double *weight, float *of_f)
{
    for (size_t j = 0; j < dim; j++) {
        double sum = 0;
        for (int i = 0; i < p->predicted; i++) sum += p->gain[i] * weight[(size_t)i * dim + j];
        of_f[j] = (float)sum;
    }
}

void psld_precondition_gradient(const psld_precondition *p, size_t dim, const double *weight, const float *by_u,
                                double *by_z)
{
    for (int a = 0; a < p->k; a++)
        for (size_t j = 0; j < dim; j++) {
            double sum = p->input[a] * (double)by_u[j];
            for (int i = 0; i < p->predicted; i++) sum += p->linear[i * p->k + a] * weight[(size_t)i * dim + j];
            by_z[(size_t)a * dim + j] = sum;
        }
}
