/* FNV-1a: a number that tells contents apart. It is no defence against someone who wants two of them to look the same. */
#ifndef PSLD_BASE_HASH_H
#define PSLD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define PSLD_HASH_START 0xcbf29ce484222325u

/* Byte by byte. */
uint64_t psld_hash_bytes(uint64_t hash, const void *bytes, size_t size);
/* Eight bytes at a time, with a turn that carries high bits to low ones: for large contents. */
uint64_t psld_hash_words(uint64_t hash, const void *bytes, size_t size);

#endif
