#include "sheet.h"

int sheet_check_zoom(const cli_command *command, long zoom, int writes_sheet)
{
    if (zoom > PSLD_MAX_ZOOM)
        return cli_wrong_usage(command, "--zoom: expected 1 to %d, found %ld", PSLD_MAX_ZOOM, zoom);
    if (zoom && !writes_sheet) return cli_wrong_usage(command, "--zoom is for sheets of pictures: give -o NAME.png");
    return EXIT_DONE;
}

psld_status sheet_write(const psld_array *pixels, size_t columns, long zoom, const char *path)
{
    psld_array *larger = NULL;
    if (zoom <= 1) return psld_image_grid(pixels, columns, path);
    psld_status status = psld_images_enlarge(pixels, (size_t)zoom, &larger);
    if (status == PSLD_OK) status = psld_image_grid(larger, columns, path);
    psld_array_free(larger);
    return status;
}
