/* Augmentation: what is done to images against direct formulas, by which numbers, and networks that are told. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/augment.h"
#include "data/loader.h"
#include "train/training.h"

enum { SIZE = 7, PIXELS = SIZE * SIZE };

static const size_t grey_shape[PSLD_MAX_RANK] = {1, SIZE, SIZE}, colour_shape[PSLD_MAX_RANK] = {3, SIZE, SIZE};

static void fill(float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) x[i] = (float)(0.9 * sin(1.7 * (double)i + 0.3));
}

static int mirror(int at)
{
    return at < 0 ? -at : at >= SIZE ? 2 * (SIZE - 1) - at : at;
}

/* ---- What is done ------------------------------------------------------------------------------------------------ */

/* Whole shifts and quarter turns need no interpolation. */
static void places(void **state)
{
    (void)state;
    float before[PIXELS], x[PIXELS], room[PIXELS];
    double shift[PSLD_AUGMENT_NUMBERS] = {[PSLD_AUGMENT_X] = 2.0 / SIZE, [PSLD_AUGMENT_Y] = -3.0 / SIZE};
    double turn[PSLD_AUGMENT_NUMBERS] = {[PSLD_AUGMENT_COSINE] = -1, [PSLD_AUGMENT_SINE] = 1};
    const double nothing[PSLD_AUGMENT_NUMBERS] = {0};
    fill(before, PIXELS);
    memcpy(x, before, sizeof x);
    psld_augment_apply(nothing, grey_shape, x, room);
    assert_memory_equal(x, before, sizeof x);
    psld_augment_apply(shift, grey_shape, x, room);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            assert_true(fabsf(x[i * SIZE + j] - before[mirror(i + 3) * SIZE + mirror(j - 2)]) < 1e-6f);
    memcpy(x, before, sizeof x);
    psld_augment_apply(turn, grey_shape, x, room);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) assert_true(fabsf(x[i * SIZE + j] - before[(SIZE - 1 - j) * SIZE + i]) < 1e-6f);
}

/* A slope stays a slope: steeper when it is made smaller. */
static void magnification(void **state)
{
    (void)state;
    float x[PIXELS], room[PIXELS];
    double twice[PSLD_AUGMENT_NUMBERS] = {[PSLD_AUGMENT_SCALE] = 1};
    for (int i = 0; i < PIXELS; i++) x[i] = (float)(0.2 * (i % SIZE - SIZE / 2));
    psld_augment_apply(twice, grey_shape, x, room);
    for (int i = 0; i < PIXELS; i++) assert_true(fabs((double)x[i] - 0.1 * (i % SIZE - SIZE / 2)) < 1e-6);
}

/* Contrast and brightness by their formula, cut off at -1 and 1; a third of a turn of the hue exchanges the channels. */
static void colours(void **state)
{
    (void)state;
    float before[3 * PIXELS], x[3 * PIXELS], room[3 * PIXELS];
    double light[PSLD_AUGMENT_NUMBERS] = {[PSLD_AUGMENT_BRIGHTNESS] = 0.25, [PSLD_AUGMENT_CONTRAST] = 1};
    double third[PSLD_AUGMENT_NUMBERS] = {[PSLD_AUGMENT_HUE_COSINE] = -1.5, [PSLD_AUGMENT_HUE_SINE] = sqrt(0.75)};
    double dull[PSLD_AUGMENT_NUMBERS] = {[PSLD_AUGMENT_SATURATION] = -1};
    fill(before, 3 * PIXELS);
    memcpy(x, before, sizeof x);
    psld_augment_apply(light, colour_shape, x, room);
    for (int i = 0; i < 3 * PIXELS; i++)
        assert_true(fabs((double)x[i] - fmin(fmax(2 * ((double)before[i] + 0.25), -1), 1)) < 1e-6);
    memcpy(x, before, sizeof x);
    psld_augment_apply(third, colour_shape, x, room);
    for (int i = 0; i < 3 * PIXELS; i++) assert_true(fabsf(x[i] - before[(i + 2 * PIXELS) % (3 * PIXELS)]) < 1e-6f);
    memcpy(x, before, sizeof x);
    psld_augment_apply(dull, colour_shape, x, room);
    for (int i = 0; i < PIXELS; i++) {
        double grey = ((double)before[i] + (double)before[PIXELS + i] + (double)before[2 * PIXELS + i]) / 3;
        for (int c = 0; c < 3; c++)
            assert_true(fabs((double)x[c * PIXELS + i] - 0.5 * (grey + (double)before[c * PIXELS + i])) < 1e-6);
    }
}

/* ---- By which numbers -------------------------------------------------------------------------------------------- */

