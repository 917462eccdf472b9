/* Choosing and opening devices. A device that is in use several times is opened once. */
#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "kernels/backend.h"

/* Devices other than the CPU, in the order of their numbers. */
static const psld_device_family *const families[] = {&psld_opencl_family};

enum { FAMILIES = sizeof families / sizeof *families };

typedef struct open_device {
    struct open_device *next;
    psld_device *device;
    const psld_device_family *family;
    size_t index;
    size_t users;
} open_device;

static open_device *opened;
static atomic_int rank_here;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- The list of devices ----------------------------------------------------------------------------------------- */

/* Number `i` of all devices except the CPU; NULL past the last. */
static const psld_device_family *family_of(size_t i, size_t *index)
{
    for (size_t f = 0; f < FAMILIES; f++) {
        size_t count = families[f]->count(NULL, 0);
        *index = i;
        if (i < count) return families[f];
        i -= count;
    }
    return NULL;
}

size_t psld_device_total(void)
{
    size_t total = 1;
    for (size_t f = 0; f < FAMILIES; f++) total += families[f]->count(NULL, 0);
    return total;
}

/* With the reason where there is the CPU alone. */
static psld_status no_such_number(size_t i)
{
    char why[256] = "";
    size_t total = psld_device_total();
    if (total > 1) return psld_fail(PSLD_BAD_ARGUMENT, "device %zu: there are %zu, counted from 0", i, total);
    for (size_t f = 0; f < FAMILIES && !*why; f++) families[f]->count(why, sizeof why);
    return psld_fail(PSLD_BAD_ARGUMENT, "there is only the CPU: %s", why);
}

psld_status psld_device_facts_of(size_t i, psld_device_facts *facts)
{
    size_t index;
    *facts = (psld_device_facts){0};
    if (i == 0) {
        psld_device_cpu_facts(facts);
        return PSLD_OK;
    }
    const psld_device_family *family = family_of(i - 1, &index);
    if (!family) return no_such_number(i);
    return family->describe(index, facts);
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* A chosen device: a family and a number; no family for the CPU. */
typedef struct choice {
    const psld_device_family *family;
    size_t index;
} choice;

/* The GPU of this process; returns 0 if there is none. */
static int find_gpu(choice *found)
{
    psld_device_facts facts;
    size_t gpus = 0, total = psld_device_total();
    for (size_t i = 1; i < total; i++)
        gpus += psld_device_facts_of(i, &facts) == PSLD_OK && facts.kind == PSLD_DEVICE_GPU;
    if (!gpus) return 0;
    size_t wanted = (size_t)atomic_load(&rank_here) % gpus;
    for (size_t i = 1; i < total; i++) {
        if (psld_device_facts_of(i, &facts) != PSLD_OK || facts.kind != PSLD_DEVICE_GPU || wanted-- > 0) continue;
        found->family = family_of(i - 1, &found->index);
        return found->family != NULL;
    }
    return 0;
}

static psld_status no_such_device(const char *name, const char *why)
{
    char ids[256] = "cpu";
    psld_device_facts facts;
    size_t total = psld_device_total();
    for (size_t i = 1; i < total; i++) {
        size_t length = strlen(ids);
        if (psld_device_facts_of(i, &facts) == PSLD_OK) snprintf(ids + length, sizeof ids - length, ", %s", facts.id);
    }
    return psld_fail(PSLD_DEVICE_FAILED, "device %s: %s; there is %s", name, why, ids);
}

/* "opencl:N". */
static psld_status choose_by_number(const char *name, const psld_device_family *family, choice *found)
{
    char why[256] = "there is no such device", *end;
    const char *number = name + strlen(family->name) + 1;
    unsigned long index = strtoul(number, &end, 10);
    if (*number < '0' || *number > '9' || *end)
        return psld_fail(PSLD_BAD_ARGUMENT, "device: expected a number after %s:, found '%s'", family->name, name);
    if (index >= family->count(why, sizeof why)) return no_such_device(name, why);
    *found = (choice){family, index};
    return PSLD_OK;
}

static psld_status choose_one(const char *name, choice *found)
{
    *found = (choice){0};
    if (strcmp(name, "cpu") == 0) return PSLD_OK;
    if (strcmp(name, "gpu") == 0) {
        char why[256] = "";
        if (find_gpu(found)) return PSLD_OK;
        for (size_t f = 0; f < FAMILIES && !*why; f++)
            if (families[f]->count(why, sizeof why) > 0) *why = 0;
        return no_such_device(name, *why ? why : "there is none");
    }
    for (size_t f = 0; f < FAMILIES; f++) {
        size_t length = strlen(families[f]->name);
        if (strncmp(name, families[f]->name, length) == 0 && name[length] == ':')
            return choose_by_number(name, families[f], found);
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "device: expected cpu, gpu or opencl:N, found '%s'", name);
}

/* Of names separated by commas, the one for this process. */
static psld_status device_choose(const char *names, choice *found)
{
    size_t count = 1;
    for (const char *c = names; *c; c++) count += *c == ',';
    size_t skip = (size_t)atomic_load(&rank_here) % count;
    for (; skip > 0; skip--) names = strchr(names, ',') + 1;
    char name[64];
    size_t length = strcspn(names, ",");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), names);
    return choose_one(name, found);
}

