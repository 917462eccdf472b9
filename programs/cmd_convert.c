/* psld convert: weights from one format to another. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { WORDS = 64 };

static psld_status convert_model(cli_model *m, const char *loss, const char *const *words, int count)
{
    psld_model *model = NULL;
    const char *target = words[1];
    const char *opened[WORDS + 1] = {words[0]};
    int others = 1;
    for (int i = 2; i < count; i++) opened[others++] = words[i];
    if (loss) opened[others++] = strcmp(loss, "dsm") == 0 ? "train.loss=dsm" : "train.loss=hsm";
    psld_status status = cli_model_open(m, opened, others, &model);
    if (status == PSLD_OK) status = psld_model_save(model, target);
    if (status == PSLD_OK)
        printf("%s: %.2fM parameters, with their configuration\n", target, (double)psld_model_parameters(model) / 1e6);
    psld_model_free(model);
    return status;
}

/* A file without a configuration fails to open as a model; then its tensors are converted unchanged. */
static psld_status convert_file(cli_model *m, const char *loss, const char *const *words, int count)
{
    psld_status status = convert_model(m, loss, words, count);
    if (status != PSLD_BAD_INPUT || m->options.config || !strstr(psld_error_text(), "no configuration of its own"))
        return status;
    if (count > 2 || loss) return status;
    status = psld_tensors_convert(words[0], words[1]);
    if (status == PSLD_OK)
        printf("%s: tensors unchanged, without a configuration (give one with --config)\n", words[1]);
    return status;
}

static int convert_run(const cli_command *command, int argc, char **argv)
{
    cli_model m = {0};
    const char *words[WORDS], *loss = NULL, *cfg = NULL;
    int count, exit_code;
    m.options = (psld_model_options)PSLD_MODEL_DEFAULTS;
    const cli_option options[] = {
        CLI_WEAK_OPTIONS(m),
        {"loss", 0, CLI_TEXT, "hsm|dsm",
         "loss that the network was trained with (default: that of its configuration, or hsm)", &loss, "hsm|dsm"},
        {"cfg", 0, CLI_TEXT, "W", "default of classifier-free guidance in OUT (default: that of IN)", &cfg, NULL},
        CLI_MODEL_OPTIONS(m),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > WORDS) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count < 2) return cli_wrong_usage(command, "expected two files, IN and OUT");
    if (!cli_ends_in(words[1], ".safetensors|.pt|.pth|.ckpt"))
        return cli_wrong_usage(
            command, "OUT: expected a name that ends in .safetensors, .pt, .pth or .ckpt, found \"%s\"", words[1]);
    if (cfg && (cli_numbers(cfg, &m.options.cfg, 1) != 1 || m.options.cfg == PSLD_UNSET))
        return cli_wrong_usage(command, "--cfg: expected a number other than -1, found \"%s\"", cfg);
    if (cfg && !cli_ends_in(words[1], ".safetensors"))
        return cli_wrong_usage(command, "--cfg: only .safetensors files keep it");
    if (!cli_output_possible(words[1])) return EXIT_FAILED;
    psld_status status = convert_file(&m, loss, words, count);
    return status == PSLD_OK ? EXIT_DONE : cli_failed(status);
}

const cli_command command_convert = {
    .name = "convert",
    .summary = "converts weights between PyTorch and safetensors",
    .usage = "IN OUT [--config C.yaml] [--loss hsm|dsm] [--weak WEAK] [--cfg W] [key=value ...]",
    .description = "IN is a safetensors file or a PyTorch checkpoint (zip or legacy; nothing in it is ever run). With "
                   "a configuration, in IN or by\n"
                   "--config (ours, or the layout of published ones), the architecture is checked against the tensors, "
                   "EMA weights are\n"
                   "taken if there are both, and the configuration is stored in OUT, so that one file is enough. "
                   "Without one, tensors are\n"
                   "converted unchanged. OUT ends in .safetensors, or in .pt, .pth or .ckpt for PyTorch.\n"
                   "--loss dsm: the network learned the noise of the kernel given all of z_0, and its configuration "
                   "does not say so.\n"
                   "Sampling then uses that kernel.\n"
                   "With --weak, a safetensors file has a weaker model of the same data in it, and what is drawn from "
                   "the file is guided\n"
                   "by it.",
    .examples = "  psld convert model.ckpt model.safetensors --config config.yaml\n"
                "  psld convert theirs.ckpt model.safetensors --config config.yaml --loss dsm\n"
                "  psld convert run both.safetensors --weak small-run --weak-scale 1.5\n"
                "  psld convert run guided.safetensors --cfg 2\n"
                "  psld convert model.safetensors model.pt\n",
    .run = convert_run,
};
