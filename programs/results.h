/* Results that a command keeps in its folder, one JSON object a line, found again by their key. */
#ifndef PSLD_PROGRAMS_RESULTS_H
#define PSLD_PROGRAMS_RESULTS_H

#include "cli.h"

/* An object of the rows of a file under their keys. Skips lines cut short by a crash and rows of another form
 * (`is_whole` tells). Without a file there are no rows. */
json_t *results_load(const char *path, int (*is_whole)(const json_t *row));
psld_status results_append(const char *path, const json_t *row);

#endif
