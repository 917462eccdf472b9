/* Models as the command line names them. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

void cli_model_settle(cli_model *m)
{
    m->options.raw = m->use && strcmp(m->use, "raw") == 0;
    m->options.weak = m->weak && strcmp(m->weak, "none") == 0 ? "" : m->weak;
    m->options.device = cli_device(m->options.device);
}

psld_status cli_model_open(cli_model *m, const char *const *words, int count, psld_model **model)
{
    char found[CLI_PATH];
    const char *name = cli_find_config(words[0], "", found);
    cli_model_settle(m);
    m->options.overrides = words + 1;
    m->options.override_count = count - 1;
    for (int i = 1; i < count; i++)
        if (!strchr(words[i], '=')) return cli_bad_input("%s: expected an override, key=value", words[i]);
    if (!cli_ends_in(name, ".yaml|.yml")) return psld_model_open(name, &m->options, model);
    if (psld_model_create(name, &m->options, 0, model) == PSLD_OK) return PSLD_OK;
    char as_config[1024];
    snprintf(as_config, sizeof as_config, "%s", psld_error_text());
    psld_status status = psld_model_open(name, &m->options, model);
    return status == PSLD_OK || strstr(psld_error_text(), "mixture") == NULL ? status : cli_bad_input("%s", as_config);
}
