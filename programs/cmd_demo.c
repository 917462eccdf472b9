#include <stdio.h>
#include "cli.h"
static int run(const cli_command *command, int argc, char **argv) { (void)command; (void)argc; (void)argv; return 0; }
const cli_command command_demo = {.name = "demo", .summary = "x", .usage="", .description="d", .examples="", .run = run};
