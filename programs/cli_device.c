/* Devices as the command line names them. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char *preferred = "auto";

void cli_device_prefer(const char *device)
{
    preferred = device;
}

const char *cli_device(const char *given)
{
    return given ? given : preferred;
}

uint64_t cli_device_memory(const char *id)
{
    size_t total = strcmp(id, "cpu") == 0 ? 0 : psld_device_count();
    for (size_t i = 1; i < total; i++) {
        psld_device_info info = PSLD_DEVICE_INFO_EMPTY;
        if (psld_device_describe(i, &info) == PSLD_OK && strcmp(info.id, id) == 0) return info.memory;
    }
    return 0;
}

const char *cli_device_room(const char *id, char text[CLI_DEVICE_ROOM])
{
    uint64_t memory = cli_device_memory(id);
    text[0] = 0;
    if (memory > 0) snprintf(text, CLI_DEVICE_ROOM, " of the %.1f GB of device %s", (double)memory * 1e-9, id);
    return text;
}

void cli_device_report(json_t *object, const char *id)
{
    uint64_t memory = cli_device_memory(id);
    json_object_set_new(object, "device", json_string(id));
    if (memory > 0) json_object_set_new(object, "device_memory", json_integer((json_int_t)memory));
}
