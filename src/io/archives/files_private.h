/* What folders and archives share. */
#ifndef PSLD_IO_FILES_PRIVATE_H
#define PSLD_IO_FILES_PRIVATE_H

#include "io/archives/files.h"
#include "io/files/zip.h"

/* A larger file is refused as a member of a data set. */
#define PSLD_FILE_MAX_SIZE ((size_t)1 << 30)

/* Where the bytes of a file are: in the archive (stored or deflated), in memory or in the scratch file. In a folder:
 * not read yet. */
typedef enum psld_location { PSLD_IN_FOLDER, PSLD_IN_MAP, PSLD_IN_ZIP, PSLD_IN_MEMORY, PSLD_IN_SCRATCH } psld_location;

typedef struct psld_file_entry {
    size_t offset_of_name; /* into names, which may be moved when they grow */
    const char *name;      /* once all are listed */
    psld_location place;
    size_t size;
    uint64_t offset; /* offset in the archive, in memory or in the scratch file */
    size_t packed;   /* if deflated: compressed size in the archive, and the checksum of the contents */
    uint32_t crc;
} psld_file_entry;

struct psld_files {
    char *path;
    const char *kind;
    psld_file_entry *entries;
    size_t count, capacity;
    char *names; /* each with a 0 byte behind it */
    size_t names_size, names_capacity;
    uint64_t refused;
    psld_map map; /* of the archive, or the one picture */
    char *memory;
    size_t memory_size, memory_capacity, memory_limit;
    const char *scratch_folder; /* while it is opened */
    int scratch;                /* -1: none */
    uint64_t scratch_size;
};

/* Whether one part of the name equals `part`; with part ".": begins with a dot. */
int psld_files_has_part(const char *name, const char *part);
/* Adds an entry without a location. *entry is NULL for a name that is left out. */
psld_status psld_files_add(psld_files *files, const char *name, psld_file_entry **entry);
/* Lists an archive. */
psld_status psld_archive_list(psld_files *files);

#endif
