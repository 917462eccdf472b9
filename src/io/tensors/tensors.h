/* A file of named tensors: safetensors files and PyTorch checkpoints, for reading and writing.
 *
 * Opening checks everything that a file says about its tensors but does not touch their elements. These are used in
 * place in the mapped file; they are copied only if they are compressed, not contiguous or not aligned. Every tensor
 * that is returned is in C order, within the file, aligned to its elements, and has a unique name. Messages are one
 * line that names the tensor, or the byte of the file. */
#ifndef PSLD_IO_TENSORS_H
#define PSLD_IO_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "io/files/map.h"

typedef enum psld_element {
    PSLD_ELEMENT_F16,
    PSLD_ELEMENT_BF16,
    PSLD_ELEMENT_F32,
    PSLD_ELEMENT_F64,
    PSLD_ELEMENT_U8,
    PSLD_ELEMENT_I8,
    PSLD_ELEMENT_I16,
    PSLD_ELEMENT_I32,
    PSLD_ELEMENT_I64,
    PSLD_ELEMENT_BOOL, /* one byte, 0 or 1 */
    PSLD_ELEMENT_COUNT
} psld_element;

/* Bytes of an element, and its name: "float16", "bfloat16", "float32", ..., "uint8", "int8", ..., "bool". */
size_t psld_element_size(psld_element type);
const char *psld_element_name(psld_element type);

typedef struct psld_tensor {
    char *name;
    psld_element type;
    int rank;
    size_t shape[PSLD_MAX_RANK];
    size_t count; /* product of the shape */
    size_t bytes; /* of all elements */
    const void *data;
} psld_tensor;

/* A note stored with the tensors: ours is the configuration. A PyTorch checkpoint also gives the plain values beside
 * its state_dict (epoch, global_step, ...). */
typedef struct psld_note {
    char *key, *value;
} psld_note;

typedef enum psld_tensor_format {
    PSLD_SAFETENSORS,
    PSLD_TORCH_ZIP,
    PSLD_TORCH_LEGACY,
    PSLD_PERSISTENT
} psld_tensor_format;

typedef struct psld_tensors {
    psld_tensor_format format; /* of the file that it was read from */
    size_t count;
    psld_tensor *items; /* in the order of the file */
    size_t note_count;
    psld_note *notes;
    struct psld_tensors_private *own;
} psld_tensors;

/* Opens a safetensors file, a PyTorch checkpoint or a pickled network (persistent.c); the first bytes decide which. Of a checkpoint: the tensors of
 * its `state_dict` if it has one; otherwise all of them, those in nested dicts and lists under names joined by dots. */
psld_status psld_tensors_open(const char *path, psld_tensors **tensors);
/* The same from bytes that must outlive the result; `name` stands for the path in messages. */
psld_status psld_tensors_parse(const void *bytes, size_t size, const char *name, psld_tensors **tensors);
void psld_tensors_free(psld_tensors *tensors);

/* Verifies the checksums that a file has for data used in place (zip), by reading all data. PSLD_OK if it has none. */
psld_status psld_tensors_verify(const psld_tensors *tensors);
/* How the data of a file will be read from now on: see psld_map_expect. */
void psld_tensors_expect(const psld_tensors *tensors, int scattered);

/* NULL if there is no tensor of that name. */
const psld_tensor *psld_tensors_find(const psld_tensors *tensors, const char *name);
const char *psld_tensors_note(const psld_tensors *tensors, const char *key);

/* The tensors whose names begin with `prefix` ("ema_score_fn."), under names without it, and all notes. It is no
 * failure if there are none. The data are borrowed from `from`. */
psld_status psld_tensors_select(const psld_tensors *from, const char *prefix, psld_tensors **selected);

/* The elements as float32, rounded once; `to` has room for tensor->count. */
void psld_tensor_to_f32(const psld_tensor *tensor, float *to);

/* ---- Writing: collect, then save --------------------------------------------------------------------------------- */

psld_status psld_tensors_create(psld_tensors **tensors);
/* Name and shape are copied, the data are borrowed: C order, aligned to the elements. */
psld_status psld_tensors_add(psld_tensors *tensors, const char *name, psld_element type, int rank, const size_t *shape,
                             const void *data);
/* Replaces the note of that key, if there is one. */
psld_status psld_tensors_set_note(psld_tensors *tensors, const char *key, const char *value);

/* Writes a whole file or nothing. PSLD_SAFETENSORS; or PSLD_TORCH_ZIP, a state_dict (an OrderedDict of tensors, with
 * the notes as its attribute `psld_notes`) that torch.load(weights_only=True) takes. Equal tensors give equal bytes. */
psld_status psld_tensors_save(const psld_tensors *tensors, psld_tensor_format format, const char *path);

#endif
