/* Listing an archive. Zip archives have a directory, so their entries are unpacked on demand (io/files/zip.h). A tar
 * is read from end to end by libarchive, from the mapped file. Of a plain tar only the headers are touched, and the
 * files' bytes stay where they are. The contents of a compressed tar are kept: in memory up to a limit, then in a
 * scratch file.
 *
 * A small archive may claim to hold much. So the size of each file is limited (PSLD_FILE_MAX_SIZE), and all that is
 * unpacked of a compressed tar is limited to a multiple of the archive's size. */
#include <string.h>
#ifdef PSLD_ARCHIVES
#include <archive.h>
#include <archive_entry.h>
#endif

#include "base/alloc.h"
#include "base/log.h"
#include "io/archives/files_private.h"
#include "io/files/scratch.h"

/* A program that unpacks the archive would write such a file elsewhere: the archive is not trusted. */
static int leads_outside(const char *name)
{
    return *name == '/' || *name == '\\' || (*name && name[1] == ':') || psld_files_has_part(name, "..");
}

/* As psld_files_add, for the name of a member. *entry is NULL also for a name that is refused. */
static psld_status add_member(psld_files *files, const char *name, psld_file_entry **entry)
{
    *entry = NULL;
    while (strncmp(name, "./", 2) == 0) name += 2;
    if (!leads_outside(name)) return psld_files_add(files, name, entry);
    files->refused++;
    psld_log(PSLD_LOG_WARNING, "%s: refused the name %s, which points outside of the archive", files->path, name);
    return PSLD_OK;
}

/* ---- Zip --------------------------------------------------------------------------------------------------------- */

static psld_status add_zipped(psld_files *files, const psld_zip_entry *from)
{
    enum { MAX_NAME = 4096 };
    char name[MAX_NAME];
    psld_file_entry *entry = NULL;
    if (from->name_length >= MAX_NAME || memchr(from->name, 0, from->name_length)) {
        files->refused++;
        return PSLD_OK;
    }
    memcpy(name, from->name, from->name_length);
    name[from->name_length] = '\0';
    PSLD_TRY(add_member(files, name, &entry));
    if (!entry) return PSLD_OK;
    entry->place = from->deflated ? PSLD_IN_ZIP : PSLD_IN_MAP;
    entry->size = from->size;
    entry->packed = from->packed;
    entry->crc = from->crc;
    entry->offset = (uint64_t)(from->data - files->map.bytes);
    return PSLD_OK;
}

static psld_status list_zip(psld_files *files)
{
    psld_zip *zip = NULL;
    files->kind = "zip archive";
    PSLD_TRY(psld_zip_open(files->map.bytes, files->map.size, files->path, &zip));
    psld_status status = PSLD_OK;
    for (size_t i = 0; status == PSLD_OK && i < zip->count; i++) status = add_zipped(files, &zip->entries[i]);
    psld_zip_free(zip);
    return status;
}

/* ---- Tar --------------------------------------------------------------------------------------------------------- */

#ifdef PSLD_ARCHIVES
enum { BUDGET_FACTOR = 64 };
#define BUDGET_BASE ((uint64_t)1 << 28)

typedef struct reading {
    psld_files *files;
    struct archive *archive;
    uint64_t budget;
} reading;

static psld_status fail_archive(const reading *r)
{
    const char *why = archive_error_string(r->archive);
    if (archive_format(r->archive) == 0) /* no format was recognised */
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: neither an archive (tar, plain or compressed, or zip) nor another file that "
                         "is known here",
                         r->files->path);
    return psld_fail(PSLD_BAD_INPUT, "%s: a broken archive: %s", r->files->path, why ? why : "no reason is given");
}

/* Adds bytes to an entry. The bytes of one entry stay together: in memory, or in the scratch file once memory is
 * full. */
static psld_status keep_bytes(psld_files *files, psld_file_entry *entry, const void *bytes, size_t size)
{
    if (entry->place == PSLD_IN_MEMORY) {
        void *memory = files->memory;
        PSLD_TRY(psld_grow(&memory, &files->memory_capacity, files->memory_size + size, 1));
        files->memory = memory;
        memcpy(files->memory + files->memory_size, bytes, size);
        files->memory_size += size;
    } else {
        if (files->scratch < 0) PSLD_TRY(psld_scratch_open(files->scratch_folder, &files->scratch));
        PSLD_TRY(psld_scratch_put(files->scratch, files->scratch_size, bytes, size));
        files->scratch_size += size;
    }
    entry->size += size;
    return PSLD_OK;
}

