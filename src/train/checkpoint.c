#include "train/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "model/files/checkpoints.h"
#include "model/files/checksum.h"
#include "model/files/format_version.h"
#include "model/model.h"
#include "train/settings.h"

#define SUMS    "log.sums"
#define LEARNED "recipe.state"

psld_status psld_checkpoint_count(const char *folder, size_t *count, long *newest)
{
    long *steps;
    psld_status status = psld_checkpoints_list(folder, &steps, count);
    *newest = status == PSLD_OK && *count ? steps[0] : 0;
    psld_release(steps);
    return status;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

enum { AVERAGE_NAME = 32 };

/* The prefix of the names of a further average. Numbers begin at 2: the first average is that of the model. */
static const char *name_average(size_t further, char name[AVERAGE_NAME])
{
    snprintf(name, AVERAGE_NAME, PSLD_AVERAGE_FORMAT, further + 2);
    return name;
}

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

static psld_status note_recipe(const psld_recipe *recipe, psld_tensors *tensors)
{
    char *text;
    PSLD_TRY(psld_recipe_text(recipe, &text));
    psld_status status = psld_tensors_set_note(tensors, PSLD_CHECKPOINT_RECIPE, text);
    psld_release(text);
    return status;
}

static psld_status checkpoint_collect(const psld_snapshot *s, psld_tensors *tensors)
{
    char step[32], items[32];
    snprintf(step, sizeof step, "%ld", *s->state.steps);
    snprintf(items, sizeof items, "%llu", (unsigned long long)s->items);
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_CONFIG_NOTE, s->config));
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_CHECKPOINT_VERSION, PSLD_FORMAT_VERSION));
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_CHECKPOINT_STEP, step));
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_CHECKPOINT_ITEMS, items));
    PSLD_TRY(add_all(s->network, "", s->prefix, s->network->weights, tensors));
    PSLD_TRY(add_all(s->network, "ema_", s->prefix, s->state.average, tensors));
    for (size_t i = 0; i < PSLD_MAX_AVERAGES && s->state.more[i]; i++) {
        char before[AVERAGE_NAME];
        PSLD_TRY(add_all(s->network, name_average(i, before), s->prefix, s->state.more[i], tensors));
    }
    PSLD_TRY(add_all(s->network, "adam_m.", "", s->state.m, tensors));
    PSLD_TRY(add_all(s->network, "adam_v.", "", s->state.v, tensors));
    PSLD_TRY(psld_tensors_add(tensors, SUMS, PSLD_ELEMENT_F64, 1, &s->sum_count, s->sums));
    if (s->learned) PSLD_TRY(note_recipe(s->recipe, tensors));
    if (s->learned) PSLD_TRY(psld_tensors_add(tensors, LEARNED, PSLD_ELEMENT_F64, 1, &s->learned_count, s->learned));
    return psld_checksum_note(tensors);
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
    psld_status status = checkpoint_collect(snapshot, tensors);
    if (status == PSLD_OK) status = psld_tensors_save(tensors, PSLD_SAFETENSORS, path);
    psld_tensors_free(tensors);
    return status == PSLD_OK ? remove_old(folder, keep) : status;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Whether the checkpoint is complete; *damaged tells that it is not. A checkpoint of another version is not damaged: an
 * older one must not be taken instead. */
