/* Configurations as the paper's authors publish them, made into ours. What the program does with them: cli/configs.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "starve.h"
#include "train/published.h"
#include "train/settings.h"

#define NETWORK "name: ncsnpp, in_ch: 6, out_ch: 6, nf: 8, ch_mult: [1, 2]"
#define SDE     "name: psld, beta_min: 8, beta_max: 8, nu: 4.01, gamma: 0.01, kappa: 0.04"

static char noticed[2048];

static void note(void *user, psld_log_level level, const char *line)
{
    (void)user, (void)level;
    snprintf(noticed + strlen(noticed), sizeof noticed - strlen(noticed), "%s\n", line);
}

static psld_yaml *parse(const char *text)
{
    psld_yaml *yaml;
    if (psld_yaml_parse(text, strlen(text), "theirs.yaml", &yaml) != PSLD_OK) fail_msg("%s", psld_error_text());
    return yaml;
}

/* What it becomes, as text; release with psld_release. */
static char *become(const char *text, int classifier, int64_t *epochs)
{
    psld_yaml *yaml = parse(text);
    psld_published made;
    char *ours;
    noticed[0] = 0;
    psld_log_to(note, NULL);
    if (psld_published_read(psld_yaml_root(yaml), "theirs.yaml", classifier, &made) != PSLD_OK)
        fail_msg("%s", psld_error_text());
    psld_log_to(NULL, NULL);
    assert_int_equal(psld_yaml_text(made.ours, &ours), PSLD_OK);
    *epochs = made.epochs;
    psld_published_clear(&made);
    psld_yaml_free(yaml);
    return ours;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("no \"%s\" in:\n%s", part, text);
}

static void recognised(void **state)
{
    static const struct {
        const char *text;
        int is;
    } cases[] = {{"diffusion: {model: {score_fn: {nf: 8}}}", 1},
                 {"clf: {model: {clf_fn: {nf: 8}}}", 1},
                 {"model: {score_fn: {nf: 8}}", 1},
                 {"model: {nf: 8}", 0},
                 {"process: vp", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        psld_yaml *yaml = parse(cases[i].text);
        assert_int_equal(psld_published_matches(psld_yaml_root(yaml)), cases[i].is);
        psld_yaml_free(yaml);
    }
    assert_string_equal(psld_published_override("+dataset.diffusion.a=1"), "diffusion.a=1");
    assert_string_equal(psld_published_override("clf.a=1"), "clf.a=1");
    assert_null(psld_published_override("train.batch=1"));
}

/* The layout without a section, which says nothing of training and of the data's channels. */
static void little_said(void **state)
{
    int64_t epochs;
    (void)state;
    char *ours = become("data: {image_size: 16}\nmodel: {score_fn: {" NETWORK "}, sde: {" SDE "}}", 0, &epochs);
    has(ours, "size: 16");
    has(ours, "channels: 3");
    has(ours, "loss: hsm");
    has(ours, "ema_warmup: false");
    assert_null(strstr(ours, "in_ch"));
    assert_int_equal(epochs, 0);
    psld_release(ours);
}

static void vp_is_dsm(void **state)
{
    int64_t epochs;
    (void)state;
    char *ours =
        become("diffusion: {data: {image_size: 8, num_channels: 3}, training: {use_ema: false, ema_decay: 0.9, "
               "epochs: 7}, model: {score_fn: {" NETWORK "}, sde: {name: vpsde, n_timesteps: 9}}}",
               0, &epochs);
    has(ours, "loss: dsm");
    has(ours, "ema: 0\n");
    assert_int_equal(epochs, 7);
    has(noticed, "diffusion.model.sde.n_timesteps");
    assert_null(strstr(noticed, "epochs"));
    psld_release(ours);
}

static void classes_of_afhq(void **state)
{
    int64_t epochs;
    (void)state;
    char *ours =
        become("diffusion: {model: {sde: {" SDE "}}, training: {train_eps: 1e-4}}\n"
               "clf: {data: {name: afhqv2, image_size: 8, num_channels: 3}, model: {clf_fn: {name: ncsnpp_clf, "
               "n_cls: 3, progressive: none}}, training: {optimizer: {lr: 1e-3}}}",
               0, &epochs); /* the only network is a classifier */
    has(ours, "[dog, cat, wild]");
    assert_string_equal(noticed, "theirs.yaml: a published configuration; ignored keys: none\n");
    has(ours, "loss: cross_entropy");
    has(ours, "clip: 0");
    has(ours, "eps: 1e-4");
    assert_null(strstr(ours, "progressive"));
    psld_release(ours);
}

static psld_status read_one(void)
{
    psld_yaml *yaml;
    psld_published made = {0};
    static const char text[] =
        "diffusion: {data: {image_size: 8, num_channels: 3, root: x}, model: {score_fn: {" NETWORK "}, sde: {" SDE
        "}}, training: {batch_size: 2, devices: 4, optimizer: {name: Adam}}}";
    PSLD_TRY(psld_yaml_parse(text, sizeof text - 1, "theirs.yaml", &yaml));
    psld_status status = psld_published_read(psld_yaml_root(yaml), "theirs.yaml", 0, &made);
    psld_published_clear(&made);
    psld_yaml_free(yaml);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    starve(read_one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recognised),
        cmocka_unit_test(little_said),
        cmocka_unit_test(vp_is_dsm),
        cmocka_unit_test(classes_of_afhq),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
