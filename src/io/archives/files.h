/* Many files under one roof, read one by one in any order: a folder with all below it, or an archive (tar, plain or
 * compressed, or zip), which is never unpacked on disk. Names are paths from the roof with '/' between their parts, in
 * the order of their bytes: a folder and an archive of it look the same.
 *
 * What begins with '.' is left out (and so are the __MACOSX folders of zips). Names in an archive that are absolute or
 * have ".." in them are refused: named in the log and counted. */
#ifndef PSLD_IO_FILES_H
#define PSLD_IO_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "io/files/map.h"

typedef struct psld_files psld_files;

/* What compressed archives hold is kept unpacked: up to `memory` bytes in memory, the rest in a file without a name in
 * `scratch_folder` (io/files/scratch.h). */
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
/* "<path>/<name>": what messages call a file. */
void psld_file_origin(const psld_files *files, size_t index, char *origin, size_t size);
/* Names of an archive that were refused, and links in it. */
uint64_t psld_files_refused(const psld_files *files);

/* The bytes of one file, in memory. Any thread; release with psld_map_close, before the files are freed. */
psld_status psld_files_read(const psld_files *files, size_t index, psld_map *bytes);
/* The same without a copy where they can be looked at where they lie: for large files that stay open, until all is let
 * go (io/files/map.h), and with it the archive. */
psld_status psld_files_view(const psld_files *files, size_t index, psld_map *bytes);
void psld_files_unmap(psld_files *files);

#endif
