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

static void add_model(json_t *object, const char *path)
{
    psld_model *model;
    if (psld_model_open(path, NULL, &model) != PSLD_OK) return;
    const psld_recipe *recipe = psld_model_recipe(model);
    json_object_set_new(object, "parameters", json_integer((json_int_t)psld_model_parameters(model)));
    if (recipe) json_object_set_new(object, "process", json_string(psld_recipe_get(recipe)->name));
    psld_model_free(model);
}

static void print_lines(const char *path, const psld_run_info *run, const json_t *object)
{
    const char *process = json_string_value(json_object_get(object, "process"));
    printf("%s: training run, step %llu of %llu%s\n", path, (unsigned long long)run->step,
           (unsigned long long)run->steps,
           run->running              ? ", running"
           : run->step >= run->steps ? ", finished"
                                     : "");
    if (process)
        printf("  model         %.2fM parameters, recipe %s\n",
               json_number_value(json_object_get(object, "parameters")) / 1e6, process);
    if (!isnan(run->loss)) {
        printf("  loss          %.4g", run->loss);
        if (!isnan(run->held_out)) printf(" (held out %.4g)", run->held_out);
        printf("\n");
    }
    if (run->checkpoints == 0)
        printf("  checkpoints   none yet\n");
    else
        printf("  checkpoints   %zu, the last of step %llu\n", run->checkpoints, (unsigned long long)run->saved);
    printf("  time          %.0f s\n", run->seconds);
}

int info_run(const char *path, int json)
{
    psld_run_info run;
    psld_status status = psld_run_look(path, &run);
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
    if (run.checkpoints) add_model(object, path);
    if (json) return cli_json_print(object);
    print_lines(path, &run, object);
    json_decref(object);
    return EXIT_DONE;
}
