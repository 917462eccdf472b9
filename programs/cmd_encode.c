/* psld encode: pictures or points become the noise from which a deterministic sampler returns to them. */
#include <stdio.h>

#include "latent.h"

typedef struct request {
    const char *out;
    latent_request latent;
    int json;
} request;

static int encode_report(const request *r, const latent_job *job, double rms, double absolute)
{
    size_t n = job->x->shape[0];
    if (!r->json) {
        printf("%zu states at t = 1, %llu evaluations each: %s; error after decoding %.3g on average (of 255: %.2f)\n",
               n, (unsigned long long)job->nfe, r->out, absolute, absolute * 127.5);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "n", json_integer((json_int_t)n));
    json_object_set_new(object, "nfe", json_integer((json_int_t)job->nfe));
    json_object_set_new(object, "round_trip", cli_json_number(absolute));
    json_object_set_new(object, "round_trip_rms", cli_json_number(rms));
    json_object_set_new(object, "out", json_string(r->out));
    return cli_json_print(object);
}

static int encode_model(request *r, const char *const *words, int count)
{
    latent_job job = {0};
    psld_array *again = NULL;
    double rms = 0, absolute = 0;
    int exit_code = EXIT_DONE;
    psld_status status = latent_open(&r->latent, words[0], words + 1, count - 1, &job);
    if (status == PSLD_OK) status = latent_encode(&job);
    if (status == PSLD_OK) status = psld_array_save(job.z, r->out);
    if (status == PSLD_OK) status = latent_decode(&job, job.z, &again);
    if (status == PSLD_OK) {
        latent_compare(job.x, again, &rms, &absolute);
        exit_code = encode_report(r, &job, rms, absolute);
    }
    psld_array_free(again);
    latent_close(&job);
    return status == PSLD_OK ? exit_code : cli_failed(status);
}

static int encode_run(const cli_command *command, int argc, char **argv)
{
    request r = {0};
    const char *words[LATENT_WORDS];
    int count, exit_code;
    latent_defaults(&r.latent);
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "Z.npy", "where the states go: float32 [n, k * channels, ...]", &r.out, NULL},
        LATENT_OPTIONS(r.latent),
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &r.json, NULL},
        CLI_WEAK_OPTIONS(r.latent.model),
        CLI_MODEL_OPTIONS(r.latent.model),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > LATENT_WORDS) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count < 2) return cli_wrong_usage(command, "expected a model and at least one picture or array");
    if (!r.out || !cli_ends_in(r.out, ".npy")) return cli_wrong_usage(command, "no output given; add -o Z.npy");
    exit_code = labels_check(command, &r.latent.labels);
    if (exit_code != EXIT_DONE) return exit_code;
    return cli_output_possible(r.out) ? encode_model(&r, words, count) : EXIT_FAILED;
}

const cli_command command_encode = {
    .name = "encode",
    .summary = "encodes pictures as noise from which they can be drawn again",
    .usage = "MODEL DATA... -o Z.npy [options]",
    .description = "DATA are pictures of the model's size (PNG, JPEG, WebP) or .npy arrays of data, [n, channels, ...] "
                   "in [-1, 1]. A\n"
                   "deterministic sampler follows the flow from the data to t = 1. `psld sample MODEL --z0 Z.npy` with "
                   "the same sampler, grid\n"
                   "and end time decodes them. The error of encoding and decoding is measured and printed.",
    .examples = "  psld encode digits.safetensors seven.png -o seven.npy\n"
                "  psld sample digits.safetensors --z0 seven.npy --sampler collapsed --nfe 200 -o back.png\n",
    .run = encode_run,
};
