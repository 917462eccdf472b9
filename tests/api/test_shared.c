/* Objects may be shared between threads, unless the header says otherwise: every kind, used by several threads at once,
 * gives each of them what it gives to one alone. To be run under the thread sanitizer, too. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "em_options.h"
#include "psld.h"
#include "psld_eval.h"

enum { USERS = 4, TURNS = 6, N = 24, DIM = 4, STATE = 2 * DIM, ROOM = 4096 };

/* One of each, made once and used by all. */
static struct {
    psld_recipe *recipe, *other;
    psld_mixture *mixture;
    psld_source *exact, *guided, *restored[4], *translated, *clipped, *contrast, *stack;
    psld_classifier *classifier;
    psld_operator *op;
    psld_model *model;
    psld_statistics *statistics[2];
    double z[N * STATE], t[N], weight[N * STATE];
    int32_t label[N];
} shared;

#define MUST(call)                                                           \
    do {                                                                     \
        if ((call) != PSLD_OK) fail_msg("%s: %s", #call, psld_error_text()); \
    } while (0)

static void make_states(void)
{
    MUST(psld_mixture_draw(shared.mixture, shared.recipe, 0.3, 7, 0, N, shared.z));
    for (size_t i = 0; i < N; i++) {
        shared.t[i] = 0.1 + 0.1 * (double)(i / 6); /* four runs of equal times */
        shared.label[i] = (int32_t)(i % 3);
        for (size_t j = 0; j < STATE; j++) shared.weight[i * STATE + j] = (double)((i + 2 * j) % 5) - 2;
    }
}

static void make_statistics(void)
{
    float rows[16 * DIM];
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < 16 * DIM; i++) rows[i] = (float)((i * (7 + s)) % 13);
        MUST(psld_statistics_create(DIM, &shared.statistics[s]));
        MUST(psld_statistics_add(shared.statistics[s], 16, rows));
        MUST(psld_statistics_finish(shared.statistics[s]));
    }
}

static void make_sources(void)
{
    const double y[2] = {0.3, -0.2};
    psld_task task = PSLD_TASK_DEFAULTS;
    task.rank = 1;
    task.shape[0] = DIM;
    task.factor = 2;
    MUST(psld_operator_create(&task, &shared.op));
    MUST(psld_source_mixture(shared.mixture, shared.recipe, &shared.exact));
    MUST(psld_classifier_mixture(shared.mixture, shared.recipe, &shared.classifier));
    MUST(psld_source_guide(shared.exact, shared.recipe, shared.classifier, 1, 1.5, &shared.guided));
    MUST(psld_source_translate(shared.exact, shared.recipe, shared.other, &shared.translated));
    MUST(psld_source_clip(shared.exact, shared.recipe, 0.5, 0.9, &shared.clipped));
    MUST(psld_source_autoguide(shared.exact, shared.exact, shared.recipe, 1.5, &shared.contrast));
    for (int m = 0; m < 4; m++) {
        psld_restore_options options = PSLD_RESTORE_DEFAULTS;
        options.method = psld_restore_method_at(m)->name;
        options.noise = 0.1;
        MUST(psld_source_restore(shared.exact, shared.recipe, shared.op, y, &options, &shared.restored[m]));
    }
    MUST(psld_source_guide(shared.restored[0], shared.recipe, shared.classifier, 0, 1, &shared.stack));
}

static void write_model(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("mixture: {weights: [0.25, 0.75], means: [[-1, 0], [1, 0]], scales: [0.1, 0.3]}\nprocess: psld\n", file);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    const double weights[3] = {0.25, 0.5, 0.25}, scales[3] = {0.2, 0.2, 0.5};
    const double means[3 * DIM] = {-1, 0, 0.5, 0, 1, 0, -0.5, 0.2, 0, 1, 0, -1};
    (void)state;
    MUST(psld_threads_set(2));
    MUST(psld_recipe_open("psld gamma=0.02", &shared.recipe));
    MUST(psld_recipe_open("vp beta=[0.1, 4]", &shared.other));
    MUST(psld_mixture_create(3, DIM, weights, means, scales, &shared.mixture));
    make_states();
    make_sources();
    make_statistics();
    write_model("shared.yaml");
    MUST(psld_model_open("shared.yaml", NULL, &shared.model));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    psld_model_free(shared.model);
    psld_source *const sources[] = {shared.stack,       shared.contrast,    shared.clipped,     shared.translated,
                                    shared.guided,      shared.restored[0], shared.restored[1], shared.restored[2],
                                    shared.restored[3], shared.exact};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) psld_source_free(sources[i]);
    psld_classifier_free(shared.classifier);
    psld_operator_free(shared.op);
    psld_mixture_free(shared.mixture);
    psld_recipe_free(shared.recipe);
    psld_recipe_free(shared.other);
    for (int s = 0; s < 2; s++) psld_statistics_free(shared.statistics[s]);
    return 0;
}

