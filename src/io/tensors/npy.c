/* NumPy's .npy: "\x93NUMPY", version (two bytes), length of the header (2 bytes in version 1, else 4,
 * little-endian), the header, the elements. The header is a Python dict
 *     {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
 * padded with spaces and a newline so that the elements begin at a multiple of 64 bytes.
 *
 * Nothing that a header says is trusted before it is checked: memory for the elements is allocated when the file is
 * known to have them, or as they arrive (a pipe). They are read directly into the array, so a file of any size is in
 * memory once. Fortran order is converted while reading. */
#include "io/tensors/npy.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/tensors/array.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are written and read as they lie in memory, which must be little-endian"
#endif

enum {
    MAGIC_SIZE = 6,
    MAX_HEADER = 65535, /* the limit of version 1; our headers are never longer in the other versions */
    ALIGNMENT = 64,
    GROWTH_DIGITS = 21, /* NumPy leaves room for the first size to grow to this many digits */
    PIECE = 1 << 16,    /* bytes per read where they cannot go directly into the array */
    FIRST_BLOCK = 1 << 20,
};

static const unsigned char magic[MAGIC_SIZE] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* As NumPy writes them. */
static const char *const type_codes[] = {
    [PSLD_F64] = "<f8", [PSLD_F32] = "<f4", [PSLD_U8] = "|u1", [PSLD_I32] = "<i4", [PSLD_I64] = "<i8",
};

enum { TYPE_COUNT = sizeof type_codes / sizeof *type_codes };

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* "(3, 4)", "(3,)", "()": as in Python. Returns the length. */
static size_t write_shape(const psld_array *array, char *to, size_t size)
{
    size_t used = 1;
    to[0] = '(';
    for (int i = 0; i < array->rank; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%zu", i ? ", " : "", array->shape[i]);
    used += (size_t)snprintf(to + used, size - used, array->rank == 1 ? ",)" : ")");
    return used;
}

/* Byte for byte what NumPy (since 1.23) writes, so saving an array again changes nothing. */
size_t psld_npy_header(const psld_array *array, char header[PSLD_NPY_HEADER])
{
    enum { START = MAGIC_SIZE + 4 };
    assert(psld_type_size(array->type) != 0 && array->rank >= 0 && array->rank <= PSLD_MAX_RANK);
    char shape[256];
    memset(header, 0, PSLD_NPY_HEADER);
    write_shape(array, shape, sizeof shape);
    size_t used = START + (size_t)snprintf(header + START, PSLD_NPY_HEADER - START,
                                           "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                                           type_codes[array->type], shape);
    if (array->rank > 0) used += GROWTH_DIGITS - (size_t)snprintf(NULL, 0, "%zu", array->shape[0]);
    /* The newline counts. If the header already ends at a multiple of 64, NumPy adds 64. */
    size_t length = ((used + 1) / ALIGNMENT + 1) * ALIGNMENT;
    assert(length <= PSLD_NPY_HEADER);
    memcpy(header, magic, MAGIC_SIZE);
    header[MAGIC_SIZE] = 1;
    header[MAGIC_SIZE + 2] = (char)((length - START) & 0xff);
    header[MAGIC_SIZE + 3] = (char)((length - START) >> 8);
    for (size_t i = START; i < length - 1; i++)
        if (!header[i]) header[i] = ' ';
    header[length - 1] = '\n';
    return length;
}

void psld_npy_write(const psld_array *array, psld_writer *writer)
{
    char header[PSLD_NPY_HEADER];
    psld_writer_put(writer, header, psld_npy_header(array, header));
    psld_writer_put(writer, array->data, array->count * psld_type_size(array->type));
}

/* ---- Reading the header ------------------------------------------------------------------------------------------ */

typedef struct header {
    const char *path; /* for messages */
    const char *next; /* text still to parse; a 0 byte ends it */
    psld_type type;
    int fortran;
    int rank;
    size_t shape[PSLD_MAX_RANK];
} header;

static psld_status fail_syntax(const header *h, const char *expected)
{
    return psld_fail(PSLD_BAD_INPUT, "%s: bad .npy header: expected %s, found \"%.20s\"", h->path, expected, h->next);
}

static void skip_space(header *h)
{
    while (*h->next == ' ' || *h->next == '\t' || *h->next == '\n' || *h->next == '\r') h->next++;
}

/* Skips `token`, with space around it, if it is next. Returns whether it was. */
static int accept_token(header *h, const char *token)
{
    skip_space(h);
    size_t length = strlen(token);
    if (strncmp(h->next, token, length) != 0) return 0;
    h->next += length;
    skip_space(h);
    return 1;
}

/* A string in quotes of either kind, without escapes: the keys and types need none. */
static psld_status parse_string(header *h, char *to, size_t size)
{
    skip_space(h);
    char quote = *h->next;
    const char *end = quote == '\'' || quote == '"' ? strchr(h->next + 1, quote) : NULL;
    if (!end || (size_t)(end - h->next) > size || memchr(h->next, '\\', (size_t)(end - h->next)))
        return fail_syntax(h, "a short string in quotes");
    size_t length = (size_t)(end - h->next) - 1;
    memcpy(to, h->next + 1, length);
    to[length] = '\0';
    h->next = end + 1;
    skip_space(h);
    return PSLD_OK;
}

/* The byte order may be '<' or, where there is none, '|'; '=' stands for the machine's, which is little-endian. */
static psld_status npy_parse_type(header *h)
{
    char name[32] = "[";
    if (*h->next != '[') PSLD_TRY(parse_string(h, name, sizeof name)); /* a list describes records */
    int has_order = name[0] == '<' || name[0] == '=' || name[0] == '|';
    for (int i = 0; has_order && i < TYPE_COUNT; i++) {
        if (strcmp(type_codes[i] + 1, name + 1) != 0) continue;
        if (name[0] == '|' && psld_type_size((psld_type)i) > 1) continue;
        h->type = (psld_type)i;
        return PSLD_OK;
    }
    return psld_fail(PSLD_BAD_INPUT, "%s: elements of type %s%s, expected <f8, <f4, |u1, <i4 or <i8", h->path, name,
                     name[0] == '[' ? "...] (records)" : "");
}

static psld_status parse_flag(header *h)
{
    h->fortran = accept_token(h, "True");
    return h->fortran || accept_token(h, "False") ? PSLD_OK : fail_syntax(h, "True or False");
}

static psld_status parse_size(header *h, size_t *size)
{
    const char *digit = h->next;
    size_t value = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (size_t)(*digit - '0'), &value))
            return psld_fail(PSLD_BAD_INPUT, "%s: the sizes of the array are too large", h->path);
    if (digit == h->next) return fail_syntax(h, "a size of 0 or more");
    h->next = digit;
    *size = value;
    return PSLD_OK;
}

