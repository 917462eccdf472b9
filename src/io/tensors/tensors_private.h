/* What the readers and writers of tensor files share. In the order of the work:
 *
 *     tensors.c        the list itself; tells formats apart
 *     safetensors.c    that format, both ways
 *     zip.c            archives, both ways (also below npz.c)
 *     pickle.c         Python's pickle as a tree of values; runs nothing
 *     torch.c          what PyTorch's pickles mean: storages, tensors, state_dict
 *     torch_zip.c      checkpoints in a zip archive
 *     torch_legacy.c   checkpoints of one pickle after another
 *     torch_write.c    a state_dict in a zip archive
 *     persistent.c     networks that were pickled as objects with their source, as data */
#ifndef PSLD_IO_TENSORS_PRIVATE_H
#define PSLD_IO_TENSORS_PRIVATE_H

#include "io/files/file.h"
#include "io/tensors/tensors.h"

enum { PSLD_NAME_SHOWN = 200 }; /* bytes of a name from a file that a message repeats */

/* A part of the file that tensors use in place, and its checksum. */
typedef struct psld_checksum {
    const void *data;
    size_t size;
    uint32_t crc;
    size_t tensor; /* the first that uses it */
} psld_checksum;

struct psld_tensors_private {
    char *path;
    psld_map map; /* all 0 for what was given as bytes */
    size_t capacity, note_capacity;
    psld_tensor **by_name; /* [count], once psld_tensors_index has run */
    void **blocks;         /* copies, owned */
    size_t block_count, block_capacity;
    psld_checksum *checksums;
    size_t checksum_count, checksum_capacity;
};

/* Elements and bytes of a shape; 0 if they are too many to count or the rank is too high. */
int psld_element_count(psld_element type, int rank, const size_t *shape, size_t *count, size_t *bytes);

/* A block of zeroed bytes that lives as long as the tensors. */
psld_status psld_tensors_block(psld_tensors *tensors, size_t size, void **block);
/* Adds a note without psld_tensors_set_note's search: the key must be new. A file may have many notes. */
psld_status psld_tensors_add_note(psld_tensors *tensors, const char *key, const char *value);
psld_status psld_tensors_checksum(psld_tensors *tensors, const psld_checksum *checksum);
/* Sorts the names, which searching needs, and fails if two are equal. */
psld_status psld_tensors_index(psld_tensors *tensors);

/* Each adds what the bytes hold to empty tensors. */
psld_status psld_safetensors_read(const unsigned char *bytes, size_t size, const char *path, psld_tensors *tensors);
psld_status psld_torch_zip_read(const unsigned char *bytes, size_t size, const char *path, psld_tensors *tensors);
psld_status psld_torch_legacy_read(const unsigned char *bytes, size_t size, const char *path, psld_tensors *tensors);
/* Whether the bytes begin as the old format does. */
int psld_torch_is_legacy(const unsigned char *bytes, size_t size);
psld_status psld_persistent_read(const unsigned char *bytes, size_t size, const char *path, psld_tensors *tensors);
/* Whether the bytes begin as a pickle does, and no other file of tensors. */
int psld_persistent_is(const unsigned char *bytes, size_t size);
/* Takes the last tensor out of a list; *last has no name any more. */
void psld_tensors_pop(psld_tensors *tensors, psld_tensor *last);

/* Each fails or writes everything; errors of the writer itself are reported by its commit. */
psld_status psld_safetensors_write(const psld_tensors *tensors, const char *path, psld_writer *writer);
psld_status psld_torch_write(const psld_tensors *tensors, const char *path, psld_writer *writer);

#endif
