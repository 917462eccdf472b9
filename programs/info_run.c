/* What psld info says of the folder of a training run. */
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "info.h"

int info_is_run(const char *path)
{
    char config[4096];
    snprintf(config, sizeof config, "%s/config.yaml", path);
    return access(config, F_OK) == 0;
}

/* From the model, or from the configuration if there is no model yet. NULL: neither can be read. */
static json_t *run_network(const char *folder, size_t checkpoints)
{
    char config[4096];
    psld_model *model = NULL;
    psld_model_options look = PSLD_MODEL_DEFAULTS;
    look.blank = 1;
    snprintf(config, sizeof config, "%s/config.yaml", folder);
    psld_status status =
        checkpoints ? psld_model_open_any(folder, NULL, &model) : psld_model_create(config, &look, 0, &model);
    if (status != PSLD_OK) return NULL;
    json_t *network = info_describe_network(model);
    psld_model_free(model);
    return network;
}

static void print_model(const json_t *network)
{
    size_t i;
    const json_t *size, *classes = json_object_get(network, "classes");
    printf("  model         %.2fM parameters, recipe %s, data",
           json_number_value(json_object_get(network, "parameters")) / 1e6,
           json_string_value(json_object_get(network, "process")));
    json_array_foreach(json_object_get(network, "shape"), i, size)
        printf("%s%lld", i ? " x " : " ", (long long)json_integer_value(size));
    if (classes)
        printf("\n");
    else
        printf(", predicts %s\n", json_string_value(json_object_get(network, "predicts")));
    if (classes) info_print_classes(classes);
}

static void print_lines(const char *path, const psld_run_info *run, const json_t *network)
{
    printf("%s: training run%s, step %llu of %llu%s\n", path, run->classifier ? " of a classifier" : "",
           (unsigned long long)run->step, (unsigned long long)run->steps,
           run->running              ? ", running"
           : run->step >= run->steps ? ", finished"
                                     : "");
    if (network) print_model(network);
    if (!isnan(run->accuracy)) printf("  accuracy      %.2f %% (held out)\n", 100 * run->accuracy);
    if (!isnan(run->loss)) {
        printf("  loss          %.4g", run->loss);
        if (!isnan(run->held_out)) printf(" (held out %.4g)", run->held_out);
        printf("\n");
    }
    if (!isnan(run->bits)) printf("  bits          %.4f per dimension, an upper bound\n", run->bits);
    if (run->checkpoints == 0)
        printf("  checkpoints   none yet\n");
    else
        printf("  checkpoints   %zu, the last of step %llu\n", run->checkpoints, (unsigned long long)run->saved);
    printf("  time          %.0f s\n", run->seconds);
    char page[4096];
    snprintf(page, sizeof page, "%s/index.html", path);
    if (access(page, F_OK) == 0) printf("  page          %s\n", page);
}

int info_run(const char *path, int json)
{
    psld_run_info run = PSLD_RUN_INFO_EMPTY;
    psld_status status = psld_run_inspect(path, &run);
    if (status != PSLD_OK) return cli_failed(status);
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("training run"));
    json_object_set_new(object, "step", json_integer((json_int_t)run.step));
    json_object_set_new(object, "steps", json_integer((json_int_t)run.steps));
    json_object_set_new(object, "saved", json_integer((json_int_t)run.saved));
    json_object_set_new(object, "checkpoints", json_integer((json_int_t)run.checkpoints));
    json_object_set_new(object, "loss", cli_json_number(run.loss));
    json_object_set_new(object, "held_out", cli_json_number(run.held_out));
    json_object_set_new(object, "seconds", cli_json_number(run.seconds));
    json_object_set_new(object, "running", json_boolean(run.running));
    json_object_set_new(object, "trains", json_string(run.classifier ? "classifier" : "score network"));
    json_object_set_new(object, "accuracy", cli_json_number(run.accuracy));
    if (!isnan(run.bits)) json_object_set_new(object, "bits_per_dim", cli_json_number(run.bits));
    json_t *network = run_network(path, run.checkpoints);
    if (json) {
        static const char *const keys[] = {"parameters", "process", "shape", "predicts", "classes"};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            json_object_set(object, keys[i], json_object_get(network, keys[i]));
        json_decref(network);
        return cli_json_print(object);
    }
    print_lines(path, &run, network);
    json_decref(network);
    json_decref(object);
    return EXIT_DONE;
}