/* ---- What threads do with them ----------------------------------------------------------------------------------- */

/* A use fills some of `out` [ROOM], always the same way. */
typedef psld_status (*use_fn)(double *out);

static psld_status predict(psld_source *source, double *out)
{
    return psld_source_predict(source, &PSLD_STATES(N, DIM, shared.z, shared.t), out);
}

static psld_status use_exact(double *out)
{
    return predict(shared.exact, out);
}

static psld_status use_gradient(double *out)
{
    return psld_source_gradient(shared.exact, &PSLD_STATES(N, DIM, shared.z, shared.t), shared.weight, out,
                                out + N * STATE);
}

static psld_status use_classifier(double *out)
{
    return psld_classifier_evaluate(shared.classifier, &PSLD_STATES(N, DIM, shared.z, shared.t), shared.label, out,
                                    out + N);
}

static psld_status use_guided(double *out)
{
    return predict(shared.guided, out);
}

static psld_status use_translated(double *out)
{
    return psld_source_predict(shared.translated, &PSLD_STATES(N, DIM, shared.z, shared.t), out);
}

static psld_status use_translated_gradient(double *out)
{
    return psld_source_gradient(shared.translated, &PSLD_STATES(N, DIM, shared.z, shared.t), shared.weight, out,
                                out + N * STATE);
}

static psld_status use_clipped(double *out)
{
    return predict(shared.clipped, out);
}

static psld_status use_contrast(double *out)
{
    return predict(shared.contrast, out);
}

static psld_status use_contrast_gradient(double *out)
{
    return psld_source_gradient(shared.contrast, &PSLD_STATES(N, DIM, shared.z, shared.t), shared.weight, out,
                                out + N * STATE);
}

static psld_status use_restored(double *out)
{
    psld_status status = PSLD_OK;
    for (int m = 0; m < 4 && status == PSLD_OK; m++) status = predict(shared.restored[m], out + m * N * STATE);
    return status;
}

static psld_status use_stack(double *out)
{
    return predict(shared.stack, out);
}

static psld_status use_denoiser(double *out)
{
    return psld_source_denoise(shared.exact, shared.recipe, &PSLD_STATES(N, DIM, shared.z, shared.t), out);
}

static psld_status use_sampler(double *out)
{
    psld_sample_options options = em_options();
    options.nfe = 8;
    options.clip = 2;
    return psld_sample(shared.recipe, shared.guided, &options, 0, N, DIM, NULL, out, NULL);
}

static psld_status use_adaptive_sampler(double *out)
{
    psld_sample_options options = em_options();
    options.sampler = "ode";
    options.tolerance = 1e-2;
    return psld_sample(shared.recipe, shared.exact, &options, 0, N, DIM, NULL, out, NULL);
}

static psld_status use_likelihood(double *out)
{
    psld_likelihood_options options = PSLD_LIKELIHOOD_DEFAULTS;
    options.tolerance = 1e-2;
    return psld_likelihood(shared.recipe, shared.exact, &options, 0, 4, DIM, shared.z, out, NULL);
}

static psld_status use_recipe(double *out)
{
    psld_analysis analysis = PSLD_ANALYSIS_EMPTY;
    psld_status status = psld_recipe_kernel(shared.recipe, 0.4, PSLD_HSM, out, out + 4, out + 8);
    if (status == PSLD_OK) status = psld_recipe_factor(shared.recipe, 0.4, PSLD_DSM, out + 12, out + 16);
    if (status == PSLD_OK) status = psld_recipe_analyse(shared.recipe, &analysis);
    if (status == PSLD_OK) status = psld_recipe_time(shared.recipe, 0.5, out + 20);
    out[21] = analysis.distance;
    return status;
}

static psld_status use_mixture(double *out)
{
    psld_mixture_moments(shared.mixture, out, out + DIM);
    out[DIM + DIM * DIM] = psld_mixture_density(shared.mixture, shared.z);
    return psld_mixture_draw(shared.mixture, shared.recipe, 0.5, 3, 0, N, out + 32);
}

static psld_status use_operator(double *out)
{
    psld_status status = psld_operator_measure(shared.op, shared.z, 0.1, 1, 2, out);
    return status == PSLD_OK ? psld_operator_show(shared.op, out, out + DIM) : status;
}

static psld_status use_exact_model(double *out)
{
    psld_sample_options options = em_options();
    psld_array *x;
    options.nfe = 6;
    psld_status status = psld_model_sample(shared.model, &options, 0, N, NULL, 1, &x, NULL);
    if (status != PSLD_OK) return status;
    for (size_t i = 0; i < x->count; i++) out[i] = (double)((const float *)x->data)[i];
    out[x->count] = (double)psld_model_fingerprint(shared.model);
    psld_array_free(x);
    return PSLD_OK;
}

