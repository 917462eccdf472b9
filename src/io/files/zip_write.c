/* Writing an archive: the entries in order, then the directory, then the end records, always including the 64-bit
 * one, as PyTorch does. Sizes and offsets below `limit` have 32 bits; larger ones are all ones there and have 64
 * bits in an extra field. Times are left at the format's zero, so equal contents give equal bytes. */
#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "io/files/zip.h"
#include "io/files/zip_format.h"

enum {
    ALIGNMENT = 64,
    EXTRA_PADDING = 'F' | 'B' << 8, /* PyTorch's name; other readers skip unknown fields */
    VERSION = 45,                   /* 4.5: 64-bit sizes */
    FLAG_UTF8 = 1 << 11,
    ZERO_DATE = 1 << 5 | 1, /* the first of January 1980 */
    MAX_NAME = 65535,
};

typedef struct record {
    char *name;
    uint64_t offset, size;
    uint32_t crc;
} record;

struct psld_zip_writer {
    psld_writer *to;
    uint64_t offset; /* bytes written so far */
    uint64_t limit;
    record *records;
    size_t count, capacity;
};

/* A header while it is filled. */
typedef struct buffer {
    unsigned char bytes[160];
    size_t used;
} buffer;

static void add_le(buffer *b, uint64_t value, int size)
{
    assert(b->used + (size_t)size <= sizeof b->bytes);
    for (int i = 0; i < size; i++) b->bytes[b->used++] = (unsigned char)(value >> 8 * i);
}

static void put_counted(psld_zip_writer *zip, const void *bytes, size_t size)
{
    psld_writer_put(zip->to, bytes, size);
    zip->offset += size;
}

psld_status psld_zip_writer_create(psld_writer *to, psld_zip_writer **zip)
{
    *zip = psld_alloc(1, sizeof **zip);
    if (!*zip) return PSLD_NO_MEMORY;
    (*zip)->to = to;
    (*zip)->limit = 0xffffffff;
    return PSLD_OK;
}

void psld_zip_writer_limit(psld_zip_writer *zip, uint64_t limit)
{
    zip->limit = limit;
}

void psld_zip_writer_free(psld_zip_writer *zip)
{
    if (!zip) return;
    for (size_t i = 0; i < zip->count; i++) psld_release(zip->records[i].name);
    psld_release(zip->records);
    psld_release(zip);
}

static uint64_t narrow_to_32_bits(const psld_zip_writer *zip, uint64_t value)
{
    return value < zip->limit ? value : 0xffffffff;
}

/* What local header and directory have in common: version to flags, method, time, date, checksum, sizes, name. */
static void add_common(const psld_zip_writer *zip, const record *r, buffer *b)
{
    add_le(b, VERSION, 2);
    add_le(b, FLAG_UTF8, 2);
    add_le(b, 0, 2);
    add_le(b, 0, 2);
    add_le(b, ZERO_DATE, 2);
    add_le(b, r->crc, 4);
    add_le(b, narrow_to_32_bits(zip, r->size), 4);
    add_le(b, narrow_to_32_bits(zip, r->size), 4);
    add_le(b, strlen(r->name), 2);
}

/* The local header with its name, padded so that the data begin at a multiple of the alignment. */
static void put_local(psld_zip_writer *zip, const record *r)
{
    size_t length = strlen(r->name), wide = r->size < zip->limit ? 0 : 20;
    size_t end = (size_t)(zip->offset % ALIGNMENT) + LOCAL_SIZE + length + wide + 4;
    size_t padding = (ALIGNMENT - end % ALIGNMENT) % ALIGNMENT;
    buffer b = {.used = 0}, extra = {.used = 0};
    add_le(&b, LOCAL_MAGIC, 4);
    add_common(zip, r, &b);
    add_le(&b, wide + 4 + padding, 2);
    assert(b.used == LOCAL_SIZE);
    if (wide) {
        add_le(&extra, EXTRA_ZIP64, 2);
        add_le(&extra, 16, 2);
        add_le(&extra, r->size, 8);
        add_le(&extra, r->size, 8);
    }
    add_le(&extra, EXTRA_PADDING, 2);
    add_le(&extra, padding, 2);
    extra.used += padding;
    put_counted(zip, b.bytes, b.used);
    put_counted(zip, r->name, length);
    put_counted(zip, extra.bytes, extra.used);
}

