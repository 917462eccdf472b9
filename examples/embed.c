/* Pictures from a model in a C program: embed MODEL OUT.pnm [SEED] */
#include <psld.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 4, ROWS = 4, COUNT = COLUMNS * ROWS };

static int show_progress(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    fprintf(stderr, "\r%3.0f %%", 100 * (double)done / (double)total);
    return 0; /* anything else cancels */
}

/* u8 [COUNT, channels, height, width] as one sheet: PGM with one channel, PPM with three. Returns 0 when it is written. */
static int write_sheet(const psld_array *pixels, const char *path)
{
    size_t channels = pixels->shape[1], height = pixels->shape[2], width = pixels->shape[3];
    const unsigned char *data = pixels->data;
    FILE *file = fopen(path, "wb");
    if (!file) return -1;
    fprintf(file, "P%d\n%zu %zu\n255\n", channels == 1 ? 5 : 6, COLUMNS * width, ROWS * height);
    for (size_t y = 0; y < ROWS * height; y++)
        for (size_t x = 0; x < COLUMNS * width; x++) {
            size_t picture = y / height * COLUMNS + x / width, pixel = y % height * width + x % width;
            for (size_t c = 0; c < channels; c++) putc(data[(picture * channels + c) * height * width + pixel], file);
        }
    int failed = ferror(file);
    return fclose(file) || failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    psld_model *model = NULL;
    psld_array *samples = NULL, *pixels = NULL;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    uint64_t evaluations = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: embed MODEL OUT.pnm [SEED]\n");
        return 2;
    }
    options.sampler = "sscs";
    options.nfe = 50;
    options.batch = 0; /* what suits the model */
    options.seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    options.progress = show_progress;

    psld_status status = psld_model_open(argv[1], NULL, &model);
    if (status == PSLD_OK) status = psld_model_sample(model, &options, 0, COUNT, NULL, 0, &samples, &evaluations);
    if (status == PSLD_OK) status = psld_images_from_data(samples, 0, &pixels);
    int failed = 1;
    if (status != PSLD_OK)
        fprintf(stderr, "\n%s\n", psld_error_text());
    else if (pixels->rank != 4)
        fprintf(stderr, "\n%s: not a model of images\n", argv[1]);
    else if (write_sheet(pixels, argv[2]) != 0)
        fprintf(stderr, "\n%s: cannot be written\n", argv[2]);
    else {
        printf("\n%s: %d pictures, %llu evaluations each\n", argv[2], COUNT, (unsigned long long)evaluations);
        failed = 0;
    }

    psld_array_free(pixels);
    psld_array_free(samples);
    psld_model_free(model);
    return failed;
}
