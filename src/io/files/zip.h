/* Zip archives in memory, as PyTorch and NumPy write them: entries stored or deflated, with 64-bit sizes where needed.
 *
 * Reading checks the whole directory at once; the data of an entry are looked at when they are asked for. Writing
 * stores, without compression, at addresses that can be used in place. */
#ifndef PSLD_IO_ZIP_H
#define PSLD_IO_ZIP_H

#include <stdint.h>

#include "io/files/file.h"

typedef struct psld_zip_entry {
    const char *name; /* in the archive; no 0 byte in it or behind it */
    size_t name_length;
    int deflated;
    uint32_t crc; /* of the data as they were */
    size_t packed, size;
    const unsigned char *data; /* packed; as they were if not deflated */
} psld_zip_entry;

typedef struct psld_zip {
    size_t count;
    psld_zip_entry *entries; /* in the order of the directory, folders left out */
    psld_zip_entry **by_name;
    size_t budget; /* bytes that extraction may still make */
} psld_zip;

/* `bytes` must outlive the archive; `path` is for messages. */
psld_status psld_zip_open(const void *bytes, size_t size, const char *path, psld_zip **zip);
void psld_zip_free(psld_zip *zip);
const psld_zip_entry *psld_zip_find(const psld_zip *zip, const char *name, size_t length);

/* Failures of an entry begin with "<entry>: ..."; the caller adds the file's name. */

/* Takes the size of a copy from the budget, which limits how much a small file can unpack to. */
psld_status psld_zip_spend(psld_zip *zip, const psld_zip_entry *entry, size_t size);
/* entry->size bytes into `to`, with their checksum checked. */
psld_status psld_zip_extract(const psld_zip_entry *entry, void *to);
/* Only the checksum, of an entry that is used in place. */
psld_status psld_zip_check(const psld_zip_entry *entry);

typedef struct psld_zip_writer psld_zip_writer;

/* The writer is borrowed; it must be at its beginning. */
psld_status psld_zip_writer_create(psld_writer *to, psld_zip_writer **zip);
void psld_zip_writer_free(psld_zip_writer *zip);
/* Adds one entry, made of two parts (either may be empty). The first begins at a multiple of 64 bytes. */
psld_status psld_zip_put(psld_zip_writer *zip, const char *name, const void *head, size_t head_size, const void *body,
                         size_t body_size);
/* Writes the directory, which ends the archive. */
void psld_zip_finish(psld_zip_writer *zip);
/* Tests: sizes and offsets from this value on are written with 64 bits (at most 0xffffffff, the default). */
void psld_zip_writer_limit(psld_zip_writer *zip, uint64_t limit);

#endif
