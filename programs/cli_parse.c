/* Parsing of the command line by the option tables. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_options.h"

const cli_option *cli_find_option(const cli_option *options, const char *word, size_t length)
{
    for (const cli_option *o = options; o->name; o++)
        if (strlen(o->name) == length && strncmp(o->name, word, length) == 0) return o;
    return NULL;
}

static const cli_option *find_option_letter(const cli_option *options, char letter)
{
    for (const cli_option *o = options; o->name; o++)
        if (o->letter == letter) return o;
    return NULL;
}

static int is_choice(const char *text, const char *choices)
{
    size_t length = strlen(text);
    for (const char *c = choices; c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
        if (strncmp(c, text, length) == 0 && (c[length] == '|' || c[length] == 0)) return 1;
    return 0;
}

static int parse_number(const char *text, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return *text && !isspace((unsigned char)*text) && *end == 0 && *number > 0;
}

static int parse_seed(const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    return isdigit((unsigned char)*text) && *end == 0 && errno == 0;
}

int cli_int(long count)
{
    return count < INT_MAX ? (int)count : INT_MAX;
}

static int parse_count(const char *text, long *count)
{
    char *end;
    errno = 0;
    *count = strtol(text, &end, 10);
    return *text && *end == 0 && errno == 0 && *count >= 1;
}

/* "90s", "30m", "2h", "1.5d" as seconds. */
static int parse_time(const char *text, double *seconds)
{
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number) || number <= 0 || !*end || end[1]) return 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (*end == units[i].letter) {
            *seconds = number * units[i].seconds;
            return 1;
        }
    return 0;
}

/* Returns what was expected, or NULL if the value was accepted. */
static const char *set_option(const cli_option *o, const char *text)
{
    switch (o->kind) {
    case CLI_FLAG:
        *(int *)o->value = 1;
        return NULL;
    case CLI_CLEAR:
        *(int *)o->value = 0;
        return NULL;
    case CLI_TEXT:
    case CLI_FILE:
        if (o->choices && !is_choice(text, o->choices)) return o->choices;
        *(const char **)o->value = text;
        return NULL;
    case CLI_COUNT:
        return parse_count(text, o->value) ? NULL : "a whole number of at least 1";
    case CLI_SEED:
        return parse_seed(text, o->value) ? NULL : "a whole number from 0 to 18446744073709551615";
    case CLI_TIME:
        return parse_time(text, o->value) ? NULL : "a time such as 90s, 30m, 2h or 1d";
    case CLI_NUMBER:
        return parse_number(text, o->value) ? NULL : "a positive number";
    }
    return NULL;
}

enum { MAX_OPTIONS = 128 };

/* The key that was probably meant by an option of psld train: --steps is train.steps=. */
static int suggest_training_key(const char *word, char text[CLI_MEANT])
{
    psld_key key = PSLD_KEY_EMPTY;
    for (int i = 0; psld_training_key_info(i, &key); i++) {
        const char *dot = strchr(key.name, '.'), *last = dot && strncmp(key.name, "process.", 8) ? dot + 1 : key.name;
        if (strcmp(word, key.name) != 0 && strcmp(word, last) != 0) continue;
        snprintf(text, CLI_MEANT, ": did you mean %s=...?", key.name);
        return 1;
    }
    return 0;
}

static void refuse_option(const cli_command *command, const cli_option *options, const char *word, size_t length)
{
    const char *names[MAX_OPTIONS];
    char given[64], meant[CLI_MEANT] = "";
    size_t count = 0;
    for (const cli_option *o = options; o->name && count < MAX_OPTIONS; o++) names[count++] = o->name;
    for (const cli_option *o = cli_common_options; o->name && count < MAX_OPTIONS; o++) names[count++] = o->name;
    snprintf(given, sizeof given, "%.*s", length < sizeof given ? (int)length : 0, word + 2);
    const char *near = length ? psld_text_nearest(given, names, count) : NULL;
    if (strcmp(command->name, "train") != 0 || !suggest_training_key(given, meant))
        snprintf(meant, sizeof meant, near ? ": did you mean --%s?" : "%s", near ? near : "");
    cli_wrong_usage(command, "unknown option %s%s", word, meant);
}

