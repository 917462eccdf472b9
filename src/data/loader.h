/* The stream of training samples. Each is a pure function of its number, so that a resumed run needs only the number.
 *
 * Sample s is item permutation_e(s % count) of epoch e = s / count, mirrored or not by the address (seed, s). Items are
 * those of a range of a fixed shuffle of the set: files are sorted by class, and the held-out part should have all
 * classes. The next items are decoded ahead, in threads of the loader. */
#ifndef PSLD_DATA_LOADER_H
#define PSLD_DATA_LOADER_H

#include "base/status.h"
#include "data/augment.h"
#include "psld_data.h"

typedef struct psld_loader psld_loader;

typedef struct psld_loader_options {
    uint64_t seed;             /* of order, split and mirroring */
    int flip;                  /* 1: half of the samples are mirrored left to right; images only */
    psld_augmentation augment; /* other random changes; images only */
    uint64_t begin, end;       /* range of the fixed shuffle that is used; 0 and the count: all */
    size_t ahead;              /* samples decoded ahead; 0: none */
    int threads;               /* that decode; 0: one per processor, at most 8 */
} psld_loader_options;

/* The data are borrowed. */
psld_status psld_loader_create(psld_data *data, const psld_loader_options *options, psld_loader **feed);
void psld_loader_free(psld_loader *feed);

/* Samples first ... first + n - 1 into x [n][shape] and label [n] (may be NULL; -1 where there is none). The next call
 * is expected at the same distance from this call as this one from the last. One call at a time. */
psld_status psld_loader_read(psld_loader *feed, uint64_t first, size_t n, float *x, int32_t *label);

/* The changes of samples first ... first + n - 1 without mirroring, [n][PSLD_AUGMENT_NUMBERS]. */
void psld_loader_augmentation(const psld_loader *feed, uint64_t first, size_t n, float *numbers);

/* The item of a sample, and whether it is mirrored. */
uint64_t psld_loader_item(const psld_loader *feed, uint64_t sample, int *flip);

#endif
