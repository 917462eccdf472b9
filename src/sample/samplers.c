/* All samplers: a new one is its file and a line here. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sample/walk.h"

static const psld_sampler *const table[] = {
    &psld_sampler_em,        &psld_sampler_sscs,           &psld_sampler_ode,
    &psld_sampler_euler_ode, &psld_sampler_heun,           &psld_sampler_dpm,
    &psld_sampler_collapsed, &psld_sampler_collapsed_heun, &psld_sampler_ancestral};
enum { ROWS = sizeof table / sizeof *table };

const psld_sampler *psld_sampler_find(const char *name)
{
    char names[256] = "", meant[PSLD_MEANT];
    const char *list[ROWS];
    for (int i = 0; i < ROWS; i++) {
        if (psld_text_is(name, table[i]->name)) return table[i];
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", table[i]->name);
        list[i] = table[i]->name;
    }
    if (!name) name = "";
    psld_fail(PSLD_BAD_ARGUMENT, "sampler: expected one of %s, found \"%s\"%s", names, name,
              psld_text_meant(name, list, ROWS, meant));
    return NULL;
}

int psld_sampler_is_adaptive(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (psld_text_is(name, table[i]->name)) return table[i]->run != NULL;
    return 0;
}

const char *psld_sampler_name(int index)
{
    return index >= 0 && index < ROWS ? table[index]->name : NULL;
}

const char *psld_sampler_summary(int index)
{
    return index >= 0 && index < ROWS ? table[index]->summary : NULL;
}

const char *psld_sampler_grid(int index)
{
    return index >= 0 && index < ROWS ? table[index]->grid : NULL;
}

int psld_sampler_nfe(int index)
{
    return index >= 0 && index < ROWS ? table[index]->nfe : 0;
}
