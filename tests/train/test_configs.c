/* Configurations that come with the project say what the program makes of them, and those of the paper's networks say
 * what the paper's appendix does. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/files/process_read.h"
#include "model/networks/network.h"
#include "psld_data.h"
#include "train/settings.h"

enum { LONG = 1 << 16 };

typedef struct opened {
    char name[256], text[LONG];
    psld_yaml *yaml;
    psld_settings settings;
    psld_network_config network;
    psld_recipe *recipe;
} opened;

static const char *source_folder(void)
{
    const char *source = getenv("PSLD_SOURCE");
    return source ? source : ".";
}

static void read_text(const char *path, char text[LONG])
{
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s: cannot be read", path);
    size_t size = fread(text, 1, LONG - 1, file);
    assert_true(size < LONG - 1);
    text[size] = 0;
    fclose(file);
}

static void open_config(const char *name, opened *o)
{
    char path[2048];
    memset(o, 0, sizeof *o);
    snprintf(o->name, sizeof o->name, "%s", name);
    snprintf(path, sizeof path, "%s/configs/%s", source_folder(), name);
    read_text(path, o->text);
    if (psld_yaml_load(path, &o->yaml) != PSLD_OK || psld_settings_complete(o->yaml) != PSLD_OK ||
        psld_settings_read(o->yaml, &o->settings) != PSLD_OK ||
        psld_network_config_read(psld_yaml_root(o->yaml), NULL, &o->network) != PSLD_OK ||
        psld_network_config_check(psld_yaml_root(o->yaml)) != PSLD_OK ||
        psld_process_read(psld_yaml_root(o->yaml), &o->recipe) != PSLD_OK)
        fail_msg("%s", psld_error_text());
}

static void close_config(opened *o)
{
    psld_settings_clear(&o->settings);
    psld_recipe_free(o->recipe);
    psld_yaml_free(o->yaml);
}

static void for_each(void (*check)(const opened *o))
{
    char path[2048];
    snprintf(path, sizeof path, "%s/configs", source_folder());
    DIR *folder = opendir(path);
    const struct dirent *entry;
    int count = 0;
    assert_non_null(folder);
    static opened o;
    while ((entry = readdir(folder))) {
        if (!strstr(entry->d_name, ".yaml")) continue;
        open_config(entry->d_name, &o);
        check(&o);
        close_config(&o);
        count++;
    }
    closedir(folder);
    assert_true(count >= 19);
}

/* ---- What every configuration says of itself --------------------------------------------------------------------- */

static size_t parameters_of(const psld_network_config *config)
{
    psld_graph *graph = NULL;
    psld_id out;
    assert_int_equal(psld_graph_create(&graph), PSLD_OK);
    psld_network_inputs inputs = psld_network_add_inputs(config, graph);
    assert_int_equal(psld_network_build(config, graph, &inputs, &out), PSLD_OK);
    size_t count = psld_network_size(graph);
    psld_graph_free(graph);
    return count;
}

static void check_parameters(const opened *o)
{
    char said[64];
    const char *at = strstr(o->text, "M parameters"), *end = at;
    snprintf(said, sizeof said, "%.2f", (double)parameters_of(&o->network) * 1e-6);
    while (at && at > o->text && strchr("0123456789.", at[-1])) at--;
    if (!at) fail_msg("%s: its comment does not say how many parameters: %sM", o->name, said);
    if ((size_t)(end - at) != strlen(said) || strncmp(at, said, strlen(said)) != 0)
        fail_msg("%s: its comment says %.*sM parameters, the network has %sM", o->name, (int)(end - at), at, said);
}

static void check_channels(const opened *o)
{
    const psld_network_config *n = &o->network;
    int channels = (int)o->settings.data.channels, classifier = n->kind == PSLD_NET_CLASSIFIER, order[PSLD_MAX_K];
    int variables = n->predicts == PSLD_OUTPUT_DATA ? 1 : psld_recipe_get(o->recipe)->k;
    assert_int_equal(n->in_ch, variables * channels);
    assert_int_equal(n->image_size, o->settings.data.size);
    assert_int_equal(classifier, o->settings.train.loss == PSLD_LOSS_ENTROPY);
    if (classifier && o->settings.data.class_count) assert_int_equal(n->out_ch, o->settings.data.class_count);
    if (classifier) return;
    if (n->predicts == PSLD_OUTPUT_DATA)
        assert_int_equal(n->out_ch, channels);
    else
        assert_int_equal(n->out_ch, psld_recipe_order(o->recipe, order) * channels);
}

