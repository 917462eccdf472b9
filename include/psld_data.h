/* psld: images and data sets. Needs the full library.
 */
#ifndef PSLD_DATA_H
#define PSLD_DATA_H

#include "psld.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Images ------------------------------------------------------------------------------------------------------ */

/* PNG, JPEG or WebP, told apart by their first bytes, as u8 [channels, height, width] with 1 (grey) or 3 channels
 * (docs/reference/data.md describes 16 bits, transparency, CMYK, orientation and animations). */
PSLD_API psld_status psld_image_load(const char *path, psld_array **image);
/* The format ("PNG", "JPEG", "WebP") of an image, and the shape that it would have as an array, from its header. */
PSLD_API psld_status psld_image_inspect(const char *path, const char **format, size_t shape[3]);
/* Writes a PNG of u8 [channels, height, width], channels 1 or 3. */
PSLD_API psld_status psld_image_save(const psld_array *image, const char *path);
/* The same file in memory. Free with psld_bytes_free. */
PSLD_API psld_status psld_image_encode(const psld_array *image, void **bytes, size_t *size);
/* Writes one PNG of many images u8 [n, channels, height, width], row by row, `columns` beside each other (0: as nearly
 * square as can be); n >= 1. */
PSLD_API psld_status psld_image_grid(const psld_array *images, size_t columns, const char *path);
/* The same sheet as an image, u8 [channels, height, width]. */
PSLD_API psld_status psld_images_sheet(const psld_array *images, size_t columns, psld_array **sheet);
/* The same images u8 [..., height, width] with every pixel as a square of factor x factor pixels: to look at small
 * pictures. */
enum { PSLD_MAX_ZOOM = 64 };
PSLD_API psld_status psld_images_enlarge(const psld_array *images, size_t factor, psld_array **larger);

/* ---- Data: sets to train on and to compare with ------------------------------------------------------------------ */

typedef struct psld_data psld_data;

/* Filters by which images are resampled. All except `nearest` and `bilinear_plain` get wider in proportion as the image
 * gets smaller (antialiasing). `bilinear`, `bicubic`, `box` and `nearest` are those of Pillow, which torchvision uses
 * for images; `bilinear_plain` takes four pixels only (torch.nn.functional.interpolate without antialias, OpenCV). */
typedef enum psld_resample {
    PSLD_RESAMPLE_LANCZOS,
    PSLD_RESAMPLE_BILINEAR,
    PSLD_RESAMPLE_BICUBIC,
    PSLD_RESAMPLE_BOX,
    PSLD_RESAMPLE_NEAREST,
    PSLD_RESAMPLE_BILINEAR_PLAIN,
} psld_resample;

/* The filters with the names of data.resample; rows are in the order of psld_resample. */
typedef struct psld_resample_info {
    const char *name, *summary;
    psld_resample filter;
    int antialiases; /* gets wider as the image gets smaller */
} psld_resample_info;
PSLD_API const psld_resample_info *psld_resample_at(int index);
PSLD_API const psld_resample_info *psld_resample_find(const char *name);

typedef struct psld_data_options {
    size_t size;
    int image_size;             /* height and width that images are resized to; unset: their own, which must be equal */
    int channels;               /* 1 grey, 3 colour; unset: their own */
    int stretch;                /* 1: the whole image, out of proportion; unset: the largest square in the middle */
    int resample;               /* psld_resample: the filter for resizing; unset: lanczos */
    int test;                   /* 1: the test part of sets that have one (MNIST, CIFAR); unset: the training part */
    int strict;                 /* 1: a broken image is an error; unset: it is skipped */
    int once;                   /* 1: every item is read only once, so that decoded images need not be kept; unset: 0 */
    int class_count;            /* of `classes` */
    const char *const *classes; /* names of classes in the order of the labels; NULL: all, sorted by name */
    int64_t memory;             /* bytes of decoded images kept in memory; the others go to a file without a name ...
                                   0: none is kept; unset: 1 GiB */
    const char *cache_dir;      /* ... in this folder; NULL: the system's for temporary files */
    double skip_limit;          /* largest part of the images that may be broken and skipped, rounded up; unset: any */
} psld_data_options;

