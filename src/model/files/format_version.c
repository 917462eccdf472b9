#include "model/files/format_version.h"

#include "base/text.h"
#include "model/files/checksum.h"

static psld_status check_note(const psld_tensors *tensors, const char *path, const char *note)
{
    const char *version = psld_tensors_note(tensors, note);
    int64_t number = 0, known = 0;
    if (!version) return PSLD_OK;
    psld_text_integer(PSLD_FORMAT_VERSION, &known);
    if (psld_text_integer(version, &number) && number >= 1 && number <= known) return PSLD_OK;
    return psld_fail(PSLD_BAD_INPUT,
                     "%s: is of format %.20s (%s), and this psld reads formats up to " PSLD_FORMAT_VERSION
                     "; use the psld that wrote it, or a newer one",
                     path, version, note);
}

psld_status psld_format_check(const psld_tensors *tensors, const char *path)
{
    PSLD_TRY(check_note(tensors, path, PSLD_FORMAT_NOTE));
    return check_note(tensors, path, PSLD_CHECKPOINT_VERSION);
}
