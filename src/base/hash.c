#include "base/hash.h"

#include <string.h>

#define FNV_PRIME 0x100000001b3u

uint64_t psld_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * FNV_PRIME;
    return hash;
}

uint64_t psld_hash_words(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ word) * FNV_PRIME;
        hash ^= hash >> 32;
    }
    return hash;
}
