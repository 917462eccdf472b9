/* The input is a .npz file; every array that can be read is written to another one and must come back. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/tensors/npy.h"
#include "io/tensors/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(psld_status status)
{
    const char *text = psld_error_text();
    if (status == PSLD_OK) return;
    if (status != PSLD_BAD_INPUT || !*text || strchr(text, '\n')) abort();
}

/* Through a pipe, which holds what is written here. */
static void check_again(const char *name, const psld_array *array)
{
    int ends[2];
    char path[32];
    size_t bytes = array->count * psld_type_size(array->type);
    if (bytes + 3 * strlen(name) > 50000 || pipe(ends) != 0) return;
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    psld_status status = psld_npz_save(path, 1, &name, &array);
    if (status != (*name && strlen(name) <= 1020 ? PSLD_OK : PSLD_BAD_ARGUMENT)) abort();
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    psld_npz *npz = NULL;
    psld_array *again = NULL;
    if (status == PSLD_OK) {
        if (psld_npz_open(path, &npz) != PSLD_OK || psld_npz_size(npz) != 1) abort();
        if (psld_npz_read(npz, name, &again) != PSLD_OK) abort();
        if (again->type != array->type || again->rank != array->rank || again->count != array->count) abort();
        if (memcmp(again->shape, array->shape, sizeof array->shape) != 0) abort();
        if (memcmp(again->data, array->data, bytes) != 0) abort();
    }
    close(ends[0]);
    psld_array_free(again);
    psld_npz_free(npz);
}

/* Everything in the file; the status of the last failure. */
static psld_status read_all(const uint8_t *data, size_t size, int again)
{
    psld_npz *npz = NULL;
    psld_status status = psld_npz_parse(data, size, "fuzz", &npz);
    if ((status == PSLD_OK) != (npz != NULL)) abort();
    for (size_t i = 0; npz && i < psld_npz_size(npz); i++) {
        psld_array *array = NULL;
        psld_status each = psld_npz_read(npz, psld_npz_name(npz, i), &array);
        if ((each == PSLD_OK) != (array != NULL)) abort();
        if (array && again) check_again(psld_npz_name(npz, i), array);
        if (each == PSLD_NO_MEMORY || (each != PSLD_OK && status == PSLD_OK)) status = each;
        psld_array_free(array);
    }
    psld_array *absent = NULL;
    if (npz && psld_npz_read(npz, "no such array", &absent) != PSLD_BAD_INPUT) psld_array_free(absent);
    psld_npz_free(npz);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psld_status status = read_all(data, size, 1);
    check_failure(status);
    psld_alloc_fail_at(1 + (long)(size ? (data[size / 2] ^ size) % 16 : 0));
    psld_status limited = read_all(data, size, 0);
    if (limited != (psld_alloc_failed() ? PSLD_NO_MEMORY : status)) abort();
    psld_alloc_fail_at(0);
    if (psld_alloc_live() != 0) abort();
    return 0;
}
