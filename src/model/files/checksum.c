#include "model/files/checksum.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/threads.h"
#include "model/model.h"

typedef struct sum_job {
    const psld_tensors *tensors;
    atomic_ulong sum;
} sum_job;

static void sum_tensors(void *context, size_t begin, size_t end)
{
    sum_job *job = context;
    for (size_t i = begin; i < end; i++) {
        const psld_tensor *t = &job->tensors->items[i];
        uLong one = crc32_z(crc32(0, NULL, 0), (const Bytef *)t->name, strlen(t->name) + 1);
        if (t->bytes) one = crc32_z(one, t->data, t->bytes);
        atomic_fetch_add(&job->sum, one);
    }
}

/* A sum over tensors, since files may have them in any order. */
void psld_checksum(const psld_tensors *tensors, char text[PSLD_CHECKSUM_SIZE])
{
    static const char *const notes[] = {PSLD_CONFIG_NOTE,      PSLD_CHECKPOINT_VERSION, PSLD_CHECKPOINT_STEP,
                                        PSLD_CHECKPOINT_ITEMS, PSLD_CHECKPOINT_RECIPE,  PSLD_WEAK_NOTE,
                                        PSLD_WEAK_SCALE_NOTE};
    uLong sum = crc32(0, NULL, 0);
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        const char *value = psld_tensors_note(tensors, notes[i]);
        if (value) sum = crc32_z(sum, (const Bytef *)value, strlen(value) + 1);
    }
    sum_job job = {.tensors = tensors, .sum = sum};
    psld_parallel(tensors->count, 1, sum_tensors, &job);
    snprintf(text, PSLD_CHECKSUM_SIZE, "%08lx", atomic_load(&job.sum) & 0xffffffffUL);
}

psld_status psld_checksum_note(psld_tensors *tensors)
{
    char text[PSLD_CHECKSUM_SIZE];
    psld_checksum(tensors, text);
    return psld_tensors_set_note(tensors, PSLD_CHECKSUM_NOTE, text);
}

psld_status psld_checksum_verify(const psld_tensors *tensors, const char *path)
{
    const char *found = psld_tensors_note(tensors, PSLD_CHECKSUM_NOTE);
    char text[PSLD_CHECKSUM_SIZE];
    PSLD_TRY(psld_tensors_verify(tensors));
    /* Other programs may change the weights of a PyTorch checkpoint and keep its notes. */
    if (!found || tensors->format != PSLD_SAFETENSORS) return PSLD_OK;
    psld_checksum(tensors, text);
    if (strcmp(text, found) == 0) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: is damaged: its checksum is %s and should be %.20s", path, text, found);
}
