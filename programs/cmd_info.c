/* psld info: describes a file. Its parts are in info_*.c. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "info.h"

static int show_exact_model(const char *path, const psld_model *model, int json)
{
    const psld_recipe_spec *spec = psld_recipe_get(psld_model_recipe(model));
    size_t dim = psld_mixture_dim(psld_model_mixture(model)), classes = psld_model_classes(model);
    const char *family = psld_model_family(model);
    if (!json) {
        printf("%s: exact model, a mixture in %zu dimensions under the recipe %s (k = %d)", path, dim, spec->name,
               spec->k);
        if (classes) printf(", %zu classes", classes);
        if (*family) printf(", in place of a network: %s", family);
        printf("\n");
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("exact model"));
    json_object_set_new(object, "dimensions", json_integer((json_int_t)dim));
    json_object_set_new(object, "process", json_string(spec->name));
    json_object_set_new(object, "k", json_integer(spec->k));
    if (classes) json_object_set_new(object, "classes", json_integer((json_int_t)classes));
    if (*family) json_object_set_new(object, "as", json_string(family));
    return cli_json_print(object);
}

/* The network of a configuration, before it has any weights. */
static int show_network(const char *path, psld_model *model, int json)
{
    json_t *network = info_describe_network(model);
    if (json) return cli_json_print(network);
    info_print_network(path, network);
    json_decref(network);
    return EXIT_DONE;
}

static int show_process(const char *path, const psld_process *process, int json)
{
    int data = psld_process_data(process), variables = psld_process_variables(process);
    if (!json) {
        printf("%s: recipe %s with formulas, %d variables, %d of them data (psld recipe %s checks it)\n", path,
               psld_process_name(process), variables, data, path);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("recipe with formulas"));
    json_object_set_new(object, "name", json_string(psld_process_name(process)));
    json_object_set_new(object, "variables", json_integer(variables));
    json_object_set_new(object, "data", json_integer(data));
    return cli_json_print(object);
}

static int show_recipe(const char *path, const psld_process *process, int json)
{
    const psld_recipe *recipe = psld_process_recipe(process);
    if (!recipe) return show_process(path, process, json);
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    if (!json) {
        printf("%s: recipe %s, k = %d (psld recipe %s tells more)\n", path, spec->name, spec->k, path);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("recipe"));
    json_object_set_new(object, "name", json_string(spec->name));
    json_object_set_new(object, "k", json_integer(spec->k));
    return cli_json_print(object);
}

/* YAML is a recipe, a configuration of a network or an exact model: the first that can be read. If none can, the
 * message is that of the kind that its keys suggest. */
static int show_yaml(const char *path, int json)
{
    psld_model *model = NULL;
    psld_process *recipe = NULL;
    char as_recipe[1024], as_network[1024];
    int exit_code = EXIT_FAILED;
    if (psld_process_open(path, 1, &recipe) == PSLD_OK) {
        exit_code = show_recipe(path, recipe, json);
        psld_process_free(recipe);
        return exit_code;
    }
    snprintf(as_recipe, sizeof as_recipe, "%s", psld_error_text());
    psld_model_options look = PSLD_MODEL_DEFAULTS;
    look.blank = 1;
    if (psld_model_create(path, &look, 0, &model) == PSLD_OK) {
        exit_code = show_network(path, model, json);
        psld_model_free(model);
        return exit_code;
    }
    snprintf(as_network, sizeof as_network, "%s", psld_error_text());
    if (psld_model_open(path, NULL, &model) == PSLD_OK) {
        exit_code = show_exact_model(path, model, json);
        psld_model_free(model);
        return exit_code;
    }
    const char *as_model = psld_error_text();
    if (!strstr(as_recipe, "unknown key"))
        cli_complain("%s", as_recipe);
    else
        cli_complain("%s", strstr(as_model, "unknown key") ? as_network : as_model);
    return EXIT_FAILED;
}

static void ignore_tensor(void *user, const char *name, const char *type, int rank, const size_t *shape)
{
    (void)user, (void)name, (void)type, (void)rank, (void)shape;
}

