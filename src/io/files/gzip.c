#include "io/files/gzip.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"

/* zlib counts in unsigned int; 16 + 15 is a gzip header and the largest window. */
enum { WINDOW = 16 + 15, PIECE = INT_MAX };

int psld_gzip_is(const void *bytes, size_t size)
{
    return size >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0;
}

static voidpf gzip_allocate(voidpf opaque, uInt count, uInt size)
{
    (void)opaque;
    return psld_alloc(count, size);
}

static void gzip_release(voidpf opaque, voidpf block)
{
    (void)opaque;
    psld_release(block);
}

/* A .gz file may consist of several compressed streams in a row. */
static psld_status inflate_all(z_stream *z, const char *origin, size_t *in_left, size_t *out_left)
{
    while (*out_left > 0) {
        uInt in = (uInt)(*in_left < PIECE ? *in_left : PIECE), out = (uInt)(*out_left < PIECE ? *out_left : PIECE);
        z->avail_in = in;
        z->avail_out = out;
        int code = inflate(z, Z_NO_FLUSH);
        *in_left -= in - z->avail_in;
        *out_left -= out - z->avail_out;
        if (code == Z_MEM_ERROR) return PSLD_NO_MEMORY;
        if (code == Z_STREAM_END) {
            if (!psld_gzip_is(z->next_in, *in_left)) return PSLD_OK;
            inflateReset(z);
        } else if (code == Z_BUF_ERROR || (code == Z_OK && *in_left == 0 && z->avail_out > 0)) {
            return psld_fail(PSLD_BAD_INPUT, "%s: the .gz file is cut off", origin);
        } else if (code != Z_OK) {
            return psld_fail(PSLD_BAD_INPUT, "%s: a broken .gz file: %s", origin, z->msg ? z->msg : "no reason given");
        }
    }
    return PSLD_OK;
}

psld_status psld_gzip_read(const void *bytes, size_t size, const char *origin, void *to, size_t room, size_t *got)
{
    size_t in_left = size, out_left = room;
    z_stream z = {.zalloc = gzip_allocate, .zfree = gzip_release};
    *got = 0;
    if (inflateInit2(&z, WINDOW) != Z_OK) return psld_fail_in(PSLD_NO_MEMORY, "%s", origin);
    z.next_in = (z_const Bytef *)(uintptr_t)bytes;
    z.next_out = to;
    psld_status status = inflate_all(&z, origin, &in_left, &out_left);
    inflateEnd(&z);
    *got = room - out_left;
    return status;
}
