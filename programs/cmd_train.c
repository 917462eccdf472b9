/* psld train: from data, or a configuration, to a model in the folder of a run. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train.h"

/* ---- Signals: training stops after the current step -------------------------------------------------------------- */

static volatile sig_atomic_t asked_to_stop;

static void on_signal(int number)
{
    asked_to_stop = number;
}

/* If the reader of the progress has gone, as tee after Ctrl-C, this is a request to stop, too. */
static int is_asked_to_stop(void)
{
    if (!asked_to_stop && psld_rank() == 0 && cli_reader_gone(STDERR_FILENO)) asked_to_stop = SIGPIPE;
    return asked_to_stop != 0;
}

/* ---- Progress ---------------------------------------------------------------------------------------------------- */

typedef struct progress {
    double began, shown;
    uint64_t first;            /* step that this process began with */
    double loss, norm, weight; /* sums since the last line */
    double held_out, last_loss;
    int terminal;
} progress;

/* The most important first: a narrow terminal shows only the beginning. */
static void show_progress_line(const progress *p, const psld_training_report *r, double each, const char *left)
{
    char text[7][64] = {""};
    const char *const pieces[] = {text[0], text[1], text[2], text[3], text[4], text[5], text[6]};
    snprintf(text[0], sizeof text[0], "step %llu of %llu", (unsigned long long)r->step, (unsigned long long)r->steps);
    snprintf(text[1], sizeof text[1], "loss %.4g", p->loss / p->weight);
    snprintf(text[2], sizeof text[2], "%s left", left);
    if (!isnan(p->held_out)) snprintf(text[3], sizeof text[3], "held out %.4g", p->held_out);
    snprintf(text[4], sizeof text[4], "%.3g samples/s", (double)r->samples / each);
    snprintf(text[5], sizeof text[5], "rate %.3g", r->rate);
    snprintf(text[6], sizeof text[6], "gradient %.3g", p->norm / p->weight);
    cli_line_show((double)r->step / (double)r->steps, pieces, 7);
}

static void train_show(progress *p, const psld_training_report *r, double now)
{
    char left[CLI_DURATION], held[48] = "";
    double steps = (double)(r->step - p->first), each = (now - p->began) / steps;
    cli_duration(each * (double)(r->steps - r->step), left);
    if (!isnan(p->held_out)) snprintf(held, sizeof held, " (held out %.4g)", p->held_out);
    if (p->terminal)
        show_progress_line(p, r, each, left);
    else
        cli_say("step %llu of %llu, loss %.4g%s, rate %.3g, gradient %.3g, %.3g samples/s, %s left\n",
                (unsigned long long)r->step, (unsigned long long)r->steps, p->loss / p->weight, held, r->rate,
                p->norm / p->weight, (double)r->samples / each, left);
    p->last_loss = p->loss / p->weight;
    p->shown = now;
    p->loss = p->norm = p->weight = 0;
}

static int on_step(void *user, const psld_training_report *r)
{
    progress *p = user;
    double now = cli_seconds(), pause = p->terminal ? 0.5 : now - p->began < 60 ? 10 : 60;
    p->loss += r->loss;
    p->norm += r->norm;
    p->weight++;
    if (!isnan(r->held_out)) p->held_out = r->held_out;
    int stop = is_asked_to_stop();
    if (psld_rank() == 0 && (now - p->shown >= pause || r->step == r->steps || stop)) train_show(p, r, now);
    return stop;
}

/* ---- Summary before the start ------------------------------------------------------------------------------------ */

/* A summary; every key with -v. */
static void train_describe(psld_training *training, const train_request *r)
{
    size_t shape[PSLD_MAX_RANK];
    const psld_data *data = psld_training_data(training);
    psld_model *model = psld_training_model(training);
    psld_run_info info = PSLD_RUN_INFO_EMPTY;
    char items[128] = "";
    int rank = psld_model_shape(model, shape), chosen = !r->options.config && !r->options.tune && r->options.data;
    for (int i = 0; i < rank; i++) {
        size_t used = strlen(items);
        snprintf(items + used, sizeof items - used, "%s%zu", i ? " x " : "", shape[i]);
    }
    cli_say("data: %llu items of %s (%s)\n", (unsigned long long)psld_data_count(data), items, psld_data_kind(data));
    cli_say("model: %s, %.2fM parameters, recipe %s%s\n",
            psld_model_kind_of(model) == PSLD_CLASSIFIER ? "classifier" : "score network",
            (double)psld_model_parameters(model) / 1e6, psld_model_process_name(model),
            chosen ? ", chosen for these data; change any key by key=value" : "");
    cli_say("%s", psld_training_reasons(training));
    if (!r->estimate && psld_run_inspect(r->run, &info) == PSLD_OK)
        cli_say("run: %s, %llu steps%s\n", r->run, (unsigned long long)info.steps,
                r->verbose ? "" : " (-v shows every key; config.yaml has them)");
    if (r->verbose) cli_say("%s", psld_training_config(training));
    if (psld_training_steps(training) > 0)
        cli_say("continuing after step %llu\n", (unsigned long long)psld_training_steps(training));
}

