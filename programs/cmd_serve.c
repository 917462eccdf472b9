/* psld serve: the program in a browser. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#ifdef PSLD_HTTP
#include "serve.h"

static int serve_run(const cli_command *command, int argc, char **argv)
{
    const char *words[256], *port = "8477", *device = NULL;
    long jobs = 1;
    int count, exit_code;
    serve_options o = {.folder = ".", .host = "127.0.0.1"};
    const cli_option options[] = {
        {"port", 0, CLI_TEXT, "P", "port to listen on (default 8477; 0: any that is free)", &port, NULL},
        {"host", 0, CLI_TEXT, "H", "address to listen on (default 127.0.0.1: this machine alone)", &o.host, NULL},
        {"open", 0, CLI_FLAG, NULL, "open the page in the browser", &o.open, NULL},
        {"jobs", 0, CLI_COUNT, "N", "jobs that compute at once (default 1)", &jobs, NULL},
        CLI_DEVICE_OPTION(device),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 250) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count > 1) return cli_wrong_usage(command, "expected one folder, found %d", count);
    if (count) o.folder = words[0];
    o.port = atoi(port);
    if (strspn(port, "0123456789") != strlen(port) || !*port || strlen(port) > 5 || o.port > 65535)
        return cli_wrong_usage(command, "--port: expected a whole number from 0 to 65535, found \"%s\"", port);
    if (jobs > 16) return cli_wrong_usage(command, "--jobs: expected 1 to 16, found %ld", jobs);
    o.jobs = (int)jobs;
    o.device = device;
    psld_status status = device ? psld_device_try(device) : PSLD_OK;
    if (status != PSLD_OK) return cli_failed(status);
    if (device) cli_device_prefer(device);
    return serve_until_signal(&o);
}
#else
static int serve_run(const cli_command *command, int argc, char **argv)
{
    const cli_option options[] = {{NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL}};
    const char *words[256];
    int count, exit_code;
    if (argc == 1 && !cli_parse(command, options, argc, argv, words, &count, &exit_code) && exit_code == EXIT_DONE)
        return exit_code;
    cli_complain(
        "serve: this program was built without libmicrohttpd (Debian: libmicrohttpd-dev); build it again with it");
    return EXIT_FAILED;
}
#endif

const cli_command command_serve = {
    .name = "serve",
    .summary = "shows the program in a browser",
    .usage = "[FOLDER] [options]",
    .description =
        "Serves a page on which processes are designed and compared, samples drawn, pictures completed and restored, "
        "and "
        "runs\n"
        "started and watched. FOLDER (default: the current one) holds the models, runs, recipes and pictures that it "
        "may "
        "use and\n"
        "write to; nothing outside is changed. The printed address contains a token, which every request must "
        "have.\n"
        "\n"
        "The page uses an interface of JSON over HTTP, which can be used with curl, too: docs/reference/serve.md.",
    .examples = "  psld serve --open\n"
                "  psld serve experiments --port 9000\n",
    .run = serve_run,
};
