/* A data set, inside the library. */
#ifndef PSLD_DATA_DATA_H
#define PSLD_DATA_DATA_H

#include "base/status.h"
#include "psld_data.h"

/* Numbers in an item. */
size_t psld_data_dim(const psld_data *data);

/* Like psld_data_read, but mirrors items whose flip [n] is 1. `flip` may be NULL. */
psld_status psld_data_fetch(psld_data *data, size_t n, const uint64_t *index, const uint8_t *flip, float *x,
                            int32_t *label);

/* Tests: for how many seconds data that cannot be read are tried again, before that is a failure. */
void psld_data_set_patience(double seconds);

/* Whether any image read so far had another size than the set's, or lost its colour. */
int psld_data_fitted(const psld_data *data);

/* Whether the first reading of an item is so slow that it should be done ahead. */
int psld_data_is_costly(const psld_data *data);
/* Decodes an item, so that reading it later is fast; `pixels` is memory for one item. May run in any thread. A failure
 * is reported when the item is read. */
void psld_data_prepare(psld_data *data, uint64_t index, uint8_t *pixels);
/* Whether psld_data_prepare has been done for an item. */
int psld_data_is_prepared(const psld_data *data, uint64_t index);

#endif