static psld_status use_statistics(double *out)
{
    return psld_frechet_distance(shared.statistics[0], shared.statistics[1], out);
}

/* ---- All at once ------------------------------------------------------------------------------------------------- */

typedef struct user {
    use_fn use;
    double expected[ROOM], found[ROOM];
    psld_status status;
    int different;
} user;

static void *take_turns(void *argument)
{
    user *u = argument;
    for (int turn = 0; turn < TURNS && u->status == PSLD_OK; turn++) {
        memset(u->found, 0, sizeof u->found);
        u->status = u->use(u->found);
        u->different += memcmp(u->found, u->expected, sizeof u->found) != 0;
    }
    return NULL;
}

static user users[USERS];

static void run_users(void)
{
    pthread_t threads[USERS];
    for (int i = 0; i < USERS; i++) {
        users[i].status = PSLD_OK;
        users[i].different = 0;
        memset(users[i].expected, 0, sizeof users[i].expected);
        MUST(users[i].use(users[i].expected));
    }
    for (int i = 0; i < USERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &users[i]), 0);
    for (int i = 0; i < USERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static const struct {
    const char *name;
    use_fn use;
} uses[] = {
    {"exact source", use_exact},
    {"its gradient", use_gradient},
    {"exact classifier", use_classifier},
    {"guided source", use_guided},
    {"translated source", use_translated},
    {"its gradient", use_translated_gradient},
    {"clipped source", use_clipped},
    {"contrast", use_contrast},
    {"its gradient", use_contrast_gradient},
    {"restored sources", use_restored},
    {"restored and guided source", use_stack},
    {"denoiser", use_denoiser},
    {"sampler", use_sampler},
    {"adaptive sampler", use_adaptive_sampler},
    {"likelihood", use_likelihood},
    {"recipe", use_recipe},
    {"mixture", use_mixture},
    {"operator", use_operator},
    {"exact model", use_exact_model},
    {"statistics", use_statistics},
};
enum { USES = sizeof uses / sizeof *uses };

/* The same call from all threads. */
static void test_one_object_many_threads(void **state)
{
    (void)state;
    for (int use = 0; use < USES; use++) {
        for (int i = 0; i < USERS; i++) users[i].use = uses[use].use;
        run_users();
        for (int i = 0; i < USERS; i++) {
            if (users[i].status != PSLD_OK) fail_msg("%s: status %d", uses[use].name, (int)users[i].status);
            if (users[i].different) fail_msg("%s: %d of %d differ", uses[use].name, users[i].different, TURNS);
        }
    }
}

/* Other calls at the same time: wrappers share the source that they wrap. */
static void test_wrappers_share_their_source(void **state)
{
    (void)state;
    for (int use = 0; use < USES; use++) {
        for (int i = 0; i < USERS; i++) users[i].use = uses[(use + 3 * i) % USES].use;
        run_users();
        for (int i = 0; i < USERS; i++)
            if (users[i].status != PSLD_OK || users[i].different)
                fail_msg("%s: %d of %d differ", uses[(use + 3 * i) % USES].name, users[i].different, TURNS);
    }
}

/* ---- Networks: one thread at a time each, but several networks at once ------------------------------------------- */

typedef struct network_user {
    psld_model *model;
    psld_array *expected;
    int different;
} network_user;

static psld_array *draw(psld_model *model)
{
    psld_sample_options options = em_options();
    psld_array *x = NULL;
    options.nfe = 3;
    return psld_model_sample(model, &options, 0, 8, NULL, 0, &x, NULL) == PSLD_OK ? x : NULL;
}

static void *draw_again(void *argument)
{
    network_user *u = argument;
    for (int turn = 0; turn < TURNS; turn++) {
        psld_array *x = draw(u->model);
        u->different += !x || memcmp(x->data, u->expected->data, x->count * sizeof(float)) != 0;
        psld_array_free(x);
    }
    return NULL;
}

static void test_networks_side_by_side(void **state)
{
    network_user own[2] = {{0}};
    pthread_t threads[2];
    FILE *file = fopen("network.yaml", "w");
    (void)state;
    assert_non_null(file);
    fputs("process: psld\ndata: {channels: 2, image_size: 1}\nmodel: {name: mlp, nf: 32, num_res_blocks: 2}\n", file);
    assert_int_equal(fclose(file), 0);
    for (int i = 0; i < 2; i++) {
        MUST(psld_model_create("network.yaml", NULL, (uint64_t)i, &own[i].model));
        own[i].expected = draw(own[i].model);
        assert_non_null(own[i].expected);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, draw_again, &own[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(own[i].different, 0);
        psld_array_free(own[i].expected);
        psld_model_free(own[i].model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_object_many_threads),
        cmocka_unit_test(test_wrappers_share_their_source),
        cmocka_unit_test(test_networks_side_by_side),
    };
    return cmocka_run_group_tests_name("shared", tests, set_up, tear_down);
}
