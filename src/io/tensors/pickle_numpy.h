/* NumPy arrays in pickles, as plain data: what an array is made with is looked at, nothing is called. */
#ifndef PSLD_IO_PICKLE_NUMPY_H
#define PSLD_IO_PICKLE_NUMPY_H

#include "io/tensors/pickle.h"

typedef struct psld_numpy {
    char type[8]; /* "u1", "f4"; "" when the array is not one of numbers in little-endian order */
    int rank;
    size_t shape[PSLD_MAX_RANK];
    int fortran;
    const uint8_t *bytes; /* in the pickle; as many as type and shape say */
} psld_numpy;

extern const psld_pickle_rules psld_numpy_rules;

/* The array that a value is; NULL for another value (or NULL), and for an array that was not completed. */
const psld_numpy *psld_value_numpy(const psld_value *value);

#endif
