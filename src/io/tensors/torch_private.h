/* The meaning of PyTorch's pickles, for both containers. */
#ifndef PSLD_IO_TORCH_PRIVATE_H
#define PSLD_IO_TORCH_PRIVATE_H

#include "io/tensors/pickle.h"
#include "io/tensors/tensors_private.h"

/* The elements that tensors are views of, as the pickle refers to them. They lie outside of the pickle. */
typedef struct psld_storage {
    const char *key; /* which one; no 0 byte behind it */
    size_t key_length;
    psld_element type;
    size_t count;                  /* elements of the whole storage */
    size_t view_begin, view_count; /* the part that is referred to; usually all of it */
    size_t place;                  /* byte where the pickle refers to it */
    const void *data;              /* the elements, where they are in the pickle itself; NULL: outside of it */
} psld_storage;

/* The torch name of a type of storage: "FloatStorage". */
const char *psld_storage_name(psld_element type);

/* A container of storages. */
typedef struct psld_torch {
    const char *path;
    size_t size; /* of the file */
    psld_tensors *tensors;
    psld_pickle *pickle;
    psld_storage **storages; /* all references, in the order of the pickle */
    size_t storage_count, storage_capacity;
    size_t budget; /* bytes that copies of views may still take */
    size_t steps;  /* values that the search for tensors may still look at */
    /* The elements of a storage, aligned, for tensor number `tensor`, which is a view of it. May fail: the message
     * begins with what is wrong, and the tensor's name is put in front. */
    psld_status (*elements)(struct psld_torch *torch, const psld_storage *storage, size_t tensor, const void **data);
    void *container;
    /* What some more calls mean (psld_pickle_rules); NULL: nothing. */
    psld_status (*call)(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result);
} psld_torch;

/* The name of the tensor that a storage becomes that was saved alone. */
#define PSLD_STORAGE_NAME "storage"

/* Makes the machine; psld_torch_close frees it, and with it all values. */
psld_status psld_torch_open(psld_torch *torch);
void psld_torch_close(psld_torch *torch);
/* Adds the tensors and notes of an object to torch->tensors. */
psld_status psld_torch_collect(psld_torch *torch, const psld_value *object);

/* For those who give calls more meanings. A storage whose elements are those of a flat tensor; a dict, empty or of pairs;
 * whether a value is a tensor, and adding it; a plain value as text (0: it is not plain, too long or has a 0 byte). */
psld_status psld_torch_storage(psld_pickle *pickle, const psld_tensor *flat, psld_value **result);
psld_status psld_torch_call_dict(psld_pickle *pickle, const psld_value *global, psld_value *args, psld_value **result);
int psld_torch_is_tensor(const psld_value *value);
psld_status psld_torch_add(psld_torch *torch, const psld_value *value, const char *name);
int psld_torch_text(const psld_value *value, char *text, size_t size);

#endif
