/* Event files, taken apart by hand; tests/cli/tensorboard.sh has the tensorboard package read them. */
#include "train/tensorboard.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "io/files/file.h"

/* RFC 3720, B.4, and the usual check value. */
static void test_checksum(void **state)
{
    uint8_t bytes[32] = {0};
    (void)state;
    assert_int_equal(psld_crc32c("123456789", 9), 0xe3069283U);
    assert_int_equal(psld_crc32c(bytes, 32), 0x8a9136aaU);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(psld_crc32c(bytes, 32), 0x62a8ab43U);
}

static uint64_t little(const char *bytes, int size)
{
    uint64_t number = 0;
    for (int i = size; i-- > 0;) number = number << 8 | (uint8_t)bytes[i];
    return number;
}

static uint32_t unmasked(uint32_t crc)
{
    crc -= 0xa282ead8U;
    return crc >> 17 | crc << 15;
}

/* The only file in a folder. */
static char *read_events(const char *folder, size_t *size)
{
    char path[600] = "", *bytes;
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (struct dirent *entry; (entry = readdir(all));)
        if (entry->d_name[0] != '.') snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    closedir(all);
    assert_non_null(strstr(path, "tfevents"));
    assert_int_equal(psld_file_read(path, 1 << 20, &bytes, size), PSLD_OK);
    return bytes;
}

static void test_records(void **state)
{
    psld_events *events;
    const psld_scalar scalars[] = {{"a", 1.5}, {"left out", (double)__builtin_nanf("")}, {"b", -2}};
    size_t size, count = 0;
    (void)state;
    assert_int_equal(psld_events_open("events", 300, &events), PSLD_OK);
    assert_int_equal(psld_events_scalars(events, 301, 3, scalars), PSLD_OK);
    assert_int_not_equal(psld_events_picture(events, 301, "samples", "no picture", 10), PSLD_OK);
    psld_events_close(events);
    char *bytes = read_events("events", &size);
    /* Time; step 301 as a varint; the summary with two values of 10 bytes each. */
    static const char step[] = "\x10\xad\x02\x2a\x14"
                               "\x0a\x08\x0a\x01"
                               "a\x15\x00\x00\xc0\x3f"
                               "\x0a\x08\x0a\x01"
                               "b\x15\x00\x00\x00\xc0",
                      session[] = "\x10\xad\x02\x3a\x02\x08\x01",
                      version[] = "\x1a\x0d"
                                  "brain.Event:2";
    static const struct {
        const char *bytes;
        size_t size;
    } expected[] = {{version, sizeof version - 1}, {session, sizeof session - 1}, {step, sizeof step - 1}};
    for (size_t at = 0; at < size; count++) {
        size_t length = (size_t)little(bytes + at, 8);
        assert_true(count < 3 && length == 9 + expected[count].size);
        assert_int_equal(unmasked((uint32_t)little(bytes + at + 8, 4)), psld_crc32c(bytes + at, 8));
        assert_int_equal(bytes[at + 12], 9); /* wall time: field 1, eight bytes */
        assert_memory_equal(bytes + at + 21, expected[count].bytes, expected[count].size);
        assert_int_equal(unmasked((uint32_t)little(bytes + at + 12 + length, 4)), psld_crc32c(bytes + at + 12, length));
        at += 16 + length;
    }
    assert_int_equal(count, 3);
    psld_release(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_checksum), cmocka_unit_test(test_records)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
