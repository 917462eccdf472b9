#include "io/tensors/npz.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/files/map.h"
#include "io/files/zip.h"
#include "io/tensors/npy.h"

enum { MAX_NAME = 1024, NAMES_SHOWN = 200 };

struct psld_npz {
    char *path;
    psld_map map; /* all 0 for what was given as bytes */
    psld_zip *zip;
    size_t count;
    char **names;
    const psld_zip_entry **entries;
};

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

void psld_npz_free(psld_npz *npz)
{
    if (!npz) return;
    for (size_t i = 0; i < npz->count; i++) psld_release(npz->names[i]);
    psld_release(npz->names);
    psld_release(npz->entries);
    psld_zip_free(npz->zip);
    psld_map_close(&npz->map);
    psld_release(npz->path);
    psld_release(npz);
}

/* Entries that end in ".npy"; others are ignored. */
static psld_status list_arrays(psld_npz *npz)
{
    npz->names = psld_alloc(npz->zip->count, sizeof *npz->names);
    npz->entries = psld_alloc(npz->zip->count, sizeof *npz->entries);
    if (!npz->names || !npz->entries) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < npz->zip->count; i++) {
        const psld_zip_entry *entry = &npz->zip->entries[i];
        size_t length = entry->name_length;
        if (length < 4 || length > MAX_NAME || memcmp(entry->name + length - 4, ".npy", 4) != 0) continue;
        char *name = psld_alloc(length - 3, 1);
        if (!name) return PSLD_NO_MEMORY;
        memcpy(name, entry->name, length - 4);
        npz->names[npz->count] = name;
        npz->entries[npz->count++] = entry;
    }
    return PSLD_OK;
}

static psld_status parse_into(psld_npz *npz, const void *bytes, size_t size, const char *name)
{
    npz->path = psld_copy_text(name);
    if (!npz->path) return PSLD_NO_MEMORY;
    if (size < 4 || memcmp(bytes, "PK", 2) != 0) return psld_fail(PSLD_BAD_INPUT, "%s: not a .npz file", name);
    PSLD_TRY(psld_zip_open(bytes, size, npz->path, &npz->zip));
    return list_arrays(npz);
}

psld_status psld_npz_parse(const void *bytes, size_t size, const char *name, psld_npz **npz)
{
    *npz = NULL;
    psld_npz *n = psld_alloc(1, sizeof *n);
    psld_status status = n ? parse_into(n, bytes, size, name) : PSLD_NO_MEMORY;
    if (status == PSLD_OK) {
        *npz = n;
        return PSLD_OK;
    }
    psld_npz_free(n);
    return status == PSLD_NO_MEMORY ? psld_fail_in(status, "%s", name) : status;
}

psld_status psld_npz_open(const char *path, psld_npz **npz)
{
    psld_map map;
    *npz = NULL;
    PSLD_TRY(psld_map_open(path, &map));
    psld_status status = psld_npz_parse(map.bytes, map.size, path, npz);
    if (status == PSLD_OK)
        (*npz)->map = map;
    else
        psld_map_close(&map);
    return status;
}

size_t psld_npz_size(const psld_npz *npz)
{
    return npz->count;
}

const char *psld_npz_name(const psld_npz *npz, size_t index)
{
    return npz->names[index];
}