/* Prints a message if the run is already finished. Returns whether it is. */
static int train_is_finished(psld_training *training, const train_request *r)
{
    psld_run_info info = PSLD_RUN_INFO_EMPTY;
    uint64_t done = psld_training_steps(training);
    if (psld_rank() != 0 || done == 0 || psld_run_inspect(r->run, &info) != PSLD_OK || done < info.steps) return 0;
    cli_say("%s is finished: %llu of %llu steps are done. To train further: psld train -o %s train.steps=%llu\n",
            r->run, (unsigned long long)done, (unsigned long long)info.steps, r->run, (unsigned long long)(2 * done));
    return 1;
}

/* ---- Estimate ---------------------------------------------------------------------------------------------------- */

/* Measures a few steps, in a run that writes nothing. */
static psld_status train_estimate(psld_training *training, const train_request *r)
{
    enum { STEPS = 4 };
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    double best = (double)INFINITY;
    char whole[CLI_DURATION], room[CLI_DEVICE_ROOM];
    for (int i = 0; i < STEPS; i++) {
        psld_status status = psld_training_step(training, &report);
        if (status != PSLD_OK) return status;
        best = fmin(best, report.seconds);
    }
    double seconds = best * (double)report.steps;
    size_t bytes = psld_training_bytes(training);
    const char *device = psld_model_device(psld_training_model(training));
    if (r->json) {
        json_t *object = json_object();
        json_object_set_new(object, "seconds_per_step", cli_json_number(best));
        json_object_set_new(object, "seconds", cli_json_number(seconds));
        json_object_set_new(object, "steps", json_integer((json_int_t)report.steps));
        json_object_set_new(object, "samples_per_second", cli_json_number((double)report.samples / best));
        json_object_set_new(object, "bytes", json_integer((json_int_t)bytes));
        cli_device_report(object, device);
        cli_json_print(object);
        return PSLD_OK;
    }
    cli_device_room(device, room);
    printf("%.4g s per step of %llu samples (%.4g samples/s): %s for %llu steps; %.0f MB%s\n", best,
           (unsigned long long)report.samples, (double)report.samples / best, cli_duration(seconds, whole),
           (unsigned long long)report.steps, (double)bytes / 1e6, *room ? room : " of memory in addition to the data");
    return PSLD_OK;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* What a run has when its device was lost. */
static int report_lost(const train_request *r)
{
    char why[512];
    psld_run_info info = PSLD_RUN_INFO_EMPTY;
    snprintf(why, sizeof why, "%s", psld_error_text());
    if (psld_rank() != 0 || psld_run_inspect(r->run, &info) != PSLD_OK || info.checkpoints == 0)
        return cli_complain("%s", why), EXIT_FAILED;
    cli_complain(
        "%s; psld train -o %s goes on after step %llu, which was saved, and with --device cpu on the processor", why,
        r->run, (unsigned long long)info.saved);
    return EXIT_FAILED;
}

static int report_end(psld_status status, const train_request *r, psld_training *training)
{
    if (status == PSLD_CANCELLED) {
        if (psld_rank() == 0)
            cli_say("psld: stopped after step %llu, which is saved in %s; the same command, or psld train -o %s, "
                    "continues from "
                    "there\n",
                    (unsigned long long)psld_training_steps(training), r->run, r->run);
        return 128 + (asked_to_stop ? asked_to_stop : SIGTERM); /* or another rank got the signal */
    }
    if (status == PSLD_NOT_FINITE) {
        cli_complain("%s; the last checkpoint in %s/checkpoints is good: a smaller train.lr or train.clip may help",
                     psld_error_text(), r->run);
        return EXIT_FAILED;
    }
    if (status == PSLD_DEVICE_FAILED) return report_lost(r);
    return status == PSLD_OK ? EXIT_DONE : cli_failed(status);
}

static void report_done(const train_request *r, const psld_training *training, const progress *p)
{
    char time[CLI_DURATION], held[48] = "";
    if (psld_rank() != 0) return;
    if (!isnan(p->held_out)) snprintf(held, sizeof held, " (held out %.4g)", p->held_out);
    cli_say("done: %llu steps, loss %.4g%s, %s: %s/model.safetensors\n",
            (unsigned long long)psld_training_steps(training), p->last_loss, held,
            cli_duration(cli_seconds() - p->began, time), r->run);
}

static int print_summary(const train_request *r, const psld_training *training, const progress *p)
{
    if (!r->json || psld_rank() != 0) return EXIT_DONE;
    char path[4096];
    json_t *object = json_object();
    snprintf(path, sizeof path, "%s/model.safetensors", r->run);
    json_object_set_new(object, "model", json_string(path));
    json_object_set_new(object, "step", json_integer((json_int_t)psld_training_steps(training)));
    json_object_set_new(object, "held_out", cli_json_number(p->held_out));
    json_object_set_new(object, "seconds", cli_json_number(cli_seconds() - p->began));
    return cli_json_print(object);
}

int train_model(const train_request *r)
{
    psld_training *training;
    psld_status status = psld_training_open(r->estimate ? NULL : r->run, &r->options, &training);
    if (status != PSLD_OK) return cli_failed(status);
    if (psld_rank() == 0) train_describe(training, r);
    int exit_code;
    if (r->estimate) {
        status = train_estimate(training, r);
        exit_code = status == PSLD_OK ? EXIT_DONE : cli_failed(status);
    } else {
        progress p = {.began = cli_seconds(),
                      .shown = cli_seconds(),
                      .first = psld_training_steps(training),
                      .held_out = (double)NAN,
                      .terminal = cli_terminal()};
        int finished = train_is_finished(training, r);
        struct sigaction before[CLI_SIGNALS];
        cli_signals_catch(on_signal, 0, before);
        status = psld_training_run(training, on_step, &p);
        cli_line_clear();
        exit_code = report_end(status, r, training);
        if (exit_code == EXIT_DONE && !finished) report_done(r, training, &p);
        if (exit_code == EXIT_DONE) exit_code = print_summary(r, training, &p);
    }
    psld_training_free(training);
    return exit_code;
}

static int is_config(const char *path)
{
    struct stat about;
    return cli_ends_in(path, ".yaml|.yml") && (stat(path, &about) != 0 || S_ISREG(about.st_mode));
}

static int train_run(const cli_command *command, int argc, char **argv)
{
    train_request r = {.options = PSLD_TRAINING_DEFAULTS};
    const char *words[256];
    char found[CLI_PATH];
    int count, exit_code;
    r.options.metric = psld_training_distance();
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "RUN", "folder of the run; a run that exists is continued", &r.run, NULL},
        {"data", 0, CLI_FILE, "DATA", "data to train on, instead of data.path of the configuration", &r.options.data,
         NULL},
        {"init", 0, CLI_FILE, "MODEL", "start from the weights of another model", &r.options.init, NULL},
        {"classifier", 0, CLI_FLAG, NULL, "with DATA alone: train a classifier of noisy data", &r.options.classifier,
         NULL},
        {"clean", 0, CLI_FLAG, NULL, "the classifier sees data without noise", &r.clean, NULL},
        {"time", 0, CLI_TIME, "T",
         "time for training on this machine: 30m, 2h, 1d (default 2h if a network is chosen; else as train.steps "
         "says)",
         &r.options.seconds, NULL},
        {"isa", 0, CLI_TEXT, "NAME",
         "instruction set: avx512, avx2, neon, generic or reference (default: the best of this processor)",
         &r.options.isa, NULL},
        CLI_DEVICE_OPTION(r.options.device),
        {"estimate", 0, CLI_FLAG, NULL, "measure a few steps and estimate the time of all; nothing is written",
         &r.estimate, NULL},
        {"keys", 0, CLI_FLAG, NULL, "list every key of configurations: type, default, choices, meaning", &r.keys, NULL},
        {"verbose", 'v', CLI_FLAG, NULL, "show the whole configuration, with every key", &r.verbose, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object at the end", &r.json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 250) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    r.options.device = cli_device(r.options.device);
    if (r.keys) return train_print_keys(r.json);
    const char **overrides = words;
    if (count > 0 && (!strchr(words[0], '=') || access(words[0], F_OK) == 0)) {
        const char *named = cli_find_config(words[0], "", found);
        if (access(named, F_OK) != 0 && !strchr(named, ':')) return cli_failed(cli_no_config(words[0]));
        if (is_config(named))
            r.options.config = named;
        else
            r.options.data = named;
        overrides++, count--;
    }
    if (r.clean) overrides[count++] = "train.clean=true";
    r.options.overrides = overrides;
    r.options.override_count = count;
    if (!r.run && !r.estimate) return cli_wrong_usage(command, "no output given; add -o RUN, the folder of the run");
    if (!r.options.config && !r.options.data && !r.run)
        return cli_wrong_usage(command, "expected a configuration or data");
    if (!cli_ranks_begin(&exit_code)) return exit_code;
    return cli_ranks_end(train_model(&r));
}

const cli_command command_train = {
    .name = "train",
    .summary = "trains a network on data, or continues its training",
    .usage = "CONFIG|DATA -o RUN [options] [key=value ...]",
    .description =
        "CONFIG is a YAML file, or the name of one that comes with the program (psld configs lists them; --keys lists "
        "all keys).\n"
        "With DATA alone a network and settings are chosen for it and shown. DATA is a folder or archive of images, "
        "MNIST or CIFAR\n"
        "files, .npy or .npz, or toy:NAME.\n\n"
        "RUN gets config.yaml, log.jsonl, loss.png, model.safetensors, checkpoints/, samples/, and index.html, which "
        "shows them\n"
        "in a browser and reloads itself while the run goes on. The same command again, or\n"
        "psld train -o RUN, continues where it stopped, with the same bits. Ctrl-C finishes the step and writes a "
        "checkpoint.",
    .examples = "  psld train toy:moons -o moons\n"
                "  psld train pictures/ -o run train.steps=20000\n"
                "  psld train cifar10-psld-39m --data cifar-10-binary.tar.gz -o run train.batch=8\n"
                "  psld train -o run train.steps=100000\n"
                "  psld train --classifier pictures/ -o judge\n",
    .run = train_run,
    .complete = train_complete,
};
