/* Reading an archive: entries (local header, name, extra field, data); the directory (the same once more, with
 * offsets); its end record, before that another with 64-bit numbers and a locator of it where 32 bits are too few.
 *
 * What holds after psld_zip_open:
 *   1. the directory fills the bytes between the last entry and the end records, which end the file;
 *   2. each entry's local header is where the directory says and has the same name and method;
 *   3. entries lie before the directory and do not overlap, so that no byte serves two of them (a small file of many
 *      entries cannot be large in sum but by compression);
 *   4. a compressed entry claims no more than deflate can hold, and names are unique.
 * Extraction writes what an entry claims, at most, and the sum of all is bounded by a budget from the file's size. */
#include "io/files/zip.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "io/files/zip_format.h"

enum {
    MAX_COMMENT = 65535,
    STORED = 0,
    DEFLATED = 8,
    FLAG_ENCRYPTED = 1 | 1 << 6 | 1 << 13,
    DEFLATE_RATIO = 1032, /* at most 258 bytes for 2 bits */
    NAME_SHOWN = 100,
};

#define BUDGET_BASE ((size_t)1 << 30)
enum { BUDGET_FACTOR = 64 };

/* The archive while its directory is read. */
typedef struct input {
    const unsigned char *bytes;
    size_t size;
    const char *path;
    uint64_t count, directory, directory_size;
} input;

