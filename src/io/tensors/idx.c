#include "io/tensors/idx.h"

#include "base/alloc.h"
#include "io/files/gzip.h"

enum { START = 4, SIZE = 4, MAX_RANK = 4, LARGEST_HEADER = START + SIZE * MAX_RANK, TYPE_U8 = 8 };

int psld_idx_is(const void *bytes, size_t size)
{
    const uint8_t *b = bytes;
    return size >= START && b[0] == 0 && b[1] == 0 && b[2] >= 8 && b[2] <= 14 && b[3] >= 1 && b[3] <= MAX_RANK;
}

/* Reads the header; *total is the length that the file must have. */
static psld_status idx_read_header(const uint8_t *bytes, size_t size, const char *origin, psld_idx *idx, size_t *total)
{
    if (!psld_idx_is(bytes, size)) return psld_fail(PSLD_BAD_INPUT, "%s: not an IDX file", origin);
    if (bytes[2] != TYPE_U8)
        return psld_fail(PSLD_BAD_INPUT, "%s: elements of type 0x%02x, expected 0x08 (unsigned bytes)", origin,
                         bytes[2]);
    idx->rank = bytes[3];
    size_t header = START + SIZE * (size_t)idx->rank, count = 1;
    if (size < header) return psld_fail(PSLD_BAD_INPUT, "%s: the file ends within the IDX header", origin);
    for (int i = 0; i < idx->rank; i++) {
        const uint8_t *at = bytes + START + SIZE * i;
        idx->shape[i] = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
        if (idx->shape[i] == 0) return psld_fail(PSLD_BAD_INPUT, "%s: size %d of the IDX header is 0", origin, i + 1);
        if (__builtin_mul_overflow(count, idx->shape[i], &count) || count > PTRDIFF_MAX - header)
            return psld_fail(PSLD_BAD_INPUT, "%s: the sizes of the IDX header are too large", origin);
    }
    *total = header + count;
    return PSLD_OK;
}

static psld_status idx_fail_length(const char *origin, size_t expected, const char *found)
{
    return psld_fail(PSLD_BAD_INPUT, "%s: by its IDX header the file has %zu bytes, it has %s", origin, expected,
                     found);
}

/* Memory is allocated only if the header is plausible: the compression ratio of deflate is at most 1032. */
static psld_status idx_unpack(psld_map *bytes, const char *origin)
{
    enum { DEFLATE_RATIO = 1032 };
    uint8_t header[LARGEST_HEADER];
    psld_idx idx;
    size_t got = 0, total = 0;
    PSLD_TRY(psld_gzip_read(bytes->bytes, bytes->size, origin, header, sizeof header, &got));
    PSLD_TRY(idx_read_header(header, got, origin, &idx, &total));
    if (total / DEFLATE_RATIO > bytes->size) return idx_fail_length(origin, total, "fewer");
    psld_map whole = {.block = psld_alloc(total + 1, 1), .size = total};
    if (!whole.block) return psld_fail_in(PSLD_NO_MEMORY, "%s", origin);
    psld_status status = psld_gzip_read(bytes->bytes, bytes->size, origin, whole.block, total + 1, &got);
    if (status == PSLD_OK && got != total) status = idx_fail_length(origin, total, got < total ? "fewer" : "more");
    if (status != PSLD_OK) {
        psld_map_close(&whole);
        return status;
    }
    whole.bytes = whole.block;
    psld_map_close(bytes);
    *bytes = whole;
    return PSLD_OK;
}

psld_status psld_idx_read(psld_map *bytes, const char *origin, psld_idx *idx)
{
    size_t total = 0;
    *idx = (psld_idx){0};
    if (psld_gzip_is(bytes->bytes, bytes->size)) PSLD_TRY(idx_unpack(bytes, origin));
    PSLD_TRY(idx_read_header(bytes->bytes, bytes->size, origin, idx, &total));
    if (bytes->size != total) return idx_fail_length(origin, total, bytes->size < total ? "fewer" : "more");
    idx->data = bytes->bytes + START + SIZE * (size_t)idx->rank;
    return PSLD_OK;
}
