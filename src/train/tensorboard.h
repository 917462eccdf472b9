/* Event files of TensorBoard: scalars and pictures against the step. Each is a TFRecord of a protocol buffer (tensorflow's
 * event.proto and summary.proto), of which this writes the few fields that it takes. */
#ifndef PSLD_TRAIN_TENSORBOARD_H
#define PSLD_TRAIN_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct psld_events psld_events;

/* Creates `folder` and opens a new file in it, for the steps after `step`. Entries of earlier files for those steps
 * become invalid. */
psld_status psld_events_open(const char *folder, long step, psld_events **events);
void psld_events_close(psld_events *events);

typedef struct psld_scalar {
    const char *tag;
    double value; /* NaN is left out */
} psld_scalar;
psld_status psld_events_scalars(psld_events *events, long step, size_t count, const psld_scalar *scalars);
/* The bytes of a PNG file. */
psld_status psld_events_picture(psld_events *events, long step, const char *tag, const void *png, size_t size);

/* The checksum of Castagnoli, as TFRecords have it. */
uint32_t psld_crc32c(const void *bytes, size_t size);

#endif
