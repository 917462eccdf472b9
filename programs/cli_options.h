/* The option tables, shared by parsing (cli_parse.c) and help (cli_help.c). */
#ifndef PSLD_PROGRAMS_CLI_OPTIONS_H
#define PSLD_PROGRAMS_CLI_OPTIONS_H

#include "cli.h"

/* Options of every command. */
extern const cli_option cli_common_options[];
/* The option whose long name is the first `length` characters of `word`, or NULL. */
const cli_option *cli_find_option(const cli_option *options, const char *word, size_t length);
/* Prints help, the man page or completions if argv asks for one of them. Returns whether it did. */
int cli_print_request(const cli_command *command, const cli_option *options, int argc, char **argv);

#endif
