/* NumPy arrays in pickles, as plain data: the pickle's calls are interpreted, never executed. */
#ifndef PSLD_IO_PICKLE_NUMPY_H
#define PSLD_IO_PICKLE_NUMPY_H

#include "io/tensors/pickle.h"

typedef struct psld_numpy {
    char type[8]; /* "u1", "f4"; "" if the array is not one of little-endian numbers */
    int rank;
    size_t shape[PSLD_MAX_RANK];
    int fortran;
    const uint8_t *bytes; /* in the pickle; as many bytes as type and shape say */
} psld_numpy;

extern const psld_pickle_rules psld_numpy_rules;

/* The array that a value stands for; NULL for any other value (or NULL), and for an incomplete array. */
const psld_numpy *psld_value_numpy(const psld_value *value);

#endif
