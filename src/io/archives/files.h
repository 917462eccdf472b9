/* A set of files, read one by one in any order: a folder with everything below it, or an archive (tar, plain or
 * compressed, or zip), which is never unpacked to disk. Names are paths relative to the folder or archive, with '/'
 * between their parts, in byte order. So a folder and an archive of it look the same.
 *
 * Names that begin with '.' are left out (and so are the __MACOSX folders of zips). Names in an archive that are
 * absolute or contain ".." are refused: they are logged and counted. */
#ifndef PSLD_IO_FILES_H
#define PSLD_IO_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "io/files/map.h"

typedef struct psld_files psld_files;

/* The contents of compressed archives are kept unpacked: up to `memory` bytes in memory, the rest in a nameless file
 * in `scratch_folder` (io/files/scratch.h). */
psld_status psld_files_open(const char *path, size_t memory, const char *scratch_folder, psld_files **files);
void psld_files_free(psld_files *files);

/* "folder", "tar archive", "zip archive" */
const char *psld_files_kind(const psld_files *files);
const char *psld_files_path(const psld_files *files);
size_t psld_files_count(const psld_files *files);
/* index < count */
const char *psld_files_name(const psld_files *files, size_t index);
/* Index of a name, or -1. */
ptrdiff_t psld_files_find(const psld_files *files, const char *name);
/* "<path>/<name>": how messages name a file. */
void psld_file_origin(const psld_files *files, size_t index, char *origin, size_t size);
/* The number of names and links of an archive that were refused. */
uint64_t psld_files_refused(const psld_files *files);

/* The bytes of one file, in memory. Thread-safe. Release with psld_map_close before the files are freed. */
psld_status psld_files_read(const psld_files *files, size_t index, psld_map *bytes);
/* The same without a copy where possible: for large files that stay open until all mappings are released
 * (io/files/map.h), and the archive with them. */
psld_status psld_files_view(const psld_files *files, size_t index, psld_map *bytes);
void psld_files_unmap(psld_files *files);

#endif
