/* A PyTorch checkpoint of before version 1.6: five pickles in a row, followed by the storages.
 *
 *     magic number      of 80 bits
 *     protocol          1001
 *     machine           a dict; little_endian has to be True
 *     object            refers to storages by key
 *     keys              the list of all keys, in the order of the storages
 *     storages          each: number of elements (8 bytes), elements
 *
 * Only the object says which type a storage has, so all storages are located before the first is read. Their offsets
 * in the file are arbitrary: storages that are not aligned are copied when a tensor needs them. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/tensors/torch_private.h"

enum { PROTOCOL = 1001, MAGIC_SEARCHED = 32 };

/* LONG1 with 10 bytes, in every protocol. */
static const unsigned char magic[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

/* A storage, by its key. */
typedef struct section {
    const psld_value *key;
    const psld_storage *storage; /* a reference to it, NULL until one is found */
    const unsigned char *data;
    void *copy;
} section;

typedef struct sections {
    size_t count;
    section *items;   /* in the order of the file */
    section **by_key; /* sorted */
} sections;

/* What is left of the file. */
typedef struct input {
    const unsigned char *bytes;
    size_t size, at;
} input;

int psld_torch_is_legacy(const unsigned char *bytes, size_t size)
{
    size_t end = size < MAGIC_SEARCHED ? size : MAGIC_SEARCHED;
    for (size_t at = 0; at + sizeof magic <= end; at++)
        if (memcmp(bytes + at, magic, sizeof magic) == 0) return 1;
    return 0;
}

static psld_status next_pickle(psld_torch *torch, input *in, psld_value **value)
{
    size_t used = 0;
    PSLD_TRY(psld_pickle_load(torch->pickle, torch->path, in->bytes + in->at, in->size - in->at, in->at, value, &used));
    in->at += used;
    return PSLD_OK;
}

static psld_status legacy_read_preamble(psld_torch *torch, input *in)
{
    psld_value *value = NULL;
    PSLD_TRY(next_pickle(torch, in, &value));
    PSLD_TRY(next_pickle(torch, in, &value));
    if (value->kind != PSLD_VALUE_INTEGER || value->integer != PROTOCOL)
        return psld_pickle_fail(torch->pickle, value->place, "expected %d, the protocol of a PyTorch checkpoint",
                                PROTOCOL);
    PSLD_TRY(next_pickle(torch, in, &value));
    const psld_value *little = psld_value_get(value, "little_endian");
    if (!little || little->kind != PSLD_VALUE_BOOL || !little->integer)
        return psld_pickle_fail(torch->pickle, value->place, "a checkpoint that does not say that it is little-endian");
    return PSLD_OK;
}

/* ---- Sections ---------------------------------------------------------------------------------------------------- */

static int compare_key_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t shorter = a_length < b_length ? a_length : b_length;
    int order = shorter ? memcmp(a, b, shorter) : 0;
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_section_keys(const void *a, const void *b)
{
    const psld_value *x = (*(section *const *)a)->key, *y = (*(section *const *)b)->key;
    return compare_key_bytes(x->text, x->length, y->text, y->length);
}

static section *find_section(const sections *s, const char *key, size_t length)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const psld_value *found = s->by_key[middle]->key;
        int order = compare_key_bytes(key, length, found->text, found->length);
        if (order == 0) return s->by_key[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* One section per key. Keys must be texts and unique. */
static psld_status make_sections(psld_torch *torch, const psld_value *keys, sections *s)
{
    if (keys->kind != PSLD_VALUE_LIST)
        return psld_pickle_fail(torch->pickle, keys->place, "expected the list of storages");
    s->items = psld_alloc(keys->size, sizeof *s->items);
    s->by_key = psld_alloc(keys->size, sizeof(section *));
    if (!s->items || !s->by_key) return PSLD_NO_MEMORY;
    for (s->count = 0; s->count < keys->size; s->count++) {
        const psld_value *key = keys->items[s->count];
        if (key->kind != PSLD_VALUE_TEXT)
            return psld_pickle_fail(torch->pickle, key->place, "the key of a storage is no text");
        s->items[s->count].key = key;
        s->by_key[s->count] = &s->items[s->count];
    }
    qsort(s->by_key, s->count, sizeof(section *), compare_section_keys);
    for (size_t i = 1; i < s->count; i++)
        if (compare_section_keys(&s->by_key[i - 1], &s->by_key[i]) == 0)
            return psld_pickle_fail(torch->pickle, s->by_key[i]->key->place, "the key of a storage stands twice");
    return PSLD_OK;
}

/* Type and size of each section, from the references to it. These must agree. */
static psld_status describe_sections(psld_torch *torch, const sections *s)
{
    for (size_t i = 0; i < torch->storage_count; i++) {
        const psld_storage *storage = torch->storages[i];
        section *found = find_section(s, storage->key, storage->key_length);
        if (!found) return psld_pickle_fail(torch->pickle, storage->place, "a storage that is not in the file");
        if (!found->storage) found->storage = storage;
        if (found->storage->type != storage->type || found->storage->count != storage->count)
            return psld_pickle_fail(torch->pickle, storage->place, "a storage with two types or sizes");
    }
    return PSLD_OK;
}

static psld_status locate_sections(psld_torch *torch, const sections *s, input *in)
{
    for (size_t i = 0; i < s->count; i++) {
        const psld_storage *storage = s->items[i].storage;
        uint64_t count = 0;
        size_t bytes = 0;
        if (!storage)
            return psld_pickle_fail(torch->pickle, s->items[i].key->place, "a storage that no tensor refers to");
        if (in->size - in->at < 8) return psld_pickle_fail(torch->pickle, in->at, "the file ends before a storage");
        for (int j = 0; j < 8; j++) count |= (uint64_t)in->bytes[in->at++] << 8 * j;
        if (count != storage->count)
            return psld_pickle_fail(torch->pickle, in->at - 8, "a storage of %llu elements, expected %zu",
                                    (unsigned long long)count, storage->count);
        if (__builtin_mul_overflow(storage->count, psld_element_size(storage->type), &bytes) ||
            bytes > in->size - in->at)
            return psld_pickle_fail(torch->pickle, in->at,
                                    "a storage of %zu elements, but the file ends after %zu bytes", storage->count,
                                    in->size - in->at);
        s->items[i].data = in->bytes + in->at;
        in->at += bytes;
    }
    if (in->at != in->size) return psld_pickle_fail(torch->pickle, in->at, "bytes behind the last storage");
    return PSLD_OK;
}

static psld_status legacy_elements(psld_torch *torch, const psld_storage *storage, size_t tensor, const void **data)
{
    (void)tensor;
    section *s = find_section(torch->container, storage->key, storage->key_length);
    size_t size = psld_element_size(storage->type);
    *data = s->copy ? s->copy : s->data;
    if ((uintptr_t)*data % size == 0) return PSLD_OK;
    PSLD_TRY(psld_tensors_block(torch->tensors, storage->count * size, &s->copy));
    memcpy(s->copy, s->data, storage->count * size);
    *data = s->copy;
    return PSLD_OK;
}

static psld_status legacy_read_all(psld_torch *torch, input *in)
{
    psld_value *object = NULL, *keys = NULL;
    sections *s = torch->container;
    PSLD_TRY(legacy_read_preamble(torch, in));
    PSLD_TRY(next_pickle(torch, in, &object));
    PSLD_TRY(next_pickle(torch, in, &keys));
    PSLD_TRY(make_sections(torch, keys, s));
    PSLD_TRY(describe_sections(torch, s));
    PSLD_TRY(locate_sections(torch, s, in));
    return psld_torch_collect(torch, object);
}

psld_status psld_torch_legacy_read(const unsigned char *bytes, size_t size, const char *path, psld_tensors *tensors)
{
    sections s = {.count = 0};
    input in = {.bytes = bytes, .size = size};
    psld_torch torch = {.path = path, .size = size, .tensors = tensors, .elements = legacy_elements, .container = &s};
    psld_status status = psld_torch_open(&torch);
    if (status == PSLD_OK) status = legacy_read_all(&torch, &in);
    psld_torch_close(&torch);
    psld_release(s.items);
    psld_release(s.by_key);
    return status;
}
