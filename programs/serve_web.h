/* The files of web/, as cmake/web.cmake has put them into the program. */
#ifndef PSLD_PROGRAMS_SERVE_WEB_H
#define PSLD_PROGRAMS_SERVE_WEB_H

#include <stddef.h>

typedef struct serve_web_file {
    const char *name; /* NULL ends them */
    const char *tag;  /* for ETag: of the contents, in quotes */
    const unsigned char *bytes;
    size_t size;
} serve_web_file;
extern const serve_web_file serve_web_files[];

#endif
