#include "names.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Help, man page, completion: views of the option table ------------------------------------------------------- */

static const cli_option common[] = {
    {"threads", 0, CLI_COUNT, "N", "compute with N threads (default: one per processor); results do not depend on it",
     NULL, NULL},
    {"help", 'h', CLI_FLAG, NULL, "this text", NULL, NULL},
    {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
};

static void print_option(const cli_option *o)
{
    char head[96], letter[8] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(head, sizeof head, "%s--%s%s%s", letter, o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    printf("  %-30s %s\n", head, o->help);
}

static void print_command_help(const cli_command *command, const cli_option *options)
{
    printf("psld %s: %s\n\nUsage: psld %s %s\n\n%s\n\nOptions:\n", command->name, command->summary, command->name,
           command->usage, command->description);
    for (const cli_option *o = options; o->name; o++) print_option(o);
    for (const cli_option *o = common; o->name; o++) print_option(o);
    printf("\nExamples:\n%s", command->examples);
    cli_print_folders();
}

/* Prints text for roff: hyphens and backslashes escaped, no line may begin with a dot or quote. */
static void print_roff(const char *text)
{
    int line_start = 1;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) printf("\\&");
        if (*text == '-')
            printf("\\-");
        else if (*text == '\\')
            printf("\\e");
        else
            putchar(*text);
        line_start = *text == '\n';
    }
}

static void print_man_option(const cli_option *o)
{
    printf(".TP\n\\fB");
    if (o->letter) printf("\\-%c\\fR, \\fB", o->letter);
    printf("\\-\\-");
    print_roff(o->name);
    printf("\\fR");
    if (o->argument) {
        printf(" \\fI");
        print_roff(o->argument);
        printf("\\fR");
    }
    printf("\n");
    print_roff(o->help);
    printf("\n");
}

static void print_command_man(const cli_command *command, const cli_option *options)
{
    char upper[32] = "";
    for (size_t i = 0; command->name[i] && i + 1 < sizeof upper; i++)
        upper[i] = (char)toupper((unsigned char)command->name[i]);
    printf(".TH PSLD\\-%s 1 \"\" \"psld %s\" \"User Commands\"\n.SH NAME\npsld\\-%s \\- ", upper, psld_version(),
           command->name);
    print_roff(command->summary);
    printf("\n.SH SYNOPSIS\n.B psld %s\n", command->name);
    print_roff(command->usage);
    printf("\n.SH DESCRIPTION\n");
    for (const char *at = command->description; *at;) { /* paragraphs */
        const char *gap = strstr(at, "\n\n");
        char paragraph[4096];
        snprintf(paragraph, sizeof paragraph, "%.*s", gap ? (int)(gap - at) : (int)strlen(at), at);
        print_roff(paragraph);
        printf("\n.PP\n");
        at = gap ? gap + 2 : at + strlen(at);
    }
    printf(".SH OPTIONS\n");
    for (const cli_option *o = options; o->name; o++) print_man_option(o);
    for (const cli_option *o = common; o->name; o++) print_man_option(o);
    printf(".SH EXAMPLES\n.nf\n");
    print_roff(command->examples);
    printf(".fi\n");
    cli_print_man_files();
    printf(".SH SEE ALSO\n.BR psld (1)\n");
}

static void print_option_names(const cli_option *options)
{
    for (const cli_option *o = options; o->name; o++) printf("--%s\n", o->name);
    for (const cli_option *o = common; o->name; o++) printf("--%s\n", o->name);
}

static const cli_option *find_option(const cli_option *options, const char *word, size_t length)
{
    for (const cli_option *o = options; o->name; o++)
        if (strlen(o->name) == length && strncmp(o->name, word, length) == 0) return o;
    return NULL;
}

static const cli_option *find_letter(const cli_option *options, char letter)
{
    for (const cli_option *o = options; o->name; o++)
        if (o->letter == letter) return o;
    return NULL;
}

/* What an option may be beside other things, which its table cannot say. */
static const struct {
    const char *option;
    names_fn name;
} suggestions[] = {{"grid", names_grid}, {"process", names_preset}, {"metric", names_metric}};

static void print_choices(const cli_option *options, const char *word)
{
    const cli_option *o = strncmp(word, "--", 2) == 0 ? find_option(options, word + 2, strlen(word + 2)) : NULL;
    for (const char *c = o && o->choices ? o->choices : ""; *c; c++) putchar(*c == '|' ? '\n' : *c);
    putchar('\n');
    for (size_t i = 0; o && i < sizeof suggestions / sizeof *suggestions; i++)
        for (int j = 0; strcmp(o->name, suggestions[i].option) == 0 && suggestions[i].name(j); j++)
            puts(suggestions[i].name(j));
}

/* ---- Parsing ----------------------------------------------------------------------------------------------------- */

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

/* Returns what was expected, or NULL when the value was taken. */
static const char *set_value(const cli_option *o, const char *text)
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

