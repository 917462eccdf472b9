/* One side of a comparison, read in batches from the front. */
#ifndef PSLD_EVAL_SET_H
#define PSLD_EVAL_SET_H

#include "base/status.h"
#include "psld_eval.h"

struct psld_set {
    psld_set_kind kind;
    char *name; /* in messages */
    uint64_t count;
    int rank;
    size_t shape[PSLD_MAX_RANK]; /* of an item; images [channels, height, width] */
    size_t size;                 /* numbers of an item */
    psld_data_options asked;     /* for images: size, channels, how they are fitted */
    /* what the set is made of: one of these */
    psld_data *data;
    psld_array *rows; /* float32 [count, ...] */
    psld_statistics *statistics;
    psld_model *model; /* borrowed */
    /* drawn from the model so far, kept */
    psld_sample_options sampling;
    psld_labels labels; /* of `sampling`, with an array of its own */
    int32_t *label;
    int floor;
    uint64_t drawn, evaluations; /* samples, and evaluations of all samples */
    uint8_t *images;             /* [count][size] */
    float *points;               /* [count][size] */
    psld_progress_fn progress;
    void *progress_user;
    /* inpainting; NULL: free samples */
    psld_set *known; /* borrowed */
    psld_set *masks; /* borrowed; NULL: the same part of each is hidden */
    int strokes;     /* masks hide every pixel that is not black */
    int lagging;     /* see psld_inpainting */
    /* one class of another set */
    psld_set *whole;        /* borrowed; NULL: not a part of another set */
    uint64_t *item;         /* [count] numbers of the items in `whole` */
    unsigned char *visible; /* [piece][size] */
    double *x;              /* [piece][size] */
};

/* Samples drawn at a time: whole groups of adaptive samplers, so the result does not depend on the caller. */
size_t psld_set_batch(const psld_set *set);
/* Prepares the known parts of the next n samples of an inpainted set. */
psld_status psld_set_next_inpainting(psld_set *set, size_t n, psld_inpainting *inpainting);

/* Makes a set from the argument and owns it from then on, also on failure. */
psld_status psld_set_of_rows(psld_array *rows, const char *name, psld_set **set);
psld_status psld_set_of_statistics(psld_statistics *statistics, const char *name, psld_set **set);

/* Reads items first ... first + n - 1: pixels of a set of images, numbers of a set of rows. `progress` has n units and
 * reports the drawing of samples. */
psld_status psld_set_read_images(psld_set *set, uint64_t first, size_t n, uint8_t *pixels);
psld_status psld_set_read_rows(psld_set *set, uint64_t first, size_t n, float *rows);

#endif