/* Deviations and probabilities of many draws; five standard deviations of each. */
static void draws(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    psld_augmentation how = {.probability = 0.25, .translate = 0.125, .rotate = 90, .scale = 0.2, .colour = 0.5};
    double numbers[PSLD_AUGMENT_NUMBERS], again[PSLD_AUGMENT_NUMBERS], squares = 0;
    int moved = 0, turned = 0;
    for (uint64_t s = 0; s < MANY; s++) {
        psld_augment_draw(&how, 3, s, colour_shape, numbers);
        psld_augment_draw(&how, 3, s, colour_shape, again);
        assert_memory_equal(numbers, again, sizeof numbers);
        moved += numbers[PSLD_AUGMENT_X] != 0;
        turned += numbers[PSLD_AUGMENT_SINE] != 0;
        squares += numbers[PSLD_AUGMENT_X] * numbers[PSLD_AUGMENT_X];
        assert_true(numbers[PSLD_AUGMENT_COSINE] >= -1);
    }
    double spread = 5 * sqrt(MANY * 0.25 * 0.75);
    assert_true(abs(moved - MANY / 4) < spread && abs(turned - MANY / 4) < spread);
    assert_true(fabs(sqrt(squares / moved) / 0.125 - 1) < 5 / sqrt(2.0 * moved));
    psld_augment_draw(&how, 3, 0, grey_shape, numbers);
    assert_true(numbers[PSLD_AUGMENT_SATURATION] == 0 && numbers[PSLD_AUGMENT_HUE_SINE] == 0);
}

/* Padding and cropping: whole pixels, each shift as likely, whatever the probability of the rest. */
static void crops(void **state)
{
    (void)state;
    enum { MANY = 2500, PADDING = 2 };
    psld_augmentation how = {.crop_padding = PADDING};
    double numbers[PSLD_AUGMENT_NUMBERS];
    int found[2 * PADDING + 1] = {0};
    assert_true(psld_augmentation_any(&how));
    for (uint64_t s = 0; s < MANY; s++) {
        psld_augment_draw(&how, 3, s, grey_shape, numbers);
        double shift = numbers[PSLD_AUGMENT_X] * SIZE;
        assert_true(fabs(shift - round(shift)) < 1e-9 && fabs(shift) < PADDING + 0.5);
        found[(int)round(shift) + PADDING]++;
    }
    for (int i = 0; i <= 2 * PADDING; i++) assert_true(abs(found[i] - MANY / 5) < 5 * sqrt(MANY * 0.16));
    assert_false(psld_augmentation_any(&(psld_augmentation){.probability = 1}));
    assert_false(psld_augmentation_any(&(psld_augmentation){.rotate = 10}));
}

/* ---- Feed and training ------------------------------------------------------------------------------------------- */

static void save_images(void)
{
    size_t shape[] = {20, 8, 8, 3};
    psld_array *array;
    assert_int_equal(psld_array_create(PSLD_U8, 4, shape, &array), PSLD_OK);
    for (size_t i = 0; i < 20 * 8 * 8 * 3; i++) ((uint8_t *)array->data)[i] = (uint8_t)(i * 2654435761u >> 20);
    assert_int_equal(psld_array_save(array, "images.npy"), PSLD_OK);
    psld_array_free(array);
}

/* A sample is its item, changed as its number says, in batches of any size; without augmentation it is the item. */
static void feed_by_number(void **state)
{
    (void)state;
    enum { DIM = 3 * 8 * 8, COUNT = 30 };
    psld_data *data;
    psld_loader *loader, *plain;
    static float x[COUNT * DIM], y[COUNT * DIM], item[COUNT * DIM], room[DIM], told[COUNT * PSLD_AUGMENT_NUMBERS];
    psld_loader_options options = {.seed = 5, .flip = 1, .end = 20};
    save_images();
    assert_int_equal(psld_data_open("images.npy", NULL, &data), PSLD_OK);
    assert_int_equal(psld_loader_create(data, &options, &plain), PSLD_OK);
    options.augment =
        (psld_augmentation){.probability = 0.5, .translate = 0.1, .rotate = 20, .colour = 0.2, .crop_padding = 1};
    assert_int_equal(psld_loader_create(data, &options, &loader), PSLD_OK);
    assert_int_equal(psld_loader_read(loader, 0, COUNT, x, NULL), PSLD_OK);
    for (size_t s = 0; s < COUNT; s += 3) assert_int_equal(psld_loader_read(loader, s, 3, y + s * DIM, NULL), PSLD_OK);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(psld_loader_read(plain, 0, COUNT, item, NULL), PSLD_OK);
    assert_memory_not_equal(x, item, sizeof x);
    psld_loader_augmentation(loader, 0, COUNT, told);
    for (size_t s = 0; s < COUNT; s++) {
        double numbers[PSLD_AUGMENT_NUMBERS];
        size_t shape[PSLD_MAX_RANK];
        psld_data_shape(data, shape);
        psld_augment_draw(&options.augment, 5, s, shape, numbers);
        psld_augment_apply(numbers, shape, item + s * DIM, room);
        for (int i = 0; i < PSLD_AUGMENT_NUMBERS; i++)
            assert_true(told[s * PSLD_AUGMENT_NUMBERS + (size_t)i] == (float)numbers[i]);
    }
    assert_memory_equal(x, item, sizeof x);
    psld_loader_free(loader);
    psld_loader_free(plain);
    psld_data_free(data);
}

