#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "model/checkpoints.h"
#include "model/model.h"

#define VERSION "1"

#define NOTE_VERSION  "psld.checkpoint"
#define NOTE_STEP     "psld.step"
#define NOTE_ITEMS    "psld.items"
#define NOTE_CHECKSUM "psld.checksum"

#define SUMS "log.sums"

psld_status psld_checkpoint_count(const char *folder, size_t *count, long *newest)
{
    long *steps;
    psld_status status = psld_checkpoints_list(folder, &steps, count);
    *newest = status == PSLD_OK && *count ? steps[0] : 0;
    psld_release(steps);
    return status;
}

/* ---- Checksum ---------------------------------------------------------------------------------------------------- */

/* Of the notes but itself, and of names and elements of all tensors: the sum of what each gives, since a file may have
 * them in another order. */
static void checksum(const psld_tensors *tensors, char text[16])
{
    static const char *const notes[] = {PSLD_CONFIG_NOTE, NOTE_VERSION, NOTE_STEP, NOTE_ITEMS};
    uLong sum = crc32(0, NULL, 0);
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        const char *value = psld_tensors_note(tensors, notes[i]);
        if (value) sum = crc32_z(sum, (const Bytef *)value, strlen(value) + 1);
    }
    for (size_t i = 0; i < tensors->count; i++) {
        const psld_tensor *t = &tensors->items[i];
        uLong one = crc32_z(crc32(0, NULL, 0), (const Bytef *)t->name, strlen(t->name) + 1);
        sum = (sum + crc32_z(one, t->data, t->bytes)) & 0xffffffffUL;
    }
    snprintf(text, 16, "%08lx", (unsigned long)sum);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static psld_status add_all(const psld_network *network, const char *before, const char *prefix, const float *numbers,
                           psld_tensors *tensors)
{
    for (size_t i = 0; numbers && i < network->graph->parameter_count; i++) {
        const psld_parameter *p = &network->graph->parameters[i];
        char name[2 * PSLD_PARAMETER_NAME];
        size_t shape[4];
        snprintf(name, sizeof name, "%s%s%s", before, prefix, p->name);
        for (int d = 0; d < p->rank; d++) shape[d] = (size_t)p->shape[d];
        PSLD_TRY(psld_tensors_add(tensors, name, PSLD_ELEMENT_F32, p->rank, shape, numbers + p->offset));
    }
    return PSLD_OK;
}

static psld_status collect(const psld_snapshot *s, psld_tensors *tensors)
{
    char step[32], items[32], sum[16];
    snprintf(step, sizeof step, "%ld", *s->state.steps);
    snprintf(items, sizeof items, "%llu", (unsigned long long)s->items);
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_CONFIG_NOTE, s->config));
    PSLD_TRY(psld_tensors_set_note(tensors, NOTE_VERSION, VERSION));
    PSLD_TRY(psld_tensors_set_note(tensors, NOTE_STEP, step));
    PSLD_TRY(psld_tensors_set_note(tensors, NOTE_ITEMS, items));
    PSLD_TRY(add_all(s->network, "", s->prefix, s->network->weights, tensors));
    PSLD_TRY(add_all(s->network, "ema_", s->prefix, s->state.average, tensors));
    PSLD_TRY(add_all(s->network, "adam_m.", "", s->state.m, tensors));
    PSLD_TRY(add_all(s->network, "adam_v.", "", s->state.v, tensors));
    PSLD_TRY(psld_tensors_add(tensors, SUMS, PSLD_ELEMENT_F64, 1, &s->sum_count, s->sums));
    checksum(tensors, sum);
    return psld_tensors_set_note(tensors, NOTE_CHECKSUM, sum);
}

static psld_status remove_old(const char *folder, int keep)
{
    long *steps;
    size_t count;
    char path[PSLD_CHECKPOINT_PATH];
    psld_status status = psld_checkpoints_list(folder, &steps, &count);
    for (size_t i = (size_t)keep; status == PSLD_OK && i < count; i++) {
        status = psld_checkpoints_path(folder, steps[i], path);
        if (status == PSLD_OK) unlink(path);
    }
    psld_release(steps);
    return status;
}

