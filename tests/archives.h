/* Writing archives for tests, by libarchive. */
#ifndef PSLD_TESTS_ARCHIVES_H
#define PSLD_TESTS_ARCHIVES_H

#include <archive.h>
#include <archive_entry.h>

#include "bytes.h"

/* "zip", "gzip" (a compressed tar), or anything else: a plain tar. */
static inline struct archive *archive_begin(const char *path, const char *format)
{
    struct archive *a = archive_write_new();
    if (strcmp(format, "gzip") == 0) archive_write_add_filter_gzip(a);
    if (strcmp(format, "zip") == 0)
        archive_write_set_format_zip(a);
    else
        archive_write_set_format_ustar(a);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    return a;
}

/* Adds a file and frees its bytes. */
static inline void archive_add(struct archive *a, const char *name, bytes file)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)file.size);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, file.data, file.size), (la_ssize_t)file.size);
    archive_entry_free(entry);
    bytes_free(&file);
}

static inline void archive_end(struct archive *a)
{
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
}

#endif