static psld_status spend_budget(reading *r, const psld_file_entry *entry, size_t size)
{
    const char *name = r->files->names + entry->offset_of_name;
    if (size > PSLD_FILE_MAX_SIZE - entry->size)
        return psld_fail(PSLD_BAD_INPUT, "%s: %s: more than the %zu bytes that a file in an archive may have",
                         r->files->path, name, PSLD_FILE_MAX_SIZE);
    if (size > r->budget)
        return psld_fail(PSLD_BAD_INPUT, "%s: unpacks to more than %d times its size", r->files->path, BUDGET_FACTOR);
    r->budget -= size;
    return PSLD_OK;
}

/* Whether the block lies in the mapped archive and directly follows the bytes that the entry already has. */
static int continues_inside(const psld_files *files, const psld_file_entry *entry, const unsigned char *block)
{
    uintptr_t begin = (uintptr_t)files->map.bytes, at = (uintptr_t)block;
    if (at < begin || at >= begin + files->map.size) return 0;
    return entry->size == 0 || (entry->place == PSLD_IN_MAP && entry->offset + entry->size == at - begin);
}

static psld_status read_tar_entry(reading *r, psld_file_entry *entry)
{
    psld_files *files = r->files;
    const void *block = NULL;
    size_t size = 0;
    la_int64_t offset = 0;
    int is_full = files->memory_size >= files->memory_limit;
    for (;;) {
        int code = archive_read_data_block(r->archive, &block, &size, &offset);
        if (code == ARCHIVE_EOF) return PSLD_OK;
        if (code != ARCHIVE_OK) return fail_archive(r);
        if (size == 0) continue;
        if ((uint64_t)offset != entry->size)
            return psld_fail(PSLD_BAD_INPUT, "%s: %s: a file with holes in it", files->path,
                             files->names + entry->offset_of_name);
        PSLD_TRY(spend_budget(r, entry, size));
        if (continues_inside(files, entry, block)) {
            if (entry->size == 0) entry->offset = (uint64_t)((const unsigned char *)block - files->map.bytes);
            entry->place = PSLD_IN_MAP;
            entry->size += size;
            continue;
        }
        if (entry->size == 0) {
            entry->place = is_full ? PSLD_IN_SCRATCH : PSLD_IN_MEMORY;
            entry->offset = is_full ? files->scratch_size : files->memory_size;
        }
        PSLD_TRY(keep_bytes(files, entry, block, size));
    }
}

static psld_status list_entries(reading *r)
{
    struct archive_entry *found = NULL;
    for (;;) {
        int code = archive_read_next_header(r->archive, &found);
        if (code == ARCHIVE_EOF) return PSLD_OK;
        if (code < ARCHIVE_WARN) return fail_archive(r);
        const char *name = archive_entry_pathname(found);
        psld_file_entry *entry = NULL;
        if (name && archive_entry_hardlink(found)) {
            r->files->refused++;
            psld_log(PSLD_LOG_WARNING, "%s: left out %s, which is a link to another file", r->files->path, name);
            continue;
        }
        if (!name || archive_entry_filetype(found) != AE_IFREG) continue;
        PSLD_TRY(add_member(r->files, name, &entry));
        if (!entry) continue;
        entry->place = PSLD_IN_MEMORY; /* of an empty file */
        PSLD_TRY(read_tar_entry(r, entry));
    }
}

static psld_status list_tar(psld_files *files)
{
    files->kind = "tar archive";
    reading r = {.files = files, .archive = archive_read_new()};
    if (!r.archive) return psld_fail(PSLD_NO_MEMORY, "%s: out of memory", files->path);
    r.budget = BUDGET_BASE + (uint64_t)files->map.size * BUDGET_FACTOR;
    archive_read_support_filter_gzip(r.archive);
    archive_read_support_filter_bzip2(r.archive);
    archive_read_support_filter_xz(r.archive);
    archive_read_support_filter_zstd(r.archive);
    archive_read_support_format_tar(r.archive);
    int code = archive_read_open_memory(r.archive, files->map.bytes, files->map.size);
    psld_status status = code == ARCHIVE_OK ? list_entries(&r) : fail_archive(&r);
    archive_read_free(r.archive);
    return status;
}
#else
static psld_status list_tar(psld_files *files)
{
    return psld_fail(
        PSLD_BAD_INPUT,
        "%s: no zip archive, nor another file that is known here (tar archives are not read by this build, "
        "which is without libarchive)",
        files->path);
}
#endif

psld_status psld_archive_list(psld_files *files)
{
    PSLD_TRY(psld_map_open_file(files->path, &files->map));
    int is_zip = files->map.size >= 4 &&
                 (memcmp(files->map.bytes, "PK\3\4", 4) == 0 || memcmp(files->map.bytes, "PK\5\6", 4) == 0);
    return is_zip ? list_zip(files) : list_tar(files);
}
