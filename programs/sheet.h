/* Sheets: many pictures in one .png, for the commands that write one. */
#ifndef PSLD_PROGRAMS_SHEET_H
#define PSLD_PROGRAMS_SHEET_H

#include "cli.h"

/* The row of tables of options; `zoom` is a long, 0 when it is not given. */
#define SHEET_OPTION(zoom)                                                                                        \
    {                                                                                                             \
        "zoom", 0, CLI_COUNT, "N", "of a sheet of pictures (.png): every pixel becomes a square of N x N pixels", \
            &(zoom), NULL                                                                                         \
    }

/* EXIT_DONE unless the number is out of range, or given where no sheet is written. */
int sheet_check_zoom(const cli_command *command, long zoom, int writes_sheet);

/* psld_image_grid of pixels u8 [n, c, h, w], magnified. */
psld_status sheet_write(const psld_array *pixels, size_t columns, long zoom, const char *path);

#endif
