/* Masks: which elements of a picture or vector are known. White, or above 0, is unknown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling.h"

/* The shape of a mask: height and width of a picture, or the whole shape of a vector. */
typedef struct plane {
    size_t height, width, channels;
} plane;

static plane plane_of(const sampling_job *job)
{
    if (job->rank == 3) return (plane){job->shape[1], job->shape[2], job->shape[0]};
    return (plane){1, job->dim, 1};
}

/* Unknown where `unknown` [height][width] is above 0, resized by the nearest pixel. */
static void copy_mask(plane p, size_t height, size_t width, const double *unknown, unsigned char *known)
{
    for (size_t c = 0; c < p.channels; c++)
        for (size_t y = 0; y < p.height; y++)
            for (size_t x = 0; x < p.width; x++)
                known[(c * p.height + y) * p.width + x] =
                    (unsigned char)!(unknown[(y * height / p.height) * width + x * width / p.width] > 0);
}

typedef struct masks {
    psld_array *values; /* float64 [n][height][width], above 0 unknown */
    size_t n, height, width;
    int any_size; /* digits: resized to the image */
} masks;

static psld_status load_array(const char *path, plane p, masks *m)
{
    psld_array *loaded = NULL;
    psld_status status = psld_array_load(path, &loaded);
    if (status == PSLD_OK) status = psld_array_convert(loaded, PSLD_F64, &m->values);
    psld_array_free(loaded);
    if (status != PSLD_OK) return status;
    int spatial = p.height > 1 || p.channels > 1 ? 2 : 1, rank = m->values->rank;
    if ((rank != spatial && rank != spatial + 1) || m->values->count == 0)
        return cli_bad_input("%s: expected a mask with %d axes, or [n, ...], found %d axes", path, spatial, rank);
    m->width = m->values->shape[rank - 1];
    m->height = spatial == 2 ? m->values->shape[rank - 2] : 1;
    m->n = m->values->count / (m->width * m->height);
    return PSLD_OK;
}

/* Pictures are compared with the middle between black and white; in digits every pixel that is not black counts. */
static psld_status load_pictures(const char *path, masks *m)
{
    psld_data_options options = PSLD_DATA_DEFAULTS;
    psld_data *data = NULL;
    size_t shape[PSLD_MAX_RANK] = {0};
    options.channels = 1;
    options.strict = 1;
    psld_status status = psld_data_open(path, &options, &data);
    if (status != PSLD_OK) return status;
    const char *slash = strrchr(path, '/');
    m->any_size = strstr(psld_data_kind(data), "IDX") || strstr(slash ? slash : path, "idx");
    if (psld_data_shape(data, shape) != 3 || !psld_data_is_image(data))
        status = cli_bad_input("%s: expected pictures as masks", path);
    m->n = (size_t)psld_data_count(data);
    m->height = shape[1];
    m->width = shape[2];
    size_t all[3] = {m->n, m->height, m->width}, size = m->height * m->width;
    unsigned char *pixels = malloc(size ? size : 1);
    if (status == PSLD_OK)
        status = pixels ? psld_array_create(PSLD_F64, 3, all, &m->values) : cli_bad_input("out of memory");
    for (uint64_t i = 0; status == PSLD_OK && i < m->n; i++) {
        status = psld_data_read_u8(data, 1, &i, pixels, NULL);
        for (size_t j = 0; status == PSLD_OK && j < size; j++)
            ((double *)m->values->data)[i * size + j] = (double)pixels[j] - (m->any_size ? 0 : 127);
    }
    free(pixels);
    psld_data_free(data);
    return status;
}

static psld_status rectangle_mask(const char *text, plane p, masks *m)
{
    double numbers[4];
    size_t shape[2] = {p.height, p.width};
    if (cli_numbers(text, numbers, 4) != 4) return cli_bad_input("--rect: expected X,Y,W,H, found \"%s\"", text);
    for (int i = 0; i < 4; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= 1e6 && numbers[i] == floor(numbers[i])))
            return cli_bad_input("--rect: expected whole numbers, found %g", numbers[i]);
    size_t x = (size_t)numbers[0], y = (size_t)numbers[1], w = (size_t)numbers[2], h = (size_t)numbers[3];
    if (x + w > p.width || y + h > p.height)
        return cli_bad_input("--rect: %s reaches beyond %zu x %zu", text, p.width, p.height);
    psld_status status = psld_array_create(PSLD_F64, 2, shape, &m->values);
    if (status != PSLD_OK) return status;
    for (size_t i = 0; i < p.height * p.width; i++) {
        size_t row = i / p.width, column = i % p.width;
        ((double *)m->values->data)[i] = row >= y && row < y + h && column >= x && column < x + w;
    }
    m->n = 1;
    m->height = p.height;
    m->width = p.width;
    return PSLD_OK;
}

static psld_status check_masks(const sampling_job *job, const char *path, plane p, size_t images, const masks *m)
{
    if (!m->any_size && !job->request->fit && (m->height != p.height || m->width != p.width))
        return cli_bad_input("%s: expected a mask of %zu x %zu, found %zu x %zu; --fit resizes it", path, p.height,
                             p.width, m->height, m->width);
    if (m->n != 1 && m->n < images) return cli_bad_input("%s: has %zu masks for %zu images", path, m->n, images);
    return PSLD_OK;
}

/* Refuses masks without unknown elements; warns if there are no known ones. */
static psld_status check_mask_values(const psld_array *known)
{
    size_t count = 0;
    const unsigned char *flags = known->data;
    for (size_t i = 0; i < known->count; i++) count += flags[i];
    if (count == known->count) return cli_bad_input("the mask is empty: nothing is unknown, so there is nothing to do");
    if (count == 0) cli_complain("warning: the mask is full: nothing is known, so this is plain sampling");
    return PSLD_OK;
}

psld_status sampling_masks(const sampling_job *job, const char *path, const char *rectangle, size_t images,
                           psld_array **known)
{
    plane p = plane_of(job);
    masks m = {0};
    size_t shape[2] = {images, job->dim};
    psld_status status = rectangle                 ? rectangle_mask(rectangle, p, &m)
                         : sampling_is_array(path) ? load_array(path, p, &m)
                                                   : load_pictures(path, &m);
    if (status == PSLD_OK) status = check_masks(job, rectangle ? "--rect" : path, p, images, &m);
    if (status == PSLD_OK) status = psld_array_create(PSLD_U8, 2, shape, known);
    for (size_t i = 0; status == PSLD_OK && i < images; i++)
        copy_mask(p, m.height, m.width, (const double *)m.values->data + (m.n == 1 ? 0 : i) * m.height * m.width,
                  (unsigned char *)(*known)->data + i * job->dim);
    if (status == PSLD_OK) status = check_mask_values(*known);
    psld_array_free(m.values);
    return status;
}
