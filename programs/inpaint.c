#include "inpaint.h"

#include <string.h>

int inpaint_check(const cli_command *command, inpaint_request *r)
{
    if (!r->image) return cli_wrong_usage(command, "no image given; add --image I");
    if (!r->mask == !r->rectangle)
        return cli_wrong_usage(command, "the unknown part is not given; add --mask M or --rect X,Y,W,H");
    int adaptive = sampling_is_adaptive(r->sampling.sampler);
    if (!r->method) r->method = adaptive ? "replace" : "resample";
    if (strcmp(r->method, "resample") != 0 && (r->repeats || r->jump))
        return cli_wrong_usage(command, "--repeats and --jump are for --method resample");
    if (!r->repeats) r->repeats = 10;
    if (!r->jump) r->jump = 1;
    return sampling_check_conditions(command, &r->sampling);
}

/* The unknown part becomes grey. */
static psld_status hide_unknown_pixels(inpaint_job *job)
{
    psld_status status = psld_array_convert(job->x, PSLD_F64, &job->corrupted);
    for (size_t i = 0; status == PSLD_OK && i < job->x->count; i++)
        if (!((unsigned char *)job->known->data)[i]) ((double *)job->corrupted->data)[i] = 0;
    return status;
}

static void inpaint_describe(const inpaint_request *r, inpaint_job *job)
{
    psld_inpainting *p = &job->inpainting;
    *p = (psld_inpainting)PSLD_INPAINTING_DEFAULTS;
    p->images = (int)job->x->shape[0];
    p->each = (int)job->each;
    p->x = job->x->data;
    p->known = job->known->data;
    p->lagging = strcmp(r->method, "authors") == 0;
    if (strcmp(r->method, "resample") != 0) return;
    p->repeats = r->repeats > 100000 ? 100000 : (int)r->repeats;
    p->jump = r->jump > 1000000 ? 1000000 : (int)r->jump;
}

psld_status inpaint_fill(const inpaint_request *r, inpaint_job *job)
{
    sampling_job *s = &job->sampling;
    psld_source *guided = NULL, *labelled = NULL, *source = psld_model_source(s->model);
    psld_status status = sampling_read(s, r->image, &job->x);
    job->each = r->sampling.n ? (size_t)r->sampling.n : sampling_is_image(s) ? 4 : 1000;
    if (status == PSLD_OK) status = sampling_masks(s, r->mask, r->rectangle, job->x->shape[0], &job->known);
    if (status == PSLD_OK) status = hide_unknown_pixels(job);
    if (status == PSLD_OK) status = sampling_check_strips(s, job->x->shape[0], job->x->shape[0] * job->each);
    if (status == PSLD_OK) status = sampling_array(s, job->x->shape[0] * job->each, &job->samples);
    if (status == PSLD_OK) status = sampling_label(s, &labelled);
    if (labelled) source = labelled;
    if (status == PSLD_OK && s->classifier) status = sampling_guide(s, source, r->sampling.label, &guided);
    if (status == PSLD_OK) {
        inpaint_describe(r, job);
        s->options.inpainting = &job->inpainting;
        status = sampling_draw(s, guided ? guided : source, 0, job->samples->shape[0], job->samples);
    }
    psld_source_free(guided);
    psld_source_free(labelled);
    return status;
}

void inpaint_release(inpaint_job *job)
{
    psld_array_free(job->x);
    psld_array_free(job->known);
    psld_array_free(job->corrupted);
    psld_array_free(job->samples);
    sampling_close(&job->sampling);
}
