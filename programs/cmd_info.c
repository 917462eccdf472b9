/* psld info: what a file is. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "info.h"

static int show_array(const char *path, int json)
{
    static const char *const types[] = {"float64", "float32", "uint8", "int32", "int64"};
    psld_array array;
    psld_status status = psld_array_look(path, &array);
    if (status != PSLD_OK) return cli_failed(status);
    json_t *object = json_object(), *shape = json_array();
    json_object_set_new(object, "kind", json_string("array"));
    json_object_set_new(object, "type", json_string(types[array.type]));
    for (int i = 0; i < array.rank; i++) json_array_append_new(shape, json_integer((json_int_t)array.shape[i]));
    json_object_set_new(object, "shape", shape);
    if (json) return cli_json_print(object);
    json_decref(object);
    printf("%s: array of %s [", path, types[array.type]);
    for (int i = 0; i < array.rank; i++) printf("%s%zu", i ? ", " : "", array.shape[i]);
    printf("]\n");
    return EXIT_DONE;
}

static int show_exact_model(const char *path, const psld_model *model, int json)
{
    const psld_recipe_spec *spec = psld_recipe_get(psld_model_recipe(model));
    size_t dim = psld_mixture_dim(psld_model_mixture(model));
    if (!json) {
        printf("%s: exact model, a mixture in %zu dimensions under the recipe %s (k = %d)\n", path, dim, spec->name,
               spec->k);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("exact model"));
    json_object_set_new(object, "dimensions", json_integer((json_int_t)dim));
    json_object_set_new(object, "process", json_string(spec->name));
    json_object_set_new(object, "k", json_integer(spec->k));
    return cli_json_print(object);
}

static json_t *describe_network(psld_model *model)
{
    size_t shape[PSLD_MAX_RANK], in, out;
    const psld_recipe *recipe = psld_model_recipe(model);
    int rank = psld_model_shape(model, shape), classifier = psld_model_kind_of(model) == PSLD_CLASSIFIER;
    json_t *object = json_object(), *sizes = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
    json_object_set_new(object, "kind", json_string(classifier ? "classifier" : "score network"));
    json_object_set_new(object, "parameters", json_integer((json_int_t)psld_model_parameters(model)));
    json_object_set_new(object, "flops", cli_json_number(psld_model_flops(model)));
    json_object_set_new(object, "process", json_string(recipe ? psld_recipe_get(recipe)->name : "not given"));
    json_object_set_new(object, "shape", sizes);
    psld_model_channels(model, &in, &out);
    json_object_set_new(object, "channels", json_pack("[I, I]", (json_int_t)in, (json_int_t)out));
    return object;
}

static void print_network(const char *path, const json_t *network)
{
    size_t i;
    const json_t *size;
    printf("%s: %s, %.2fM parameters, %.2f GFLOP an evaluation, recipe %s, data", path,
           json_string_value(json_object_get(network, "kind")),
           json_number_value(json_object_get(network, "parameters")) / 1e6,
           json_number_value(json_object_get(network, "flops")) / 1e9,
           json_string_value(json_object_get(network, "process")));
    json_array_foreach(json_object_get(network, "shape"), i, size)
        printf("%s%lld", i ? " x " : " ", (long long)json_integer_value(size));
    const json_t *channels = json_object_get(network, "channels");
    printf(", channels %lld in, %lld out\n", (long long)json_integer_value(json_array_get(channels, 0)),
           (long long)json_integer_value(json_array_get(channels, 1)));
}

/* The network of a configuration, before it has any weights. */
static int show_network(const char *path, psld_model *model, int json)
{
    json_t *network = describe_network(model);
    if (json) return cli_json_print(network);
    print_network(path, network);
    json_decref(network);
    return EXIT_DONE;
}

/* ---- Files of tensors -------------------------------------------------------------------------------------------- */

typedef struct listing {
    const char *path;
    int json;
    json_t *tensors;
    size_t count, numbers;
} listing;

