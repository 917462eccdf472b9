/* Files: reading with a size limit, and writing so that a reader never sees half a file.
 *
 * A writer writes under a temporary name beside the target; commit makes the data durable and renames the file.
 * Until then the old file, if any, is untouched; abort (or a failed commit) leaves nothing behind. Anything that is
 * not a regular file (a pipe, a terminal, /dev/null, /dev/stdout) is written to directly. */
#ifndef PSLD_IO_FILE_H
#define PSLD_IO_FILE_H

#include <dirent.h>
#include <stddef.h>

#include "base/status.h"

/* The whole file with a 0 byte appended (not counted in *size). Fails if it is longer than `limit`, is a folder, or
 * cannot be read. Release with psld_release. */
psld_status psld_file_read(const char *path, size_t limit, char **bytes, size_t *size);

/* Reads a file, or bytes in memory, part by part, so that large data are in memory once. No allocation. */
typedef struct psld_reader {
    const char *path;  /* names the source in messages; borrowed */
    int fd;            /* -1: memory */
    int length_known;  /* a regular file or memory, not a pipe */
    size_t left;       /* bytes still to come, if the length is known from the file's size */
    const char *bytes; /* memory: the next one */
} psld_reader;

psld_status psld_reader_open(const char *path, psld_reader *reader);
void psld_reader_memory(const void *bytes, size_t size, const char *name, psld_reader *reader);
/* Up to `size` bytes; *got is less only at the end. */
psld_status psld_reader_get(psld_reader *reader, void *to, size_t size, size_t *got);
/* The same without advancing: the next reader of /dev/stdin finds the bytes again. Pipes cannot do this and are
 * refused. */
psld_status psld_reader_peek(const psld_reader *reader, void *to, size_t size, size_t *got);
void psld_reader_close(psld_reader *reader);

/* The next name in an open folder; NULL after the last one. `path` names the folder in messages. */
psld_status psld_folder_next(DIR *folder, const char *path, const struct dirent **entry);

typedef struct psld_writer psld_writer;

psld_status psld_writer_open(const char *path, psld_writer **writer);
/* For a name that the program chose itself, in a folder that anybody may have filled: a symbolic link of that name
 * is replaced, not followed. */
psld_status psld_writer_open_own(const char *path, psld_writer **writer);
/* Writes after a failure do nothing; commit reports the first one. */
void psld_writer_put(psld_writer *writer, const void *bytes, size_t size);
/* Both free the writer. NULL is harmless to abort. */
psld_status psld_writer_commit(psld_writer *writer);
void psld_writer_abort(psld_writer *writer);

#endif
