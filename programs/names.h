/* Names from the library's tables, for help, choices and completion, so that no list is written by hand. */
#ifndef PSLD_PROGRAMS_NAMES_H
#define PSLD_PROGRAMS_NAMES_H

#include "cli.h"

/* The name of row `index`; NULL past the last. */
typedef const char *(*names_fn)(int index);
const char *names_sampler(int index);
const char *names_grid(int index);
const char *names_quality(int index);
const char *names_preset(int index);
const char *names_task(int index);
const char *names_method(int index);
const char *names_metric(int index);
const char *names_resample(int index);
const char *names_toy(int index);

/* All of them in one text. Returns `text`. */
enum { NAMES_SIZE = 512 };
const char *names_join(names_fn name, const char *between, char text[NAMES_SIZE]);
/* The names of samplers for which `is` is true: "dpm, collapsed". */
const char *names_samplers_that(int (*is)(const psld_sampler_info *sampler), char text[NAMES_SIZE]);

#endif
