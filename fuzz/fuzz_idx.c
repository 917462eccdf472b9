/* The input is an IDX file, plain or .gz. */
#define _GNU_SOURCE /* memfd_create */

#include "check_data.h"
#include "io/tensors/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psld_idx idx;
    psld_map bytes = {.bytes = data, .size = size};
    if (psld_idx_read(&bytes, "fuzz", &idx) == PSLD_OK) {
        size_t count = 1;
        for (int i = 0; i < idx.rank; i++) count *= idx.shape[i];
        if (idx.data < bytes.bytes || (size_t)(idx.data - bytes.bytes) + count != bytes.size) abort();
    }
    psld_map_close(&bytes);
    if (size > 4) check_data(data, size);
    return 0;
}