/* Data sets without a typical name: CIFAR's Python files, archives and IDX with other names. */
static int opens_as_data_alone(const char *path)
{
    psld_data *data = NULL;
    if (psld_tensors_list(path, ignore_tensor, NULL) == PSLD_OK) return 0;
    int opens = psld_data_open(path, NULL, &data) == PSLD_OK;
    psld_data_free(data);
    return opens;
}

typedef struct request {
    int json, quick, tensors, recipe;
} request;

static int print_recipe(const psld_recipe *recipe)
{
    char *text;
    psld_status status = psld_recipe_text(recipe, &text);
    if (status != PSLD_OK) return cli_failed(status);
    printf("%s", text);
    psld_text_free(text);
    return EXIT_DONE;
}

/* The recipe of a run, a model or a file, as a file that every command takes. */
static int info_recipe(const char *path)
{
    psld_model *model = NULL;
    psld_recipe *recipe = NULL;
    int exit_code;
    if (cli_ends_in(path, ".yaml|.yml") && psld_recipe_open(path, &recipe) == PSLD_OK) {
        exit_code = print_recipe(recipe);
        psld_recipe_free(recipe);
        return exit_code;
    }
    psld_status status = psld_model_open_any(path, NULL, &model);
    if (status != PSLD_OK) return cli_failed(status);
    if (psld_model_recipe(model)) {
        exit_code = print_recipe(psld_model_recipe(model));
    } else {
        cli_complain("%s: has no recipe of matrices to print", path);
        exit_code = EXIT_FAILED;
    }
    psld_model_free(model);
    return exit_code;
}

static int info_show(const char *path, const request *r)
{
    if (r->recipe) return info_recipe(path);
    if (info_is_run(path)) return info_run(path, r->json);
    if (cli_ends_in(path, ".npy") || info_begins_with(path, "\x93NUMPY", 6)) return info_show_array(path, r->json);
    if (cli_ends_in(path, ".yaml|.yml")) return show_yaml(path, r->json);
    if (info_is_image(path)) return info_show_image(path, r->json);
    if (info_is_pipeline(path)) return info_show_pipeline(path, r->json);
    if (info_is_data(path) || opens_as_data_alone(path)) return info_show_data(path, r->quick, r->json);
    return info_show_tensors(path, r->tensors, r->json);
}

static int info_command(const cli_command *command, int argc, char **argv)
{
    const char *words[16];
    char found[CLI_PATH];
    int count, exit_code;
    request r = {0};
    const cli_option options[] = {
        {"tensors", 0, CLI_FLAG, NULL, "weights: list every tensor", &r.tensors, NULL},
        {"quick", 0, CLI_FLAG, NULL, "data sets: do not decode every image to find broken ones", &r.quick, NULL},
        {"recipe", 0, CLI_FLAG, NULL, "print the recipe of a run, a model or a file, to be kept as a file of its own",
         &r.recipe, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &r.json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 16) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count != 1) return cli_wrong_usage(command, "expected one file, found %d", count);
    if (r.recipe && (r.json || r.quick || r.tensors)) return cli_wrong_usage(command, "--recipe goes alone");
    return info_show(cli_find_config(words[0], "", found), &r);
}

const cli_command command_info = {
    .name = "info",
    .summary = "describes a file",
    .usage = "FILE [--tensors] [--quick] [--recipe] [--json]",
    .description =
        "FILE is the folder of a training run (how far it is, what it trains, its loss or accuracy); weights: a model "
        "file, a\n"
        "safetensors file or a PyTorch checkpoint (what the network is, what it predicts, how long it was trained); "
        "the\n"
        "configuration of a network, a recipe or an exact model (.yaml); a picture; arrays (.npy, .npz); or data: a "
        "folder or\n"
        "archive (tar, zip) of images, CIFAR, IDX (MNIST), toy:NAME. psld data says more of these, and converts them.",
    .examples = "  psld info RUN\n"
                "  psld info model.safetensors --tensors\n"
                "  psld info configs/cifar10-psld-39m.yaml\n"
                "  psld info model.ckpt --json\n"
                "  psld info photos/ --quick\n"
                "  psld info RUN --recipe > mine.yaml\n",
    .run = info_command,
};
