/* psld devices: where networks can be computed. */
#include <stdio.h>

#include "cli.h"

static double gigabytes(uint64_t bytes)
{
    return (double)bytes * 1e-9;
}

static json_t *device_json(const psld_device_info *d)
{
    json_t *row = json_object();
    json_object_set_new(row, "id", json_string(d->id));
    json_object_set_new(row, "kind", json_string(d->kind));
    json_object_set_new(row, "name", json_string(d->name));
    json_object_set_new(row, "platform", json_string(d->platform));
    json_object_set_new(row, "driver", json_string(d->driver));
    json_object_set_new(row, "memory", json_integer((json_int_t)d->memory));
    json_object_set_new(row, "largest_block", json_integer((json_int_t)d->largest_block));
    json_object_set_new(row, "units", json_integer((json_int_t)d->units));
    json_object_set_new(row, "half", json_boolean(d->half));
    return row;
}

static void print_device(const psld_device_info *d)
{
    printf("%-10s %-11s %8.1f %8.1f %6llu  %-4s  %s%s%s%s%s\n", d->id, d->kind, gigabytes(d->memory),
           gigabytes(d->largest_block), (unsigned long long)d->units, d->half ? "yes" : "no", d->name,
           *d->platform ? ", " : "", d->platform, *d->driver ? ", " : "", d->driver);
}

/* Why there is the CPU alone. */
static void print_reason(void)
{
    psld_device_info info = PSLD_DEVICE_INFO_EMPTY;
    if (psld_device_describe(1, &info) != PSLD_OK)
        printf("\n%s. docs/reference/gpu.md says what a GPU needs.\n", psld_error_text());
}

static int devices_run(const cli_command *command, int argc, char **argv)
{
    const char *words[16];
    int json = 0, count, exit_code;
    const cli_option options[] = {
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 16) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count > 0) return cli_wrong_usage(command, "expected no words, found \"%s\"", words[0]);
    json_t *rows = json_array();
    size_t total = psld_device_count();
    if (!json) printf("device     kind        memory/GB block/GB  units  half  name, platform, driver\n");
    for (size_t i = 0; i < total; i++) {
        psld_device_info info = PSLD_DEVICE_INFO_EMPTY;
        psld_status status = psld_device_describe(i, &info);
        if (status != PSLD_OK) {
            json_decref(rows);
            return cli_failed(status);
        }
        if (!json) print_device(&info);
        json_array_append_new(rows, device_json(&info));
    }
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "devices", rows);
        return cli_json_print(object);
    }
    json_decref(rows);
    if (total == 1) print_reason();
    return EXIT_DONE;
}

const cli_command command_devices = {
    .name = "devices",
    .summary = "lists where networks can be computed: the CPU, and GPUs by OpenCL",
    .usage = "[--json]",
    .description =
        "The first column is the name for --device. `half` says whether a device computes with numbers of 16 bits; "
        "--precision fp16 stores\n"
        "such numbers on any device except the CPU. A device of kind gpu is used if no --device is given; opencl-cpu "
        "is the\n"
        "processor as an OpenCL device (PoCL): slower than cpu, for tests.",
    .examples = "  psld devices\n"
                "  psld sample run -n 16 -o samples.png --device gpu\n"
                "  psld train configs/cifar10-psld-39m.yaml -o run --device opencl:1\n",
    .run = devices_run,
};