psld_status psld_checkpoint_save(const psld_snapshot *snapshot, const char *folder, int keep)
{
    psld_tensors *tensors;
    char path[PSLD_CHECKPOINT_PATH];
    PSLD_TRY(psld_checkpoints_path(folder, *snapshot->state.steps, path));
    PSLD_TRY(psld_tensors_create(&tensors));
    psld_status status = collect(snapshot, tensors);
    if (status == PSLD_OK) status = psld_tensors_save(tensors, PSLD_SAFETENSORS, path);
    psld_tensors_free(tensors);
    return status == PSLD_OK ? remove_old(folder, keep) : status;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* *step is -1 for a checkpoint that another version has written: no reason to take an older one. */
static psld_status check_notes(const psld_tensors *tensors, const char *path, long *step)
{
    const char *version = psld_tensors_note(tensors, NOTE_VERSION), *found = psld_tensors_note(tensors, NOTE_CHECKSUM),
               *text = psld_tensors_note(tensors, NOTE_STEP);
    char sum[16];
    int64_t number = -1;
    if (!version || !found || !text) return psld_fail(PSLD_BAD_INPUT, "%s: is not a checkpoint of psld", path);
    *step = strcmp(version, VERSION) != 0 ? -1 : 0;
    if (*step < 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: is a checkpoint of version %.20s, this program reads version %s", path,
                         version, VERSION);
    checksum(tensors, sum);
    if (strcmp(sum, found) != 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: is damaged: its checksum is %s and should be %.20s", path, sum, found);
    if (!psld_text_integer(text, &number) || number < 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: has no number of steps", path);
    *step = (long)number;
    return PSLD_OK;
}

static psld_status copy_tensor(const psld_tensors *tensors, const char *name, const psld_parameter *p, const char *path,
                               float *to)
{
    const psld_tensor *t = psld_tensors_find(tensors, name);
    int same = t && t->type == PSLD_ELEMENT_F32 && t->rank == p->rank;
    for (int d = 0; same && d < p->rank; d++) same = t->shape[d] == (size_t)p->shape[d];
    if (!same) return psld_fail(PSLD_BAD_INPUT, "%s: %s is not as the configuration makes it", path, name);
    memcpy(to + p->offset, t->data, t->bytes);
    return PSLD_OK;
}

static psld_status take_all(const psld_network *network, const char *before, const char *prefix,
                            const psld_tensors *tensors, const char *path, float *numbers)
{
    for (size_t i = 0; numbers && i < network->graph->parameter_count; i++) {
        char name[2 * PSLD_PARAMETER_NAME];
        snprintf(name, sizeof name, "%s%s%s", before, prefix, network->graph->parameters[i].name);
        PSLD_TRY(copy_tensor(tensors, name, &network->graph->parameters[i], path, numbers));
    }
    return PSLD_OK;
}

static psld_status take_sums(psld_snapshot *s, const psld_tensors *tensors, const char *path)
{
    const psld_tensor *t = psld_tensors_find(tensors, SUMS);
    if (!t || t->type != PSLD_ELEMENT_F64 || t->count != s->sum_count)
        return psld_fail(PSLD_BAD_INPUT, "%s: %s is not as it should be", path, SUMS);
    memcpy(s->sums, t->data, t->bytes);
    return PSLD_OK;
}

static void take_items(psld_snapshot *s, const psld_tensors *tensors)
{
    const char *text = psld_tensors_note(tensors, NOTE_ITEMS);
    int64_t number;
    s->items = text && psld_text_integer(text, &number) && number > 0 ? (uint64_t)number : 0;
}

static psld_status load_one(psld_snapshot *s, const char *path, long *step)
{
    psld_tensors *tensors;
    *step = 0;
    PSLD_TRY(psld_tensors_open(path, &tensors));
    psld_status status = check_notes(tensors, path, step);
    if (status == PSLD_OK) status = take_all(s->network, "", s->prefix, tensors, path, s->network->weights);
    if (status == PSLD_OK) status = take_all(s->network, "ema_", s->prefix, tensors, path, s->state.average);
    if (status == PSLD_OK) status = take_all(s->network, "adam_m.", "", tensors, path, s->state.m);
    if (status == PSLD_OK) status = take_all(s->network, "adam_v.", "", tensors, path, s->state.v);
    if (status == PSLD_OK) status = take_sums(s, tensors, path);
    if (status == PSLD_OK) take_items(s, tensors);
    if (status == PSLD_OK) *s->state.steps = *step;
    psld_tensors_free(tensors);
    return status;
}

psld_status psld_checkpoint_load(psld_snapshot *snapshot, const char *folder, int *found)
{
    long *steps, step = 0;
    size_t count;
    char path[PSLD_CHECKPOINT_PATH];
    *found = 0;
    psld_status status = psld_checkpoints_list(folder, &steps, &count);
    for (size_t i = 0; status == PSLD_OK && i < count && !*found; i++) {
        status = psld_checkpoints_path(folder, steps[i], path);
        if (status == PSLD_OK) status = load_one(snapshot, path, &step);
        *found = status == PSLD_OK;
        if ((status != PSLD_BAD_INPUT && status != PSLD_IO) || step < 0 || i + 1 == count) continue;
        psld_log(PSLD_LOG_WARNING, "%s; going back to the checkpoint before it", psld_error_text());
        status = PSLD_OK;
    }
    psld_release(steps);
    return status;
}