/* "()", "(3,)", "(3, 4)": a comma must follow the first size, since (3) is not a tuple in Python. */
static psld_status npy_parse_shape(header *h)
{
    int comma = 1;
    if (!accept_token(h, "(")) return fail_syntax(h, "( before the shape");
    while (!accept_token(h, ")")) {
        size_t size = 0;
        if (!comma) return fail_syntax(h, ", or ) in the shape");
        PSLD_TRY(parse_size(h, &size));
        if (h->rank == PSLD_MAX_RANK)
            return psld_fail(PSLD_BAD_INPUT, "%s: more than %d dimensions", h->path, PSLD_MAX_RANK);
        h->shape[h->rank++] = size;
        comma = accept_token(h, ",");
        if (!comma && h->rank == 1) return fail_syntax(h, ", behind the first size of the shape");
    }
    return PSLD_OK;
}

/* The dict: each of its three keys once, in any order, and nothing else. */
static psld_status parse_dict(header *h)
{
    static const struct {
        const char *key;
        psld_status (*parse)(header *h);
    } entries[3] = {{"descr", npy_parse_type}, {"fortran_order", parse_flag}, {"shape", npy_parse_shape}};
    int seen[3] = {0, 0, 0}, comma = 1;
    if (!accept_token(h, "{")) return fail_syntax(h, "{");
    while (!accept_token(h, "}")) {
        char key[32];
        int i = 0;
        if (!comma) return fail_syntax(h, ", or }");
        PSLD_TRY(parse_string(h, key, sizeof key));
        while (i < 3 && strcmp(key, entries[i].key) != 0) i++;
        if (i == 3 || seen[i])
            return psld_fail(PSLD_BAD_INPUT, "%s: bad .npy header: %s key \"%s\"", h->path,
                             i == 3 ? "unknown" : "repeated", key);
        seen[i] = 1;
        if (!accept_token(h, ":")) return fail_syntax(h, ":");
        PSLD_TRY(entries[i].parse(h));
        comma = accept_token(h, ",");
    }
    for (int i = 0; i < 3; i++)
        if (!seen[i]) return psld_fail(PSLD_BAD_INPUT, "%s: bad .npy header: no key \"%s\"", h->path, entries[i].key);
    return *h->next ? fail_syntax(h, "its end") : PSLD_OK;
}

