/* psld configs: the configurations that come with the program. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { COMMENT = 600 };

/* The first comment of a file, up to the first sentence that ends at the end of a line, as one line. */
static void read_comment(const char *path, char text[COMMENT])
{
    char line[512];
    size_t used = 0;
    FILE *file = fopen(path, "r");
    text[0] = 0;
    while (file && fgets(line, sizeof line, file) && line[0] == '#') {
        const char *words = line + 1 + strspn(line + 1, " ");
        if (strncmp(line, "#     ", 6) == 0) break; /* commands */
        int length = (int)strcspn(words, "\n");
        used += (size_t)snprintf(text + used, COMMENT - used, "%s%.*s", used ? " " : "", length, words);
        if (used >= COMMENT || (length > 0 && strchr(".:", words[length - 1]))) break;
    }
    if (file) fclose(file);
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c)) *c = '?';
    size_t end = strlen(text);
    if (end && strchr(".:", text[end - 1])) text[end - 1] = 0;
}

/* Parameters, recipe and shape of a network; returns 0 if the file is not a network, such as a sweep. */
static int read_config(const char *path, json_t *row)
{
    psld_model_options options = PSLD_MODEL_DEFAULTS;
    psld_model *model;
    size_t shape[PSLD_MAX_RANK];
    options.blank = 1;
    if (psld_model_create(path, &options, 0, &model) != PSLD_OK) return 0;
    json_t *sizes = json_array();
    int rank = psld_model_shape(model, shape);
    for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
    json_object_set_new(row, "parameters", json_integer((json_int_t)psld_model_parameters(model)));
    json_object_set_new(row, "recipe", json_string(psld_model_process_name(model)));
    json_object_set_new(row, "classifier", json_boolean(psld_model_kind_of(model) == PSLD_CLASSIFIER));
    json_object_set_new(row, "shape", sizes);
    psld_model_free(model);
    return 1;
}

static void collect_configs(void *user, const char *name, const char *path)
{
    char comment[COMMENT];
    json_t *row = json_object();
    read_comment(path, comment);
    json_object_set_new(row, "name", json_string(name));
    json_object_set_new(row, "kind", json_string(read_config(path, row) ? "network" : "sweep"));
    json_object_set_new(row, "about", json_string(comment));
    json_object_set_new(row, "path", json_string(path));
    json_array_append_new(user, row);
}

static void print_config_row(const json_t *row)
{
    char size[32] = "-", data[64] = "";
    const json_t *parameters = json_object_get(row, "parameters"), *shape = json_object_get(row, "shape");
    if (parameters) snprintf(size, sizeof size, "%.2fM", (double)json_integer_value(parameters) / 1e6);
    for (size_t i = 0; i < json_array_size(shape); i++) {
        size_t used = strlen(data);
        snprintf(data + used, sizeof data - used, "%s%lld", i ? "x" : "",
                 (long long)json_integer_value(json_array_get(shape, i)));
    }
    printf("%-28s %9s  %-9s %-6s %s\n", json_string_value(json_object_get(row, "name")), size, data,
           parameters ? json_string_value(json_object_get(row, "recipe")) : "sweep",
           json_string_value(json_object_get(row, "about")));
}

/* The text of one of them, as a start for one's own. */
static int show_config(const char *name)
{
    char path[CLI_PATH], buffer[4096];
    FILE *file = NULL;
    for (int i = 0; !file && i < 2; i++) {
        const char *found = cli_find_config(name, i ? "sweeps/" : "", path);
        if (found == path) file = fopen(found, "r");
    }
    if (!file) {
        cli_complain("%s: no such configuration; psld configs lists them", name);
        return EXIT_FAILED;
    }
    for (size_t size; (size = fread(buffer, 1, sizeof buffer, file)) > 0;) fwrite(buffer, 1, size, stdout);
    fclose(file);
    return EXIT_DONE;
}

static int configs_run(const cli_command *command, int argc, char **argv)
{
    const char *words[16];
    char folder[CLI_PATH];
    int json = 0, count, exit_code;
    const cli_option options[] = {
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 16) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count > 1) return cli_wrong_usage(command, "expected one name, found %d", count);
    if (count == 1) return show_config(words[0]);
    json_t *rows = json_array();
    if (!cli_each_config(collect_configs, rows)) {
        json_decref(rows);
        cli_complain(
            "no configurations found beside the program or in its installation; set PSLD_CONFIGS to their folder");
        return EXIT_FAILED;
    }
    cli_configs_folder(folder);
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "folder", json_string(folder));
        json_object_set_new(object, "configs", rows);
        return cli_json_print(object);
    }
    printf("In %s:\n\n", folder);
    for (size_t i = 0; i < json_array_size(rows); i++) print_config_row(json_array_get(rows, i));
    printf("\npsld train NAME --data DATA -o RUN trains one; psld configs NAME prints it, to change.\n");
    json_decref(rows);
    return EXIT_DONE;
}

static void print_config_name(void *user, const char *name, const char *path)
{
    (void)user, (void)path;
    puts(name);
}

static void configs_complete(const char *word)
{
    (void)word;
    cli_each_config(print_config_name, NULL);
}

const cli_command command_configs = {
    .name = "configs",
    .summary = "lists the configurations that come with the program",
    .usage = "[NAME] [--json]",
    .description =
        "Lists networks with their parameters, data, recipe and purpose, and then sweeps. psld train, info, bench and "
        "sweep accept\n"
        "their bare names, unless a file has that name. With NAME the text of that configuration is printed.",
    .examples = "  psld configs\n"
                "  psld configs digits >mine.yaml\n"
                "  psld train cifar10-psld-39m --data cifar-10-binary.tar.gz -o run\n",
    .run = configs_run,
    .complete = configs_complete,
};
