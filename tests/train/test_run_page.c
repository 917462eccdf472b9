/* index.html of a run: there from the beginning, reloading while it trains, and saying how it ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "psld.h"
#include "psld_train.h"

static const char config[] =
    "process: {preset: cld, name: \"<b>&'\\\"\"}\n"
    "data: {path: \"toy:moons\", channels: 2}\n"
    "model: {name: mlp, nf: 16, num_res_blocks: 1}\n"
    "train: {batch: 8, steps: 6, lr: 1e-2, warmup: 3, ema: 0.9, checkpoint_every: 4,\n"
    "  sample_every: 3, sample_count: 20, sample_nfe: 3, evaluate_every: 2, evaluate_count: 8}\n";

static psld_training *open_run(void)
{
    psld_training_options options = PSLD_TRAINING_DEFAULTS;
    psld_training *training;
    FILE *file = fopen("page.yaml", "w");
    assert_non_null(file);
    assert_true(fputs(config, file) >= 0 && fclose(file) == 0);
    options.config = "page.yaml";
    if (psld_training_open("page-run", &options, &training) != PSLD_OK) fail_msg("%s", psld_error_text());
    return training;
}

static int fresh(void **state)
{
    (void)state;
    return system("rm -rf page-run");
}

/* The page as it is now; the same room each time. */
static const char *read_page(void)
{
    static char page[1 << 16];
    FILE *file = fopen("page-run/index.html", "rb");
    assert_non_null(file);
    size_t size = fread(page, 1, sizeof page - 1, file);
    fclose(file);
    page[size] = 0;
    assert_non_null(strstr(page, "</html>"));
    return page;
}

static void expect(const char *page, const char *text, int there)
{
    if ((strstr(page, text) != NULL) != there)
        fail_msg("the page should %shave \"%s\": %s", there ? "" : "not ", text, page);
}

static void step(psld_training *training)
{
    psld_training_report report = PSLD_TRAINING_REPORT_EMPTY;
    if (psld_training_step(training, &report) != PSLD_OK) fail_msg("%s", psld_error_text());
}

static void while_it_trains(void **state)
{
    (void)state;
    psld_training *training = open_run();
    const char *page = read_page();
    expect(page, "http-equiv=\"refresh\"", 1);
    expect(page, "<b>Training</b>, step 0 of 6", 1);
    expect(page, "<img", 0);
    for (int i = 0; i < 3; i++) step(training);
    page = read_page(); /* of the picture of step 3 */
    expect(page, "<b>Training</b>, step 3 of 6", 1);
    expect(page, "samples/step-000000003.png", 1);
    expect(page, "loss.png", 0);
    step(training);
    page = read_page(); /* of the checkpoint of step 4 */
    expect(page, "step 4 of 6", 1);
    expect(page, "loss.png?4", 1);
    expect(page, "loss, held-out data", 1);
    step(training), step(training);
    page = read_page();
    expect(page, "<b>Finished</b>, step 6 of 6", 1);
    expect(page, "refresh", 0);
    expect(page, "samples/step-000000006.png", 1);
    psld_training_free(training);
}

/* Names of recipes, paths and configurations may have anything in them. */
static void text_is_escaped(void **state)
{
    (void)state;
    psld_training_free(open_run());
    const char *page = read_page();
    expect(page, "<td>recipe</td><td>&lt;b&gt;&amp;&#39;&quot;</td>", 1);
    expect(page, "<b>&", 0);
}

static int stop_at_five(void *user, const psld_training_report *report)
{
    (void)user;
    return report->step == 5;
}

static void stopped(void **state)
{
    (void)state;
    psld_training *training = open_run();
    assert_int_equal(psld_training_run(training, stop_at_five, NULL), PSLD_CANCELLED);
    assert_string_equal(psld_error_text(), "stopped after step 5");
    psld_training_free(training);
    const char *page = read_page();
    expect(page, "<b>Stopped</b>, step 5 of 6", 1);
    expect(page, "stopped after step 5", 1);
    expect(page, "refresh", 0);
    training = open_run();
    expect(read_page(), "refresh", 1);
    assert_int_equal(psld_training_run(training, NULL, NULL), PSLD_OK);
    expect(read_page(), "<b>Finished</b>", 1);
    psld_training_free(training);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(while_it_trains, fresh),
        cmocka_unit_test_setup(text_is_escaped, fresh),
        cmocka_unit_test_setup(stopped, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
