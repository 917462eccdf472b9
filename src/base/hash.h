/* FNV-1a: a number that identifies contents. It is not safe against an attacker who wants equal numbers for different
 * contents. */
#ifndef PSLD_BASE_HASH_H
#define PSLD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define PSLD_HASH_START 0xcbf29ce484222325u

/* Byte by byte. */
uint64_t psld_hash_bytes(uint64_t hash, const void *bytes, size_t size);
/* Eight bytes at a time, with a rotation that mixes high bits into low ones: for large contents. */
uint64_t psld_hash_words(uint64_t hash, const void *bytes, size_t size);

#endif
