#include "results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *results_load(const char *path, int (*is_whole)(const json_t *row))
{
    json_t *done = json_object();
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    while (file && getline(&line, &room, file) > 0) {
        json_t *row = json_loads(line, 0, NULL);
        const char *key = is_whole(row) ? json_string_value(json_object_get(row, "key")) : NULL;
        if (key) json_object_set(done, key, row);
        json_decref(row);
    }
    free(line);
    if (file) fclose(file);
    return done;
}

psld_status results_append(const char *path, const json_t *row)
{
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "a+") : NULL;
    if (!file) return cli_bad_input("%s: %s", path, strerror(errno));
    int cut_short =
        fseek(file, -1, SEEK_END) == 0 && fgetc(file) != '\n'; /* cut short by a crash: the row begins a new line */
    fseek(file, 0, SEEK_END);
    if (cut_short) fputc('\n', file);
    int failed = json_dumpf(row, file, JSON_COMPACT | JSON_REAL_PRECISION(17)) != 0 || fputc('\n', file) == EOF;
    failed |= fclose(file) != 0;
    return failed ? cli_bad_input("%s: cannot write", path) : PSLD_OK;
}
