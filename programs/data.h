/* The parts of psld data: cmd_data.c has the options and the description of a set, data_read.c chooses and reads items,
 * data_write.c the outputs in one file, data_folder.c that in a folder. */
#ifndef PSLD_PROGRAMS_DATA_H
#define PSLD_PROGRAMS_DATA_H

#include "info.h"
#include "sheet.h"

typedef struct data_request {
    const char *path, *out, *classes; /* classes: names separated by commas; NULL: all */
    long n, per_class, zoom;          /* largest number of items in all, and of each class; 0: all */
    int quick, json;
    psld_data_options options;
} data_request;

typedef struct data_job {
    const data_request *request;
    psld_data *data;
    unsigned char *wanted; /* [classes], or NULL: all */
    uint64_t *left;        /* [classes]: how many more may be taken, or NULL: any number */
    int rank;
    size_t shape[PSLD_MAX_RANK], dim; /* of an item */
    int is_picture;                   /* u8 images, or numbers in the shape of one, which become pixels */
    uint64_t next, taken;             /* reading: the next number to examine, and items returned so far */
    uint64_t most;                    /* items to be returned in all */
    cli_progress progress;
} data_job;

psld_status data_open(const data_request *request, data_job *job);
void data_close(data_job *job);

/* Whether an item is of the chosen classes. */
int data_is_wanted(const data_job *job, uint64_t index);
/* How many items the options choose, including broken ones, `most` at most. For endless sets: `most`. */
uint64_t data_count_wanted(const data_job *job);

/* The next items that the options choose, `room` at most, broken ones left out: their numbers, their classes, and u8
 * pixels or, with `as_numbers`, floats. *got is 0 at the end. Reports progress. */
psld_status data_next(data_job *job, size_t room, int as_numbers, uint64_t *index, int32_t *label, void *items,
                      size_t *got);
/* u8 pixels of the items of these numbers. */
psld_status data_pixels(data_job *job, size_t n, const uint64_t *index, unsigned char *pixels);

/* Each writes everything or nothing. *written: items in the output. */
psld_status data_write_arrays(data_job *job, uint64_t *written);
psld_status data_write_sheet(data_job *job, uint64_t *written);
psld_status data_write_plot(data_job *job, uint64_t *written);
psld_status data_write_folder(data_job *job, uint64_t *written);

#endif