/* The key that an option of psld train was perhaps meant to be: --steps is train.steps=. */
static int find_key(const char *word, char text[CLI_MEANT])
{
    psld_key key;
    for (int i = 0; psld_training_key_info(i, &key); i++) {
        const char *dot = strchr(key.name, '.'), *last = dot && strncmp(key.name, "process.", 8) ? dot + 1 : key.name;
        if (strcmp(word, key.name) != 0 && strcmp(word, last) != 0) continue;
        snprintf(text, CLI_MEANT, ": did you mean %s=...?", key.name);
        return 1;
    }
    return 0;
}

static void complain_of_option(const cli_command *command, const cli_option *options, const char *word, size_t length)
{
    const char *names[MAX_OPTIONS];
    char given[64], meant[CLI_MEANT] = "";
    size_t count = 0;
    for (const cli_option *o = options; o->name && count < MAX_OPTIONS; o++) names[count++] = o->name;
    for (const cli_option *o = common; o->name && count < MAX_OPTIONS; o++) names[count++] = o->name;
    snprintf(given, sizeof given, "%.*s", length < sizeof given ? (int)length : 0, word + 2);
    const char *near = length ? psld_text_nearest(given, names, count) : NULL;
    if (strcmp(command->name, "train") != 0 || !find_key(given, meant))
        snprintf(meant, sizeof meant, near ? ": did you mean --%s?" : "%s", near ? near : "");
    cli_wrong_usage(command, "unknown option %s%s", word, meant);
}

static void meant_choice(const char *text, const char *choices, char meant[CLI_MEANT])
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
    const cli_option *o = is_long ? find_option(options, word + 2, length) : find_letter(options, word[1]);
    if (!o) {
        complain_of_option(command, options, word, is_long ? length : 0);
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
    const char *expected = set_value(o, text);
    if (!expected) return used;
    char meant[CLI_MEANT] = "";
    if (expected == o->choices) meant_choice(text, o->choices, meant);
    cli_wrong_usage(command, "--%s: expected %s, found \"%s\"%s", o->name, expected, text, meant);
    return 0;
}

/* The views of the table; 1 when argv asked for one. */
static int print_request(const cli_command *command, const cli_option *options, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_command_help(command, options), 1;
    if (argc == 1 && strcmp(argv[0], "--man") == 0) return print_command_man(command, options), 1;
    if (argc == 1 && strcmp(argv[0], "--options") == 0) return print_option_names(options), 1;
    if (argc == 2 && strcmp(argv[0], "--choices") == 0) return print_choices(options, argv[1]), 1;
    if (argc == 2 && strcmp(argv[0], "--words") == 0) {
        if (command->complete) command->complete(argv[1]);
        return 1;
    }
    return 0;
}

/* Takes --threads out of argv for every command alike. Returns 0 for wrong usage. */
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
    if (print_request(command, options, argc, argv)) return 0;
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

/* ---- Messages, files, words -------------------------------------------------------------------------------------- */

int cli_wrong_usage(const cli_command *command, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    cli_complain("%s: %s (psld %s --help)", command->name, message, command->name);
    return EXIT_USAGE;
}

static char own_error[1024];

psld_status cli_bad_input(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(own_error, sizeof own_error, format, args);
    va_end(args);
    return PSLD_BAD_INPUT;
}

static char kept[1024];

void cli_kept(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(kept, sizeof kept, format, args);
    va_end(args);
}

int cli_failed(psld_status status)
{
    if (status == PSLD_CANCELLED) {
        cli_complain("interrupted: %s", *kept ? kept : "nothing was written; the same command begins again");
        return EXIT_FAILED;
    }
    cli_complain("%s", *own_error ? own_error : psld_error_text());
    return status == PSLD_BAD_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

const char *cli_meant(const char *word, const char *const *words, size_t count, char text[CLI_MEANT])
{
    const char *near = psld_text_nearest(word, words, count);
    text[0] = 0;
    if (near) snprintf(text, CLI_MEANT, ": did you mean \"%s\"?", near);
    return text;
}

int cli_ends_in(const char *path, const char *endings)
{
    for (const char *e = endings; e; e = strchr(e, '|') ? strchr(e, '|') + 1 : NULL) {
        size_t length = strcspn(e, "|"), whole = strlen(path);
        if (whole > length && strncmp(path + whole - length, e, length) == 0) return 1;
    }
    return 0;
}

int cli_output_possible(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    struct stat about;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int found = stat(folder, &about) == 0;
    if (found && !S_ISDIR(about.st_mode)) found = 0, errno = ENOTDIR;
    if (found && access(folder, W_OK) == 0) {
        if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) return 1;
        errno = EISDIR;
    }
    cli_complain("%s: cannot write: %s", path, strerror(errno));
    return 0;
}

