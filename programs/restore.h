/* Restoration of linear degradations, for the command and for the server. */
#ifndef PSLD_PROGRAMS_RESTORE_H
#define PSLD_PROGRAMS_RESTORE_H

#include "names.h"
#include "sampling.h"

typedef struct restore_request {
    sampling_request sampling;
    const char *image, *mask, *rectangle, *matrix;
    int degraded;
    long factor, iterations;
    psld_task task;
    psld_restore_options options;
    char tasks[NAMES_SIZE], task_help[NAMES_SIZE], methods[NAMES_SIZE],
        method_help[NAMES_SIZE + 64]; /* for the table */
} restore_request;

typedef struct restore_job {
    sampling_job sampling;
    psld_array *x;              /* [images][dim]: originals, or NULL with --degraded */
    psld_array *y, *shown;      /* [images][size], [images][dim] */
    psld_array *known, *matrix; /* of the task */
    psld_array *samples;
    psld_operator *op;   /* operator of the present image: masks may differ */
    size_t images, each; /* each: samples per image */
} restore_job;

/* Rows of a table of options; SAMPLING_RESTORATION follows. clang-format off: it would break every row. */
/* clang-format off */
#define RESTORE_OPTIONS(r) \
    {"task", 0, CLI_TEXT, "NAME", (r).task_help, &(r).task.name, \
    (r).tasks}, \
    {"image", 0, CLI_FILE, "I", "what is measured, and then restored: a picture, many, or .npy", &(r).image, NULL}, \
    {"degraded", 0, CLI_FLAG, NULL, "--image is the measurement itself: small, blurred, grey ...", &(r).degraded, \
    NULL}, \
    {"factor", 0, CLI_COUNT, "F", "super-resolution: width of a block in pixels (default 4)", &(r).factor, NULL}, \
    {"blur", 0, CLI_NUMBER, "B", "deblur: deviation in pixels (default 2)", &(r).task.blur, NULL}, \
    {"mask", 0, CLI_FILE, "M", "inpaint: white is unknown, as of psld inpaint", &(r).mask, NULL}, \
    {"rect", 0, CLI_TEXT, "X,Y,W,H", "inpaint: a rectangle that is unknown", &(r).rectangle, NULL}, \
    {"matrix", 0, CLI_FILE, "A.npy", "linear: [rows, dim]", &(r).matrix, NULL}, \
    {"noise", 0, CLI_NUMBER, "S", "deviation of the noise in the measurement (default 0)", &(r).options.noise, NULL}, \
    {"method", 0, CLI_TEXT, "NAME", (r).method_help, &(r).options.method, (r).methods}, \
    {"strength", 0, CLI_NUMBER, "W", "scale of the measurement's gradient (default 1: Bayes' rule)", &(r).options.scale, NULL}, \
    {"iterations", 0, CLI_COUNT, "N", "posterior: at most N products per evaluation (default 8)", &(r).iterations, \
    NULL}
/* clang-format on */

/* Call this before the table is made. */
void restore_defaults(restore_request *r);
/* Checks the options before anything is computed, except those of the output. */
int restore_check(const cli_command *command, restore_request *r);
/* Reads the images, measures and draws; job->sampling must be open. After an interruption job->samples has the finished
 * samples. */
psld_status restore_images(const restore_request *r, restore_job *job);
void restore_release(restore_job *job);

#endif
