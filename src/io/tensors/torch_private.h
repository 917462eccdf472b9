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
} psld_torch;

/* Makes the machine; psld_torch_close frees it, and with it all values. */
psld_status psld_torch_open(psld_torch *torch);
void psld_torch_close(psld_torch *torch);
/* Adds the tensors and notes of an object to torch->tensors. */
psld_status psld_torch_collect(psld_torch *torch, const psld_value *object);

#endif