void psld_device_set_rank(int rank)
{
    atomic_store(&rank_here, rank);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static psld_status open_chosen(const choice *chosen, psld_device **device)
{
    for (open_device *o = opened; o; o = o->next) {
        if (o->family != chosen->family || o->index != chosen->index) continue;
        o->users++;
        *device = o->device;
        return PSLD_OK;
    }
    open_device *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = chosen->family->open(chosen->index, &made->device);
    if (status != PSLD_OK) {
        psld_release(made);
        return status;
    }
    made->family = chosen->family;
    made->index = chosen->index;
    made->users = 1;
    made->next = opened;
    opened = made;
    *device = made->device;
    return PSLD_OK;
}

static psld_status open_choice(const choice *chosen, psld_device **device)
{
    if (!chosen->family) {
        *device = psld_device_cpu();
        return PSLD_OK;
    }
    pthread_mutex_lock(&lock);
    psld_status status = open_chosen(chosen, device);
    pthread_mutex_unlock(&lock);
    return status;
}

psld_status psld_device_open(const char *name, psld_device **device)
{
    choice chosen;
    *device = NULL;
    PSLD_TRY(device_choose(name, &chosen));
    return open_choice(&chosen, device);
}

void psld_device_close(psld_device *device)
{
    pthread_mutex_lock(&lock);
    for (open_device **o = &opened; *o; o = &(*o)->next) {
        open_device *last = *o;
        if (last->device != device) continue;
        if (--last->users == 0) {
            *o = last->next;
            last->family->close(last->device);
            psld_release(last);
        }
        break;
    }
    pthread_mutex_unlock(&lock);
}

/* "auto": what the CPU alone has is computed there. */
static psld_status open_automatic(const psld_device_wish *wish, psld_device **device)
{
    choice chosen = {0};
    int gpu = !wish->isa && (!wish->precision || strcmp(wish->precision, "bf16") != 0), may = 0;
    for (size_t f = 0; gpu && f < FAMILIES; f++) may |= families[f]->may_have_gpu();
    if (gpu && may) (void)find_gpu(&chosen);
    return open_choice(&chosen, device);
}

psld_status psld_device_choose(const psld_device_wish *wish, psld_device **device, const psld_backend **backend)
{
    const char *name = wish->device ? wish->device : "cpu";
    *backend = NULL;
    *device = NULL;
    PSLD_TRY(strcmp(name, "auto") == 0 ? open_automatic(wish, device) : psld_device_open(name, device));
    psld_status status = PSLD_OK;
    if (*device == psld_device_cpu())
        status = psld_backend_find(wish->isa, wish->precision, backend);
    else if (wish->isa)
        status = psld_fail(PSLD_BAD_ARGUMENT, "isa: device %s has no instruction sets to choose from, found '%s'",
                           (*device)->facts.id, wish->isa);
    else
        status = (*device)->does->backend(*device, wish->precision, backend);
    if (status == PSLD_OK) return PSLD_OK;
    psld_device_close(*device);
    *device = NULL;
    return status;
}

const char *psld_device_amount(uint64_t bytes, char text[PSLD_DEVICE_AMOUNT])
{
    int large = bytes >= 1000000000;
    snprintf(text, PSLD_DEVICE_AMOUNT, "%.1f %s", (double)bytes * (large ? 1e-9 : 1e-6), large ? "GB" : "MB");
    return text;
}

psld_status psld_device_check_room(const psld_device *device, uint64_t fixed, uint64_t for_batch, int batch,
                                   const char *option)
{
    const psld_device_facts *facts = &device->facts;
    double needs = (double)fixed + (double)for_batch, has = (double)facts->memory;
    if (needs <= has) return PSLD_OK;
    int fits = has > (double)fixed ? (int)((has - (double)fixed) / ((double)for_batch / batch)) : 0;
    char advice[96] = "a smaller network is needed", wanted[PSLD_DEVICE_AMOUNT], there[PSLD_DEVICE_AMOUNT];
    if (fits > 0) snprintf(advice, sizeof advice, "%s%d fits", option, fits);
    return psld_fail(PSLD_NO_MEMORY, "needs %s, device %s has %s: %s", psld_device_amount(fixed + for_batch, wanted),
                     facts->id, psld_device_amount(facts->memory, there), advice);
}

/* ---- The public list --------------------------------------------------------------------------------------------- */

size_t psld_device_count(void)
{
    return psld_device_total();
}

psld_status psld_device_describe(size_t index, psld_device_info *info)
{
    static const char *const kinds[] = {[PSLD_DEVICE_CPU] = "cpu",
                                        [PSLD_DEVICE_GPU] = "gpu",
                                        [PSLD_DEVICE_ACCELERATOR] = "accelerator",
                                        [PSLD_DEVICE_OPENCL_CPU] = "opencl-cpu"};
    psld_device_info own = PSLD_DEVICE_INFO_EMPTY;
    psld_device_facts facts;
    PSLD_TRY(psld_sized_check(info, sizeof own, "PSLD_DEVICE_INFO_EMPTY"));
    PSLD_TRY(psld_device_facts_of(index, &facts));
    snprintf(own.id, sizeof own.id, "%s", facts.id);
    snprintf(own.kind, sizeof own.kind, "%s", kinds[facts.kind]);
    snprintf(own.name, sizeof own.name, "%s", facts.name);
    snprintf(own.platform, sizeof own.platform, "%s", facts.platform);
    snprintf(own.driver, sizeof own.driver, "%s", facts.driver);
    own.memory = facts.memory;
    own.largest_block = facts.largest;
    own.units = facts.units;
    own.half = facts.half;
    psld_sized_write(info, &own);
    return PSLD_OK;
}

psld_status psld_device_try(const char *name)
{
    psld_device *device;
    const psld_backend *backend;
    PSLD_TRY(psld_device_choose(&(psld_device_wish){name, NULL, NULL}, &device, &backend));
    psld_device_close(device);
    return PSLD_OK;
}
