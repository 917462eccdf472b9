/* Reads pictures and vectors for conditions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling.h"

enum { SHAPE_TEXT = 64 };

static const char *array_shape_text(int rank, const size_t *shape, char text[SHAPE_TEXT])
{
    text[0] = 0;
    for (int i = 0; i < rank; i++) {
        size_t used = strlen(text);
        snprintf(text + used, SHAPE_TEXT - used, "%s%zu", i ? " x " : "", shape[i]);
    }
    return text;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

/* .npy: one item, or several along the first axis; u8 are pixels. */
static psld_status read_array(const char *path, const char *what, int rank, const size_t *shape, psld_array **x)
{
    char wanted[SHAPE_TEXT], found[SHAPE_TEXT];
    psld_array *loaded = NULL;
    psld_status status = psld_array_load(path, &loaded);
    if (status != PSLD_OK) return status;
    int skipped = loaded->rank - rank, same = skipped == 0 || skipped == 1;
    for (int i = 0; same && i < rank; i++) same = loaded->shape[skipped + i] == shape[i];
    if (!same || loaded->count == 0) {
        status =
            cli_bad_input("%s: expected %s of %s, one or [n, ...], found %s", path, what,
                          array_shape_text(rank, shape, wanted), array_shape_text(loaded->rank, loaded->shape, found));
        psld_array_free(loaded);
        return status;
    }
    int pixels = loaded->type == PSLD_U8 && rank == 3;
    status = psld_array_convert(loaded, PSLD_F64, x);
    psld_array_free(loaded);
    if (status != PSLD_OK) return status;
    double *values = (*x)->data;
    for (size_t i = 0; i < (*x)->count; i++) {
        if (!isfinite(values[i])) return cli_bad_input("%s: number %zu is not finite", path, i);
        if (pixels) values[i] = values[i] / 127.5 - 1;
    }
    return PSLD_OK;
}

/* ---- Pictures ---------------------------------------------------------------------------------------------------- */

/* One or more pictures as float64 [n][dim]. */
static psld_status read_pictures(const char *path, int rank, const size_t *shape, int fit, psld_array **x)
{
    char wanted[SHAPE_TEXT], found[SHAPE_TEXT];
    psld_data_options options = PSLD_DATA_DEFAULTS;
    psld_data *data = NULL;
    size_t its[PSLD_MAX_RANK] = {0}, dim = 1;
    if (rank != 3 || (shape[0] != 1 && shape[0] != 3))
        return cli_bad_input("%s: the model takes %s numbers; give them as .npy", path,
                             array_shape_text(rank, shape, wanted));
    options.channels = (int)shape[0];
    options.strict = 1;
    if (fit && shape[1] == shape[2]) options.image_size = (int)shape[1];
    psld_status status = psld_data_open(path, &options, &data);
    if (status != PSLD_OK) return status;
    int its_rank = psld_data_shape(data, its);
    for (int i = 0; i < 3; i++) dim *= shape[i];
    if (its_rank != 3 || memcmp(its, shape, 3 * sizeof *its) != 0)
        status = cli_bad_input("%s: expected pictures of %s, found %s; --fit resizes them", path,
                               array_shape_text(rank, shape, wanted), array_shape_text(its_rank, its, found));
    size_t n = (size_t)psld_data_count(data), all[2] = {n, dim};
    float *row = malloc(dim * sizeof *row);
    if (status == PSLD_OK) status = row ? psld_array_create(PSLD_F64, 2, all, x) : cli_bad_input("out of memory");
    for (uint64_t i = 0; status == PSLD_OK && i < n; i++) {
        status = psld_data_read(data, 1, &i, row, NULL);
        for (size_t j = 0; status == PSLD_OK && j < dim; j++) ((double *)(*x)->data)[i * dim + j] = (double)row[j];
    }
    free(row);
    psld_data_free(data);
    return status;
}

int sampling_is_array(const char *path)
{
    psld_array about;
    if (cli_ends_in(path, ".npy")) return 1;
    return strncmp(path, "/proc/", 6) == 0 && psld_array_inspect(path, &about) == PSLD_OK;
}

psld_status sampling_read_shape(const char *path, const char *what, int rank, const size_t *shape, int fit,
                                psld_array **x)
{
    size_t dim = 1;
    for (int i = 0; i < rank; i++) dim *= shape[i];
    psld_status status =
        sampling_is_array(path) ? read_array(path, what, rank, shape, x) : read_pictures(path, rank, shape, fit, x);
    if (status != PSLD_OK) {
        psld_array_free(*x);
        *x = NULL;
        return status;
    }
    (*x)->rank = 2;
    (*x)->shape[0] = (*x)->count / dim;
    (*x)->shape[1] = dim;
    return PSLD_OK;
}

psld_status sampling_read(const sampling_job *job, const char *path, psld_array **x)
{
    return sampling_read_shape(path, sampling_is_image(job) ? "pictures" : "vectors", job->rank, job->shape,
                               job->request->fit, x);
}
