/* Features of images: the FID network or a classifier, with one interface. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "device/device.h"
#include "eval/classifier_features.h"
#include "io/tensors/tensors.h"
#include "model/model.h"
#include "model/networks/inception.h"
#include "psld_eval.h"

enum { AT_ONCE = 32 };

struct psld_features {
    psld_device *device;       /* that the FID network runs on */
    psld_inception *inception; /* or */
    psld_classifier_features *classifier;
    char name[256];
};

/* Weights with a configuration of psld are a classifier, and so is a run folder. All others, also unreadable files, are
 * passed to the FID network, which reports what is wrong. */
static psld_status find_configuration(const char *path, int *found)
{
    psld_tensors *tensors;
    struct stat about;
    *found = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    if (*found) return PSLD_OK;
    psld_status status = psld_tensors_open(path, &tensors);
    if (status != PSLD_OK) return status == PSLD_NO_MEMORY ? status : PSLD_OK;
    *found = psld_tensors_note(tensors, PSLD_CONFIG_NOTE) != NULL;
    psld_tensors_free(tensors);
    return PSLD_OK;
}

static psld_status open_weights(psld_features *made, const char *weights, const char *device)
{
    const psld_backend *backend;
    int ours;
    PSLD_TRY(find_configuration(weights, &ours));
    snprintf(made->name, sizeof made->name, ours ? "classifier %.200s (not FID)" : "FID Inception-v3", weights);
    if (ours) return psld_classifier_features_open(weights, device, &made->classifier);
    PSLD_TRY(psld_device_choose(&(psld_device_wish){.device = device}, &made->device, &backend));
    return psld_inception_open(weights, backend, &made->inception);
}

psld_status psld_features_open(const char *weights, psld_features **features)
{
    return psld_features_open_on(weights, NULL, features);
}

psld_status psld_features_open_on(const char *weights, const char *device, psld_features **features)
{
    *features = NULL;
    psld_features *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    psld_status status = open_weights(made, weights, device);
    if (status != PSLD_OK)
        psld_features_free(made);
    else
        *features = made;
    return status;
}

void psld_features_free(psld_features *features)
{
    if (!features) return;
    psld_inception_free(features->inception);
    psld_classifier_features_free(features->classifier);
    if (features->device) psld_device_close(features->device);
    psld_release(features);
}

int psld_features_is_fid(const psld_features *features)
{
    return features->inception != NULL;
}

const char *psld_features_name(const psld_features *features)
{
    return features->name;
}

size_t psld_features_dim(const psld_features *features)
{
    return features->inception ? PSLD_INCEPTION_FEATURES : psld_classifier_features_dim(features->classifier);
}

size_t psld_features_classes(const psld_features *features)
{
    return features->inception ? PSLD_INCEPTION_LOGITS : psld_classifier_features_classes(features->classifier);
}

/* Pixels in the form that the network takes: n images in three channels for FID, or those of a classifier. */
static void scale_pixels(const psld_features *f, size_t n, const size_t shape[3], const uint8_t *pixels, float *x)
{
    size_t plane = shape[1] * shape[2], channels = f->inception ? 3 : shape[0];
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < channels; c++) {
            const uint8_t *from = pixels + (i * shape[0] + (shape[0] == 1 ? 0 : c)) * plane;
            float *to = x + (i * channels + c) * plane;
            for (size_t p = 0; p < plane; p++)
                to[p] = f->inception ? ((float)from[p] - 128) / 128 : (float)((double)from[p] / 127.5 - 1);
        }
}

psld_status psld_features_extract(psld_features *features, const psld_array *images, float *out, float *logits)
{
    if (images->type != PSLD_U8 || images->rank != 4 || (images->shape[1] != 1 && images->shape[1] != 3))
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "features: expected images u8 [n, channels, height, width] of 1 or 3 channels");
    const size_t *shape = images->shape + 1, size = shape[0] * shape[1] * shape[2];
    size_t dim = psld_features_dim(features), classes = psld_features_classes(features);
    float *x = psld_alloc(AT_ONCE * 3, shape[1] * shape[2] * sizeof *x);
    if (!x) return PSLD_NO_MEMORY;
    psld_status status = PSLD_OK;
    for (size_t first = 0; status == PSLD_OK && first < images->shape[0]; first += AT_ONCE) {
        size_t n = images->shape[0] - first < AT_ONCE ? images->shape[0] - first : AT_ONCE;
        float *to = out ? out + first * dim : NULL, *says = logits ? logits + first * classes : NULL;
        scale_pixels(features, n, shape, (const uint8_t *)images->data + first * size, x);
        if (features->inception) {
            psld_inception_result result = {to, says, NULL};
            status = psld_inception_run(features->inception, n, shape[1], shape[2], x, &result);
        } else {
            status = psld_classifier_features_run(features->classifier, n, shape, x, to, says);
        }
    }
    psld_release(x);
    return status;
}
