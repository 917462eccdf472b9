/* Choices that were made by trying: a list for each device and driver, in memory and in a file of the cache. Two
 * processes that try at the same time may lose each other's: these are tried again. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "device/opencl/opencl.h"

typedef struct psld_cl_choice {
    uint64_t key, choice;
} choice;

static void name_of(const psld_cl_device *device, char *name, size_t size)
{
    snprintf(name, size, "%016llx.tuned", (unsigned long long)device->key);
}

/* Reads the file, once. */
static void read_choices(psld_cl_device *device)
{
    char name[64];
    void *bytes;
    size_t size;
    if (device->choices) return;
    name_of(device, name, sizeof name);
    psld_cl_cache_get(name, &bytes, &size);
    size_t count = bytes ? size / sizeof(choice) : 0;
    device->choices = psld_alloc(count + 1, sizeof(choice));
    if (device->choices && count) memcpy(device->choices, bytes, count * sizeof(choice));
    device->choice_count = device->choices ? count : 0;
    psld_release(bytes);
}

static choice *find_choice(psld_cl_device *device, uint64_t key)
{
    read_choices(device);
    for (size_t i = 0; i < device->choice_count; i++)
        if (device->choices[i].key == key) return &device->choices[i];
    return NULL;
}

int psld_cl_choice_get(psld_cl_device *device, uint64_t key)
{
    pthread_mutex_lock(&device->lock);
    const choice *found = find_choice(device, key);
    int value = found && found->choice < 1024 ? (int)found->choice : -1;
    pthread_mutex_unlock(&device->lock);
    return value;
}

static void add_choice(psld_cl_device *device, uint64_t key, int value)
{
    choice *more = psld_alloc(device->choice_count + 1, sizeof *more);
    if (!more) return;
    if (device->choice_count) memcpy(more, device->choices, device->choice_count * sizeof *more);
    more[device->choice_count++] = (choice){key, (uint64_t)value};
    psld_release(device->choices);
    device->choices = more;
}

void psld_cl_choice_put(psld_cl_device *device, uint64_t key, int value)
{
    char name[64];
    pthread_mutex_lock(&device->lock);
    choice *found = find_choice(device, key);
    if (found)
        found->choice = (uint64_t)value;
    else
        add_choice(device, key, value);
    name_of(device, name, sizeof name);
    psld_cl_cache_put(name, device->choices, device->choice_count * sizeof *device->choices);
    pthread_mutex_unlock(&device->lock);
}

void psld_cl_choices_free(psld_cl_device *device)
{
    psld_release(device->choices);
    device->choices = NULL;
    device->choice_count = 0;
}
