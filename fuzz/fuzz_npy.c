/* The input is a .npy file, read as a file, whose length is known, and as a pipe, whose length is not: the result must
 * be the same, and must stay the same when it is written and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/tensors/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(psld_status status)
{
    const char *text = psld_error_text();
    if (status == PSLD_OK) return;
    if (status != PSLD_BAD_INPUT || !*text || strchr(text, '\n')) abort();
}

/* Every element counts for the sanitizers. */
static void check_array(const psld_array *array)
{
    size_t count = 1;
    if (array->rank < 0 || array->rank > PSLD_MAX_RANK || !array->data) abort();
    for (int i = 0; i < array->rank; i++) count *= array->shape[i];
    if (array->count != count) abort();
    psld_array *converted = NULL;
    for (int type = PSLD_F64; type <= PSLD_F32; type++) {
        if (psld_array_convert(array, (psld_type)type, &converted) != PSLD_OK) abort();
        psld_array_free(converted);
    }
}

static void check_same(const psld_array *a, const psld_array *b)
{
    if (a->type != b->type || a->rank != b->rank || a->count != b->count) abort();
    if (memcmp(a->shape, b->shape, sizeof a->shape) != 0) abort();
    if (memcmp(a->data, b->data, a->count * psld_type_size(a->type)) != 0) abort();
}

/* Through a pipe, which holds what is written here. */
static void check_again(const psld_array *array)
{
    int ends[2];
    char name[32];
    if (array->count * psld_type_size(array->type) > 32768 || pipe(ends) != 0) return;
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    psld_array *again = NULL;
    if (psld_array_save(array, name) != PSLD_OK) abort();
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    if (psld_array_load(name, &again) != PSLD_OK) abort();
    close(ends[0]);
    check_same(array, again);
    psld_array_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psld_status status[2];
    psld_array *array[2] = {NULL, NULL};
    for (int known = 0; known < 2; known++) {
        psld_reader reader;
        psld_reader_memory(data, size, "fuzz", &reader);
        reader.length_known = known;
        status[known] = psld_npy_read(&reader, &array[known]);
        check_failure(status[known]);
        if ((status[known] == PSLD_OK) != (array[known] != NULL)) abort();
    }
    if (status[0] != status[1]) abort();
    if (array[0]) {
        check_array(array[0]);
        check_same(array[0], array[1]);
        check_again(array[0]);
    }
    psld_array_free(array[0]);
    psld_array_free(array[1]);
    if (psld_alloc_live() != 0) abort();
    return 0;
}
