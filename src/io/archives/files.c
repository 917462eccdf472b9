#include "io/archives/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "io/archives/files_private.h"
#include "io/files/file.h"
#include "io/files/scratch.h"
#include "io/images/image.h"

enum { MAX_DEPTH = 16, MAX_PATH = 4096, SMALL = 1 << 20 };

/* ---- Names ------------------------------------------------------------------------------------------------------- */

int psld_files_has_part(const char *name, const char *part)
{
    size_t length = strlen(part);
    for (const char *at = name; at; at = strchr(at, '/')) {
        if (*at == '/') at++;
        int is_hidden = strcmp(part, ".") == 0 && *at == '.';
        if (is_hidden || (strncmp(at, part, length) == 0 && (at[length] == '/' || at[length] == '\0'))) return 1;
    }
    return 0;
}

psld_status psld_files_add(psld_files *files, const char *name, psld_file_entry **entry)
{
    *entry = NULL;
    if (!*name || psld_files_has_part(name, ".") || psld_files_has_part(name, "__MACOSX")) return PSLD_OK;
    size_t length = strlen(name) + 1;
    void *names = files->names, *entries = files->entries;
    psld_status status = psld_grow(&names, &files->names_capacity, files->names_size + length, 1);
    files->names = names;
    if (status == PSLD_OK) status = psld_grow(&entries, &files->capacity, files->count + 1, sizeof *files->entries);
    files->entries = entries;
    if (status != PSLD_OK) return status;
    *entry = &files->entries[files->count++];
    **entry = (psld_file_entry){.offset_of_name = files->names_size};
    memcpy(files->names + files->names_size, name, length);
    files->names_size += length;
    return PSLD_OK;
}

/* ---- Folders ----------------------------------------------------------------------------------------------------- */

/* A folder above the current one, to notice links that lead back up. */
typedef struct ancestor {
    const struct ancestor *parent;
    dev_t device;
    ino_t inode;
} ancestor;

static psld_status list_below(psld_files *files, char *path, const ancestor *parent, int depth);

/* One name in the folder `path`, whose length is `length`. */
static psld_status list_entry_below(psld_files *files, char *path, size_t length, const struct dirent *found,
                                    const ancestor *here, int depth)
{
    struct stat info;
    psld_file_entry *entry = NULL;
    if (found->d_name[0] == '.') return PSLD_OK;
    if (length + strlen(found->d_name) + 2 > MAX_PATH)
        return psld_fail(PSLD_BAD_INPUT, "%s: a path of more than %d bytes", path, MAX_PATH);
    snprintf(path + length, MAX_PATH - length, "/%s", found->d_name);
    int is_folder = found->d_type == DT_DIR, is_file = found->d_type == DT_REG;
    if (!is_folder && !is_file) { /* a link, or the file system does not say; a dangling link fails when it is read */
        int is_there = stat(path, &info) == 0;
        is_folder = is_there && S_ISDIR(info.st_mode);
        is_file = !is_there || S_ISREG(info.st_mode);
    }
    psld_status status = PSLD_OK;
    if (is_folder) status = list_below(files, path, here, depth + 1);
    if (is_file) status = psld_files_add(files, path + strlen(files->path) + 1, &entry);
    path[length] = '\0';
    return status;
}

static psld_status list_below(psld_files *files, char *path, const ancestor *parent, int depth)
{
    struct stat info;
    if (depth > MAX_DEPTH) return psld_fail(PSLD_BAD_INPUT, "%s: folders more than %d deep", path, MAX_DEPTH);
    if (stat(path, &info) != 0) return psld_fail_errno(path, "read", errno);
    for (const ancestor *a = parent; a; a = a->parent)
        if (a->device == info.st_dev && a->inode == info.st_ino) return PSLD_OK;
    const ancestor here = {parent, info.st_dev, info.st_ino};
    DIR *folder = opendir(path);
    if (!folder) return psld_fail_errno(path, "read", errno);
    psld_status status = PSLD_OK;
    const struct dirent *found = NULL;
    do {
        status = psld_folder_next(folder, path, &found);
        if (found) status = list_entry_below(files, path, strlen(path), found, &here, depth);
    } while (status == PSLD_OK && found);
    closedir(folder);
    return status;
}

