/* What psld info says of networks: in model files, checkpoints, runs and configurations. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "info.h"

enum { CLASS_NAME = 256 };

/* ---- Networks ---------------------------------------------------------------------------------------------------- */

static json_t *describe_classes(const psld_model *model)
{
    json_t *names = json_array();
    char name[CLASS_NAME];
    for (size_t i = 0; i < psld_model_classes(model); i++)
        if (psld_model_class(model, i, name, sizeof name) == PSLD_OK) json_array_append_new(names, json_string(name));
    return names;
}

/* For networks of other projects: their kind, and the noise of their training. */
static void describe_origin(const psld_model *model, json_t *object)
{
    double least, most;
    json_object_set_new(object, "family", json_string(psld_model_family(model)));
    if (psld_model_sigma_range(model, &least, &most) == PSLD_OK)
        json_object_set_new(object, "sigma_range", json_pack("[o, o]", cli_json_number(least), cli_json_number(most)));
    if (psld_model_timesteps(model))
        json_object_set_new(object, "timesteps", json_integer((json_int_t)psld_model_timesteps(model)));
}

json_t *info_describe_network(psld_model *model)
{
    size_t shape[PSLD_MAX_RANK], in, out;
    uint64_t steps = 0, planned = 0;
    const char *process = psld_model_process_name(model);
    int rank = psld_model_shape(model, shape), classifier = psld_model_kind_of(model) == PSLD_CLASSIFIER;
    json_t *object = json_object(), *sizes = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
    json_object_set_new(object, "kind", json_string(classifier ? "classifier" : "score network"));
    json_object_set_new(object, "parameters", json_integer((json_int_t)psld_model_parameters(model)));
    json_object_set_new(object, "flops", cli_json_number(psld_model_flops(model)));
    json_object_set_new(object, "process", json_string(process ? process : "not given"));
    json_object_set_new(object, "shape", sizes);
    psld_model_channels(model, &in, &out);
    json_object_set_new(object, "channels", json_pack("[I, I]", (json_int_t)in, (json_int_t)out));
    json_object_set_new(object, "predicts", json_string(psld_model_predicts(model)));
    describe_origin(model, object);
    if (psld_model_classes(model)) json_object_set_new(object, "classes", describe_classes(model));
    if (psld_model_classes(model) && psld_model_source(model) && !psld_source_needs_label(psld_model_source(model)))
        json_object_set_new(object, "cfg", cli_json_number(psld_model_cfg(model)));
    if (psld_model_trained(model, &steps, &planned) == PSLD_OK && (steps || planned)) {
        json_object_set_new(object, "steps", steps ? json_integer((json_int_t)steps) : json_null());
        json_object_set_new(object, "planned_steps", planned ? json_integer((json_int_t)planned) : json_null());
    }
    if (psld_model_is_tuned(model)) json_object_set_new(object, "tuned", json_string("consistency"));
    if (psld_model_weak_scale(model) != 0)
        json_object_set_new(object, "weak_scale", cli_json_number(psld_model_weak_scale(model)));
    return object;
}

