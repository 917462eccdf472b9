/* Help, man pages and completion: all are made from the option tables. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli_options.h"
#include "names.h"

const cli_option cli_common_options[] = {
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
    for (const cli_option *o = cli_common_options; o->name; o++) print_option(o);
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
    for (const cli_option *o = cli_common_options; o->name; o++) print_man_option(o);
    printf(".SH EXAMPLES\n.nf\n");
    print_roff(command->examples);
    printf(".fi\n");
    cli_print_man_files();
    printf(".SH SEE ALSO\n.BR psld (1)\n");
}

static void print_option_names(const cli_option *options)
{
    for (const cli_option *o = options; o->name; o++) printf("--%s\n", o->name);
    for (const cli_option *o = cli_common_options; o->name; o++) printf("--%s\n", o->name);
}

/* Choices of options that also accept other values, which the table cannot express. */
static const struct {
    const char *option;
    names_fn name;
} suggestions[] = {{"grid", names_grid}, {"process", names_preset}, {"metric", names_metric}};

static void print_devices(void)
{
    size_t count = psld_device_count();
    puts("gpu");
    for (size_t i = 0; i < count; i++) {
        psld_device_info info = PSLD_DEVICE_INFO_EMPTY;
        if (psld_device_describe(i, &info) == PSLD_OK) puts(info.id);
    }
}

static void print_option_choices(const cli_option *options, const char *word)
{
    const cli_option *o = strncmp(word, "--", 2) == 0 ? cli_find_option(options, word + 2, strlen(word + 2)) : NULL;
    if (o && strcmp(o->name, "device") == 0) print_devices();
    for (const char *c = o && o->choices ? o->choices : ""; *c; c++) putchar(*c == '|' ? '\n' : *c);
    putchar('\n');
    for (size_t i = 0; o && i < sizeof suggestions / sizeof *suggestions; i++)
        for (int j = 0; strcmp(o->name, suggestions[i].option) == 0 && suggestions[i].name(j); j++)
            puts(suggestions[i].name(j));
}

int cli_print_request(const cli_command *command, const cli_option *options, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_command_help(command, options), 1;
    if (argc == 1 && strcmp(argv[0], "--man") == 0) return print_command_man(command, options), 1;
    if (argc == 1 && strcmp(argv[0], "--options") == 0) return print_option_names(options), 1;
    if (argc == 2 && strcmp(argv[0], "--choices") == 0) return print_option_choices(options, argv[1]), 1;
    if (argc == 2 && strcmp(argv[0], "--words") == 0) {
        if (command->complete) command->complete(argv[1]);
        return 1;
    }
    return 0;
}