static psld_status list_folder(psld_files *files)
{
    files->kind = "folder";
    size_t length = strlen(files->path);
    while (length > 1 && files->path[length - 1] == '/') files->path[--length] = '\0';
    if (length >= MAX_PATH) return psld_fail(PSLD_BAD_INPUT, "%s: a path of more than %d bytes", files->path, MAX_PATH);
    char *path = psld_alloc(MAX_PATH, 1);
    if (!path) return PSLD_NO_MEMORY;
    memcpy(path, files->path, length);
    psld_status status = list_below(files, path, NULL, 0);
    psld_release(path);
    return status;
}

/* A single image is a set of one. */
static psld_status list_picture(psld_files *files)
{
    const char *slash = strrchr(files->path, '/');
    psld_file_entry *entry = NULL;
    files->kind = "picture";
    PSLD_TRY(psld_map_open_file(files->path, &files->map));
    PSLD_TRY(psld_files_add(files, slash ? slash + 1 : files->path, &entry));
    if (!entry) return psld_fail(PSLD_BAD_INPUT, "%s: not a name that a picture may have", files->path);
    entry->place = PSLD_IN_MAP;
    entry->size = files->map.size;
    return PSLD_OK;
}

/* By its name, or by its first bytes where it has none: an open descriptor. */
static int is_picture(const char *path)
{
    psld_reader reader;
    uint8_t head[16];
    size_t size = 0;
    if (psld_image_name(path)) return 1;
    if (psld_reader_open(path, &reader) != PSLD_OK) return 0;
    psld_status status = psld_reader_peek(&reader, head, sizeof head, &size);
    psld_reader_close(&reader);
    return status == PSLD_OK && psld_image_format(head, size) != NULL;
}

static psld_status list_files(psld_files *files, int is_folder)
{
    if (is_folder) return list_folder(files);
    return is_picture(files->path) ? list_picture(files) : psld_archive_list(files);
}

/* ---- From outside ------------------------------------------------------------------------------------------------ */

