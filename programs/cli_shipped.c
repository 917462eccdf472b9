/* What comes with the program: models, configurations, documentation. They are beside the program in a build, and below
 * the same prefix in an installation, also after it was moved. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

typedef struct place {
    const char *variable; /* environment variable: a folder that replaces the two others */
    const char *beside;   /* the program */
    const char *installed;
} place;

static const place models = {"PSLD_MODELS", "models", PSLD_BIN_TO_MODELS};
static const place configs = {"PSLD_CONFIGS", "configs", PSLD_BIN_TO_CONFIGS};
static const place docs = {"PSLD_DOCS", "docs", PSLD_BIN_TO_DOCS};

/* The folder of this program; "." if the system does not tell. */
static void program_folder(char folder[CLI_PATH])
{
    ssize_t length = readlink("/proc/self/exe", folder, CLI_PATH - 1);
    folder[length > 0 ? length : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    else
        strcpy(folder, ".");
}

/* The path of `name` in a place; "" is the folder itself. */
static int find_shipped(const place *where, const char *name, char path[CLI_PATH])
{
    char own[CLI_PATH];
    const char *given = getenv(where->variable), *between = *name ? "/" : "";
    if (given && *given) {
        int length = snprintf(path, CLI_PATH, "%s%s%s", given, between, name);
        return length < CLI_PATH && access(path, R_OK) == 0;
    }
    program_folder(own);
    for (int i = 0; i < 2; i++) {
        int length = snprintf(path, CLI_PATH, "%s/%s%s%s", own, i ? where->installed : where->beside, between, name);
        if (length < CLI_PATH && access(path, R_OK) == 0) return 1;
    }
    return 0;
}

int cli_shipped_model(const char *name, char path[CLI_PATH])
{
    return find_shipped(&models, name, path);
}

int cli_shipped_config(const char *name, char path[CLI_PATH])
{
    return find_shipped(&configs, name, path);
}

/* The path without "..", for messages. */
static int find_shipped_folder(const place *where, char path[CLI_PATH])
{
    char found[CLI_PATH];
    if (!find_shipped(where, "", found)) return 0;
    char *whole = realpath(found, NULL);
    snprintf(path, CLI_PATH, "%s", whole ? whole : found);
    free(whole);
    return 1;
}

int cli_configs_folder(char path[CLI_PATH])
{
    return find_shipped_folder(&configs, path);
}

int cli_docs_folder(char path[CLI_PATH])
{
    return find_shipped_folder(&docs, path);
}

const char *cli_find_config(const char *word, const char *folder, char path[CLI_PATH])
{
    char name[256];
    int is_bare = *word && !strchr(word, ':') && !strchr(word, '=') && word[0] != '/' && word[0] != '.';
    if (!is_bare || access(word, F_OK) == 0) return word;
    const char *given = word;
    if (strncmp(word, "configs/", 8) == 0) word += 8; /* under their names in the documentation */
    if (strncmp(word, folder, strlen(folder)) == 0) folder = "";
    for (int i = 0; i < 2; i++) {
        int length = snprintf(name, sizeof name, "%s%s%s", folder, word, i ? "" : ".yaml");
        if (length < (int)sizeof name && cli_ends_in(name, ".yaml") && cli_shipped_config(name, path)) return path;
    }
    return given;
}

typedef struct search {
    const char *word;
    char nearest[256];
} search;

/* Keeps the more similar of two names: the best so far, and this one. */
static void compare_name(void *user, const char *name, const char *path)
{
    search *s = user;
    const char *both[2] = {s->nearest, name}, *nearest = psld_text_nearest(s->word, both, 2);
    (void)path;
    if (nearest == name) snprintf(s->nearest, sizeof s->nearest, "%s", name);
}

psld_status cli_no_config(const char *word)
{
    search s = {.word = word};
    cli_each_config(compare_name, &s);
    return cli_bad_input("%s: there is no such file, folder or configuration%s%s%s (psld configs lists those that come "
                         "with the program)",
                         word, *s.nearest ? ": did you mean \"" : "", s.nearest, *s.nearest ? "\"?" : "");
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

static int is_yaml(const struct dirent *entry)
{
    return cli_ends_in(entry->d_name, ".yaml");
}

int cli_each_config(void (*each)(void *user, const char *name, const char *path), void *user)
{
    static const char *const parts[] = {"", "sweeps/"};
    char folder[CLI_PATH], path[CLI_PATH + 512], name[512];
    int found = 0;
    if (!cli_configs_folder(folder)) return 0;
    for (int p = 0; p < 2; p++) {
        struct dirent **entries = NULL;
        snprintf(path, sizeof path, "%s/%s", folder, parts[p]);
        int count = scandir(path, &entries, is_yaml, alphasort);
        for (int i = 0; i < count; i++) {
            int length = (int)strlen(entries[i]->d_name) - (int)strlen(".yaml");
            snprintf(path, sizeof path, "%s/%s%s", folder, parts[p], entries[i]->d_name);
            snprintf(name, sizeof name, "%s%.*s", parts[p], length, entries[i]->d_name);
            if (each) each(user, name, path);
            free(entries[i]);
            found++;
        }
        free(entries);
    }
    return found;
}

/* ---- Folders, for help and man pages ----------------------------------------------------------------------------- */

void cli_print_folders(void)
{
    char path[CLI_PATH];
    int configured = cli_configs_folder(path);
    if (configured) printf("\nConfigurations: %s (psld configs lists them)\n", path);
    if (cli_docs_folder(path)) printf("%sDocumentation: %s\n", configured ? "" : "\n", path);
}

/* A man page is written before installation, so it names folders below the prefix. */
void cli_print_man_files(void)
{
    printf(".SH FILES\n.TP\n.I share/psld/configs\nbelow the prefix that the program is installed under: "
           "configurations, which commands also find by their bare names.\n.BR \"psld configs\" \" lists them.\"\n"
           ".TP\n.I share/psld/models\nmodels of digits that come with the program.\n"
           ".TP\n.I share/doc/psld\nthe documentation.\n");
}
