/* The table of samplers, generated from list.h. */
#include <string.h>

#include "base/text.h"
#include "sample/samplers/sampler.h"

#define PSLD_SAMPLER(name) extern const psld_sampler psld_sampler_##name;
#include "sample/samplers/list.h"
#undef PSLD_SAMPLER

static const psld_sampler *const table[] = {
#define PSLD_SAMPLER(name) &psld_sampler_##name,
#include "sample/samplers/list.h"
#undef PSLD_SAMPLER
};
enum { ROWS = sizeof table / sizeof *table };

const psld_sampler *psld_sampler_row(const char *name)
{
    const char *names[ROWS];
    for (int i = 0; i < ROWS; i++) {
        names[i] = table[i]->info.name;
        if (psld_text_is(name, names[i])) return table[i];
    }
    psld_text_fail_choice(PSLD_BAD_ARGUMENT, "sampler", name, names, ROWS);
    return NULL;
}

const psld_sampler_info *psld_sampler_find(const char *name)
{
    const psld_sampler *row = psld_sampler_row(name);
    return row ? &row->info : NULL;
}

const psld_sampler_info *psld_sampler_at(int index)
{
    return index >= 0 && index < ROWS ? &table[index]->info : NULL;
}