void info_print_network(const char *path, const json_t *network)
{
    size_t i;
    const json_t *size;
    printf("%s: %s, %.2fM parameters, %.2f GFLOP per evaluation, recipe %s, data", path,
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

void info_print_classes(const json_t *names)
{
    enum { SHOWN = 20 };
    size_t count = json_array_size(names);
    printf("  classes       %zu:", count);
    for (size_t i = 0; i < count && i < SHOWN; i++)
        printf("%s %s", i ? "," : "", json_string_value(json_array_get(names, i)));
    printf("%s\n", count > SHOWN ? ", ..." : "");
}

static const char *words_for(const char *predicts)
{
    return strcmp(predicts, "data") == 0 || strcmp(predicts, "sample") == 0 ? "clean data"
           : strcmp(predicts, "v_prediction") == 0                          ? "v, of noise and clean data"
                                                                            : "the noise, eps";
}

static void print_origin(const json_t *network)
{
    const json_t *range = json_object_get(network, "sigma_range"), *most = json_array_get(range, 1);
    long long timesteps = json_integer_value(json_object_get(network, "timesteps"));
    if (!range) return;
    printf("  network of    %s\n", json_string_value(json_object_get(network, "family")));
    printf("  noise         sigma %.4g to ", json_number_value(json_array_get(range, 0)));
    if (json_is_number(most))
        printf("%.4g", json_number_value(most));
    else
        printf("any");
    if (timesteps) printf(", %lld timesteps", timesteps);
    printf("\n");
}

/* The lines after that of info_print_network. */
static void print_details(const json_t *network)
{
    const char *predicts = json_string_value(json_object_get(network, "predicts"));
    const json_t *classes = json_object_get(network, "classes"), *weak = json_object_get(network, "weak_scale");
    const json_t *cfg = json_object_get(network, "cfg");
    long long steps = json_integer_value(json_object_get(network, "steps"));
    long long planned = json_integer_value(json_object_get(network, "planned_steps"));
    print_origin(network);
    if (classes) info_print_classes(classes);
    if (cfg) printf("  guidance      %g by default (--cfg)\n", json_number_value(cfg));
    if (strcmp(predicts, "classes") != 0) printf("  predicts      %s\n", words_for(predicts));
    if (steps && planned)
        printf("  trained       %lld of %lld steps\n", steps, planned);
    else if (steps)
        printf("  trained       %lld steps\n", steps);
    else if (planned)
        printf("  trained       steps were not recorded; its configuration asks for %lld\n", planned);
    if (json_object_get(network, "tuned"))
        printf("  tuned         for sampling with few evaluations: the sampler consistency, 2 by default\n");
    if (weak) printf("  guided        by a weaker network in the same file, scale %g\n", json_number_value(weak));
}

int info_is_pipeline(const char *path)
{
    static const char *const names[] = {"model_index.json", "config.json", "unet/config.json"};
    struct stat about;
    for (int i = 0; i < 3; i++) {
        char file[CLI_PATH];
        if (snprintf(file, sizeof file, "%s/%s", path, names[i]) < (int)sizeof file && stat(file, &about) == 0)
            return 1;
    }
    return 0;
}

int info_show_pipeline(const char *path, int json)
{
    psld_model *model = NULL;
    psld_status status = psld_model_open_any(path, NULL, &model);
    if (status != PSLD_OK) return cli_failed(status);
    json_t *network = info_describe_network(model);
    psld_model_free(model);
    if (json) return cli_json_print(network);
    info_print_network(path, network);
    print_details(network);
    json_decref(network);
    return EXIT_DONE;
}

/* ---- Files of tensors -------------------------------------------------------------------------------------------- */

typedef struct listing {
    const char *path;
    int json, shown;
    json_t *tensors;
    size_t count, numbers;
    char problem[512]; /* why the configuration in the file cannot be used; "": there is none */
} listing;

static void list_tensor(void *user, const char *name, const char *type, int rank, const size_t *shape)
{
    listing *l = user;
    size_t numbers = 1;
    for (int i = 0; i < rank; i++) numbers *= shape[i];
    l->count++;
    l->numbers += numbers;
    if (!l->json && l->shown) {
        printf("  %-48s %-9s [", name, type);
        for (int i = 0; i < rank; i++) printf("%s%zu", i ? ", " : "", shape[i]);
        printf("]\n");
    }
    if (!l->json) return;
    json_t *row = json_object(), *sizes = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
    json_object_set_new(row, "name", json_string(name));
    json_object_set_new(row, "type", json_string(type));
    json_object_set_new(row, "shape", sizes);
    json_array_append_new(l->tensors, row);
}

/* NULL: the file does not tell what its tensors are part of. */
static json_t *network_of(const char *path)
{
    psld_model *model = NULL;
    if (psld_model_open_any(path, NULL, &model) != PSLD_OK) return NULL;
    json_t *network = info_describe_network(model);
    psld_model_free(model);
    return network;
}

const char *info_size(const char *path, char text[INFO_SIZE])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    struct stat about;
    int unit = 0;
    double size = stat(path, &about) == 0 ? (double)about.st_size : 0;
    for (; size >= 1000 && unit < 4; unit++) size /= 1000;
    snprintf(text, INFO_SIZE, unit ? "%.2f %s" : "%.0f %s", size, units[unit]);
    return text;
}

static int print_tensors(listing *l, const json_t *network)
{
    char size[INFO_SIZE];
    if (network) {
        info_print_network(l->path, network);
        print_details(network);
        printf("  file          %s, ", info_size(l->path, size));
    } else {
        printf("%s: weights %s a configuration%s, %s, ", l->path, l->problem[0] ? "with" : "without",
               l->problem[0] ? " that cannot be used" : "", info_size(l->path, size));
    }
    printf("%zu tensors, %.2fM numbers%s\n", l->count, (double)l->numbers / 1e6,
           l->shown ? ":" : " (--tensors lists them)");
    if (l->problem[0]) printf("  configuration %s\n", l->problem);
    psld_status status = l->shown ? psld_tensors_list(l->path, list_tensor, l) : PSLD_OK;
    return status == PSLD_OK ? EXIT_DONE : cli_failed(status);
}

int info_show_tensors(const char *path, int tensors, int json)
{
    listing l = {.path = path, .json = json, .tensors = json_array()};
    psld_status status = psld_tensors_list(path, list_tensor, &l);
    if (status != PSLD_OK) {
        json_decref(l.tensors);
        return cli_failed(status);
    }
    json_t *network = network_of(path);
    if (!network && !strstr(psld_error_text(), "no configuration of its own"))
        snprintf(l.problem, sizeof l.problem, "%s", psld_error_text());
    if (l.problem[0] && info_begins_with(path, "\x80", 1)) {
        json_decref(l.tensors); /* a network that was pickled as an object of an unknown class */
        return cli_failed(PSLD_BAD_INPUT);
    }
    if (!json) {
        l.shown = tensors;
        int exit_code = print_tensors(&l, network);
        json_decref(network);
        json_decref(l.tensors);
        return exit_code;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("tensors"));
    json_object_set_new(object, "numbers", json_integer((json_int_t)l.numbers));
    if (network) json_object_set_new(object, "network", network);
    json_object_set_new(object, "tensors", l.tensors);
    return cli_json_print(object);
}
