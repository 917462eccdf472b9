#include "kernels/backend.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"

/* The backends of each copy of kernels/simd/. */
#define PSLD_SET(name, options) const psld_backend *psld_##name##_backend(int bf16);
#include "kernels/sets.def"
#undef PSLD_SET

typedef struct instruction_set {
    const char *name;
    int (*runs)(void);
    const psld_backend *(*backend)(int bf16);
} instruction_set;

static const instruction_set sets[] = {
#define PSLD_SET(name, options) {#name, psld_cpu_has_##name, psld_##name##_backend},
#include "kernels/sets.def"
#undef PSLD_SET
};

enum { SETS = sizeof sets / sizeof *sets };

/* Number `i` of those that this CPU runs. */
static const instruction_set *set_number(int i)
{
    for (int s = 0; s < SETS; s++)
        if (sets[s].runs() && i-- == 0) return &sets[s];
    return NULL;
}

const psld_backend *psld_backend_number(int i)
{
    const instruction_set *set = set_number(i);
    if (set) return set->backend(0);
    return i > 0 && set_number(i - 1) ? &psld_backend_reference : NULL;
}

const psld_backend *psld_backend_number_bf16(int i)
{
    const instruction_set *set = set_number(i);
    return set ? set->backend(1) : NULL;
}

const psld_backend *psld_backend_fastest(void)
{
    return psld_backend_number(0);
}

/* "avx2, generic or reference": all that this CPU runs. */
static const char *list_sets(char *text, size_t size)
{
    size_t length = 0;
    for (int i = 0; set_number(i); i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "", set_number(i)->name);
    snprintf(text + length, size - length, " or reference");
    return text;
}

static psld_status find_set(const char *isa, const instruction_set **set)
{
    char known[128];
    for (int i = 0; i < SETS; i++) {
        if (strcmp(sets[i].name, isa) != 0) continue;
        *set = &sets[i];
        if (sets[i].runs()) return PSLD_OK;
        return psld_fail(PSLD_BAD_ARGUMENT, "isa: this processor has no %s, expected %s", isa,
                         list_sets(known, sizeof known));
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "isa: expected %s, found '%s'", list_sets(known, sizeof known), isa);
}

psld_status psld_backend_find(const char *isa, const char *precision, const psld_backend **backend)
{
    const int bf16 = precision && strcmp(precision, "bf16") == 0;
    const instruction_set *set = set_number(0);
    *backend = NULL;
    if (precision && !bf16 && strcmp(precision, "fp32") != 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "precision: expected fp32 or bf16, found '%s'", precision);
    if (isa && strcmp(isa, psld_backend_reference.isa) == 0) {
        if (bf16) return psld_fail(PSLD_BAD_ARGUMENT, "precision: the reference kernels have only fp32, found 'bf16'");
        *backend = &psld_backend_reference;
        return PSLD_OK;
    }
    if (isa) PSLD_TRY(find_set(isa, &set));
    *backend = set->backend(bf16);
    return PSLD_OK;
}
