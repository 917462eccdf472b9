/* Arrays inside the library. */
#ifndef PSLD_IO_ARRAY_H
#define PSLD_IO_ARRAY_H

#include "base/status.h"

/* Bytes of an element; 0 for a value that is not a type. */
size_t psld_type_size(psld_type type);

/* Whether the elements of a shape can be counted, and their bytes in the largest type, so that the array can be
 * converted to any type. Sizes of 0 are left out of the check, so the product of any of the sizes is safe. */
int psld_array_count(int rank, const size_t *shape, size_t *count);

/* An array without its elements. */
psld_status psld_array_header(psld_type type, int rank, const size_t *shape, psld_array **array);

#endif