static psld_status check_notes(const psld_tensors *tensors, const char *path, long *step, int *damaged)
{
    const char *version = psld_tensors_note(tensors, PSLD_CHECKPOINT_VERSION),
               *found = psld_tensors_note(tensors, PSLD_CHECKSUM_NOTE),
               *text = psld_tensors_note(tensors, PSLD_CHECKPOINT_STEP);
    char sum[PSLD_CHECKSUM_SIZE];
    int64_t number = -1;
    *damaged = 1;
    if (!version || !found || !text) return psld_fail(PSLD_BAD_INPUT, "%s: is not a checkpoint of psld", path);
    *damaged = 0;
    PSLD_TRY(psld_format_check(tensors, path));
    *damaged = 1;
    psld_checksum(tensors, sum);
    if (strcmp(sum, found) != 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: is damaged: its checksum is %s and should be %.20s", path, sum, found);
    if (!psld_text_integer(text, &number) || number < 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: its number of steps is missing", path);
    *step = (long)number;
    *damaged = 0;
    return PSLD_OK;
}

/* The configuration in the checkpoint is the one that it was trained with; config.yaml may have changed since. */
static psld_status check_config(const psld_snapshot *s, const psld_tensors *tensors, const char *path)
{
    const char *text = psld_tensors_note(tensors, PSLD_CONFIG_NOTE);
    psld_yaml *before = NULL, *now = NULL;
    if (!text) return psld_fail(PSLD_BAD_INPUT, "%s: its configuration is missing", path);
    psld_status status = psld_yaml_parse(text, strlen(text), path, &before);
    if (status == PSLD_OK) status = psld_yaml_parse(s->config, strlen(s->config), path, &now);
    if (status == PSLD_OK) status = psld_settings_inherit(before, now);
    if (status == PSLD_OK) status = psld_settings_compare(before, now, path);
    psld_yaml_free(before);
    psld_yaml_free(now);
    return status;
}

static psld_status copy_tensor(const psld_tensors *tensors, const char *name, const psld_parameter *p, const char *path,
                               float *to)
{
    const psld_tensor *t = psld_tensors_find(tensors, name);
    int same = t && t->type == PSLD_ELEMENT_F32 && t->rank == p->rank;
    for (int d = 0; same && d < p->rank; d++) same = t->shape[d] == (size_t)p->shape[d];
    if (!same) return psld_fail(PSLD_BAD_INPUT, "%s: %s: expected type and shape of the configuration", path, name);
    memcpy(to + p->offset, t->data, t->bytes);
    return PSLD_OK;
}

static psld_status load_tensors(const psld_network *network, const char *before, const char *prefix,
                                const psld_tensors *tensors, const char *path, float *numbers)
{
    for (size_t i = 0; numbers && i < network->graph->parameter_count; i++) {
        char name[2 * PSLD_PARAMETER_NAME];
        snprintf(name, sizeof name, "%s%s%s", before, prefix, network->graph->parameters[i].name);
        PSLD_TRY(copy_tensor(tensors, name, &network->graph->parameters[i], path, numbers));
    }
    return PSLD_OK;
}

static psld_status load_doubles(const psld_tensors *tensors, const char *name, const char *path, size_t count,
                                double *numbers)
{
    const psld_tensor *t = psld_tensors_find(tensors, name);
    if (!t || t->type != PSLD_ELEMENT_F64 || t->count != count)
        return psld_fail(PSLD_BAD_INPUT, "%s: %s has an unexpected type or size", path, name);
    memcpy(numbers, t->data, t->bytes);
    return PSLD_OK;
}

static void load_items(psld_snapshot *s, const psld_tensors *tensors)
{
    const char *text = psld_tensors_note(tensors, PSLD_CHECKPOINT_ITEMS);
    int64_t number;
    s->items = text && psld_text_integer(text, &number) && number > 0 ? (uint64_t)number : 0;
}

static psld_status load_snapshot(psld_snapshot *s, const psld_tensors *tensors, const char *path)
{
    PSLD_TRY(check_config(s, tensors, path));
    PSLD_TRY(load_tensors(s->network, "", s->prefix, tensors, path, s->network->weights));
    PSLD_TRY(load_tensors(s->network, "ema_", s->prefix, tensors, path, s->state.average));
    for (size_t i = 0; i < PSLD_MAX_AVERAGES && s->state.more[i]; i++) {
        char before[AVERAGE_NAME];
        PSLD_TRY(load_tensors(s->network, name_average(i, before), s->prefix, tensors, path, s->state.more[i]));
    }
    PSLD_TRY(load_tensors(s->network, "adam_m.", "", tensors, path, s->state.m));
    PSLD_TRY(load_tensors(s->network, "adam_v.", "", tensors, path, s->state.v));
    PSLD_TRY(load_doubles(tensors, SUMS, path, s->sum_count, s->sums));
    if (s->learned) PSLD_TRY(load_doubles(tensors, LEARNED, path, s->learned_count, s->learned));
    load_items(s, tensors);
    return PSLD_OK;
}

static psld_status load_one(psld_snapshot *s, const char *path, int *damaged)
{
    psld_tensors *tensors;
    long step = 0;
    psld_status status = psld_tensors_open(path, &tensors);
    *damaged = status == PSLD_BAD_INPUT;
    if (status != PSLD_OK) return status;
    status = check_notes(tensors, path, &step, damaged);
    if (status == PSLD_OK) status = load_snapshot(s, tensors, path);
    if (status == PSLD_OK) *s->state.steps = step;
    psld_tensors_free(tensors);
    return status;
}

/* A damaged checkpoint is renamed: it no longer counts among those to keep, and can still be examined. */
static psld_status rename_checkpoint_aside(const char *folder, long step)
{
    static const char ending[] = ".damaged";
    char path[PSLD_CHECKPOINT_PATH], aside[PSLD_CHECKPOINT_PATH + sizeof ending];
    PSLD_TRY(psld_checkpoints_path(folder, step, path));
    snprintf(aside, sizeof aside, "%s%s", path, ending);
    return rename(path, aside) == 0 ? PSLD_OK : psld_fail_errno(path, "rename", errno);
}

psld_status psld_checkpoint_load(psld_snapshot *snapshot, const char *folder, int *found)
{
    long *steps;
    size_t count, i = 0;
    char path[PSLD_CHECKPOINT_PATH];
    *found = 0;
    psld_status status = psld_checkpoints_list(folder, &steps, &count);
    for (; status == PSLD_OK && i < count && !*found; i++) {
        int damaged = 0;
        status = psld_checkpoints_path(folder, steps[i], path);
        if (status == PSLD_OK) status = load_one(snapshot, path, &damaged);
        *found = status == PSLD_OK;
        if (!damaged || i + 1 == count) continue;
        psld_log(PSLD_LOG_WARNING, "%s; set aside, going back to the checkpoint before it", psld_error_text());
        status = PSLD_OK;
    }
    for (size_t j = 0; *found && status == PSLD_OK && j + 1 < i; j++)
        status = rename_checkpoint_aside(folder, steps[j]);
    psld_release(steps);
    return status;
}
