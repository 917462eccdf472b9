/* Rows of features, float or double, as metrics read them. */
#ifndef PSLD_EVAL_ROWS_H
#define PSLD_EVAL_ROWS_H

#include "base/status.h"

/* PSLD_OK when it is [n, d] of floats, d > 0, all of them finite; `what` names it in messages. */
psld_status psld_rows_check(const psld_array *rows, const char *what);
/* The same for two sets that must have the same width and at least `need` rows each. */
psld_status psld_rows_check_pair(const psld_array *a, const psld_array *b, const char *metric, size_t need);

/* Rows index[0], index[1], ... (NULL: first, first + 1, ...) as doubles: [count][d]. */
void psld_rows_get(const psld_array *rows, const uint32_t *index, size_t first, size_t count, double *out);

#endif