/* Exactly `size` bytes of the part before the elements. */
static psld_status get_header_bytes(psld_reader *reader, void *to, size_t size)
{
    size_t got = 0;
    PSLD_TRY(psld_reader_get(reader, to, size, &got));
    if (got == size) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: the file ends within the .npy header", reader->path);
}

static psld_status npy_read_preamble(psld_reader *reader, size_t *length)
{
    unsigned char start[MAGIC_SIZE + 2], size[4] = {0};
    size_t got = 0;
    PSLD_TRY(psld_reader_get(reader, start, sizeof start, &got));
    if (got < MAGIC_SIZE || memcmp(start, magic, MAGIC_SIZE) != 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: not a .npy file", reader->path);
    if (got < sizeof start) return psld_fail(PSLD_BAD_INPUT, "%s: the file ends within the .npy header", reader->path);
    int major = start[MAGIC_SIZE], minor = start[MAGIC_SIZE + 1];
    if (major < 1 || major > 3 || minor != 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: .npy version %d.%d, expected 1.0, 2.0 or 3.0", reader->path, major,
                         minor);
    PSLD_TRY(get_header_bytes(reader, size, major == 1 ? 2 : 4));
    *length = (size_t)size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 | (size_t)size[3] << 24;
    if (*length > MAX_HEADER)
        return psld_fail(PSLD_BAD_INPUT, "%s: .npy header of %zu bytes, expected at most %d", reader->path, *length,
                         MAX_HEADER);
    return PSLD_OK;
}

static psld_status npy_read_header(psld_reader *reader, header *h)
{
    size_t length = 0;
    PSLD_TRY(npy_read_preamble(reader, &length));
    char *text = psld_alloc(length + 1, 1);
    if (!text) return PSLD_NO_MEMORY;
    *h = (header){.path = reader->path, .next = text};
    psld_status status = get_header_bytes(reader, text, length);
    if (status == PSLD_OK && memchr(text, '\0', length))
        status = psld_fail(PSLD_BAD_INPUT, "%s: bad .npy header: a NUL byte in it", reader->path);
    if (status == PSLD_OK) status = parse_dict(h);
    psld_release(text);
    h->next = NULL;
    return status;
}

/* ---- Reading the elements ---------------------------------------------------------------------------------------- */

static psld_status npy_fail_length(const psld_reader *reader, size_t expected, size_t found)
{
    return psld_fail(PSLD_BAD_INPUT, "%s: expected %zu bytes of data, found %zu", reader->path, expected, found);
}

/* Fails unless the reader is at its end. */
static psld_status check_end(psld_reader *reader, size_t bytes)
{
    char more;
    size_t got = 0;
    PSLD_TRY(psld_reader_get(reader, &more, 1, &got));
    if (got == 0) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: expected %zu bytes of data, found more", reader->path, bytes);
}

/* Reads all bytes from a source of unknown length; the buffer grows as they arrive. */
static psld_status read_growing(psld_reader *reader, size_t bytes, void **data)
{
    void *block = NULL;
    size_t capacity = 0, filled = 0, got = 0;
    psld_status status = PSLD_OK;
    do {
        size_t need = filled + FIRST_BLOCK < bytes ? filled + FIRST_BLOCK : bytes;
        PSLD_TRY_OR(failed, psld_grow(&block, &capacity, need ? need : 1, 1));
        size_t room = (capacity < bytes ? capacity : bytes) - filled;
        PSLD_TRY_OR(failed, psld_reader_get(reader, (char *)block + filled, room, &got));
        filled += got;
        if (got < room) PSLD_TRY_OR(failed, npy_fail_length(reader, bytes, filled));
    } while (filled < bytes);
    *data = block;
    return PSLD_OK;
failed:
    psld_release(block);
    return status;
}

/* Where the next element of a file in Fortran order goes: counts the indices up, the first one fastest. */
typedef struct fortran_index {
    const psld_array *array;
    size_t index[PSLD_MAX_RANK];
    size_t stride[PSLD_MAX_RANK]; /* elements, in C order */
    size_t offset;
} fortran_index;

static void fortran_start(fortran_index *w, const psld_array *array)
{
    *w = (fortran_index){.array = array};
    size_t stride = 1;
    for (int i = array->rank - 1; i >= 0; i--) {
        w->stride[i] = stride;
        stride *= array->shape[i];
    }
}

static void fortran_next(fortran_index *w)
{
    for (int i = 0; i < w->array->rank; i++) {
        w->offset += w->stride[i];
        if (++w->index[i] < w->array->shape[i]) return;
        w->offset -= w->stride[i] * w->array->shape[i];
        w->index[i] = 0;
    }
}

/* Reads elements in Fortran order and stores them in C order, chunk by chunk. */
static psld_status read_fortran(psld_reader *reader, psld_array *array)
{
    size_t size = psld_type_size(array->type), total = array->count * size, got = 0;
    char *piece = psld_alloc(PIECE, 1);
    if (!piece) return PSLD_NO_MEMORY;
    psld_status status = PSLD_OK;
    fortran_index w;
    fortran_start(&w, array);
    for (size_t done = 0; status == PSLD_OK && done < total; done += got) {
        size_t wanted = total - done < PIECE ? total - done : PIECE;
        status = psld_reader_get(reader, piece, wanted, &got);
        if (status == PSLD_OK && got < wanted) status = npy_fail_length(reader, total, done + got);
        for (size_t i = 0; status == PSLD_OK && i < got; i += size, fortran_next(&w))
            memcpy((char *)array->data + w.offset * size, piece + i, size);
    }
    psld_release(piece);
    return status;
}

static psld_status read_known(psld_reader *reader, int fortran, psld_array *array)
{
    size_t size = psld_type_size(array->type), bytes = array->count * size, got = 0;
    if (reader->left != bytes) return npy_fail_length(reader, bytes, reader->left);
    array->data = psld_alloc(array->count, size);
    if (!array->data) return PSLD_NO_MEMORY;
    if (fortran) return read_fortran(reader, array);
    PSLD_TRY(psld_reader_get(reader, array->data, bytes, &got));
    return got == bytes ? PSLD_OK : npy_fail_length(reader, bytes, got);
}

static psld_status read_unknown(psld_reader *reader, int fortran, psld_array *array)
{
    size_t size = psld_type_size(array->type), bytes = array->count * size;
    void *data = NULL;
    PSLD_TRY(read_growing(reader, bytes, &data));
    if (!fortran) {
        array->data = data;
        return PSLD_OK;
    }
    psld_reader memory;
    psld_reader_memory(data, bytes, reader->path, &memory);
    psld_status status = read_known(&memory, 1, array);
    psld_release(data);
    return status;
}

psld_status psld_npy_read(psld_reader *reader, psld_array **array)
{
    *array = NULL;
    header h;
    psld_array *a = NULL;
    PSLD_TRY(npy_read_header(reader, &h));
    psld_status status = psld_array_header(h.type, h.rank, h.shape, &a);
    if (status == PSLD_BAD_ARGUMENT)
        return psld_fail(PSLD_BAD_INPUT, "%s: the sizes of the array are too large", reader->path);
    if (status != PSLD_OK) return status;
    int fortran = h.fortran && h.rank > 1;
    status = reader->length_known ? read_known(reader, fortran, a) : read_unknown(reader, fortran, a);
    if (status == PSLD_OK) status = check_end(reader, a->count * psld_type_size(a->type));
    if (status != PSLD_OK) {
        psld_array_free(a);
        return status;
    }
    *array = a;
    return PSLD_OK;
}

psld_status psld_npy_view(const void *bytes, size_t size, const char *path, psld_array *view, int *fortran)
{
    header h;
    psld_reader reader;
    *view = (psld_array){0};
    psld_reader_memory(bytes, size, path, &reader);
    PSLD_TRY(npy_read_header(&reader, &h));
    size_t count = 0, offset = size - reader.left;
    if (!psld_array_count(h.rank, h.shape, &count))
        return psld_fail(PSLD_BAD_INPUT, "%s: the sizes of the array are too large", path);
    size_t expected = count * psld_type_size(h.type);
    if (expected != reader.left) return npy_fail_length(&reader, expected, reader.left);
    *view = (psld_array){.type = h.type, .rank = h.rank, .count = count};
    memcpy(view->shape, h.shape, sizeof h.shape);
    view->data = (char *)(uintptr_t)bytes + offset; /* an array's elements are not const, though these are */
    *fortran = h.fortran && h.rank > 1;
    return PSLD_OK;
}
