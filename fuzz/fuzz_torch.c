/* The input is a PyTorch checkpoint, zip (seeds leave the checksums out, so that changes get through) or legacy; one
 * that is neither is taken for what stands behind the preamble of a legacy file. */
#include "check_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preamble[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."
                                   "\x80\x02}X\x0d\0\0\0little_endian\x88s.";
    if (size >= 4 && (memcmp(data, "PK", 2) == 0 || memcmp(data + 2, "\x8a\x0a", 2) == 0)) {
        check_file(data, size);
        return 0;
    }
    uint8_t *file = malloc(sizeof preamble - 1 + size);
    if (!file) abort();
    memcpy(file, preamble, sizeof preamble - 1);
    if (size) memcpy(file + sizeof preamble - 1, data, size);
    check_file(file, sizeof preamble - 1 + size);
    free(file);
    return 0;
}