char *cli_join(const char *const *words, int count)
{
    size_t size = 1;
    for (int i = 0; i < count; i++) size += strlen(words[i]) + 1;
    char *joined = calloc(size, 1);
    for (int i = 0; joined && i < count; i++) {
        if (i) strcat(joined, " ");
        strcat(joined, words[i]);
    }
    return joined;
}

int cli_numbers(const char *text, double *numbers, int room)
{
    int count = 0;
    for (;;) {
        char *end;
        if (count == room) return -1;
        numbers[count++] = strtod(text, &end);
        if (end == text) return -1;
        end += strspn(end, " ");
        if (*end == 0) return count;
        if (*end != ',') return -1;
        text = end + 1;
    }
}

/* ---- Progress ---------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *cli_duration(double seconds, char text[CLI_DURATION])
{
    static const struct unit {
        const char *large, *small;
        double size, part;
    } units[] = {{"d", "h", 86400, 3600}, {"h", "min", 3600, 60}, {"min", "s", 60, 1}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const struct unit *u = &units[i];
        if (seconds < u->size) continue;
        double large = floor(seconds / u->size);
        snprintf(text, CLI_DURATION, "%.0f %s %.0f %s", large, u->large, floor((seconds - large * u->size) / u->part),
                 u->small);
        return text;
    }
    snprintf(text, CLI_DURATION, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
    return text;
}

void cli_progress_begin(cli_progress *progress, const char *what)
{
    cli_signals_catch(note_interrupt, (int)(SA_RESTART | SA_RESETHAND), progress->before);
    progress->what = what;
    progress->began = cli_seconds();
    progress->shown = 0;
}

int cli_progress_report(void *user, uint64_t done, uint64_t total)
{
    cli_progress *progress = user;
    char text[CLI_DURATION], what[128], left[CLI_DURATION + 8] = "";
    double now = cli_seconds(), part = total ? (double)done / (double)total : 0;
    if (interrupted) return 1;
    if (!cli_terminal() || now - progress->shown < 0.1) return 0;
    progress->shown = now;
    snprintf(what, sizeof what, "%.100s %3.0f %%", progress->what, 100 * part);
    if (part > 0 && now - progress->began > 1)
        snprintf(left, sizeof left, "%s left", cli_duration((now - progress->began) * (1 - part) / part, text));
    const char *const pieces[] = {what, left};
    cli_line_show(part, pieces, 2);
    return 0;
}

void cli_progress_end(cli_progress *progress)
{
    cli_signals_restore(progress->before);
    cli_line_clear();
}

/* ---- Ranks ------------------------------------------------------------------------------------------------------- */

int cli_ranks_begin(int *exit_code)
{
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
    int launched = 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) launched |= getenv(signs[i]) != NULL;
    psld_status status = launched ? psld_ranks_begin() : PSLD_OK;
    if (status != PSLD_OK) *exit_code = cli_failed(status);
    return status == PSLD_OK;
}

int cli_ranks_end(int exit_code)
{
    psld_ranks_end(exit_code > 128 ? 0 : exit_code); /* a signal has reached them all */
    return exit_code;
}

/* ---- Models ------------------------------------------------------------------------------------------------------ */

void cli_model_settle(cli_model *m)
{
    m->options.raw = m->use && strcmp(m->use, "raw") == 0;
    m->options.weak = m->weak && strcmp(m->weak, "none") == 0 ? "" : m->weak;
}

psld_status cli_model_open(cli_model *m, const char *const *words, int count, psld_model **model)
{
    char found[CLI_PATH];
    const char *name = cli_find_config(words[0], "", found);
    cli_model_settle(m);
    m->options.overrides = words + 1;
    m->options.override_count = (size_t)(count - 1);
    for (int i = 1; i < count; i++)
        if (!strchr(words[i], '=')) return cli_bad_input("%s: expected an override, key=value", words[i]);
    if (!cli_ends_in(name, ".yaml|.yml")) return psld_model_open(name, &m->options, model);
    if (psld_model_create(name, &m->options, 0, model) == PSLD_OK) return PSLD_OK;
    char as_config[1024];
    snprintf(as_config, sizeof as_config, "%s", psld_error_text());
    psld_status status = psld_model_open(name, &m->options, model);
    return status == PSLD_OK || strstr(psld_error_text(), "mixture") == NULL ? status : cli_bad_input("%s", as_config);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

json_t *cli_json_number(double number)
{
    json_t *value = json_real(number);
    return value ? value : json_null();
}

json_t *cli_json_numbers(const double *numbers, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, cli_json_number(numbers[i]));
    return list;
}

json_t *cli_json_matrix(const double *numbers, size_t rows, size_t columns)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rows; i++) json_array_append_new(list, cli_json_numbers(numbers + i * columns, columns));
    return list;
}

int cli_json_print(json_t *object)
{
    int failed =
        json_dumpf(object, stdout, JSON_REAL_PRECISION(17)) != 0 || putchar('\n') == EOF || fflush(stdout) != 0;
    json_decref(object);
    return failed ? cli_output_failed() : EXIT_DONE;
}
