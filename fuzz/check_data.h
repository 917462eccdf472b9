/* A data set that the fuzzer wrote: it opens and gives items, or fails with one line of text. */
#ifndef PSLD_FUZZ_CHECK_DATA_H
#define PSLD_FUZZ_CHECK_DATA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "psld.h"
#include "psld_data.h"

static inline void check_items(psld_data *data)
{
    size_t shape[PSLD_MAX_RANK], dim = 1;
    int rank = psld_data_shape(data, shape);
    for (int i = 0; i < rank; i++) dim *= shape[i];
    if (dim > 1 << 20) return;
    float *x = malloc(dim * sizeof *x);
    if (!x) abort();
    for (uint64_t i = 0; i < psld_data_count(data) && i < 4; i++) {
        int32_t label = 0;
        psld_status status = psld_data_read(data, 1, &i, x, &label);
        if (status == PSLD_OK && (label < -1 || label >= (int32_t)psld_data_classes(data))) abort();
        for (size_t j = 0; status == PSLD_OK && psld_data_is_image(data) && j < dim; j++)
            if (!(x[j] >= -1 && x[j] <= 1)) abort();
    }
    free(x);
}

/* The bytes as a file in memory, under a name that ends as it should. */
static inline void check_data(const uint8_t *bytes, size_t size)
{
    char path[64];
    psld_data *data = NULL;
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), fd);
    psld_status status = psld_data_open(path, NULL, &data);
    if ((status == PSLD_OK) != (data != NULL)) abort();
    if (status == PSLD_OK) check_items(data);
    if (status != PSLD_OK && (!*psld_error_text() || strchr(psld_error_text(), '\n'))) abort();
    psld_data_free(data);
    close(fd);
    if (psld_alloc_live() != 0) abort();
}

#endif
