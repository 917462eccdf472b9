/* The parts of psld info. */
#ifndef PSLD_PROGRAMS_INFO_H
#define PSLD_PROGRAMS_INFO_H

#include "cli.h"

/* Whether a path looks like that of a data set: a folder, an archive, IDX, .npz, CIFAR, "toy:NAME". */
int info_is_data(const char *path);
/* quick: the images are not decoded, so that broken ones are not counted. */
int info_show_data(const char *path, int quick, int json);

/* Whether a path is the folder of a training run, and what to say of it. */
int info_is_run(const char *path);
int info_run(const char *path, int json);

#endif
