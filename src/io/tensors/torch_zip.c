/* A PyTorch checkpoint in a zip archive (since version 1.6), under one folder of any name:
 *
 *     NAME/data.pkl     the object
 *     NAME/data/KEY     the elements of each storage
 *     NAME/byteorder    "little" (newer ones)
 *     NAME/version
 *
 * Storages are used in place. A storage that is compressed or not aligned to its elements is copied once, for all
 * tensors that share it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/files/zip.h"
#include "io/tensors/torch_private.h"

enum { MAX_KEY = 255, MAX_FOLDER = 1000 };

typedef struct archive {
    psld_zip *zip;
    const char *folder; /* in the archive: "NAME/" */
    size_t folder_length;
    const void **elements; /* of the storage that an entry is, by the entry's number; NULL: not yet asked for */
} archive;

static const psld_zip_entry *find_archive_entry(const archive *a, const char *name, size_t length)
{
    char path[MAX_FOLDER + MAX_KEY + 8];
    if (a->folder_length > MAX_FOLDER || length > MAX_KEY) return NULL;
    memcpy(path, a->folder, a->folder_length);
    memcpy(path + a->folder_length, name, length);
    return psld_zip_find(a->zip, path, a->folder_length + length);
}

/* The folder that contains everything: that of the first entry, as in PyTorch. */
static void find_archive_folder(archive *a)
{
    const psld_zip_entry *first = a->zip->entries;
    const char *slash = a->zip->count ? memchr(first->name, '/', first->name_length) : NULL;
    a->folder = slash ? first->name : "";
    a->folder_length = slash ? (size_t)(slash - first->name) + 1 : 0;
}

/* A copy of an entry's data that lives as long as the tensors. */
static psld_status extract_entry(psld_torch *torch, const psld_zip_entry *entry, const void **data)
{
    archive *a = torch->container;
    void *block = NULL;
    PSLD_TRY(psld_zip_spend(a->zip, entry, entry->size));
    PSLD_TRY(psld_tensors_block(torch->tensors, entry->size, &block));
    PSLD_TRY(psld_zip_extract(entry, block));
    *data = block;
    return PSLD_OK;
}

static psld_status find_storage(psld_torch *torch, const psld_storage *storage, const psld_zip_entry **entry)
{
    char name[MAX_KEY + 1];
    size_t bytes = 0;
    int length = -1;
    if (storage->key_length < MAX_KEY / 2)
        length = snprintf(name, sizeof name, "data/%.*s", (int)storage->key_length, storage->key);
    *entry = length > 0 ? find_archive_entry(torch->container, name, (size_t)length) : NULL;
    if (!*entry)
        return psld_fail(PSLD_BAD_INPUT, "its storage data/%.*s is not in the archive",
                         (int)(storage->key_length < MAX_KEY / 2 ? storage->key_length : MAX_KEY / 2), storage->key);
    if (__builtin_mul_overflow(storage->count, psld_element_size(storage->type), &bytes) || bytes != (*entry)->size)
        return psld_fail(PSLD_BAD_INPUT, "its storage %s has %zu bytes, expected %zu elements of %s", name,
                         (*entry)->size, storage->count, psld_element_name(storage->type));
    return PSLD_OK;
}

static psld_status zip_elements(psld_torch *torch, const psld_storage *storage, size_t tensor, const void **data)
{
    archive *a = torch->container;
    const psld_zip_entry *entry = NULL;
    PSLD_TRY(find_storage(torch, storage, &entry));
    const void **known = &a->elements[entry - a->zip->entries];
    /* Two references may use elements of different sizes for one storage, but a copy is aligned for all of them. */
    if (!*known || (uintptr_t)*known % psld_element_size(storage->type) != 0) {
        if (entry->deflated || (uintptr_t)entry->data % psld_element_size(storage->type) != 0) {
            PSLD_TRY(extract_entry(torch, entry, known));
        } else {
            psld_checksum c = {.data = entry->data, .size = entry->size, .crc = entry->crc, .tensor = tensor};
            if (c.crc) PSLD_TRY(psld_tensors_checksum(torch->tensors, &c)); /* 0: left out */
            *known = entry->data;
        }
    }
    *data = *known;
    return PSLD_OK;
}

/* An entry's data while the archive is open: in place or extracted. */
static psld_status entry_contents(psld_torch *torch, const psld_zip_entry *entry, const void **data)
{
    *data = entry->data;
    psld_status status = entry->deflated ? extract_entry(torch, entry, data) : psld_zip_check(entry);
    return status == PSLD_BAD_INPUT ? psld_fail_in(status, "%s", torch->path) : status;
}

static psld_status check_byteorder(psld_torch *torch)
{
    const psld_zip_entry *entry = find_archive_entry(torch->container, "byteorder", 9);
    const void *text = NULL;
    if (!entry) return PSLD_OK;
    if (entry->size == 6) PSLD_TRY(entry_contents(torch, entry, &text));
    if (text && memcmp(text, "little", 6) == 0) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT, "%s: a checkpoint that is not little-endian", torch->path);
}

static psld_status read_archive(psld_torch *torch, const unsigned char *bytes)
{
    archive *a = torch->container;
    const void *pickle = NULL;
    psld_value *object = NULL;
    size_t used = 0;
    find_archive_folder(a);
    const psld_zip_entry *entry = find_archive_entry(a, "data.pkl", 8);
    if (!entry)
        return psld_fail(PSLD_BAD_INPUT, "%s: a zip archive, but no PyTorch checkpoint: it has no data.pkl",
                         torch->path);
    PSLD_TRY(check_byteorder(torch));
    PSLD_TRY(entry_contents(torch, entry, &pickle));
    a->elements = psld_alloc(a->zip->count, sizeof *a->elements);
    if (!a->elements) return PSLD_NO_MEMORY;
    char origin[1024];
    snprintf(origin, sizeof origin, "%s%s", torch->path, entry->deflated ? ": data.pkl" : "");
    size_t base = entry->deflated ? 0 : (size_t)(entry->data - bytes);
    PSLD_TRY(psld_pickle_load(torch->pickle, origin, pickle, entry->size, base, &object, &used));
    return psld_torch_collect(torch, object);
}

psld_status psld_torch_zip_read(const unsigned char *bytes, size_t size, const char *path, psld_tensors *tensors)
{
    archive a = {.zip = NULL};
    psld_torch torch = {.path = path, .size = size, .tensors = tensors, .elements = zip_elements, .container = &a};
    psld_status status = psld_zip_open(bytes, size, path, &a.zip);
    if (status == PSLD_OK) status = psld_torch_open(&torch);
    if (status == PSLD_OK) status = read_archive(&torch, bytes);
    psld_torch_close(&torch);
    psld_release(a.elements);
    psld_zip_free(a.zip);
    return status;
}
