/* Dense arrays, and arrays as .npy files. */
#include "io/tensors/array.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "io/files/map.h"
#include "io/tensors/npy.h"

_Static_assert(sizeof(float) == 4 && sizeof(double) == 8, "elements are IEEE 754 single and double precision");

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [PSLD_F64] = {"float64", 8}, [PSLD_F32] = {"float32", 4}, [PSLD_U8] = {"uint8", 1},
    [PSLD_I32] = {"int32", 4},   [PSLD_I64] = {"int64", 8},
};

enum { TYPE_COUNT = sizeof types / sizeof *types, LARGEST_ELEMENT = 8 };

const char *psld_type_name(psld_type type)
{
    return (unsigned)type < TYPE_COUNT ? types[type].name : NULL;
}

size_t psld_type_size(psld_type type)
{
    return (unsigned)type < TYPE_COUNT ? types[type].size : 0;
}

int psld_array_count(int rank, const size_t *shape, size_t *count)
{
    size_t bytes = LARGEST_ELEMENT;
    *count = 1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] && __builtin_mul_overflow(bytes, shape[i], &bytes)) return 0;
        *count *= shape[i];
    }
    return bytes <= PTRDIFF_MAX;
}

psld_status psld_array_header(psld_type type, int rank, const size_t *shape, psld_array **array)
{
    size_t count = 0;
    if (psld_type_size(type) == 0) return psld_fail(PSLD_BAD_ARGUMENT, "%d is no type of array elements", (int)type);
    if (rank < 0 || rank > PSLD_MAX_RANK)
        return psld_fail(PSLD_BAD_ARGUMENT, "an array cannot have rank %d, expected 0 to %d", rank, PSLD_MAX_RANK);
    if (!psld_array_count(rank, shape, &count))
        return psld_fail(PSLD_BAD_ARGUMENT, "the sizes of an array are too large");
    psld_array *a = psld_alloc(1, sizeof *a);
    if (!a) return PSLD_NO_MEMORY;
    *a = (psld_array){.type = type, .rank = rank, .count = count};
    if (rank > 0) memcpy(a->shape, shape, (size_t)rank * sizeof *shape);
    *array = a;
    return PSLD_OK;
}

psld_status psld_array_create(psld_type type, int rank, const size_t *shape, psld_array **array)
{
    *array = NULL;
    psld_array *a = NULL;
    PSLD_TRY(psld_array_header(type, rank, shape, &a));
    a->data = psld_alloc(a->count, psld_type_size(type));
    if (!a->data) {
        psld_array_free(a);
        return PSLD_NO_MEMORY;
    }
    *array = a;
    return PSLD_OK;
}

void psld_array_free(psld_array *array)
{
    if (!array) return;
    psld_release(array->data);
    psld_release(array);
}

static double element_at(const psld_array *array, size_t i)
{
    switch (array->type) {
    case PSLD_F64:
        return ((const double *)array->data)[i];
    case PSLD_F32:
        return (double)((const float *)array->data)[i];
    case PSLD_U8:
        return ((const uint8_t *)array->data)[i];
    case PSLD_I32:
        return ((const int32_t *)array->data)[i];
    case PSLD_I64:
        return (double)((const int64_t *)array->data)[i];
    }
    return 0;
}

psld_status psld_array_convert(const psld_array *array, psld_type type, psld_array **converted)
{
    *converted = NULL;
    if (type != PSLD_F64 && type != PSLD_F32)
        return psld_fail(PSLD_BAD_ARGUMENT, "arrays are converted to PSLD_F64 or PSLD_F32, not to type %d", (int)type);
    psld_array *result = NULL;
    PSLD_TRY(psld_array_create(type, array->rank, array->shape, &result));
    if (type == PSLD_F64) {
        double *to = result->data;
        for (size_t i = 0; i < array->count; i++) to[i] = element_at(array, i);
    } else if (array->type == PSLD_I64) { /* a conversion by way of double would round twice */
        float *to = result->data;
        for (size_t i = 0; i < array->count; i++) to[i] = (float)((const int64_t *)array->data)[i];
    } else {
        float *to = result->data;
        for (size_t i = 0; i < array->count; i++) to[i] = (float)element_at(array, i);
    }
    *converted = result;
    return PSLD_OK;
}

psld_status psld_array_load(const char *path, psld_array **array)
{
    *array = NULL;
    psld_reader reader;
    PSLD_TRY(psld_reader_open(path, &reader));
    psld_status status = psld_npy_read(&reader, array);
    psld_reader_close(&reader);
    return status == PSLD_NO_MEMORY ? psld_fail_in(status, "%s", path) : status;
}

psld_status psld_array_inspect(const char *path, psld_array *array)
{
    *array = (psld_array){0};
    psld_map map;
    int fortran;
    PSLD_TRY(psld_map_open(path, &map));
    psld_status status = psld_npy_view(map.bytes, map.size, path, array, &fortran);
    array->data = NULL;
    psld_map_close(&map);
    return status;
}

psld_status psld_array_save(const psld_array *array, const char *path)
{
    psld_writer *writer = NULL;
    PSLD_TRY(psld_writer_open(path, &writer));
    psld_npy_write(array, writer);
    return psld_writer_commit(writer);
}

psld_status psld_array_encode(const psld_array *array, void **bytes, size_t *size)
{
    char header[PSLD_NPY_HEADER];
    size_t before = psld_npy_header(array, header), rest = array->count * psld_type_size(array->type);
    *size = 0;
    *bytes = psld_alloc(before + rest, 1);
    if (!*bytes) return PSLD_NO_MEMORY;
    memcpy(*bytes, header, before);
    if (rest) memcpy((char *)*bytes + before, array->data, rest);
    *size = before + rest;
    return PSLD_OK;
}

void psld_bytes_free(void *bytes)
{
    psld_release(bytes);
}

uint64_t psld_array_fingerprint(const psld_array *array)
{
    return psld_hash_bytes(PSLD_HASH_START, array->data, array->count * psld_type_size(array->type));
}
