/* A state_dict as torch.save writes it and torch.load(weights_only=True) reads it: an OrderedDict of tensors, each
 * with its own storage. The pickle repeats names instead of using the memo: longer, and simpler. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/files/zip.h"
#include "io/tensors/torch_private.h"

#define FOLDER "archive/"

/* The pickle as it is built; after a failure nothing is added. */
typedef struct text {
    psld_status status;
    void *bytes;
    size_t used, capacity;
} text;

static void add_pickle_bytes(text *t, const void *bytes, size_t size)
{
    if (t->status == PSLD_OK) t->status = psld_grow(&t->bytes, &t->capacity, t->used + size, 1);
    if (t->status != PSLD_OK || size == 0) return;
    memcpy((char *)t->bytes + t->used, bytes, size);
    t->used += size;
}

static void add_ops(text *t, const char *ops)
{
    add_pickle_bytes(t, ops, strlen(ops));
}

static void add_number(text *t, uint64_t value, size_t size)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(value >> 8 * i);
    add_pickle_bytes(t, bytes, size);
}

/* BINUNICODE. No name or note is longer than its 32-bit count allows, or it would not have fitted into memory. */
static void add_text(text *t, const char *string)
{
    size_t length = strlen(string);
    add_ops(t, "X");
    add_number(t, length, 4);
    add_pickle_bytes(t, string, length);
}

/* BININT, or LONG1 of 8 bytes if 32 bits are too few. */
static void add_integer(text *t, uint64_t value)
{
    if (value <= INT32_MAX) {
        add_ops(t, "J");
        add_number(t, value, 4);
        return;
    }
    add_ops(t, "\x8a\x08");
    add_number(t, value, 8);
}

static void add_tensor_ops(text *t, const psld_tensor *tensor, size_t key)
{
    char number[32];
    size_t stride[PSLD_MAX_RANK], product = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        stride[i] = product;
        product *= tensor->shape[i] ? tensor->shape[i] : 1;
    }
    add_text(t, tensor->name);
    add_ops(t, "ctorch._utils\n_rebuild_tensor_v2\n((");
    add_text(t, "storage");
    add_ops(t, "ctorch\n");
    add_ops(t, psld_storage_name(tensor->type));
    add_ops(t, "\n");
    snprintf(number, sizeof number, "%zu", key);
    add_text(t, number);
    add_text(t, "cpu");
    add_integer(t, tensor->count);
    add_ops(t, "tQK");
    add_pickle_bytes(t, "\0(", 2); /* offset 0 */
    for (int i = 0; i < tensor->rank; i++) add_integer(t, tensor->shape[i]);
    add_ops(t, "t(");
    for (int i = 0; i < tensor->rank; i++) add_integer(t, stride[i]);
    /* requires_grad False, no hooks */
    add_ops(t, "t\x89"
               "ccollections\nOrderedDict\n)RtR");
}

static void make_pickle(const psld_tensors *tensors, text *t)
{
    add_ops(t, "\x80\x02"
               "ccollections\nOrderedDict\n)R(");
    for (size_t i = 0; i < tensors->count; i++) add_tensor_ops(t, &tensors->items[i], i);
    add_ops(t, "u");
    if (tensors->note_count) {
        add_ops(t, "}");
        add_text(t, "psld_notes");
        add_ops(t, "}(");
        for (size_t i = 0; i < tensors->note_count; i++) {
            add_text(t, tensors->notes[i].key);
            add_text(t, tensors->notes[i].value);
        }
        add_ops(t, "usb");
    }
    add_ops(t, ".");
}

static psld_status write_entries(const psld_tensors *tensors, psld_zip_writer *zip)
{
    text t = {.status = PSLD_OK};
    make_pickle(tensors, &t);
    psld_status status = t.status;
    if (status == PSLD_OK) status = psld_zip_put(zip, FOLDER "data.pkl", t.bytes, t.used, NULL, 0);
    psld_release(t.bytes);
    if (status == PSLD_OK) status = psld_zip_put(zip, FOLDER "byteorder", "little", 6, NULL, 0);
    for (size_t i = 0; i < tensors->count && status == PSLD_OK; i++) {
        char name[64];
        snprintf(name, sizeof name, FOLDER "data/%zu", i);
        status = psld_zip_put(zip, name, tensors->items[i].data, tensors->items[i].bytes, NULL, 0);
    }
    if (status == PSLD_OK) status = psld_zip_put(zip, FOLDER "version", "3\n", 2, NULL, 0);
    return status;
}

psld_status psld_torch_write(const psld_tensors *tensors, const char *path, psld_writer *writer)
{
    psld_zip_writer *zip = NULL;
    (void)path;
    PSLD_TRY(psld_zip_writer_create(writer, &zip));
    psld_status status = write_entries(tensors, zip);
    if (status == PSLD_OK) psld_zip_finish(zip);
    psld_zip_writer_free(zip);
    return status;
}
