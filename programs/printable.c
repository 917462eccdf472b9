/* Text on standard output comes in part from other people's files: names of tensors and classes, configurations,
 * recipes. On a terminal, control characters could move the cursor, hide text or worse. So all printed text passes
 * through here: control characters except newlines and tabs, and bytes that are not UTF-8, are shown as \x1b; other
 * characters are unchanged. */
#define _GNU_SOURCE /* fopencookie */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "cli.h"

enum { LONGEST = 4, ESCAPED = 4 }; /* bytes of a character of UTF-8, and of an escaped byte */

/* The beginning of a character whose other bytes have not arrived yet. */
static unsigned char begun[LONGEST];
static size_t begun_size;

/* Bytes of the character that begins with this one; 0: none does. */
static size_t sequence_bytes(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return 2;
    if (first >= 0xe0 && first < 0xf0) return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Whether `size` bytes can be the beginning of a character, or all of it. */
static int is_begun(const unsigned char *bytes, size_t size)
{
    size_t length = sequence_bytes(bytes[0]);
    if (length < size) return 0;
    for (size_t i = 1; i < size; i++)
        if ((bytes[i] & 0xc0) != 0x80) return 0;
    return 1;
}

static int is_control(const unsigned char *bytes, size_t size)
{
    if (size == 1) return (bytes[0] < 0x20 && bytes[0] != '\n' && bytes[0] != '\t') || bytes[0] == 0x7f;
    return size == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0; /* U+0080 to U+009F */
}

static char *put_printable(char *to, const unsigned char *bytes, size_t size, int escape)
{
    if (!escape) return (char *)memcpy(to, bytes, size) + size;
    for (size_t i = 0; i < size; i++) to += sprintf(to, "\\x%02x", bytes[i]);
    return to;
}

/* Adds one byte; `to` has memory for the begun character and for this byte, both escaped. Returns the end. */
static char *escape_byte(char *to, unsigned char byte)
{
    begun[begun_size++] = byte;
    if (!is_begun(begun, begun_size)) { /* the begun bytes are no character; this byte may begin one */
        size_t before = begun_size - 1;
        to = put_printable(to, begun, before ? before : 1, 1);
        begun_size = 0;
        return before ? escape_byte(to, byte) : to;
    }
    if (begun_size < sequence_bytes(begun[0])) return to;
    to = put_printable(to, begun, begun_size, is_control(begun, begun_size));
    begun_size = 0;
    return to;
}

static int write_all_bytes(const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t count = write(STDOUT_FILENO, bytes, size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return 0;
        bytes += count;
        size -= (size_t)count;
    }
    return 1;
}

static ssize_t write_printable(void *unused, const char *bytes, size_t size)
{
    enum { PIECE = 1024 };
    char room[(PIECE + LONGEST) * ESCAPED + 1];
    (void)unused;
    for (size_t done = 0; done < size;) {
        char *to = room;
        for (size_t i = 0; i < PIECE && done < size; i++) to = escape_byte(to, (unsigned char)bytes[done++]);
        if (!write_all_bytes(room, (size_t)(to - room))) return 0;
    }
    return (ssize_t)size;
}

void cli_output_begin(void)
{
#ifdef __GLIBC__ /* other C libraries cannot redirect stdout */
    const cookie_io_functions_t functions = {.write = write_printable};
    FILE *printable = fopencookie(NULL, "w", functions);
    if (!printable) return;
    setvbuf(printable, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    stdout = printable;
#else
    (void)write_printable;
#endif
}