static void suggest_choice(const char *text, const char *choices, char meant[CLI_MEANT])
{
    enum { MOST = 64, LONGEST = 32 };
    char words[MOST][LONGEST];
    const char *list[MOST];
    size_t count = 0;
    for (const char *c = choices; c && count < MOST; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL) {
        snprintf(words[count], LONGEST, "%.*s", (int)strcspn(c, "|"), c);
        list[count] = words[count];
        count++;
    }
    cli_meant(text, list, count, meant);
}

/* Handles one option word and its value; returns how many words it used, 0 for wrong usage. */
static int parse_option(const cli_command *command, const cli_option *options, int argc, char **argv, int i)
{
    const char *word = argv[i], *equals = strchr(word, '=');
    int is_long = word[1] == '-';
    size_t length = equals ? (size_t)(equals - word) - 2 : strlen(word) - 2;
    const cli_option *o = is_long ? cli_find_option(options, word + 2, length) : find_option_letter(options, word[1]);
    if (!o) {
        refuse_option(command, options, word, is_long ? length : 0);
        return 0;
    }
    const char *text = is_long ? (equals ? equals + 1 : NULL) : (word[2] ? word + 2 : NULL);
    int takes_value = o->kind != CLI_FLAG && o->kind != CLI_CLEAR, used = 1;
    if (!takes_value && text) {
        cli_wrong_usage(command, "--%s takes no value, found \"%s\"", o->name, text);
        return 0;
    }
    if (takes_value && !text) {
        if (i + 1 >= argc) {
            cli_wrong_usage(command, "--%s needs a value: %s", o->name, o->argument);
            return 0;
        }
        text = argv[i + 1];
        used = 2;
    }
    const char *expected = set_option(o, text);
    if (!expected) return used;
    char meant[CLI_MEANT] = "";
    if (expected == o->choices) suggest_choice(text, o->choices, meant);
    cli_wrong_usage(command, "--%s: expected %s, found \"%s\"%s", o->name, expected, text, meant);
    return 0;
}

/* Removes --threads from argv, for all commands. Returns 0 for wrong usage. */
static int set_thread_count(const cli_command *command, int *argc, char **argv)
{
    int kept = 0, i = 0;
    for (; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--threads", 9) != 0 || (argv[i][9] && argv[i][9] != '=')) {
            argv[kept++] = argv[i];
            continue;
        }
        long count = 0;
        const char *text = argv[i][9] ? argv[i] + 10 : i + 1 < *argc ? argv[++i] : "";
        if (!parse_count(text, &count) || psld_threads_set(count > 10000 ? 10000 : (int)count) != PSLD_OK) {
            cli_wrong_usage(command, "--threads: expected a whole number from 1 to 256, found \"%s\"", text);
            return 0;
        }
    }
    while (i < *argc) argv[kept++] = argv[i++];
    *argc = kept;
    return 1;
}

int cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, const char **rest,
              int *rest_count, int *exit_code)
{
    *exit_code = EXIT_DONE;
    *rest_count = 0;
    if (cli_print_request(command, options, argc, argv)) return 0;
    *exit_code = EXIT_USAGE;
    if (!set_thread_count(command, &argc, argv)) return 0;
    int options_end = 0;
    for (int i = 0; i < argc;) {
        if (!options_end && strcmp(argv[i], "--") == 0) {
            options_end = 1;
            i++;
        } else if (!options_end && argv[i][0] == '-' && argv[i][1]) {
            int used = parse_option(command, options, argc, argv, i);
            if (!used) return 0;
            i += used;
        } else {
            rest[(*rest_count)++] = argv[i++];
        }
    }
    *exit_code = EXIT_DONE;
    return 1;
}
