/* Features of our own classifiers: the input of the head, averaged over pixels, at the smallest time, where an image
 * is nearly clean. They need no download and take images of the classifier's size. They are not the features of FID. */
#ifndef PSLD_EVAL_CLASSIFIER_FEATURES_H
#define PSLD_EVAL_CLASSIFIER_FEATURES_H

#include "base/status.h"

typedef struct psld_classifier_features psld_classifier_features;

psld_status psld_classifier_features_open(const char *path, const char *device, psld_classifier_features **features);
void psld_classifier_features_free(psld_classifier_features *features);

size_t psld_classifier_features_dim(const psld_classifier_features *features);
size_t psld_classifier_features_classes(const psld_classifier_features *features);

/* Images [n][channels][height][width] of values v / 127.5 - 1. */
psld_status psld_classifier_features_run(psld_classifier_features *features, size_t n, const size_t shape[3],
                                         const float *x, float *out, float *logits);

#endif
