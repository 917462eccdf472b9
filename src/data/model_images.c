/* How images become what a model takes. */
#include <string.h>

#include "io/yaml.h"
#include "model/model.h"

/* What the configuration says of images that are not square; published ones say nothing. */
static psld_status read_fit(const psld_model *model, int *stretch)
{
    psld_yaml *yaml;
    const char *fit = "crop";
    PSLD_TRY(psld_yaml_parse(model->config, strlen(model->config), "configuration", &yaml));
    const psld_node *node = psld_node_get(psld_node_get(psld_yaml_root(yaml), "data"), "fit");
    psld_status status = node ? psld_node_text(node, &fit) : PSLD_OK;
    *stretch = strcmp(fit, "stretch") == 0;
    psld_yaml_free(yaml);
    return status;
}

psld_status psld_model_data_options(const psld_model *model, psld_data_options *options)
{
    const size_t *shape = model->shape;
    psld_data_defaults(options);
    if (model->rank != 3 || (shape[0] != 1 && shape[0] != 3) || shape[1] != shape[2]) return PSLD_OK;
    options->channels = (int)shape[0];
    options->size = shape[1];
    return read_fit(model, &options->stretch);
}
