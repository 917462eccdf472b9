/* The input is any file that may be a data set: an archive of images, CIFAR as pickles, arrays. */
#define _GNU_SOURCE /* memfd_create */

#include "check_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) check_data(data, size);
    return 0;
}