psld_status psld_zip_put(psld_zip_writer *zip, const char *name, const void *head, size_t head_size, const void *body,
                         size_t body_size)
{
    if (strlen(name) == 0 || strlen(name) > MAX_NAME)
        return psld_fail(PSLD_BAD_ARGUMENT, "a name of %zu bytes cannot be in a zip archive", strlen(name));
    void *records = zip->records;
    PSLD_TRY(psld_grow(&records, &zip->capacity, zip->count + 1, sizeof *zip->records));
    zip->records = records;
    record *r = &zip->records[zip->count];
    *r = (record){.name = psld_copy_text(name), .offset = zip->offset, .size = (uint64_t)head_size + body_size};
    if (!r->name) return PSLD_NO_MEMORY;
    zip->count++;
    uLong crc = head_size ? crc32_z(0, head, head_size) : 0;
    r->crc = (uint32_t)(body_size ? crc32_z(crc, body, body_size) : crc);
    put_local(zip, r);
    put_counted(zip, head, head_size);
    put_counted(zip, body, body_size);
    return PSLD_OK;
}

static void put_central(psld_zip_writer *zip, const record *r)
{
    int wide_size = r->size >= zip->limit, wide_offset = r->offset >= zip->limit;
    int wide = 16 * wide_size + 8 * wide_offset;
    buffer b = {.used = 0}, extra = {.used = 0};
    add_le(&b, CENTRAL_MAGIC, 4);
    add_le(&b, VERSION, 2);
    add_common(zip, r, &b);
    add_le(&b, wide ? (uint64_t)wide + 4 : 0, 2);
    add_le(&b, 0, 2); /* comment */
    add_le(&b, 0, 2); /* disk */
    add_le(&b, 0, 2); /* attributes */
    add_le(&b, 0, 4);
    add_le(&b, narrow_to_32_bits(zip, r->offset), 4);
    assert(b.used == CENTRAL_SIZE);
    if (wide) {
        add_le(&extra, EXTRA_ZIP64, 2);
        add_le(&extra, (uint64_t)wide, 2);
    }
    if (wide_size) {
        add_le(&extra, r->size, 8);
        add_le(&extra, r->size, 8);
    }
    if (wide_offset) add_le(&extra, r->offset, 8);
    put_counted(zip, b.bytes, b.used);
    put_counted(zip, r->name, strlen(r->name));
    put_counted(zip, extra.bytes, extra.used);
}

void psld_zip_finish(psld_zip_writer *zip)
{
    uint64_t directory = zip->offset;
    for (size_t i = 0; i < zip->count; i++) put_central(zip, &zip->records[i]);
    uint64_t end = zip->offset, count = zip->count < 0xffff ? zip->count : 0xffff;
    buffer b = {.used = 0};
    add_le(&b, END64_MAGIC, 4);
    add_le(&b, END64_SIZE - 12, 8);
    add_le(&b, VERSION, 2);
    add_le(&b, VERSION, 2);
    add_le(&b, 0, 8); /* disks */
    add_le(&b, zip->count, 8);
    add_le(&b, zip->count, 8);
    add_le(&b, end - directory, 8);
    add_le(&b, directory, 8);
    assert(b.used == END64_SIZE);
    add_le(&b, LOCATOR_MAGIC, 4);
    add_le(&b, 0, 4);
    add_le(&b, end, 8);
    add_le(&b, 1, 4); /* disks in all */
    add_le(&b, END_MAGIC, 4);
    add_le(&b, 0, 4);
    add_le(&b, count, 2);
    add_le(&b, count, 2);
    add_le(&b, narrow_to_32_bits(zip, end - directory), 4);
    add_le(&b, narrow_to_32_bits(zip, directory), 4);
    add_le(&b, 0, 2); /* comment */
    assert(b.used == END64_SIZE + LOCATOR_SIZE + END_SIZE);
    put_counted(zip, b.bytes, b.used);
}