static void list_tensor(void *user, const char *name, const char *type, int rank, const size_t *shape)
{
    listing *l = user;
    size_t numbers = 1;
    for (int i = 0; i < rank; i++) numbers *= shape[i];
    l->count++;
    l->numbers += numbers;
    if (!l->json) {
        if (l->count == 1) printf("%s:\n", l->path);
        printf("  %-48s %-9s [", name, type);
        for (int i = 0; i < rank; i++) printf("%s%zu", i ? ", " : "", shape[i]);
        printf("]\n");
        return;
    }
    json_t *row = json_object(), *sizes = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
    json_object_set_new(row, "name", json_string(name));
    json_object_set_new(row, "type", json_string(type));
    json_object_set_new(row, "shape", sizes);
    json_array_append_new(l->tensors, row);
}

/* NULL: the file does not say what its tensors are part of. */
static json_t *network_of(const char *path)
{
    psld_model *model = NULL;
    if (psld_model_open(path, NULL, &model) != PSLD_OK) return NULL;
    json_t *network = describe_network(model);
    psld_model_free(model);
    return network;
}

static int show_tensors(const char *path, int json)
{
    listing l = {.path = path, .json = json, .tensors = json_array()};
    psld_status status = psld_tensors_list(path, list_tensor, &l);
    if (status != PSLD_OK) {
        json_decref(l.tensors);
        return cli_failed(status);
    }
    json_t *network = network_of(path);
    if (!json) {
        printf("%zu tensors, %.2fM numbers\n", l.count, (double)l.numbers / 1e6);
        if (network) print_network(path, network);
        json_decref(network);
        json_decref(l.tensors);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("tensors"));
    json_object_set_new(object, "numbers", json_integer((json_int_t)l.numbers));
    if (network) json_object_set_new(object, "network", network);
    json_object_set_new(object, "tensors", l.tensors);
    return cli_json_print(object);
}

static int show_recipe(const char *path, const psld_recipe *recipe, int json)
{
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    if (!json) {
        printf("%s: recipe %s, k = %d (psld recipe %s says more)\n", path, spec->name, spec->k, path);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("recipe"));
    json_object_set_new(object, "name", json_string(spec->name));
    json_object_set_new(object, "k", json_integer(spec->k));
    return cli_json_print(object);
}

/* YAML is a recipe, a configuration of a network or an exact model, whichever reads without an error; when none
 * does, the message is about the one that its keys look like. */
static int show_yaml(const char *path, int json)
{
    psld_model *model = NULL;
    psld_recipe *recipe = NULL;
    char as_recipe[1024], as_network[1024];
    int exit_code = EXIT_FAILED;
    if (psld_recipe_open(path, &recipe) == PSLD_OK) {
        exit_code = show_recipe(path, recipe, json);
        psld_recipe_free(recipe);
        return exit_code;
    }
    snprintf(as_recipe, sizeof as_recipe, "%s", psld_error_text());
    psld_model_options look;
    psld_model_defaults(&look);
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

static int run(const cli_command *command, int argc, char **argv)
{
    const char *words[16];
    char found[CLI_PATH];
    int json = 0, quick = 0, count, exit_code;
    const cli_option options[] = {
        {"quick", 0, CLI_FLAG, NULL, "data sets: do not decode every image to find broken ones", &quick, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 16) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count != 1) return cli_wrong_usage(command, "expected one file, found %d", count);
    words[0] = cli_find_config(words[0], "", found);
    if (info_is_run(words[0])) return info_run(words[0], json);
    if (cli_ends_in(words[0], ".npy")) return show_array(words[0], json);
    if (cli_ends_in(words[0], ".yaml|.yml")) return show_yaml(words[0], json);
    return info_is_data(words[0]) ? info_show_data(words[0], quick, json) : show_tensors(words[0], json);
}

const cli_command command_info = {
    .name = "info",
    .summary = "says what a file is",
    .usage = "FILE [--quick] [--json]",
    .description =
        "FILE is a recipe, an exact model or the configuration of a network (.yaml; parameters and cost are "
        "shown), an array\n"
        "(.npy), weights: safetensors or a PyTorch checkpoint, whose tensors are listed, or data: a folder or "
        "archive (tar, zip)\n"
        "of images, CIFAR, IDX (MNIST), .npz, toy:NAME.",
    .examples = "  psld info mixture.yaml\n"
                "  psld info configs/cifar10-psld-39m.yaml\n"
                "  psld info model.ckpt --json\n"
                "  psld info photos/ --quick\n",
    .run = run,
};
