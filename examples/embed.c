/* Pictures from a model in a C program: embed MODEL OUT.png [SEED] */
#include <psld.h>
#include <stdio.h>
#include <stdlib.h>

#include "psld_data.h"

static int show_progress(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    fprintf(stderr, "\r%3.0f %%", 100 * (double)done / (double)total);
    return 0; /* anything else cancels */
}

int main(int argc, char **argv)
{
    psld_model *model = NULL;
    psld_array *samples = NULL, *pixels = NULL;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    uint64_t evaluations = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: embed MODEL OUT.png [SEED]\n");
        return 2;
    }
    options.sampler = "sscs";
    options.nfe = 50;
    options.batch = 0; /* what suits the model */
    options.seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    options.progress = show_progress;

    psld_status status = psld_model_open(argv[1], NULL, &model);
    if (status == PSLD_OK) status = psld_model_sample(model, &options, 0, 16, NULL, 0, &samples, &evaluations);
    if (status == PSLD_OK) status = psld_images_from_data(samples, 0, &pixels);
    if (status == PSLD_OK) status = psld_image_grid(pixels, 4, argv[2]);
    if (status == PSLD_OK)
        printf("\n%s: 16 pictures, %llu evaluations each\n", argv[2], (unsigned long long)evaluations);
    else
        fprintf(stderr, "\n%s\n", psld_error_text());

    psld_array_free(pixels);
    psld_array_free(samples);
    psld_model_free(model);
    return status != PSLD_OK;
}
