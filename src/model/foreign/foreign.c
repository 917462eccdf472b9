#include "model/foreign/foreign.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "model/model.h"

/* The largest noise at which a network is used, relative to the largest in its training: psld_conditioning_within. */
#define LARGEST_NOISE 3

/* ---- Configurations ---------------------------------------------------------------------------------------------- */

void psld_config_put(psld_config_text *config, const char *format, ...)
{
    va_list args;
    size_t room = sizeof config->text - config->used;
    va_start(args, format);
    int length = vsnprintf(config->text + config->used, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room)
        config->full = 1;
    else
        config->used += (size_t)length;
}

/* beta_max of the vp process whose largest noise is sigma: sigma^2 = exp((beta_min + beta_max) / 2) - 1. */
static double vp_beta_max(double sigma)
{
    return 2 * log1p(sigma * sigma) - 0.1;
}

psld_status psld_config_put_denoiser(psld_config_text *config, const char *path, const char *lines)
{
    psld_yaml *yaml;
    psld_conditioning how = {0};
    PSLD_TRY(psld_yaml_parse(lines, strlen(lines), path, &yaml));
    psld_status status = psld_conditioning_read(psld_yaml_root(yaml), &how);
    double beta_max = vp_beta_max(how.sigma_max * (1 - 1e-12));
    psld_conditioning_clear(&how);
    psld_yaml_free(yaml);
    PSLD_TRY(status);
    if (beta_max >= 20)
        psld_config_put(config, "process: vp\n");
    else if (beta_max > 0.2)
        psld_config_put(config, "process: vp beta=[0.1,%.17g]\n", beta_max);
    else
        return psld_fail(PSLD_BAD_INPUT,
                         "%s: the network was trained with noise up to %.3g times the data's unit, too little to "
                         "sample from",
                         path, sqrt(expm1((beta_max + 0.1) / 2)));
    psld_config_put(config, "denoiser: %s\n", lines);
    return PSLD_OK;
}

psld_status psld_config_note(const psld_config_text *config, const char *path, const char *project,
                             psld_tensors *tensors)
{
    if (config->full) return psld_fail(PSLD_BAD_INPUT, "%s: its configuration is too long", path);
    PSLD_TRY(psld_tensors_set_note(tensors, PSLD_FOREIGN_NOTE, project));
    return psld_tensors_set_note(tensors, PSLD_CONFIG_NOTE, config->text);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

psld_status psld_foreign_open(const char *path, psld_tensors **tensors)
{
    if (psld_foreign_is_folder(path)) return psld_diffusers_open(path, tensors);
    PSLD_TRY(psld_tensors_open(path, tensors));
    if ((*tensors)->format != PSLD_PERSISTENT) return PSLD_OK;
    psld_status status = psld_edm_describe(path, *tensors);
    if (status == PSLD_OK) return PSLD_OK;
    psld_tensors_free(*tensors);
    *tensors = NULL;
    return status;
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* Names of attention in older files of diffusers. */
static void rename_attention(char *name, size_t size)
{
    static const char *const parts[][2] = {
        {".query.", ".to_q."}, {".key.", ".to_k."}, {".value.", ".to_v."}, {".proj_attn.", ".to_out.0."}};
    for (int i = 0; i < 4; i++) {
        char *at = strstr(name, parts[i][0]), rest[256];
        if (!at || !strstr(name, "attentions.")) continue;
        snprintf(rest, sizeof rest, "%s", at + strlen(parts[i][0]));
        snprintf(at, size - (size_t)(at - name), "%s%s", parts[i][1], rest);
        return;
    }
}

/* The name of a tensor in our network; returns 0 if the tensor is not part of it. */
static int name_in_network(const char *project, const char *name, char *ours, size_t size)
{
    int is_edm = strcmp(project, "edm") == 0;
    if (strlen(name) >= size / 2) return 0;
    if (!is_edm) {
        snprintf(ours, size, "%s", name);
        rename_attention(ours, size);
        return 1;
    }
    if (strncmp(name, "model.", 6) != 0 || psld_text_ends_in(name, ".resample_filter")) return 0;
    snprintf(ours, size, "%s", name + 6);
    return 1;
}

static psld_status select_into(const psld_tensors *from, const char *project, psld_tensors *to)
{
    for (size_t i = 0; i < from->count; i++) {
        const psld_tensor *t = &from->items[i];
        char name[512];
        if (name_in_network(project, t->name, name, sizeof name))
            PSLD_TRY(psld_tensors_add(to, name, t->type, t->rank, t->shape, t->data));
    }
    return PSLD_OK;
}

psld_status psld_foreign_select(const psld_tensors *tensors, psld_tensors **selected)
{
    const char *project = psld_tensors_note(tensors, PSLD_FOREIGN_NOTE);
    *selected = NULL;
    if (!project) return PSLD_OK;
    PSLD_TRY(psld_tensors_create(selected));
    psld_status status = select_into(tensors, project, *selected);
    if (status == PSLD_OK) return PSLD_OK;
    psld_tensors_free(*selected);
    *selected = NULL;
    return status;
}

/* ---- Recipes ----------------------------------------------------------------------------------------------------- */

psld_status psld_foreign_check_range(const psld_recipe *recipe, const psld_conditioning *how)
{
    double top;
    PSLD_TRY(psld_recipe_sigma(recipe, 1, &top));
    if (top <= LARGEST_NOISE * how->sigma_max) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT,
                     "process: recipe %s starts with effective noise %.4g; the network was trained for %.4g to %.4g, "
                     "and serves up to %.4g: choose a recipe with a smaller beta",
                     recipe->spec.name, top, how->sigma_min, how->sigma_max, LARGEST_NOISE * how->sigma_max);
}
