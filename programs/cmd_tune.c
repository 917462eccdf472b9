/* psld tune: from a trained model to one that draws with one to four evaluations. */
#include <string.h>

#include "train.h"

static int tune_run(const cli_command *command, int argc, char **argv)
{
    train_request r = {.options = PSLD_TRAINING_DEFAULTS};
    const char *words[256];
    int count, exit_code, consistency = 0;
    const cli_option options[] = {
        {"consistency", 0, CLI_FLAG, NULL, "tune for the sampler consistency (at present the only kind of tuning)",
         &consistency, NULL},
        {"out", 'o', CLI_FILE, "RUN", "folder of the run; a run that exists is continued", &r.run, NULL},
        {"data", 0, CLI_FILE, "DATA", "data to tune on (default: the data of the model's training)", &r.options.data,
         NULL},
        {"time", 0, CLI_TIME, "T", "time for tuning on this machine: 30m, 2h, 1d (default: as train.steps says)",
         &r.options.seconds, NULL},
        {"isa", 0, CLI_TEXT, "NAME",
         "instruction set: avx512, avx2, neon, generic or reference (default: the best of this processor)",
         &r.options.isa, NULL},
        CLI_DEVICE_OPTION(r.options.device),
        {"estimate", 0, CLI_FLAG, NULL, "measure a few steps and estimate the time of all; nothing is written",
         &r.estimate, NULL},
        {"verbose", 'v', CLI_FLAG, NULL, "show the whole configuration, with every key", &r.verbose, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object at the end", &r.json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 250) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    r.options.device = cli_device(r.options.device);
    if (count < 1) return cli_wrong_usage(command, "no model given; expected the model to tune");
    for (int i = 1; i < count; i++)
        if (!strchr(words[i], '='))
            return cli_wrong_usage(command, "expected one model and keys as key=value, found \"%s\"", words[i]);
    if (!consistency) return cli_wrong_usage(command, "expected --consistency, the sampler to tune for");
    if (!r.run && !r.estimate) return cli_wrong_usage(command, "no output given; add -o RUN, the folder of the run");
    r.options.tune = words[0];
    r.options.overrides = words + 1;
    r.options.override_count = count - 1;
    r.options.metric = psld_training_distance();
    if (!cli_ranks_begin(&exit_code)) return exit_code;
    return cli_ranks_end(train_model(&r));
}

const cli_command command_tune = {
    .name = "tune",
    .summary = "tunes a trained model for one to four evaluations",
    .usage = "MODEL --consistency -o RUN [options] [key=value ...]",
    .description =
        "MODEL is a run or a model file, of any recipe, of images or vectors, with labels or without. RUN is a run as "
        "that of psld\n"
        "train: its model.safetensors draws with the sampler consistency, by default with 2 evaluations. Training "
        "begins with the\n"
        "weights and the configuration of MODEL; keys are those of psld train (psld train --keys). The same command "
        "again, or\n"
        "psld train -o RUN, continues where it stopped, with the same bits. Ctrl-C finishes the step and writes a "
        "checkpoint.",
    .examples = "  psld tune digits --consistency -o fast --data mnist/train-images-idx3-ubyte.gz\n"
                "  psld tune run --consistency -o fast --time 30m\n"
                "  psld tune run --consistency --estimate\n"
                "  psld sample fast -n 64 --nfe 1 -o samples.png\n",
    .run = tune_run,
};