static const char *const settings[] = {
    "process=vp",        "data.path=images.npy",     "model.name=ncsnpp",         "model.nf=8",
    "model.ch_mult=[1]", "model.num_res_blocks=1",   "model.attn_resolutions=[]", "train.batch=4",
    "train.steps=4",     "train.checkpoint_every=2", "train.sample_every=0",      "train.warmup=0",
    "train.ema=0.5",     "data.rotate=30",           "data.translate=0.1",        "model.augment=true"};
enum { SETTINGS = sizeof settings / sizeof *settings };

static psld_status open_run(const char *folder, const char *more, psld_training **training)
{
    const char *overrides[SETTINGS + 1];
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    memcpy(overrides, settings, sizeof settings);
    overrides[SETTINGS] = more;
    options.data = "images.npy";
    options.overrides = overrides;
    options.override_count = SETTINGS + (more != NULL);
    options.seconds = 1e9; /* nothing is measured on the clock */
    return psld_training_open(folder, &options, training);
}

static const psld_parameter *find_parameter(const psld_network *network, const char *name)
{
    for (size_t i = 0; i < network->graph->parameter_count; i++)
        if (strcmp(network->graph->parameters[i].name, name) == 0) return &network->graph->parameters[i];
    return NULL;
}

/* The network learns from what it is told, the run goes on bit for bit, and its model draws without being told. */
static void told_network(void **state)
{
    (void)state;
    psld_training *whole, *cut;
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    psld_array *x;
    assert_int_equal(system("rm -rf cut"), 0);
    save_images();
    if (open_run(NULL, NULL, &whole) != PSLD_OK) fail_msg("%s", psld_error_text());
    const psld_parameter *p = find_parameter(whole->network, "augment.weight");
    assert_non_null(p);
    float first = whole->network->weights[p->offset];
    for (int i = 0; i < 4; i++) assert_int_equal(psld_training_step(whole, &report), PSLD_OK);
    assert_true(whole->network->weights[p->offset] != first);
    for (uint64_t until = 2; until <= 4; until += 2) {
        if (open_run("cut", NULL, &cut) != PSLD_OK) fail_msg("%s", psld_error_text());
        while (psld_training_steps(cut) < until) assert_int_equal(psld_training_step(cut, &report), PSLD_OK);
        if (until == 4)
            assert_memory_equal(whole->network->weights, cut->network->weights,
                                whole->network->graph->parameter_elements * sizeof(float));
        psld_training_free(cut);
    }
    options.sampler = "em";
    options.nfe = 3;
    options.batch = 0;
    if (psld_model_sample(psld_training_model(whole), &options, 0, 2, NULL, 0, &x, NULL) != PSLD_OK)
        fail_msg("%s", psld_error_text());
    psld_array_free(x);
    psld_training_free(whole);
}

static void refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {{"data.augment_prob=0", "model.augment: no image is changed"},
                                           {"data.crop_padding=8", "data.crop_padding: expected less than data.size"},
                                           {"data.rotate=200", "from 0 to 180"},
                                           {"model.noise_cond=false", "augment: expected false"}};
    psld_training *training;
    save_images();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(open_run(NULL, wrong[i][0], &training), PSLD_BAD_INPUT);
        if (!strstr(psld_error_text(), wrong[i][1])) fail_msg("%s: %s", wrong[i][0], psld_error_text());
    }
    static const char *const rotate[] = {"data.rotate=10"};
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    options.data = "toy:moons";
    options.overrides = rotate;
    options.override_count = 1;
    options.seconds = 1e9;
    assert_int_equal(psld_training_open(NULL, &options, &training), PSLD_BAD_INPUT);
    if (!strstr(psld_error_text(), "has no images")) fail_msg("%s", psld_error_text());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),       cmocka_unit_test(magnification), cmocka_unit_test(colours),
        cmocka_unit_test(draws),        cmocka_unit_test(crops),         cmocka_unit_test(feed_by_number),
        cmocka_unit_test(told_network), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
