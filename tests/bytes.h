/* Building files in memory, byte by byte, right or wrong: zip archives and pickles. */
#ifndef PSLD_TESTS_BYTES_H
#define PSLD_TESTS_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct bytes {
    unsigned char *data;
    size_t size, capacity;
} bytes;

static inline void bytes_put(bytes *b, const void *from, size_t size)
{
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size) + 64;
        b->data = realloc(b->data, b->capacity);
        if (!b->data) abort();
    }
    if (size) memcpy(b->data + b->size, from, size);
    b->size += size;
}

static inline void bytes_number(bytes *b, uint64_t value, int width)
{
    for (int i = 0; i < width; i++) bytes_put(b, &(unsigned char){i < 8 ? (unsigned char)(value >> 8 * i) : 0}, 1);
}

static inline void bytes_text(bytes *b, const char *text)
{
    bytes_put(b, text, strlen(text));
}

static inline void bytes_free(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}

static inline void bytes_save(const bytes *b, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(b->data, 1, b->size, file) != b->size || fclose(file) != 0) abort();
}

/* ---- Zip --------------------------------------------------------------------------------------------------------- */

typedef struct archive {
    bytes body, directory;
    unsigned count;
} archive;

enum { ZIP_DEFLATE = 1, ZIP_NO_CRC = 2 };

/* Adds an entry; `claim` is the size that it says it has once it is unpacked (-1: the true one). */
static inline void zip_add(archive *a, const char *name, const void *data, size_t size, int flags, int64_t claim)
{
    uLongf packed = size + size / 100 + 64;
    unsigned char *room = malloc(packed);
    z_stream z = {0};
    if (!room) abort();
    if (flags & ZIP_DEFLATE) {
        if (deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK) abort();
        z.next_in = (z_const Bytef *)(uintptr_t)data;
        z.avail_in = (unsigned)size;
        z.next_out = room;
        z.avail_out = (unsigned)packed;
        if (deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
        packed = z.total_out;
        deflateEnd(&z);
    } else {
        packed = size;
        if (size) memcpy(room, data, size);
    }
    size_t offset = a->body.size;
    uint64_t crc = flags & ZIP_NO_CRC ? 0 : crc32(0, data, (unsigned)size);
    bytes common = {0};
    bytes_number(&common, 20, 2);
    bytes_number(&common, 0, 2);
    bytes_number(&common, flags & ZIP_DEFLATE ? 8 : 0, 2);
    bytes_number(&common, 0, 4);
    bytes_number(&common, crc, 4);
    bytes_number(&common, packed, 4);
    bytes_number(&common, claim < 0 ? size : (uint64_t)claim, 4);
    bytes_number(&common, strlen(name), 2);
    bytes_number(&common, 0, 2);
    bytes_text(&a->body, "PK\3\4");
    bytes_put(&a->body, common.data, common.size);
    bytes_text(&a->body, name);
    bytes_put(&a->body, room, packed);
    bytes_text(&a->directory, "PK\1\2");
    bytes_number(&a->directory, 20, 2);
    bytes_put(&a->directory, common.data, common.size);
    bytes_number(&a->directory, 0, 10);
    bytes_number(&a->directory, offset, 4);
    bytes_text(&a->directory, name);
    a->count++;
    bytes_free(&common);
    free(room);
}

/* The whole file; the archive is gone. */
static inline bytes zip_end(archive *a)
{
    bytes file = a->body;
    size_t offset = file.size;
    bytes_put(&file, a->directory.data, a->directory.size);
    bytes_text(&file, "PK\5\6");
    bytes_number(&file, 0, 4);
    bytes_number(&file, a->count, 2);
    bytes_number(&file, a->count, 2);
    bytes_number(&file, a->directory.size, 4);
    bytes_number(&file, offset, 4);
    bytes_number(&file, 0, 2);
    bytes_free(&a->directory);
    *a = (archive){0};
    return file;
}

/* ---- Pickle ------------------------------------------------------------------------------------------------------ */

static inline void pickle_text(bytes *b, const char *text)
{
    bytes_text(b, "X");
    bytes_number(b, strlen(text), 4);
    bytes_text(b, text);
}

static inline void pickle_integer(bytes *b, int64_t value)
{
    bytes_text(b, "\x8a\x08");
    bytes_number(b, (uint64_t)value, 8);
}

static inline void pickle_integers(bytes *b, int count, const int64_t *values)
{
    bytes_text(b, "(");
    for (int i = 0; i < count; i++) pickle_integer(b, values[i]);
    bytes_text(b, "t");
}

/* ('storage', torch.TYPE, key, 'cpu', count), referred to. */
static inline void pickle_storage(bytes *b, const char *type, const char *key, int64_t count)
{
    bytes_text(b, "(");
    pickle_text(b, "storage");
    bytes_text(b, "ctorch\n");
    bytes_text(b, type);
    bytes_text(b, "\n");
    pickle_text(b, key);
    pickle_text(b, "cpu");
    pickle_integer(b, count);
    bytes_text(b, "tQ");
}

/* A tensor, as torch writes it. */
static inline void pickle_tensor(bytes *b, const char *type, const char *key, int64_t count, int64_t offset, int rank,
                                 const int64_t *shape, const int64_t *stride)
{
    bytes_text(b, "ctorch._utils\n_rebuild_tensor_v2\n(");
    pickle_storage(b, type, key, count);
    pickle_integer(b, offset);
    pickle_integers(b, rank, shape);
    pickle_integers(b, rank, stride);
    bytes_text(b, "\x89"
                  "ccollections\nOrderedDict\n)RtR");
}

#endif
