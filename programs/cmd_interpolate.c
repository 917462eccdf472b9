/* psld interpolate: pictures or points between two others. */
#include <stdio.h>

#include "latent.h"
#include "sheet.h"

typedef struct request {
    const char *out;
    latent_request latent;
    long number, zoom;
} request;

static psld_status write_strip(const psld_array *strip, long zoom, const char *path)
{
    psld_array *pixels = NULL;
    if (cli_ends_in(path, ".npy")) return psld_array_save(strip, path);
    if (strip->rank != 4) return cli_bad_input("-o %s: a picture needs a model of images; write .npy", path);
    psld_status status = psld_images_from_data(strip, 0, &pixels);
    if (status == PSLD_OK) status = sheet_write(pixels, strip->shape[0], zoom, path);
    psld_array_free(pixels);
    return status;
}

static int interpolate_model(request *r, const char *const *words)
{
    latent_job job = {0};
    psld_array *between = NULL, *strip = NULL;
    size_t n = (size_t)r->number;
    psld_status status = latent_open(&r->latent, words[0], words + 1, 2, &job);
    if (status == PSLD_OK) status = latent_check_pair(&job, words[1], words[2]);
    if (status == PSLD_OK) status = latent_encode(&job);
    if (status == PSLD_OK) status = latent_between(&job, n, &between);
    if (status == PSLD_OK) status = latent_decode(&job, between, &strip);
    if (status == PSLD_OK) status = write_strip(strip, r->zoom, r->out);
    if (status == PSLD_OK) printf("%zu from %s to %s: %s\n", n, words[1], words[2], r->out);
    psld_array_free(between);
    psld_array_free(strip);
    latent_close(&job);
    return status == PSLD_OK ? EXIT_DONE : cli_failed(status);
}

static int interpolate_run(const cli_command *command, int argc, char **argv)
{
    request r = {.number = 9};
    const char *words[LATENT_WORDS];
    int count, exit_code;
    latent_defaults(&r.latent);
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "OUT", "a strip of pictures (.png), or the data (.npy)", &r.out, NULL},
        {"number", 'n', CLI_COUNT, "N", "pictures in all, both ends included (default 9)", &r.number, NULL},
        SHEET_OPTION(r.zoom),
        LATENT_OPTIONS(r.latent),
        CLI_WEAK_OPTIONS(r.latent.model),
        CLI_MODEL_OPTIONS(r.latent.model),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > LATENT_WORDS) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count != 3)
        return cli_wrong_usage(command, "expected a model and two pictures or arrays, found %d words", count);
    if (r.number < 2 || r.number > 10000) return cli_wrong_usage(command, "-n: expected 2 to 10000");
    if (!r.out || !cli_ends_in(r.out, ".npy|.png"))
        return cli_wrong_usage(command, "no output given; add -o OUT (.png, .npy)");
    exit_code = sheet_check_zoom(command, r.zoom, cli_ends_in(r.out, ".png"));
    if (exit_code == EXIT_DONE) exit_code = labels_check(command, &r.latent.labels);
    if (exit_code != EXIT_DONE) return exit_code;
    return cli_output_possible(r.out) ? interpolate_model(&r, words) : EXIT_FAILED;
}

const cli_command command_interpolate = {
    .name = "interpolate",
    .summary = "interpolates between two pictures",
    .usage = "MODEL A B -o OUT [options]",
    .description =
        "A and B are pictures of the model's size, or .npy arrays of one point of data. Both are taken to noise "
        "(psld encode),\n"
        "and states on the arc between are taken back.",
    .examples = "  psld interpolate digits.safetensors three.png eight.png -n 11 -o strip.png\n",
    .run = interpolate_run,
};
