/* Samples that continue images: what masks show stays as it was, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "em_options.h"
#include "eval/set.h"

enum { COUNT = 70, SIZE = 8, PIXELS = SIZE * SIZE, DIGIT = 4 };

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* Digit i has a faint stroke at the pixel i modulo 16. */
static void write_digits(const char *path, int count)
{
    uint8_t file[16 + COUNT * DIGIT * DIGIT] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, DIGIT, 0, 0, 0, DIGIT};
    file[7] = (uint8_t)count;
    for (int i = 0; i < count; i++) file[16 + i * DIGIT * DIGIT + i % (DIGIT * DIGIT)] = 1;
    write_bytes(path, file, 16 + (size_t)count * DIGIT * DIGIT);
}

static psld_set *open_images(uint8_t *pixels)
{
    psld_array *array;
    psld_set *set;
    for (int i = 0; i < COUNT * PIXELS; i++) pixels[i] = (uint8_t)(31 * i + i / 7);
    assert_int_equal(psld_array_create(PSLD_U8, 3, (const size_t[]){COUNT, SIZE, SIZE}, &array), PSLD_OK);
    memcpy(array->data, pixels, COUNT * PIXELS);
    assert_int_equal(psld_array_save(array, "images.npy"), PSLD_OK);
    psld_array_free(array);
    assert_int_equal(psld_set_open("images.npy", 0, &set), PSLD_OK);
    return set;
}

static psld_model *make_model(void)
{
    static const char text[] = "process: psld gamma=0.02\n"
                               "data: {size: 8, channels: 1}\n"
                               "model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, init_scale: 1}\n";
    psld_model *model;
    write_bytes("net.yaml", text, sizeof text - 1);
    if (psld_model_create("net.yaml", NULL, 1, &model) != PSLD_OK) fail_msg("%s", psld_error_text());
    return model;
}

static void draw(psld_model *model, psld_set *images, const psld_hiding *hiding, uint8_t *drawn)
{
    psld_sample_options options = em_options();
    psld_set *set;
    options.nfe = 4;
    if (psld_set_inpainted_as(model, &options, COUNT, 0, images, hiding, &set) != PSLD_OK)
        fail_msg("%s", psld_error_text());
    assert_int_equal(psld_set_read_images(set, 0, COUNT, drawn), PSLD_OK);
    psld_set_free(set);
}

static int stroke_at(int image, int pixel)
{
    int y = pixel / SIZE * DIGIT / SIZE, x = pixel % SIZE * DIGIT / SIZE;
    return y * DIGIT + x == image % (DIGIT * DIGIT);
}

/* More images than are drawn at a time, so that every piece has masks of its own. */
static void digits_hide_strokes(void **state)
{
    static uint8_t pixels[COUNT * PIXELS], drawn[COUNT * PIXELS], lagging[COUNT * PIXELS];
    psld_hiding hiding = PSLD_HIDING_DEFAULTS;
    hiding.part = "right";
    psld_model *model = make_model();
    psld_set *images = open_images(pixels);
    (void)state;
    write_digits("strokes-idx3-ubyte", COUNT);
    assert_int_equal(psld_set_open("strokes-idx3-ubyte", 0, &hiding.masks), PSLD_OK);
    draw(model, images, &hiding, drawn);
    int hidden = 0, changed = 0;
    for (int i = 0; i < COUNT * PIXELS; i++) {
        int stroke = stroke_at(i / PIXELS, i % PIXELS);
        if (!stroke && drawn[i] != pixels[i]) fail_msg("image %d, pixel %d has changed", i / PIXELS, i % PIXELS);
        hidden += stroke;
        changed += drawn[i] != pixels[i];
    }
    assert_int_equal(hidden, COUNT * 4);
    assert_true(changed > hidden * 9 / 10);
    hiding.lagging = 1;
    draw(model, images, &hiding, lagging);
    assert_memory_not_equal(drawn, lagging, sizeof drawn);
    psld_set_free(hiding.masks);
    psld_set_free(images);
    psld_model_free(model);
}

static void refused(void **state)
{
    static uint8_t pixels[COUNT * PIXELS];
    psld_hiding hiding = PSLD_HIDING_DEFAULTS;
    hiding.part = "nothing";
    psld_sample_options options = em_options();
    psld_set *set, *images = open_images(pixels);
    psld_model *model = make_model();
    (void)state;
    assert_int_equal(psld_set_inpainted_as(model, &options, COUNT, 0, images, &hiding, &set), PSLD_BAD_INPUT);
    assert_null(set);
    write_digits("few-idx3-ubyte", COUNT - 1);
    assert_int_equal(psld_set_open("few-idx3-ubyte", 0, &hiding.masks), PSLD_OK);
    assert_int_equal(psld_set_inpainted_as(model, &options, COUNT, 0, images, &hiding, &set), PSLD_BAD_INPUT);
    assert_null(set);
    assert_string_equal(psld_error_text(), "few-idx3-ubyte: has 69 masks for 70 images");
    psld_set_free(hiding.masks);
    psld_set_free(images);
    psld_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(digits_hide_strokes), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
