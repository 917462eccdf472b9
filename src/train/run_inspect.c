/* The state of a run, from its configuration, its log, its checkpoints and its lock. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "psld_train.h"
#include "train/checkpoint.h"
#include "train/log_read.h"
#include "train/run_folder.h"
#include "train/settings.h"

enum { LONGEST_PATH = 4096, RECENT = 100 };

static psld_status read_run_config(const char *path, psld_run_info *info, int *is_bound)
{
    psld_yaml *yaml;
    psld_settings settings;
    PSLD_TRY(psld_yaml_load_found(path, &yaml));
    psld_status status = psld_settings_read(yaml, &settings);
    if (status == PSLD_OK) info->steps = (uint64_t)settings.train.steps;
    if (status == PSLD_OK) info->classifier = settings.train.loss == PSLD_LOSS_ENTROPY;
    if (status == PSLD_OK) *is_bound = settings.train.loss == PSLD_LOSS_ELBO;
    if (status == PSLD_OK) psld_settings_clear(&settings);
    psld_yaml_free(yaml);
    return status;
}

typedef struct log_summary {
    psld_run_info *info;
    double recent[RECENT]; /* losses of the last steps, */
    double bits[RECENT];   /* and their bits per dimension; NaN: none */
    uint64_t steps;
} log_summary;

static void summarise_entry(void *user, json_t *entry)
{
    log_summary *s = user;
    const json_t *loss = json_object_get(entry, "loss"), *held_out = json_object_get(entry, "held_out");
    const json_t *accuracy = json_object_get(entry, "held_out_accuracy"), *bits = json_object_get(entry, "bits");
    if (json_is_number(loss)) {
        s->bits[s->steps % RECENT] = json_is_number(bits) ? json_number_value(bits) : (double)NAN;
        s->recent[s->steps++ % RECENT] = json_number_value(loss);
        s->info->step = (uint64_t)json_integer_value(json_object_get(entry, "step"));
        s->info->seconds += json_number_value(json_object_get(entry, "seconds"));
    }
    if (json_is_number(held_out)) s->info->held_out = json_number_value(held_out);
    if (json_is_number(accuracy)) s->info->accuracy = json_number_value(accuracy);
}

static psld_status read_run_log(const char *path, psld_run_info *info)
{
    log_summary s = {.info = info};
    double sum = 0, bits = 0;
    PSLD_TRY(psld_log_read(path, summarise_entry, &s));
    uint64_t count = s.steps < RECENT ? s.steps : RECENT;
    for (uint64_t i = 0; i < count; i++) {
        sum += s.recent[i];
        bits += s.bits[i];
    }
    info->loss = sum / (double)count;
    info->bits = bits / (double)count;
    return PSLD_OK;
}

static psld_status inspect_run(const char *folder, psld_run_info *info)
{
    char path[LONGEST_PATH];
    const double none = (double)NAN;
    long newest;
    int is_bound;
    *info = (psld_run_info){.size = sizeof *info, .loss = none, .held_out = none, .accuracy = none, .bits = none};
    if (strlen(folder) + 32 > sizeof path || !psld_run_folder_exists(folder))
        return psld_fail(PSLD_BAD_INPUT, "%.300s: has no config.yaml, so it is no training run", folder);
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    PSLD_TRY(read_run_config(path, info, &is_bound));
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    PSLD_TRY(read_run_log(path, info));
    if (is_bound && !isnan(info->held_out)) info->bits = info->held_out;
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    PSLD_TRY(psld_checkpoint_count(path, &info->checkpoints, &newest));
    info->saved = (uint64_t)newest;
    info->running = psld_run_folder_is_busy(folder);
    return PSLD_OK;
}

psld_status psld_run_inspect(const char *folder, psld_run_info *info)
{
    psld_run_info own;
    PSLD_TRY(psld_sized_check(info, sizeof own, "PSLD_RUN_INFO_EMPTY"));
    psld_status status = inspect_run(folder, &own);
    psld_sized_write(info, &own);
    return status;
}