static void comments_and_channels(void **state)
{
    (void)state;
    for_each(check_parameters);
    for_each(check_channels);
}

/* ---- The paper's ------------------------------------------------------------------------------------------------- */

/* Tables of training and of classifiers in the paper's appendix. */
static const struct {
    const char *begins;
    double steps, batch, lr;
} paper[] = {
    {"cifar10-classifier", 200e3, 256, 2e-4}, {"afhq128-classifier", 70e3, 64, 2e-4}, {"cifar10-", 800e3, 128, 2e-4},
    {"celeba64-psld-62m", 800e3, 128, 2e-4},  {"celeba64-", 320e3, 128, 2e-4},        {"afhq128-", 400e3, 64, 1e-4},
};

static void check_paper(const opened *o)
{
    const psld_settings *s = &o->settings;
    size_t row = 0, rows = sizeof paper / sizeof *paper;
    while (row < rows && strncmp(o->name, paper[row].begins, strlen(paper[row].begins)) != 0) row++;
    if (row == rows || strstr(o->name, "-small.yaml")) return;
    int classifier = o->network.kind == PSLD_NET_CLASSIFIER, resized = strncmp(o->name, "cifar10", 7) != 0;
    printf("%s\n", o->name);
    assert_int_equal(s->data.flip, 1);
    assert_true(s->data.held_out == 0);
    assert_int_equal(s->data.stretch, resized);
    assert_int_equal(s->data.resample, resized ? PSLD_RESAMPLE_BILINEAR : PSLD_RESAMPLE_LANCZOS);
    assert_true(classifier || !s->train.ema_warmup);
    assert_true(s->train.ema.count == 1 && s->train.ema.value[0] == (classifier ? 0 : 0.9999) &&
                s->train.clip == (classifier ? 0 : 1));
    assert_true((double)s->train.steps == paper[row].steps && (double)s->train.batch == paper[row].batch);
    assert_true(s->train.lr == paper[row].lr && s->train.warmup == 5000 && s->train.eps == 1e-5 && s->seed == 0);
    assert_true(s->train.beta1 == 0.9 && s->train.beta2 == 0.999 && s->train.adam_eps == 1e-8);
    assert_true(s->train.weighting == 0 && !s->train.l1 && !s->train.sum && !s->train.times && s->train.schedule == 0);
    assert_int_equal(s->train.loss, classifier                          ? PSLD_LOSS_ENTROPY
                                    : psld_recipe_get(o->recipe)->k > 1 ? PSLD_LOSS_HSM
                                                                        : PSLD_LOSS_DSM);
}

static void paper_configurations(void **state)
{
    (void)state;
    for_each(check_paper);
}

static void afhq_classes(void **state)
{
    static const char *const classes[] = {"dog", "cat", "wild"};
    static opened o;
    (void)state;
    open_config("afhq128-classifier.yaml", &o);
    assert_int_equal(o.settings.data.class_count, 3);
    for (size_t i = 0; i < 3; i++) assert_string_equal(o.settings.data.classes[i], classes[i]);
    close_config(&o);
}

/* Every run that a sweep compares is made by a command of docs/reference/reproduction.md, which names every sweep. */
static void runs_of_sweeps(void **state)
{
    static char docs[LONG], sweep[LONG];
    char path[2048], run[256];
    (void)state;
    snprintf(path, sizeof path, "%s/docs/reference/reproduction.md", source_folder());
    read_text(path, docs);
    snprintf(path, sizeof path, "%s/configs/sweeps", source_folder());
    DIR *folder = opendir(path);
    const struct dirent *entry;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (strncmp(entry->d_name, "cifar10", 7) && strncmp(entry->d_name, "celeba64", 8) &&
            strncmp(entry->d_name, "afhq128", 7))
            continue;
        if (!strstr(docs, entry->d_name)) fail_msg("docs/reference/reproduction.md does not name %s", entry->d_name);
        snprintf(path, sizeof path, "%s/configs/sweeps/%s", source_folder(), entry->d_name);
        read_text(path, sweep);
        for (const char *at = sweep; (at = strstr(at, "runs/")); at++) {
            snprintf(run, sizeof run, "`%.*s`", (int)strcspn(at, ",} \n"), at);
            if (!strstr(docs, run))
                fail_msg("%s: docs/reference/reproduction.md does not say how %s is made", path, run);
        }
    }
    closedir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_and_channels),
        cmocka_unit_test(paper_configurations),
        cmocka_unit_test(afhq_classes),
        cmocka_unit_test(runs_of_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
