/* psld score: evaluates a network, for checking and interoperating. */
#include <stdio.h>

#include "cli.h"

typedef struct request {
    const char *z, *t, *x, *sigma, *timestep, *out, *grad_out, *grad_z, *label;
    cli_model model;
} request;

typedef struct arrays {
    psld_array *z, *t, *given, *out, *grad_z;
} arrays;

/* A label is one number for all samples, or a file with one per sample. */
static psld_status read_label(const char *text, size_t n, psld_array **label)
{
    double number;
    if (cli_numbers(text, &number, 1) != 1) return psld_array_load(text, label);
    psld_status status = psld_array_create(PSLD_F64, 1, &n, label);
    for (size_t i = 0; status == PSLD_OK && i < n; i++) ((double *)(*label)->data)[i] = number;
    return status;
}

static psld_status score_evaluate(const request *r, psld_model *model, arrays *a)
{
    int is_classifier = psld_model_kind_of(model) == PSLD_CLASSIFIER;
    psld_status status = psld_array_load(r->z, &a->z);
    if (status == PSLD_OK) status = psld_array_load(r->t, &a->t);
    if (status == PSLD_OK && r->grad_z && is_classifier) {
        if (!r->label) return cli_bad_input("--grad-z of a classifier needs --label");
        status = read_label(r->label, a->z->rank ? a->z->shape[0] : 0, &a->given);
    }
    if (status == PSLD_OK && r->grad_z && !is_classifier) {
        if (!r->grad_out) return cli_bad_input("--grad-z of a score network needs --grad-out");
        status = psld_array_load(r->grad_out, &a->given);
    }
    if (status == PSLD_OK)
        status = psld_model_evaluate(model, a->z, a->t, is_classifier ? NULL : a->given,
                                     is_classifier ? a->given : NULL, &a->out, r->grad_z ? &a->grad_z : NULL);
    if (status == PSLD_OK) status = psld_array_save(a->out, r->out);
    if (status == PSLD_OK && r->grad_z) status = psld_array_save(a->grad_z, r->grad_z);
    return status;
}

/* Clean data in noisy data, or the raw output of a network of timesteps. */
static psld_status score_noisy(const request *r, psld_model *model, arrays *a)
{
    psld_status status = psld_array_load(r->x, &a->z);
    if (status == PSLD_OK) status = psld_array_load(r->sigma ? r->sigma : r->timestep, &a->t);
    if (status == PSLD_OK && r->label) status = read_label(r->label, a->z->rank ? a->z->shape[0] : 0, &a->given);
    if (status == PSLD_OK)
        status = (r->sigma ? psld_model_denoise : psld_model_output)(model, a->z, a->t, a->given, &a->out);
    return status == PSLD_OK ? psld_array_save(a->out, r->out) : status;
}

static int score_run(const cli_command *command, int argc, char **argv)
{
    request r = {0};
    const char *words[64];
    int count, exit_code;
    r.model.options = (psld_model_options)PSLD_MODEL_DEFAULTS;
    r.model.weak = "none";
    const cli_option options[] = {
        {"z", 0, CLI_FILE, "FILE", "states, .npy [n, channels, height, width]", &r.z, NULL},
        {"t", 0, CLI_FILE, "FILE", "times, .npy [n]", &r.t, NULL},
        {"x", 0, CLI_FILE, "FILE", "noisy images x_0 + sigma n, .npy [n, channels, height, width]", &r.x, NULL},
        {"sigma", 0, CLI_FILE, "FILE", "sigma of their noise, .npy [n]: E[x_0 | x] is written", &r.sigma, NULL},
        {"timestep", 0, CLI_FILE, "FILE",
         "instead of --sigma, timesteps, .npy [n]: the raw output of the network for --x is written", &r.timestep,
         NULL},
        {"out", 'o', CLI_FILE, "FILE", "file for eps, logits or clean data: .npy", &r.out, NULL},
        {"grad-out", 0, CLI_FILE, "FILE", "weights of eps in the sum that --grad-z differentiates", &r.grad_out, NULL},
        {"label", 0, CLI_TEXT, "L|FILE", "classifiers: the label whose log-probability --grad-z differentiates",
         &r.label, NULL},
        {"grad-z", 0, CLI_FILE, "FILE", "file for the gradient by z: .npy", &r.grad_z, NULL},
        CLI_MODEL_OPTIONS(r.model),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 64) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count < 1) return cli_wrong_usage(command, "which model?");
    if (r.x && (!r.out || r.z || r.t || r.grad_z || !r.sigma == !r.timestep))
        return cli_wrong_usage(command, "--x goes with -o and one of --sigma and --timestep");
    if (!r.x && (!r.z || !r.t || !r.out)) return cli_wrong_usage(command, "--z, --t and -o are needed");
    if (!cli_output_possible(r.out) || (r.grad_z && !cli_output_possible(r.grad_z))) return EXIT_FAILED;
    psld_model *model = NULL;
    arrays a = {0};
    psld_status status = cli_model_open(&r.model, words, count, &model);
    if (status == PSLD_OK) status = r.x ? score_noisy(&r, model, &a) : score_evaluate(&r, model, &a);
    psld_array_free(a.z);
    psld_array_free(a.t);
    psld_array_free(a.given);
    psld_array_free(a.out);
    psld_array_free(a.grad_z);
    psld_model_free(model);
    return status == PSLD_OK ? EXIT_DONE : cli_failed(status);
}

const cli_command command_score = {
    .name = "score",
    .summary = "evaluates a network on given states and times",
    .usage = "MODEL --z Z.npy --t T.npy -o OUT.npy [options] [key=value ...]",
    .description = "MODEL is a score network, whose eps is written, or a classifier, whose logits are. Gradients by z: "
                   "of sum(eps * G) with\n"
                   "--grad-out G --grad-z GZ, of log p(label | z, t) with --label L --grad-z GZ.",
    .examples = "  psld score model.safetensors --z z.npy --t t.npy -o eps.npy\n"
                "  psld score model.ckpt --config config.yaml --z z.npy --t t.npy -o eps.npy --grad-out g.npy --grad-z "
                "gz.npy\n",
    .run = score_run,
};
