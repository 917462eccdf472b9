#include "eval/identity.h"

#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "io/archives/files.h"

enum { PATH_SIZE = 4096 };

static uint64_t identity_mix_text(uint64_t hash, const char *text)
{
    return psld_hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t identity_mix_file(uint64_t hash, const struct stat *about)
{
    const int64_t numbers[] = {about->st_size, about->st_mtim.tv_sec, about->st_mtim.tv_nsec};
    return psld_hash_bytes(hash, numbers, sizeof numbers);
}

/* Names in a folder are part of the identity: they decide classes and order. */
static psld_status identity_mix_folder(const char *path, uint64_t *hash)
{
    psld_files *files;
    char inside[PATH_SIZE];
    struct stat about;
    PSLD_TRY(psld_files_open(path, 0, NULL, &files));
    for (size_t i = 0; i < psld_files_count(files); i++) {
        psld_file_origin(files, i, inside, sizeof inside);
        *hash = identity_mix_text(*hash, psld_files_name(files, i));
        if (stat(inside, &about) == 0) *hash = identity_mix_file(*hash, &about);
    }
    psld_files_free(files);
    return PSLD_OK;
}

psld_status psld_path_identity(const char *path, uint64_t *identity)
{
    struct stat about;
    *identity = PSLD_HASH_START;
    if (stat(path, &about) != 0)
        *identity = identity_mix_text(*identity, path);
    else if (S_ISDIR(about.st_mode))
        return identity_mix_folder(path, identity);
    else
        *identity = identity_mix_file(*identity, &about);
    return PSLD_OK;
}
