/* Fills in the unknown part of pictures or vectors, for the command and for the server. */
#ifndef PSLD_PROGRAMS_INPAINT_H
#define PSLD_PROGRAMS_INPAINT_H

#include "sampling.h"

typedef struct inpaint_request {
    sampling_request sampling;
    const char *image, *mask, *rectangle, *method;
    long repeats, jump;
} inpaint_request;

typedef struct inpaint_job {
    sampling_job sampling;
    psld_array *x, *known, *corrupted, *samples; /* [images][dim], except for samples */
    size_t each;                                 /* samples per image */
    psld_inpainting inpainting;
} inpaint_job;

/* Rows of a table of options; SAMPLING_RESTORATION follows. clang-format off: it would break every row. */
/* clang-format off */
#define INPAINT_OPTIONS(r) \
    {"image", 0, CLI_FILE, "I", "a picture, a folder or archive of them, or .npy ([dim] or [n, dim])", &(r).image, \
    NULL}, \
    {"mask", 0, CLI_FILE, "M", "white is unknown: a picture, many, digits (IDX: any size), or .npy", &(r).mask, NULL}, \
    {"rect", 0, CLI_TEXT, "X,Y,W,H", "a rectangle that is unknown, instead of --mask", &(r).rectangle, NULL}, \
    {"method", 0, CLI_TEXT, "NAME", \
    "resample (default), replace (the paper's; default with ode), authors (as they ran it)", &(r).method, \
    "replace|resample|authors"}, \
    {"repeats", 0, CLI_COUNT, "R", "resample: how often each group of --jump steps is repeated (default 10)", \
    &(r).repeats, NULL}, \
    {"jump", 0, CLI_COUNT, "J", "resample: reverse steps per repetition (default 1)", &(r).jump, NULL}
/* clang-format on */

/* Checks the options before anything is computed, except those of the output; fills in the method. */
int inpaint_check(const cli_command *command, inpaint_request *r);
/* Reads the images and draws; job->sampling must be open. After an interruption job->samples has the finished
 * samples. */
psld_status inpaint_fill(const inpaint_request *r, inpaint_job *job);
void inpaint_release(inpaint_job *job);

#endif