static uint64_t get_le(const unsigned char *at, int size)
{
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

static psld_status fail_byte(const input *in, size_t at, const char *what)
{
    return psld_fail(PSLD_BAD_INPUT, "%s: byte %zu: %s", in->path, at, what);
}

static psld_status PSLD_PRINTF(2, 3) fail_entry(const psld_zip_entry *entry, const char *format, ...)
{
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    int shown = (int)(entry->name_length < NAME_SHOWN ? entry->name_length : NAME_SHOWN);
    return psld_fail(PSLD_BAD_INPUT, "%.*s: %s", shown, entry->name, message);
}

/* ---- The end records --------------------------------------------------------------------------------------------- */

/* The record with 64-bit numbers, if a locator precedes the end record. */
static psld_status read_end64(input *in, size_t end, size_t *directory_end)
{
    if (end < LOCATOR_SIZE) return PSLD_OK;
    const unsigned char *locator = in->bytes + end - LOCATOR_SIZE;
    if (get_le(locator, 4) != LOCATOR_MAGIC) return PSLD_OK;
    uint64_t at = get_le(locator + 8, 8);
    if (end < LOCATOR_SIZE + END64_SIZE || at != end - LOCATOR_SIZE - END64_SIZE)
        return fail_byte(in, end - LOCATOR_SIZE, "the zip64 end record is not where its locator says");
    const unsigned char *record = in->bytes + at;
    if (get_le(record, 4) != END64_MAGIC || get_le(record + 4, 8) != END64_SIZE - 12)
        return fail_byte(in, at, "expected a zip64 end record");
    if (get_le(record + 16, 4) != 0 || get_le(record + 20, 4) != 0 || get_le(record + 24, 8) != get_le(record + 32, 8))
        return fail_byte(in, at, "an archive of several parts");
    in->count = get_le(record + 32, 8);
    in->directory_size = get_le(record + 40, 8);
    in->directory = get_le(record + 48, 8);
    *directory_end = at;
    return PSLD_OK;
}

static psld_status find_end(const input *in, size_t *end)
{
    size_t least = in->size > END_SIZE + MAX_COMMENT ? in->size - END_SIZE - MAX_COMMENT : 0;
    for (size_t at = in->size >= END_SIZE ? in->size - END_SIZE + 1 : 0; at > least;) {
        const unsigned char *record = in->bytes + --at;
        if (get_le(record, 4) != END_MAGIC || get_le(record + 20, 2) != in->size - at - END_SIZE) continue;
        *end = at;
        return PSLD_OK;
    }
    return psld_fail(PSLD_BAD_INPUT, "%s: a zip archive without its end: the file is cut off", in->path);
}

static psld_status read_end(input *in)
{
    size_t end = 0, directory_end = 0;
    PSLD_TRY(find_end(in, &end));
    const unsigned char *record = in->bytes + end;
    in->count = get_le(record + 10, 2);
    in->directory_size = get_le(record + 12, 4);
    in->directory = get_le(record + 16, 4);
    directory_end = end;
    if (get_le(record + 4, 2) != 0 || get_le(record + 6, 2) != 0 || get_le(record + 8, 2) != in->count)
        return fail_byte(in, end, "an archive of several parts");
    PSLD_TRY(read_end64(in, end, &directory_end));
    if (in->directory > directory_end || in->directory_size != directory_end - in->directory)
        return fail_byte(in, end, "the zip directory is not where the archive's end says");
    if (in->count > in->directory_size / CENTRAL_SIZE)
        return fail_byte(in, end, "more entries than the zip directory has room for");
    return PSLD_OK;
}

/* ---- The directory ----------------------------------------------------------------------------------------------- */

/* Numbers of an entry that may have 64 bits. */
typedef struct wide {
    uint64_t size, packed, offset;
} wide;

/* Replaces numbers that are all ones by those of the extra field, in the order of the format. */
static psld_status widen_to_zip64(const input *in, const unsigned char *extra, size_t length, wide *w)
{
    uint64_t *const fields[] = {&w->size, &w->packed, &w->offset};
    size_t at = (size_t)(extra - in->bytes);
    for (; length >= 4; length -= 4 + (size_t)get_le(extra + 2, 2), extra += 4 + get_le(extra + 2, 2)) {
        size_t part = get_le(extra + 2, 2);
        if (part > length - 4) return fail_byte(in, at, "a zip extra field that is cut off");
        if (get_le(extra, 2) != EXTRA_ZIP64) continue;
        const unsigned char *next = extra + 4;
        for (int i = 0; i < 3; i++) {
            if (*fields[i] != 0xffffffff) continue;
            if (part < 8) return fail_byte(in, at, "a zip64 extra field that is too short");
            *fields[i] = get_le(next, 8);
            next += 8;
            part -= 8;
        }
        return PSLD_OK;
    }
    return PSLD_OK;
}

/* Where the data begin, after the local header. */
static psld_status read_local(const input *in, const psld_zip_entry *entry, uint64_t offset, size_t *data)
{
    if (offset > in->directory || in->directory - offset < LOCAL_SIZE)
        return fail_byte(in, in->directory, "a zip entry that begins beyond the directory");
    const unsigned char *header = in->bytes + offset;
    size_t name = get_le(header + 26, 2), extra = get_le(header + 28, 2);
    if (get_le(header, 4) != LOCAL_MAGIC) return fail_byte(in, offset, "expected a zip entry");
    if (in->directory - offset - LOCAL_SIZE < name + extra || name != entry->name_length ||
        memcmp(header + LOCAL_SIZE, entry->name, name) != 0 ||
        get_le(header + 8, 2) != (uint64_t)(entry->deflated ? DEFLATED : STORED))
        return fail_byte(in, offset, "a zip entry that differs from the directory");
    *data = (size_t)offset + LOCAL_SIZE + name + extra;
    return PSLD_OK;
}

/* One entry of the directory; *at goes to the next. */
static psld_status read_directory_entry(const input *in, size_t *at, size_t end, psld_zip_entry *entry)
{
    const unsigned char *record = in->bytes + *at;
    if (end - *at < CENTRAL_SIZE || get_le(record, 4) != CENTRAL_MAGIC)
        return fail_byte(in, *at, "expected an entry of the zip directory");
    size_t name = get_le(record + 28, 2), extra = get_le(record + 30, 2), comment = get_le(record + 32, 2), data = 0;
    if (end - *at - CENTRAL_SIZE < name + extra + comment)
        return fail_byte(in, *at, "an entry of the zip directory that is cut off");
    uint64_t method = get_le(record + 10, 2);
    wide w = {.size = get_le(record + 24, 4), .packed = get_le(record + 20, 4), .offset = get_le(record + 42, 4)};
    *entry = (psld_zip_entry){.name = (const char *)record + CENTRAL_SIZE,
                              .name_length = name,
                              .deflated = method == DEFLATED,
                              .crc = (uint32_t)get_le(record + 16, 4)};
    if (name == 0 || memchr(entry->name, '\0', name)) return fail_byte(in, *at, "a zip entry without a usable name");
    if (get_le(record + 8, 2) & FLAG_ENCRYPTED) return fail_byte(in, *at, "an encrypted zip entry");
    if (method != STORED && method != DEFLATED) return fail_byte(in, *at, "a zip entry neither stored nor deflated");
    PSLD_TRY(widen_to_zip64(in, record + CENTRAL_SIZE + name, extra, &w));
    PSLD_TRY(read_local(in, entry, w.offset, &data));
    if (w.packed > in->directory - data) return fail_byte(in, *at, "a zip entry that reaches into the directory");
    if (method == STORED ? w.size != w.packed : w.size / DEFLATE_RATIO > w.packed)
        return fail_byte(in, *at, "a zip entry with sizes that cannot be");
    entry->packed = (size_t)w.packed;
    entry->size = (size_t)w.size;
    entry->data = in->bytes + data;
    *at += CENTRAL_SIZE + name + extra + comment;
    return PSLD_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const psld_zip_entry *x = *(psld_zip_entry *const *)a, *y = *(psld_zip_entry *const *)b;
    return (x->data > y->data) - (x->data < y->data);
}

static int compare_name_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_entry_names(const void *a, const void *b)
{
    const psld_zip_entry *x = *(psld_zip_entry *const *)a, *y = *(psld_zip_entry *const *)b;
    return compare_name_bytes(x->name, x->name_length, y->name, y->name_length);
}

/* Invariants 3 and 4. A local header has the entry's name behind it, so its length is at least that. */
static psld_status check_entries(psld_zip *zip)
{
    psld_zip_entry **sorted = zip->by_name;
    qsort(sorted, zip->count, sizeof *sorted, compare_offsets);
    for (size_t i = 1; i < zip->count; i++)
        if ((size_t)(sorted[i]->data - sorted[i - 1]->data) <
            sorted[i - 1]->packed + LOCAL_SIZE + sorted[i]->name_length)
            return fail_entry(sorted[i], "overlaps another zip entry");
    qsort(sorted, zip->count, sizeof *sorted, compare_entry_names);
    for (size_t i = 1; i < zip->count; i++)
        if (compare_entry_names(&sorted[i - 1], &sorted[i]) == 0) return fail_entry(sorted[i], "stands twice");
    return PSLD_OK;
}

static psld_status read_directory(const input *in, psld_zip *zip)
{
    size_t at = (size_t)in->directory, end = (size_t)(in->directory + in->directory_size);
    zip->entries = psld_alloc((size_t)in->count, sizeof *zip->entries);
    zip->by_name = psld_alloc((size_t)in->count, sizeof(psld_zip_entry *));
    if (!zip->entries || !zip->by_name) return PSLD_NO_MEMORY;
    for (uint64_t i = 0; i < in->count; i++) {
        psld_zip_entry *entry = &zip->entries[zip->count];
        PSLD_TRY(read_directory_entry(in, &at, end, entry));
        if (entry->name[entry->name_length - 1] == '/' && entry->size == 0) continue; /* a folder */
        zip->by_name[zip->count++] = entry;
    }
    if (at != end) return fail_byte(in, at, "bytes in the zip directory that belong to no entry");
    psld_status status = check_entries(zip);
    return status == PSLD_OK ? PSLD_OK : psld_fail_in(status, "%s", in->path);
}

psld_status psld_zip_open(const void *bytes, size_t size, const char *path, psld_zip **zip)
{
    *zip = NULL;
    input in = {.bytes = bytes, .size = size, .path = path};
    PSLD_TRY(read_end(&in));
    psld_zip *z = psld_alloc(1, sizeof *z);
    if (!z) return PSLD_NO_MEMORY;
    z->budget = size < SIZE_MAX / (2 * BUDGET_FACTOR) ? BUDGET_BASE + BUDGET_FACTOR * size : SIZE_MAX;
    psld_status status = read_directory(&in, z);
    if (status != PSLD_OK) {
        psld_zip_free(z);
        return status;
    }
    *zip = z;
    return PSLD_OK;
}

void psld_zip_free(psld_zip *zip)
{
    if (!zip) return;
    psld_release(zip->entries);
    psld_release(zip->by_name);
    psld_release(zip);
}

const psld_zip_entry *psld_zip_find(const psld_zip *zip, const char *name, size_t length)
{
    size_t low = 0, high = zip->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const psld_zip_entry *entry = zip->by_name[middle];
        int order = compare_name_bytes(name, length, entry->name, entry->name_length);
        if (order == 0) return entry;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

psld_status psld_zip_spend(psld_zip *zip, const psld_zip_entry *entry, size_t size)
{
    if (size > zip->budget) return fail_entry(entry, "%zu bytes are more than a file of this size may unpack to", size);
    zip->budget -= size;
    return PSLD_OK;
}

/* PyTorch can be told to leave checksums out; they are 0 then. */
static psld_status check_crc(const psld_zip_entry *entry, const void *data)
{
    if (entry->crc == 0 || crc32_z(0, data, entry->size) == entry->crc) return PSLD_OK;
    return fail_entry(entry, "the checksum does not fit the data: the file is damaged");
}

psld_status psld_zip_check(const psld_zip_entry *entry)
{
    return check_crc(entry, entry->data);
}

/* zlib's memory is ours, so that its failures are tested like others. */
static void *zlib_allocate(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return psld_alloc(count, size);
}

static void zlib_release(void *unused, void *block)
{
    (void)unused;
    psld_release(block);
}

/* As much of `size` as zlib can take in one call. */
static unsigned zlib_chunk(size_t size)
{
    return size < 1u << 30 ? (unsigned)size : 1u << 30;
}

static psld_status inflate_entry(const psld_zip_entry *entry, unsigned char *to)
{
    unsigned char beyond; /* room for one byte more than claimed: it must stay empty */
    size_t read = 0, made = 0;
    z_stream stream = {.zalloc = zlib_allocate, .zfree = zlib_release};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return PSLD_NO_MEMORY;
    int result = Z_OK;
    while (result == Z_OK && made <= entry->size) {
        size_t room = entry->size - made;
        stream.next_in =
            (z_const Bytef *)(uintptr_t)(entry->data + read); /* zlib does not write to it, whatever its type */
        stream.avail_in = zlib_chunk(entry->packed - read);
        stream.next_out = room ? to + made : &beyond;
        stream.avail_out = room ? zlib_chunk(room) : 1;
        unsigned in = stream.avail_in, out = stream.avail_out;
        result = inflate(&stream, Z_NO_FLUSH);
        read += in - stream.avail_in;
        made += out - stream.avail_out;
    }
    inflateEnd(&stream);
    if (result == Z_MEM_ERROR) return PSLD_NO_MEMORY;
    if (result == Z_STREAM_END && made == entry->size && read == entry->packed) return PSLD_OK;
    return fail_entry(entry, "the compressed data are damaged, or not of the size that they claim");
}

psld_status psld_zip_extract(const psld_zip_entry *entry, void *to)
{
    if (entry->deflated)
        PSLD_TRY(inflate_entry(entry, to));
    else if (entry->size)
        memcpy(to, entry->data, entry->size);
    return check_crc(entry, to);
}
