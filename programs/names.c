#include "names.h"

#include <stdio.h>
#include <string.h>

#define NAMES_OF(family, type, at)        \
    const char *names_##family(int index) \
    {                                     \
        const type *row = at(index);      \
        return row ? row->name : NULL;    \
    }

NAMES_OF(sampler, psld_sampler_info, psld_sampler_at)
NAMES_OF(grid, psld_grid_info, psld_grid_at)
NAMES_OF(quality, psld_quality_info, psld_quality_at)
NAMES_OF(preset, psld_preset_info, psld_preset_at)
NAMES_OF(task, psld_task_info, psld_task_at)
NAMES_OF(method, psld_restore_method_info, psld_restore_method_at)
NAMES_OF(metric, psld_metric_info, psld_metric_at)
NAMES_OF(resample, psld_resample_info, psld_resample_at)
NAMES_OF(toy, psld_toy_info, psld_toy_at)

static void add_name(const char *name, const char *between, char text[NAMES_SIZE])
{
    size_t used = strlen(text);
    snprintf(text + used, NAMES_SIZE - used, "%s%s", used ? between : "", name);
}

const char *names_join(names_fn name, const char *between, char text[NAMES_SIZE])
{
    text[0] = 0;
    for (int i = 0; name(i); i++) add_name(name(i), between, text);
    return text;
}

const char *names_samplers_that(int (*is)(const psld_sampler_info *sampler), char text[NAMES_SIZE])
{
    const psld_sampler_info *sampler;
    text[0] = 0;
    for (int i = 0; (sampler = psld_sampler_at(i)); i++)
        if (is(sampler)) add_name(sampler->name, ", ", text);
    return text;
}