/* clang-format off */
#define PSLD_DATA_DEFAULTS { \
    sizeof(psld_data_options), PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, PSLD_UNSET, \
    PSLD_UNSET, NULL, PSLD_UNSET, NULL, PSLD_UNSET }
/* clang-format on */

/* Opens a folder of images (PNG, JPEG, WebP; subfolders are classes), a tar, compressed tar or zip of one, CIFAR-10 or
 * -100 (binary or pickled files, their folder or archive), IDX (MNIST; plain or .gz, or the folder of its files), .npy
 * or .npz (u8 images, float vectors), or an endless toy set "toy:NAME". Images are decoded when they are read. NULL
 * options are the defaults. */
PSLD_API psld_status psld_data_open(const char *path, const psld_data_options *options, psld_data **data);
PSLD_API void psld_data_free(psld_data *data);

/* The kind of a set in a few words: "folder of images". */
PSLD_API const char *psld_data_kind(const psld_data *data);
PSLD_API uint64_t psld_data_count(const psld_data *data);
/* Shape of an item: its rank, and its sizes in `shape`; images [channels, height, width]. If no size was given, it is
 * the median size, by the shorter side, of up to 32 images, evenly chosen. */
PSLD_API int psld_data_shape(const psld_data *data, size_t shape[PSLD_MAX_RANK]);
/* Whether items are images of u8; otherwise they are numbers. */
PSLD_API int psld_data_is_image(const psld_data *data);
/* Classes, their names (0 <= index; NULL past the last), and how many items each has (0 for endless sets, and past the
 * last), without the broken images found so far. */
PSLD_API size_t psld_data_classes(const psld_data *data);
PSLD_API const char *psld_data_class(const psld_data *data, size_t index);
PSLD_API uint64_t psld_data_class_count(const psld_data *data, size_t index);
/* Broken images found so far, and files left out when the set was opened. */
PSLD_API uint64_t psld_data_skipped(const psld_data *data);
/* Items that are not known to be broken: psld_data_count minus the broken images found so far, which keep their
 * numbers. */
PSLD_API uint64_t psld_data_good(const psld_data *data);

/* The class of an item by its number; -1: none. */
PSLD_API int32_t psld_data_label(const psld_data *data, uint64_t index);
/* The name of its file in the folder or archive; NULL if items have no files of their own. */
PSLD_API const char *psld_data_name(const psld_data *data, uint64_t index);
/* Whether reading it, or psld_data_check, has found that it is a broken image. */
PSLD_API int psld_data_is_broken(const psld_data *data, uint64_t index);

/* Items by their numbers (< count) into x [n][shape]: images as v / 127.5 - 1; labels into `label` unless it is NULL,
 * -1 where there is none. A broken image is logged once, and its number stands for the next good one. psld_data_read_u8
 * gives the pixels of images. One call at a time. */
PSLD_API psld_status psld_data_read(psld_data *data, size_t n, const uint64_t *index, float *x, int32_t *label);
PSLD_API psld_status psld_data_read_u8(psld_data *data, size_t n, const uint64_t *index, uint8_t *pixels,
                                       int32_t *label);
/* Decodes every image once: then psld_data_skipped counts all broken images, and psld_data_mixed tells whether there
 * are images of other sizes than psld_data_shape. Nothing is kept. */
PSLD_API psld_status psld_data_check(psld_data *data, psld_progress_fn progress, void *user);
PSLD_API int psld_data_mixed(const psld_data *data);
/* The options that fit images to a model as in its training (data.fit): sets image_size, channels, stretch and
 * resample, and leaves the others. If a model takes no images, nothing is changed. */
PSLD_API psld_status psld_model_data_options(const psld_model *model, psld_data_options *options);
/* Toy sets: endless points in the plane, opened as "toy:NAME". */
typedef struct psld_toy_info {
    const char *name, *summary;
    int classes; /* 0: points have no labels */
} psld_toy_info;
PSLD_API const psld_toy_info *psld_toy_at(int index);
PSLD_API const psld_toy_info *psld_toy_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
