/* Digits from the model that comes with the program, by three samplers. */
#include <stdio.h>
#include <string.h>

#include "demo.h"

#define MODEL "digits.safetensors"

static struct drawn {
    const char *sampler, *text;
    int nfe; /* 0: adaptive */
    uint64_t evaluations;
    double seconds;
} drawn[] = {
    {"em", "Euler-Maruyama", 100, 0, 0},
    {"sscs", "symmetric splitting", 50, 0, 0},
    {"ode", "probability flow", 0, 0, 0},
};
enum { WAYS = sizeof drawn / sizeof *drawn };

static int found;

static void picture_name(const struct drawn *d, char name[64])
{
    snprintf(name, 64, "digits-%s.png", d->sampler);
}

static psld_status draw_digits(psld_model *model, struct drawn *d, const char *folder)
{
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    psld_array *x = NULL, *pixels = NULL;
    cli_progress progress;
    char name[64], what[64];
    snprintf(what, sizeof what, "digits, %s", d->sampler);
    picture_name(d, name);
    options.sampler = d->sampler;
    if (d->nfe) options.nfe = d->nfe;
    options.tolerance = 1e-2;
    cli_progress_begin(&progress, what);
    options.progress = cli_progress_report;
    options.progress_user = &progress;
    psld_status status = psld_model_sample(model, &options, 0, DEMO_DIGITS, NULL, 0, &x, &d->evaluations);
    cli_progress_end(&progress);
    d->seconds = cli_seconds() - progress.began;
    if (status == PSLD_OK) status = psld_images_from_data(x, 0, &pixels);
    if (status == PSLD_OK) status = psld_image_grid(pixels, 0, demo_file(folder, name));
    psld_array_free(x);
    psld_array_free(pixels);
    return status;
}

psld_status demo_digits(const char *folder)
{
    char path[CLI_PATH];
    psld_model *model = NULL;
    found = cli_shipped_model(MODEL, path);
    if (!found) return PSLD_OK;
    psld_status status = psld_model_open(path, NULL, &model);
    for (int i = 0; i < WAYS && status == PSLD_OK; i++) status = draw_digits(model, &drawn[i], folder);
    psld_model_free(model);
    return status;
}

void demo_digits_print(FILE *out)
{
    if (!found) {
        fprintf(out, "No digits: the model " MODEL " is not where it should be (PSLD_MODELS may name its folder)\n");
        return;
    }
    fprintf(out, "%d digits from a network trained on MNIST\n\n", DEMO_DIGITS);
    for (int i = 0; i < WAYS; i++)
        fprintf(out, "  %-5s %4llu evaluations, %.1f s\n", drawn[i].sampler, (unsigned long long)drawn[i].evaluations,
                drawn[i].seconds);
}

void demo_digits_page(FILE *out)
{
    char name[64];
    fprintf(out, "<h2>Digits</h2>\n");
    if (!found) {
        fprintf(out, "<p>The model " MODEL " was not found, so there are none here.</p>\n");
        return;
    }
    fprintf(out,
            "<p>%d samples of a small network trained on MNIST under phase-space Langevin diffusion. The same noise to "
            "begin\nwith, three ways from there to the data.</p>\n<div class=\"grid\">\n",
            DEMO_DIGITS);
    for (int i = 0; i < WAYS; i++) {
        picture_name(&drawn[i], name);
        fprintf(out,
                "<figure><img class=\"pixels\" src=\"%s\" alt=\"digits by %s\"><figcaption>%s (%s), %llu "
                "evaluations</figcaption></figure>\n",
                name, drawn[i].sampler, drawn[i].text, drawn[i].sampler, (unsigned long long)drawn[i].evaluations);
    }
    fprintf(out, "</div>\n");
}
