/* A record of a TFRecord file:
 *     u64 length, u32 checksum of these eight bytes, bytes [length], u32 checksum of the bytes,
 * little-endian, checksums masked. The bytes are a message Event, in which a field is a key, number << 3 | kind, and
 *     kind 0: a varint      kind 1: eight bytes      kind 2: a varint length and so many bytes      kind 5: four bytes
 * of which these are written:
 *     Event    1 wall_time (double), 2 step, 3 file_version, 5 summary (Summary), 7 session_log (SessionLog)
 *     Summary  1 value (Value, repeated)
 *     Value    1 tag, 2 simple_value (float), 4 image (Image)
 *     Image    1 height, 2 width, 3 colorspace (channels), 4 encoded_image_string
 *     SessionLog 1 status: 1 is START. TensorBoard then hides what earlier files have from this step on. */
#include "train/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/images/image.h"
#include "psld.h"

enum { VARINT = 0, DOUBLE = 1, BYTES = 2, FLOAT = 5, LONGEST_PATH = 4096 };
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_IMAGE = 4 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_CHANNELS = 3, IMAGE_BYTES = 4 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };

struct psld_events {
    int fd;
    char path[LONGEST_PATH];
};

uint32_t psld_crc32c(const void *bytes, size_t size)
{
    const uint8_t *byte = bytes;
    uint32_t crc = 0xffffffffU;
    for (size_t i = 0; i < size; i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
    }
    return ~crc;
}

/* The mask of TFRecord: plain checksums of bytes that contain checksums would be weak. */
static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* A growing message; if memory runs out it stays unchanged and remembers the failure. */
typedef struct message {
    uint8_t *bytes;
    size_t size, room;
    int failed;
} message;

static void put_bytes(message *m, const void *bytes, size_t size)
{
    if (m->failed) return;
    if (m->room - m->size < size) {
        size_t room = 2 * m->room + size + 64;
        uint8_t *more = psld_alloc(room, 1);
        if (!more) {
            m->failed = 1;
            return;
        }
        if (m->size) memcpy(more, m->bytes, m->size);
        psld_release(m->bytes);
        m->bytes = more;
        m->room = room;
    }
    if (size) memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void put_little(message *m, uint64_t number, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(number >> 8 * i);
    put_bytes(m, bytes, size);
}

static void put_varint(message *m, uint64_t number)
{
    for (; number >= 0x80; number >>= 7) put_little(m, (number & 0x7f) | 0x80, 1);
    put_little(m, number, 1);
}

static void put_key(message *m, int field, int kind)
{
    put_varint(m, (uint64_t)field << 3 | (uint64_t)kind);
}

static void put_whole(message *m, int field, uint64_t number)
{
    put_key(m, field, VARINT);
    put_varint(m, number);
}

static void put_double(message *m, int field, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_key(m, field, DOUBLE);
    put_little(m, bits, sizeof bits);
}

static void put_float(message *m, int field, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_key(m, field, FLOAT);
    put_little(m, bits, sizeof bits);
}

static void put_string(message *m, int field, const void *bytes, size_t size)
{
    put_key(m, field, BYTES);
    put_varint(m, size);
    put_bytes(m, bytes, size);
}

/* Adds a message to another as a field, and releases it. */
static void put_message(message *m, int field, message *inner)
{
    m->failed |= inner->failed;
    put_string(m, field, inner->bytes, inner->size);
    psld_release(inner->bytes);
    *inner = (message){0};
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

static psld_status write_all(const psld_events *events, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(events->fd, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return psld_fail_errno(events->path, "write", errno);
        bytes += written;
        size -= (size_t)written;
    }
    return PSLD_OK;
}

static double wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Writes an event with time, step and one more field, which is released. */
static psld_status write_event(const psld_events *events, long step, int field, message *content)
{
    message event = {0}, record = {0};
    put_double(&event, EVENT_TIME, wall_time());
    if (step) put_whole(&event, EVENT_STEP, (uint64_t)step);
    put_message(&event, field, content);
    put_little(&record, event.size, 8);
    put_little(&record, masked(psld_crc32c(record.bytes, record.failed ? 0 : 8)), 4);
    put_bytes(&record, event.bytes, event.size);
    put_little(&record, masked(psld_crc32c(event.bytes, event.size)), 4);
    psld_status status = event.failed || record.failed ? psld_fail(PSLD_NO_MEMORY, "%s: out of memory", events->path)
                                                       : write_all(events, record.bytes, record.size);
    psld_release(event.bytes);
    psld_release(record.bytes);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* A new name after those of all earlier files: TensorBoard reads files in the order of their names, which begin with
 * the time. */
static psld_status create_file(const char *folder, psld_events *events)
{
    for (int number = 0; number < 1000; number++) {
        int length = snprintf(events->path, sizeof events->path, "%s/events.out.tfevents.%010lld.psld.%03d", folder,
                              (long long)time(NULL), number);
        if (length >= (int)sizeof events->path)
            return psld_fail(PSLD_BAD_INPUT, "%.200s: the name is too long", folder);
        events->fd = open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (events->fd >= 0) return PSLD_OK;
        if (errno != EEXIST) break;
    }
    return psld_fail_errno(events->path, "write", errno);
}

psld_status psld_events_open(const char *folder, long step, psld_events **events)
{
    static const char version[] = "brain.Event:2";
    message content = {0};
    *events = NULL;
    PSLD_TRY(psld_folder_make(folder));
    psld_events *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->fd = -1;
    psld_status status = create_file(folder, made);
    if (status == PSLD_OK) {
        /* The version is a field of Event itself, not a message within it. */
        put_bytes(&content, version, sizeof version - 1);
        status = write_event(made, 0, EVENT_VERSION, &content);
    }
    if (status == PSLD_OK) {
        put_whole(&content, SESSION_STATUS, SESSION_START);
        status = write_event(made, step + 1, EVENT_SESSION, &content);
    }
    if (status == PSLD_OK)
        *events = made;
    else
        psld_events_close(made);
    return status;
}

void psld_events_close(psld_events *events)
{
    if (!events) return;
    if (events->fd >= 0) close(events->fd);
    psld_release(events);
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

psld_status psld_events_scalars(psld_events *events, long step, size_t count, const psld_scalar *scalars)
{
    message summary = {0}, value = {0};
    for (size_t i = 0; i < count; i++) {
        if (isnan(scalars[i].value)) continue;
        put_string(&value, VALUE_TAG, scalars[i].tag, strlen(scalars[i].tag));
        put_float(&value, VALUE_SIMPLE, (float)scalars[i].value);
        put_message(&summary, SUMMARY_VALUE, &value);
    }
    return write_event(events, step, EVENT_SUMMARY, &summary);
}

psld_status psld_events_picture(psld_events *events, long step, const char *tag, const void *png, size_t size)
{
    psld_image about = {0};
    message summary = {0}, value = {0}, picture = {0};
    PSLD_TRY(psld_image_header(png, size, tag, &about));
    put_whole(&picture, IMAGE_HEIGHT, about.height);
    put_whole(&picture, IMAGE_WIDTH, about.width);
    put_whole(&picture, IMAGE_CHANNELS, (uint64_t)about.channels);
    put_string(&picture, IMAGE_BYTES, png, size);
    put_string(&value, VALUE_TAG, tag, strlen(tag));
    put_message(&value, VALUE_IMAGE, &picture);
    put_message(&summary, SUMMARY_VALUE, &value);
    return write_event(events, step, EVENT_SUMMARY, &summary);
}
