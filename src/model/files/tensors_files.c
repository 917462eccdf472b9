/* Reads and writes files of tensors. They are here, and not in io/, because of the checksum of models. */
#include "model/files/tensors_files.h"
#include "base/text.h"
#include "model/files/checksum.h"

psld_status psld_tensors_format_of(const char *path, psld_tensor_format *format)
{
    static const struct {
        const char *ending;
        psld_tensor_format format;
    } endings[] = {{".safetensors", PSLD_SAFETENSORS},
                   {".pt", PSLD_TORCH_ZIP},
                   {".pth", PSLD_TORCH_ZIP},
                   {".ckpt", PSLD_TORCH_ZIP}};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (!psld_text_ends_in(path, endings[i].ending)) continue;
        *format = endings[i].format;
        return PSLD_OK;
    }
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected a name that ends in .safetensors, .pt, .pth or .ckpt", path);
}

psld_status psld_tensors_list(const char *path, psld_tensor_fn visit, void *user)
{
    psld_tensors *tensors;
    PSLD_TRY(psld_tensors_open(path, &tensors));
    psld_status status = psld_checksum_verify(tensors, path);
    for (size_t i = 0; status == PSLD_OK && i < tensors->count; i++) {
        const psld_tensor *t = &tensors->items[i];
        visit(user, t->name, psld_element_name(t->type), t->rank, t->shape);
    }
    psld_tensors_free(tensors);
    return status;
}

psld_status psld_tensors_convert(const char *from, const char *to)
{
    psld_tensors *tensors;
    psld_tensor_format format;
    PSLD_TRY(psld_tensors_format_of(to, &format));
    PSLD_TRY(psld_tensors_open(from, &tensors));
    psld_status status = psld_checksum_verify(tensors, from);
    if (status == PSLD_OK && format == PSLD_SAFETENSORS) status = psld_checksum_note(tensors);
    if (status == PSLD_OK) status = psld_tensors_save(tensors, format, to);
    psld_tensors_free(tensors);
    return status;
}
