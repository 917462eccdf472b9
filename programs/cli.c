/* Messages, names of files, words and numbers of the command line, ranks, JSON. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

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

static _Thread_local char own_error[1024];

psld_status cli_bad_input(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(own_error, sizeof own_error, format, args);
    va_end(args);
    return PSLD_BAD_INPUT;
}

static _Thread_local cli_listener *listening;

void cli_listen(cli_listener *listener)
{
    listening = listener;
    own_error[0] = 0; /* from earlier work of this thread */
    if (listener) listener->message[0] = 0;
}

cli_listener *cli_listener_get(void)
{
    return listening;
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
        cli_complain("interrupted: %s", *kept ? kept : "nothing was written; run the same command to begin again");
        return EXIT_FAILED;
    }
    cli_complain("%s", *own_error ? own_error : psld_error_text());
    return status == PSLD_BAD_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

/* ---- Words, numbers, files --------------------------------------------------------------------------------------- */

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
