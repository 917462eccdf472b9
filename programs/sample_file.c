/* Samples in one file: arrays, a grid of pictures, or a plot of points, written when all are drawn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

typedef struct collection {
    sample_job *job;
    psld_array *all; /* [n, channels, ...] */
} collection;

static psld_status collect_samples(void *user, uint64_t first, const psld_array *x)
{
    const collection *c = user;
    size_t each = x->count / x->shape[0];
    memcpy((float *)c->all->data + first * each, x->data, x->count * sizeof(float));
    c->job->made = first + x->shape[0];
    return PSLD_OK;
}

/* [n, c, h, w] -> [n, h, w, c] */
static psld_status samples_channels_last(const psld_array *in, psld_array **out)
{
    size_t channels = in->shape[1], pixels = in->shape[2] * in->shape[3];
    size_t shape[4] = {in->shape[0], in->shape[2], in->shape[3], channels};
    psld_status status = psld_array_create(PSLD_U8, 4, shape, out);
    if (status != PSLD_OK) return status;
    const unsigned char *from = in->data;
    unsigned char *to = (*out)->data;
    for (size_t i = 0; i < in->shape[0]; i++)
        for (size_t c = 0; c < channels; c++)
            for (size_t p = 0; p < pixels; p++) to[(i * pixels + p) * channels + c] = *from++;
    return PSLD_OK;
}

/* The class of each sample; *labels is NULL for a model without classes. */
static psld_status labels_of_samples(const sample_job *job, size_t n, psld_array **labels)
{
    const sampling_job *s = &job->sampling;
    const psld_labels *l = &s->labels.labels;
    *labels = NULL;
    if (psld_model_classes(s->model) == 0) return PSLD_OK;
    psld_status status = psld_array_create(PSLD_I32, 1, &n, labels);
    if (status != PSLD_OK) return status;
    int32_t *label = (*labels)->data;
    if (!l->label && !job->request->z0) return psld_model_draw_labels(s->model, s->options.seed, 0, n, label);
    for (size_t i = 0; i < n; i++) label[i] = l->label ? l->label[i % l->count] : -1;
    return PSLD_OK;
}

/* Pictures in the form that published tools for evaluation read, unsigned bytes [n, h, w, c]; other data unchanged.
 * With their classes the file is a data set for psld train and psld eval. */
static psld_status write_npz(const sample_job *job, const psld_array *x)
{
    static const char *const names[] = {"arr_0", "labels"};
    psld_array *pixels = NULL, *last = NULL, *labels = NULL;
    const psld_array *written = x;
    psld_status status = PSLD_OK;
    if (sampling_is_image(&job->sampling) && !job->sampling.request->state) {
        status = sampling_pixels(&job->sampling, x, &pixels);
        if (status == PSLD_OK) status = samples_channels_last(pixels, &last);
        written = last;
    }
    if (status == PSLD_OK) status = labels_of_samples(job, x->shape[0], &labels);
    const psld_array *const arrays[] = {written, labels};
    if (status == PSLD_OK) status = psld_npz_save(job->sampling.request->out, labels ? 2 : 1, names, arrays);
    psld_array_free(labels);
    psld_array_free(pixels);
    psld_array_free(last);
    return status;
}

/* Labels of samples alternate between the classes; in the grid each class is a row. */
static psld_status order_by_class(size_t classes, psld_array *pixels)
{
    size_t n = pixels->shape[0], size = pixels->count / n, each = n / classes;
    unsigned char *ordered = malloc(pixels->count), *data = pixels->data;
    if (!ordered) return cli_bad_input("out of memory for %zu pictures", n);
    for (size_t i = 0; i < n; i++) memcpy(ordered + (i % classes * each + i / classes) * size, data + i * size, size);
    memcpy(data, ordered, pixels->count);
    free(ordered);
    return PSLD_OK;
}

static psld_status write_grid(const sample_job *job, const psld_array *x)
{
    psld_array *pixels = NULL;
    size_t listed = job->sampling.request->labels.label ? job->sampling.labels.labels.count : 0;
    int by_class = listed > 1 && x->shape[0] % listed == 0;
    psld_status status = sampling_pixels(&job->sampling, x, &pixels);
    if (status == PSLD_OK && by_class) status = order_by_class(listed, pixels);
    if (status == PSLD_OK)
        status = sheet_write(pixels, by_class ? x->shape[0] / listed : 0, job->sampling.request->zoom,
                             job->sampling.request->out);
    psld_array_free(pixels);
    return status;
}

static psld_status sample_write_plot(const sample_job *job, const psld_array *x)
{
    char title[160];
    psld_array *points = NULL;
    snprintf(title, sizeof title, "%s, %s, %llu evaluations", psld_model_process_name(job->sampling.model),
             job->sampling.options.sampler, (unsigned long long)job->sampling.nfe);
    psld_status status = psld_array_convert(x, PSLD_F64, &points);
    if (status == PSLD_OK)
        status = psld_plot_points(psld_model_mixture(job->sampling.model), points->data, x->shape[0], title,
                                  job->sampling.request->out);
    psld_array_free(points);
    return status;
}

static psld_status sample_write_samples(const sample_job *job, const psld_array *x)
{
    const char *out = job->sampling.request->out;
    if (cli_ends_in(out, ".npy")) return psld_array_save(x, out);
    if (cli_ends_in(out, ".npz")) return write_npz(job, x);
    return sampling_is_image(&job->sampling) ? write_grid(job, x) : sample_write_plot(job, x);
}

/* Under several ranks each draws its share and rank 0 writes: all of it or nothing. */
static psld_status draw_with_others(collection *c)
{
    size_t begin, end;
    sample_job *job = c->job;
    psld_status status = PSLD_OK;
    sample_share(job, &begin, &end);
    if (begin < end) status = sample_draw(job, begin, end - begin, 0, collect_samples, c);
    if (status != PSLD_OK) return status;
    psld_ranks_merge(c->all->data, c->all->count * sizeof(float));
    job->made = job->n;
    return psld_rank() == 0 ? sample_write_samples(job, c->all) : PSLD_OK;
}

psld_status sample_to_file(sample_job *job)
{
    collection c = {job, NULL};
    psld_status status = sampling_array(&job->sampling, job->n, &c.all);
    if (status == PSLD_OK && psld_rank_count() > 1) {
        status = draw_with_others(&c);
        psld_array_free(c.all);
        return status;
    }
    if (status == PSLD_OK) status = sample_draw(job, 0, job->n, 0, collect_samples, &c);
    if (status == PSLD_OK || (status == PSLD_CANCELLED && job->made > 0)) {
        c.all->count = c.all->count / c.all->shape[0] * job->made;
        c.all->shape[0] = job->made;
        psld_status written = sample_write_samples(job, c.all);
        if (written != PSLD_OK) status = written;
    }
    psld_array_free(c.all);
    return status;
}