static int compare_file_names(const void *a, const void *b)
{
    const psld_file_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void sort_files(psld_files *files)
{
    for (size_t i = 0; i < files->count; i++) files->entries[i].name = files->names + files->entries[i].offset_of_name;
    if (files->count > 1) qsort(files->entries, files->count, sizeof *files->entries, compare_file_names);
}

void psld_files_free(psld_files *files)
{
    if (!files) return;
    psld_map_close(&files->map);
    psld_scratch_close(files->scratch);
    psld_release(files->memory);
    psld_release(files->entries);
    psld_release(files->names);
    psld_release(files->path);
    psld_release(files);
}

psld_status psld_files_open(const char *path, size_t memory, const char *scratch_folder, psld_files **files)
{
    *files = NULL;
    struct stat info;
    if (stat(path, &info) != 0) return psld_fail_errno(path, "read", errno);
    psld_files *f = psld_alloc(1, sizeof *f);
    if (!f) return PSLD_NO_MEMORY;
    f->scratch = -1;
    f->memory_limit = memory;
    f->scratch_folder = scratch_folder;
    f->path = psld_copy_text(path);
    psld_status status = f->path ? list_files(f, S_ISDIR(info.st_mode)) : PSLD_NO_MEMORY;
    f->scratch_folder = NULL;
    if (status != PSLD_OK) {
        psld_files_free(f);
        return status;
    }
    sort_files(f);
    *files = f;
    return PSLD_OK;
}

const char *psld_files_kind(const psld_files *files)
{
    return files->kind;
}

const char *psld_files_path(const psld_files *files)
{
    return files->path;
}

size_t psld_files_count(const psld_files *files)
{
    return files->count;
}

const char *psld_files_name(const psld_files *files, size_t index)
{
    return files->entries[index].name;
}

ptrdiff_t psld_files_find(const psld_files *files, const char *name)
{
    const psld_file_entry key = {.name = name}, *found = files->count ? bsearch(&key, files->entries, files->count,
                                                                                sizeof key, compare_file_names)
                                                                      : NULL;
    return found ? found - files->entries : -1;
}

void psld_file_origin(const psld_files *files, size_t index, char *origin, size_t size)
{
    snprintf(origin, size, "%s/%s", files->path, files->entries[index].name);
}

uint64_t psld_files_refused(const psld_files *files)
{
    return files->refused;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* With `view`, large files are mapped. Small files are cheaper to copy. */
static psld_status read_from_folder(const psld_files *files, const psld_file_entry *entry, int view, psld_map *bytes)
{
    char path[MAX_PATH], *block = NULL;
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", files->path, entry->name);
    if (stat(path, &info) != 0) return psld_fail_errno(path, "read", errno);
    if (!S_ISREG(info.st_mode)) return psld_fail(PSLD_IO, "%s: cannot read: not a file", path);
    if (view && info.st_size > SMALL) return psld_map_open_file(path, bytes);
    PSLD_TRY(psld_file_read(path, PSLD_FILE_MAX_SIZE, &block, &bytes->size));
    bytes->block = block;
    bytes->bytes = bytes->block;
    return PSLD_OK;
}

static psld_status unpack_deflated(const psld_files *files, const psld_file_entry *entry, void *to)
{
    void *packed = psld_alloc(entry->packed, 1);
    if (!packed) return psld_fail_in(PSLD_NO_MEMORY, "%s: %s", files->path, entry->name);
    const psld_zip_entry zipped = {.name = entry->name,
                                   .name_length = strlen(entry->name),
                                   .deflated = 1,
                                   .crc = entry->crc,
                                   .packed = entry->packed,
                                   .size = entry->size,
                                   .data = packed};
    psld_status status = psld_map_read(&files->map, (size_t)entry->offset, entry->packed, packed);
    if (status == PSLD_OK) {
        status = psld_zip_extract(&zipped, to);
        if (status != PSLD_OK) psld_fail_in(status, "%s", files->path);
    }
    psld_release(packed);
    return status;
}

/* Copies bytes from the archive or from the scratch file. */
static psld_status read_from_archive(const psld_files *files, const psld_file_entry *entry, psld_map *bytes)
{
    psld_status status = PSLD_OK;
    if (entry->size > PSLD_FILE_MAX_SIZE)
        return psld_fail(PSLD_BAD_INPUT, "%s: %s: unpacks to more than %zu bytes", files->path, entry->name,
                         PSLD_FILE_MAX_SIZE);
    bytes->block = psld_alloc(entry->size, 1);
    if (!bytes->block) return psld_fail_in(PSLD_NO_MEMORY, "%s: %s", files->path, entry->name);
    if (entry->place == PSLD_IN_ZIP)
        status = unpack_deflated(files, entry, bytes->block);
    else if (entry->place == PSLD_IN_MAP)
        status = psld_map_read(&files->map, (size_t)entry->offset, entry->size, bytes->block);
    else
        status = psld_scratch_get(files->scratch, entry->offset, bytes->block, entry->size);
    if (status != PSLD_OK) {
        psld_map_close(bytes);
        return status;
    }
    bytes->bytes = bytes->block;
    bytes->size = entry->size;
    return PSLD_OK;
}

static psld_status read_listed_file(const psld_files *files, size_t index, int view, psld_map *bytes)
{
    const psld_file_entry *entry = &files->entries[index];
    *bytes = (psld_map){0};
    if (entry->place == PSLD_IN_FOLDER) return read_from_folder(files, entry, view, bytes);
    if (entry->size == 0) return PSLD_OK; /* the memory block may be NULL if nothing was kept there */
    if (entry->place == PSLD_IN_MAP && (view || !files->map.file)) {
        *bytes = psld_map_part(&files->map, (size_t)entry->offset, entry->size);
        return PSLD_OK;
    }
    if (entry->place != PSLD_IN_MEMORY) return read_from_archive(files, entry, bytes);
    bytes->bytes = (const unsigned char *)files->memory + entry->offset;
    bytes->size = entry->size;
    return PSLD_OK;
}

psld_status psld_files_read(const psld_files *files, size_t index, psld_map *bytes)
{
    return read_listed_file(files, index, 0, bytes);
}

psld_status psld_files_view(const psld_files *files, size_t index, psld_map *bytes)
{
    return read_listed_file(files, index, 1, bytes);
}

void psld_files_unmap(psld_files *files)
{
    psld_map_unmap(&files->map);
}
