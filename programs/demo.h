/* psld demo in parts: cmd_demo.c compares processes and samplers where the score is known, demo_digits.c draws from the
 * model that comes with the program. */
#ifndef PSLD_PROGRAMS_DEMO_H
#define PSLD_PROGRAMS_DEMO_H

#include <stdio.h>

#include "cli.h"

enum { DEMO_DIGITS = 64, DEMO_PATH = 4096 };

/* FOLDER/NAME, in room that the next call uses again. */
const char *demo_file(const char *folder, const char *name);

/* Draws DEMO_DIGITS pictures with each of three samplers. A model that is not there is no failure. */
psld_status demo_digits(const char *folder);
/* What came of it, as lines of text, or as part of the page. */
void demo_digits_print(FILE *out);
void demo_digits_page(FILE *out);

#endif
