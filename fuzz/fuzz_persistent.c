/* The input is a network that was pickled as an object (EDM), without the first two bytes; what is read of it is also
 * described as a model, up to the configuration of its network. */
#include "check_tensors.h"
#include "io/yaml/yaml.h"
#include "model/foreign/foreign.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_config(const psld_tensors *tensors)
{
    psld_yaml *yaml = NULL;
    psld_network_config config;
    psld_conditioning how = {0};
    const char *text = psld_tensors_note(tensors, PSLD_CONFIG_NOTE);
    if (!text || psld_yaml_parse(text, strlen(text), "fuzz", &yaml) != PSLD_OK) abort(); /* it was written here */
    check_failure(psld_network_config_read(psld_yaml_root(yaml), NULL, &config), PSLD_BAD_INPUT);
    check_failure(psld_conditioning_read(psld_node_get(psld_yaml_root(yaml), "denoiser"), &how), PSLD_BAD_INPUT);
    psld_conditioning_clear(&how);
    psld_yaml_free(yaml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psld_tensors *tensors = NULL, *selected = NULL;
    uint8_t *file = malloc(size + 2);
    if (!file) abort();
    memcpy(file, "\x80\x04", 2);
    if (size) memcpy(file + 2, data, size);
    check_file(file, size + 2);
    if (psld_tensors_parse(file, size + 2, "fuzz", &tensors) == PSLD_OK) {
        psld_status status = psld_edm_describe("fuzz", tensors);
        check_failure(status, PSLD_BAD_INPUT);
        if (status == PSLD_OK) check_config(tensors);
        if (psld_foreign_select(tensors, &selected) != PSLD_OK) abort();
        psld_tensors_free(selected);
    }
    psld_tensors_free(tensors);
    free(file);
    return 0;
}
