/* The parts of psld info. */
#ifndef PSLD_PROGRAMS_INFO_H
#define PSLD_PROGRAMS_INFO_H

#include "cli.h"

/* Whether a path looks like that of a data set: a folder, an archive, IDX, CIFAR, "toy:NAME". */
int info_is_data(const char *path);
/* quick: the images are not decoded, so that broken ones are not counted. A .npz that is not a data set is shown as
 * arrays. */
int info_show_data(const char *path, int quick, int json);
/* A set as JSON; is_checked: all of its images were decoded. */
json_t *info_describe_data(const psld_data *data, int is_checked);
/* "60000 items of 28 x 28 pixels in grey", without an end of line. */
void info_print_items(const psld_data *data);

/* Whether a path is the folder of a training run, and its description. */
int info_is_run(const char *path);
int info_run(const char *path, int json);

/* Networks: as JSON, and as a line about the network and one about its classes. */
json_t *info_describe_network(psld_model *model);
void info_print_network(const char *path, const json_t *network);
void info_print_classes(const json_t *names);
/* The folder of a pipeline of another project, also if its network cannot be read. */
int info_is_pipeline(const char *path);
int info_show_pipeline(const char *path, int json);
/* A file of weights; with `tensors` each of them is listed. */
int info_show_tensors(const char *path, int tensors, int json);

/* Pictures, .npy and .npz. */
int info_is_image(const char *path);
int info_show_image(const char *path, int json);
int info_show_array(const char *path, int json);
int info_show_arrays(const char *path, int json);

/* Whether a file begins with some bytes, at most 32. */
int info_begins_with(const char *path, const char *bytes, size_t count);
/* The size of a file in words: "3.10 MB"; returns `text`. */
enum { INFO_SIZE = 32 };
const char *info_size(const char *path, char text[INFO_SIZE]);

#endif
