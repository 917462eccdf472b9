/* How images are fitted to a model. */
#include <string.h>

#include "base/sized.h"
#include "io/yaml/yaml.h"
#include "model/model.h"
#include "psld_data.h"

/* How images of another size are fitted, by the configuration; published configurations have no such key. */
static psld_status read_fit(const psld_node *data, psld_data_options *options)
{
    const psld_node *fit = psld_node_get(data, "fit"), *resample = psld_node_get(data, "resample");
    const char *word = "crop", *name = psld_resample_at(0)->name;
    if (fit) PSLD_TRY(psld_node_text(fit, &word));
    if (resample) PSLD_TRY(psld_node_text(resample, &name));
    options->stretch = strcmp(word, "stretch") == 0;
    const psld_resample_info *filter = psld_resample_find(name);
    options->resample = (int)(filter ? filter->filter : PSLD_RESAMPLE_LANCZOS);
    return PSLD_OK;
}

psld_status psld_model_data_options(const psld_model *model, psld_data_options *options)
{
    const size_t *shape = model->shape;
    psld_yaml *yaml;
    psld_data_options own;
    PSLD_TRY(psld_sized_check(options, sizeof own, "PSLD_DATA_DEFAULTS"));
    PSLD_TRY(PSLD_SIZED_READ(psld_data_options, options, &own, PSLD_DATA_DEFAULTS));
    if (model->rank != 3 || (shape[0] != 1 && shape[0] != 3) || shape[1] != shape[2]) return PSLD_OK;
    own.channels = (int)shape[0];
    own.image_size = (int)shape[1];
    PSLD_TRY(psld_yaml_parse(model->config, strlen(model->config), "configuration", &yaml));
    psld_status status = read_fit(psld_node_get(psld_yaml_root(yaml), "data"), &own);
    psld_yaml_free(yaml);
    if (status == PSLD_OK) psld_sized_write(options, &own);
    return status;
}
