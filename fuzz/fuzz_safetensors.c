/* The input is a safetensors file; what is read of it must be the same when it is written and read again. */
#include "check_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* The same bytes at an address that fits elements, and at one that does not. */
    uint8_t *moved = malloc(size + 1);
    if (!moved) abort();
    if (size) memcpy(moved + 1, data, size);
    check_file(data, size);
    check_file(moved + 1, size);
    free(moved);
    return 0;
}
