/* Choosing and opening devices. A device is open once, whoever uses it. */
#include "device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
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
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- What there is ----------------------------------------------------------------------------------------------- */

/* Number `i` of all but the CPU; NULL beyond. */
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

psld_status psld_device_facts_of(size_t i, psld_device_facts *facts)
{
    size_t index;
    *facts = (psld_device_facts){0};
    if (i == 0) {
        psld_device_cpu_facts(facts);
        return PSLD_OK;
    }
    const psld_device_family *family = family_of(i - 1, &index);
    if (!family)
        return psld_fail(PSLD_BAD_ARGUMENT, "device %zu: there are %zu, counted from 0", i, psld_device_total());
    return family->describe(index, facts);
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* The device that is meant: a family and a number, or no family for the CPU. */
typedef struct choice {
    const psld_device_family *family;
    size_t index;
} choice;

/* GPU number `rank` modulo their number; 0 where there is none. */
static int find_gpu(int rank, choice *found)
{
    psld_device_facts facts;
    size_t gpus = 0, total = psld_device_total();
    for (size_t i = 1; i < total; i++)
        gpus += psld_device_facts_of(i, &facts) == PSLD_OK && facts.kind == PSLD_DEVICE_GPU;
    if (!gpus) return 0;
    size_t wanted = (size_t)rank % gpus;
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

static psld_status choose(const char *name, int rank, choice *found)
{
    *found = (choice){0};
    if (!name) {
        (void)find_gpu(rank, found);
        return PSLD_OK;
    }
    if (strcmp(name, "cpu") == 0) return PSLD_OK;
    if (strcmp(name, "gpu") == 0) {
        char why[256] = "";
        if (find_gpu(rank, found)) return PSLD_OK;
        for (size_t f = 0; f < FAMILIES && !*why; f++) (void)families[f]->count(why, sizeof why);
        return no_such_device(name, *why ? why : "there is none");
    }
    for (size_t f = 0; f < FAMILIES; f++) {
        size_t length = strlen(families[f]->name);
        if (strncmp(name, families[f]->name, length) == 0 && name[length] == ':')
            return choose_by_number(name, families[f], found);
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "device: expected cpu, gpu or opencl:N, found '%s'", name);
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

psld_status psld_device_open(const char *name, int rank, psld_device **device)
{
    choice chosen;
    *device = NULL;
    PSLD_TRY(choose(name, rank, &chosen));
    if (!chosen.family) {
        *device = psld_device_cpu();
        return PSLD_OK;
    }
    pthread_mutex_lock(&lock);
    psld_status status = open_chosen(&chosen, device);
    pthread_mutex_unlock(&lock);
    return status;
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

psld_status psld_device_backend(psld_device *device, const char *isa, const char *precision,
                                const psld_backend **backend)
{
    *backend = NULL;
    if (device == psld_device_cpu()) return psld_backend_find(isa, precision, backend);
    if (isa)
        return psld_fail(PSLD_BAD_ARGUMENT, "isa: device %s has no instruction sets to choose from, found '%s'",
                         device->facts.id, isa);
    return device->does->backend(device, precision, backend);
}
