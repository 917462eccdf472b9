/* Pictures of restored data: original | corrupted | samples, in one picture or in folders. */
#include <stdio.h>
#include <string.h>

#include "sampling.h"

/* The first n rows of float64 [..][dim] as pixels [n, c, h, w]. */
static psld_status as_pixels(const sampling_job *job, const psld_array *x, size_t n, psld_array **pixels)
{
    psld_array rows = *x, *narrow = NULL;
    rows.count = n * job->dim;
    rows.rank = 4;
    rows.shape[0] = n;
    memcpy(rows.shape + 1, job->shape, 3 * sizeof *job->shape);
    psld_status status = psld_array_convert(&rows, PSLD_F32, &narrow);
    if (status == PSLD_OK) status = sampling_pixels(job, narrow, pixels);
    psld_array_free(narrow);
    return status;
}

/* Copies picture `from_index` of one array of pixels to picture `to_index` of another. */
static void copy_strip_image(const sampling_job *job, const psld_array *from, size_t from_index, psld_array *to,
                             size_t to_index)
{
    memcpy((unsigned char *)to->data + to_index * job->dim, (const unsigned char *)from->data + from_index * job->dim,
           job->dim);
}

/* The last strip is shorter if samples are missing. */
static psld_status make_strips(const sampling_job *job, psld_array *const parts[3], size_t each, psld_array **strips)
{
    size_t images = parts[1]->shape[0], samples = parts[2]->shape[0], lead = parts[0] ? 2 : 1, columns = lead + each;
    size_t shape[4] = {images * lead + samples, job->shape[0], job->shape[1], job->shape[2]};
    psld_status status = psld_array_create(PSLD_U8, 4, shape, strips);
    for (size_t i = 0; status == PSLD_OK && i < images; i++) {
        if (parts[0]) copy_strip_image(job, parts[0], i, *strips, i * columns);
        copy_strip_image(job, parts[1], i, *strips, i * columns + lead - 1);
        for (size_t s = 0; s < each && i * each + s < samples; s++)
            copy_strip_image(job, parts[2], i * each + s, *strips, i * columns + lead + s);
    }
    return status;
}

static const char *const names[3] = {"originals", "corrupted", "samples"};

psld_status sampling_check_strips(const sampling_job *job, size_t images, size_t samples)
{
    psld_status status = PSLD_OK;
    if (cli_ends_in(job->request->out, ".npy|.png")) return PSLD_OK;
    for (int i = 0; status == PSLD_OK && i < 3; i++)
        status = sampling_check_folder(job->request->out, names[i], i < 2 ? images : samples);
    return status;
}

static psld_status write_folder(const sampling_request *request, psld_array *const parts[3], const psld_array *strips,
                                size_t columns)
{
    const char *out = request->out;
    char path[CLI_PATH];
    psld_status status = psld_folder_make(out);
    for (int i = 0; status == PSLD_OK && i < 3; i++) {
        if (snprintf(path, sizeof path, "%s/%s", out, names[i]) >= (int)sizeof path)
            return cli_bad_input("%s: the name is too long", out);
        if (parts[i]) status = sampling_write_folder(parts[i], path);
    }
    snprintf(path, sizeof path, "%s/strips.png", out);
    return status == PSLD_OK ? sheet_write(strips, columns, request->zoom, path) : status;
}

static psld_status write_strips(const sampling_job *job, const psld_array *originals, const psld_array *corrupted,
                                const psld_array *samples, size_t each)
{
    const char *out = job->request->out;
    size_t images = (samples->shape[0] + each - 1) / each, columns = (originals ? 2 : 1) + each;
    psld_array *parts[3] = {NULL, NULL, NULL}, *strips = NULL;
    if (cli_ends_in(out, ".npy")) return psld_array_save(samples, out);
    psld_status status = originals ? as_pixels(job, originals, images, &parts[0]) : PSLD_OK;
    if (status == PSLD_OK) status = as_pixels(job, corrupted, images, &parts[1]);
    if (status == PSLD_OK) status = sampling_pixels(job, samples, &parts[2]);
    if (status == PSLD_OK) status = make_strips(job, parts, each, &strips);
    if (status == PSLD_OK)
        status = cli_ends_in(out, ".png") ? sheet_write(strips, columns, job->request->zoom, out)
                                          : write_folder(job->request, parts, strips, columns);
    for (int i = 0; i < 3; i++) psld_array_free(parts[i]);
    psld_array_free(strips);
    return status;
}

int sampling_finish(const sampling_job *job, psld_status drawn, const psld_array *originals,
                    const psld_array *corrupted, psld_array *samples, size_t each)
{
    psld_status written = PSLD_OK;
    if (sampling_keep(job, drawn, samples)) written = write_strips(job, originals, corrupted, samples, each);
    if (written != PSLD_OK) return cli_failed(written);
    if (drawn == PSLD_CANCELLED) return sampling_report_interrupted(job, job->drawn, job->planned, "");
    return drawn == PSLD_OK ? EXIT_DONE : cli_failed(drawn);
}
