/* psld demo in parts: cmd_demo.c compares processes and samplers where the score is known, demo_train.c trains a
 * network in the plane, demo_digits.c draws from the model that comes with the program, demo_steer.c under conditions.
 * Each of these three does its work, and then reports the results, as lines of text and as part of the page. */
#ifndef PSLD_PROGRAMS_DEMO_H
#define PSLD_PROGRAMS_DEMO_H

#include <stdio.h>

#include "cli.h"

enum { DEMO_DIGITS = 64, DEMO_PATH = 4096 };

/* FOLDER/NAME, in memory that the next call uses again. */
const char *demo_file(const char *folder, const char *name);

psld_status demo_train(const char *folder);
void demo_train_print(FILE *out);
void demo_train_page(FILE *out);

/* DEMO_DIGITS pictures with each of three samplers. It is no failure if the model is missing. */
psld_status demo_digits(const char *folder);
void demo_digits_print(FILE *out);
void demo_digits_page(FILE *out);

/* Rows of digits by label and by a classifier, and one of completions. It is no failure if models are missing. */
psld_status demo_steer(const char *folder);
void demo_steer_print(FILE *out);
void demo_steer_page(FILE *out);

#endif
