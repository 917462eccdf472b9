/* What must hold of tensors that came out of any file: for the fuzz targets of both kinds of file. */
#ifndef PSLD_FUZZ_CHECK_TENSORS_H
#define PSLD_FUZZ_CHECK_TENSORS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/tensors/tensors.h"

static inline void check_failure(psld_status status, psld_status expected)
{
    const char *text = psld_error_text();
    if (status == PSLD_OK) return;
    if (status != expected || !*text || strchr(text, '\n')) abort();
}

/* Every element counts for the sanitizers. */
static inline void check_tensor(const psld_tensors *tensors, const psld_tensor *t)
{
    size_t count = 1;
    if (t->rank < 0 || t->rank > PSLD_MAX_RANK || !t->data || !t->name) abort();
    for (int i = 0; i < t->rank; i++) count *= t->shape[i];
    if (t->count != count || t->bytes != count * psld_element_size(t->type)) abort();
    if ((uintptr_t)t->data % psld_element_size(t->type) != 0) abort();
    if (psld_tensors_find(tensors, t->name) != t) abort();
    float *to = malloc(count * sizeof *to + 1);
    if (!to) abort();
    psld_tensor_to_f32(t, to);
    free(to);
}

static inline void check_same(const psld_tensors *a, const psld_tensors *b)
{
    if (a->count != b->count) abort();
    for (size_t i = 0; i < a->count; i++) {
        const psld_tensor *x = &a->items[i], *y = psld_tensors_find(b, x->name);
        if (!y || x->type != y->type || x->rank != y->rank || x->bytes != y->bytes) abort();
        if (memcmp(x->shape, y->shape, sizeof x->shape) != 0 || memcmp(x->data, y->data, x->bytes) != 0) abort();
    }
    for (size_t i = 0; i < a->note_count; i++) {
        const char *value = psld_tensors_note(b, a->notes[i].key);
        if (!value || strcmp(value, a->notes[i].value) != 0) abort();
    }
}

/* No more than a pipe holds: escaped names, headers, padding and all. */
static inline int is_small(const psld_tensors *tensors)
{
    size_t size = 1000;
    for (size_t i = 0; i < tensors->count && size < 60000; i++)
        size += 800 + 6 * strlen(tensors->items[i].name) + tensors->items[i].bytes;
    for (size_t i = 0; i < tensors->note_count && size < 60000; i++)
        size += 50 + 6 * (strlen(tensors->notes[i].key) + strlen(tensors->notes[i].value));
    return size < 60000;
}

/* Written and read again, through a pipe, they are the same. */
static inline void check_again(const psld_tensors *tensors, psld_tensor_format format)
{
    int ends[2];
    char name[32];
    if (!is_small(tensors) || pipe(ends) != 0) return;
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    psld_status status = psld_tensors_save(tensors, format, name);
    check_failure(status, PSLD_BAD_ARGUMENT); /* names that the other format cannot have */
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    psld_tensors *again = NULL;
    if (status == PSLD_OK) {
        if (psld_tensors_open(name, &again) != PSLD_OK || psld_tensors_verify(again) != PSLD_OK) abort();
        check_same(tensors, again);
    }
    close(ends[0]);
    psld_tensors_free(again);
}

/* Those with one beginning of their names: which, the first one says. */
static inline void check_selection(const psld_tensors *tensors)
{
    char prefix[2] = "";
    psld_tensors *some = NULL;
    if (tensors->count) prefix[0] = tensors->items[0].name[0];
    if (psld_tensors_select(tensors, prefix, &some) != PSLD_OK) abort();
    if (tensors->count && some->count == 0) abort();
    psld_tensors_free(some);
}

/* Once as it is, and once with an allocation that fails: which one, the input says. */
static inline void check_file(const uint8_t *data, size_t size)
{
    psld_tensors *tensors = NULL;
    psld_status status = psld_tensors_parse(data, size, "fuzz", &tensors);
    check_failure(status, PSLD_BAD_INPUT);
    if ((status == PSLD_OK) != (tensors != NULL)) abort();
    if (tensors) {
        for (size_t i = 0; i < tensors->count; i++) check_tensor(tensors, &tensors->items[i]);
        check_failure(psld_tensors_verify(tensors), PSLD_BAD_INPUT);
        check_selection(tensors);
        check_again(tensors, PSLD_SAFETENSORS);
        check_again(tensors, PSLD_TORCH_ZIP);
    }
    psld_tensors_free(tensors);
    psld_alloc_fail_at(1 + (long)(size ? (data[size / 2] ^ size) % 64 : 0));
    psld_status limited = psld_tensors_parse(data, size, "fuzz", &tensors);
    if (limited != (psld_alloc_failed() ? PSLD_NO_MEMORY : status)) abort();
    psld_alloc_fail_at(0);
    psld_tensors_free(tensors);
    if (psld_alloc_live() != 0) abort();
}

#endif