static psld_status fail_absent(const psld_npz *npz, const char *name)
{
    char known[NAMES_SHOWN] = "";
    size_t used = 0;
    for (size_t i = 0; i < npz->count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", npz->names[i]);
    return psld_fail(PSLD_BAD_INPUT, "%s: no array %s, it has: %s", npz->path, name, known);
}

/* The bytes of an entry: in place, or in *block if they must be unpacked. */
static psld_status npz_entry_bytes(psld_npz *npz, const psld_zip_entry *entry, const void **bytes, void **block)
{
    *bytes = entry->data;
    if (!entry->deflated) return psld_zip_check(entry);
    PSLD_TRY(psld_zip_spend(npz->zip, entry, entry->size));
    npz->zip->budget +=
        entry->size; /* the bytes are released again, so only each array by itself must be within bounds */
    *bytes = *block = psld_alloc(entry->size, 1);
    return *block ? psld_zip_extract(entry, *block) : PSLD_NO_MEMORY;
}

static psld_status npz_read_array(psld_npz *npz, size_t index, psld_array **array)
{
    const psld_zip_entry *entry = npz->entries[index];
    const void *bytes = NULL;
    void *block = NULL;
    char name[MAX_NAME];
    psld_reader reader;
    psld_status status = npz_entry_bytes(npz, entry, &bytes, &block);
    if (status == PSLD_BAD_INPUT) psld_fail_in(status, "%s", npz->path);
    snprintf(name, sizeof name, "%.*s: %.*s", MAX_NAME / 2, npz->path, NAMES_SHOWN, npz->names[index]);
    psld_reader_memory(bytes, entry->size, name, &reader);
    if (status == PSLD_OK) status = psld_npy_read(&reader, array);
    psld_release(block);
    return status;
}

psld_status psld_npz_read(psld_npz *npz, const char *name, psld_array **array)
{
    *array = NULL;
    for (size_t i = 0; i < npz->count; i++) {
        if (strcmp(npz->names[i], name) != 0) continue;
        psld_status status = npz_read_array(npz, i, array);
        return status == PSLD_NO_MEMORY ? psld_fail_in(status, "%s: %s", npz->path, name) : status;
    }
    return fail_absent(npz, name);
}

psld_status psld_npz_list(const char *path, psld_tensor_fn visit, void *user)
{
    psld_npz *npz;
    PSLD_TRY(psld_npz_open(path, &npz));
    psld_status status = PSLD_OK;
    for (size_t i = 0; status == PSLD_OK && i < npz->count; i++) {
        psld_array *array;
        status = psld_npz_read(npz, npz->names[i], &array);
        if (status == PSLD_OK)
            visit(user, npz->names[i], psld_type_name(array->type), array->rank, array->shape);
        else if (status == PSLD_BAD_INPUT) {
            visit(user, npz->names[i], "unreadable", 0, NULL);
            status = PSLD_OK;
        }
        psld_array_free(array);
    }
    psld_npz_free(npz);
    return status;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static psld_status put_array(psld_zip_writer *zip, const char *name, const psld_array *array)
{
    char path[MAX_NAME + 8], header[PSLD_NPY_HEADER];
    if (!*name || strlen(name) > MAX_NAME - 4)
        return psld_fail(PSLD_BAD_ARGUMENT, "an array of a .npz file has a name of 1 to %d bytes, not %zu",
                         MAX_NAME - 4, strlen(name));
    snprintf(path, sizeof path, "%s.npy", name);
    size_t length = psld_npy_header(array, header);
    return psld_zip_put(zip, path, header, length, array->data, array->count * psld_type_size(array->type));
}

psld_status psld_npz_save(const char *path, size_t count, const char *const *names, const psld_array *const *arrays)
{
    psld_writer *writer = NULL;
    psld_zip_writer *zip = NULL;
    PSLD_TRY(psld_writer_open(path, &writer));
    psld_status status = psld_zip_writer_create(writer, &zip);
    for (size_t i = 0; i < count && status == PSLD_OK; i++) {
        for (size_t j = 0; j < i && status == PSLD_OK; j++)
            if (strcmp(names[i], names[j]) == 0)
                status = psld_fail(PSLD_BAD_ARGUMENT, "two arrays have the name %.*s", NAMES_SHOWN, names[i]);
        if (status == PSLD_OK) status = put_array(zip, names[i], arrays[i]);
    }
    if (status == PSLD_OK) psld_zip_finish(zip);
    psld_zip_writer_free(zip);
    if (status == PSLD_OK) return psld_writer_commit(writer);
    psld_writer_abort(writer);
    return psld_fail_in(status, "%s", path);
}
