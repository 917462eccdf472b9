/* Uses the structs of psld.h that begin with their size. tools/test-abi compiles this against headers with shorter ones.
 *
 * core BYTE MODEL: guard bytes have that value. A line of results for each kind of call; one that needs a field that the
 * headers lack is left out. core BYTE: says a size that is not its own, which the guard bytes must notice. */
#include "fence.h"

enum { DIM = 2, K = 2, COUNT = 3 };

static psld_recipe *recipe;
static psld_source *source;

static void open_process(void)
{
    const double weights[] = {0.3, 0.7}, means[] = {1, 0, -1, 0.5}, scales[] = {0.1, 0.2};
    psld_mixture *mixture;
    must("recipe", psld_recipe_open("psld", &recipe));
    must("mixture", psld_mixture_create(2, DIM, weights, means, scales, &mixture));
    must("source", psld_source_mixture(mixture, recipe, &source));
    psld_mixture_free(mixture);
}

static void make_recipe(void)
{
    double mean[K * K], cov[K * K], noise[K * K] = {0.1, 0, 0, 0.5}, exchange[K * K] = {0, -0.5, 0.5, 0};
    psld_recipe *made;
    psld_recipe_spec *spec = FENCED(psld_recipe_spec, PSLD_RECIPE_SPEC_DEFAULTS);
    spec->k = K;
    spec->mass[0] = 0.25;
    memcpy(spec->D, noise, sizeof noise);
    memcpy(spec->Q, exchange, sizeof exchange);
    must("spec", psld_recipe_create(spec, &made));
    must("kernel",
         psld_recipe_kernel(made, 0.3, psld_recipe_get(made)->natural ? PSLD_DSM : PSLD_HSM, mean, cov, NULL));
    tell("spec", K * K, cov);
    psld_recipe_free(made);
}

static psld_sample_options *few_steps(void)
{
    psld_sample_options *options = FENCED(psld_sample_options, PSLD_SAMPLE_DEFAULTS);
    options->nfe = 5;
    options->seed = 3;
    return options;
}

static void sample(void)
{
    double z[COUNT * K * DIM], chosen[4];
    psld_sample_options *options = few_steps();
    must("sample", psld_sample(recipe, source, options, 0, COUNT, DIM, NULL, z, NULL));
    tell("sample", COUNT * K * DIM, z);
    must("complete", psld_sample_complete(recipe, options));
    chosen[0] = options->nfe, chosen[1] = options->eps, chosen[2] = options->rho, chosen[3] = options->eta;
    tell(options->sampler, 4, chosen);
    must("quality", psld_sample_quality(recipe, "draft", options));
    tell(options->grid, 1, &options->eps);
}

#ifndef LACKS_psld_sample_options_watch
static double evaluations;

static psld_status count_evaluation(void *user, const psld_evaluation *evaluation)
{
    (void)user;
    evaluations += evaluation->size >= sizeof *evaluation;
    return PSLD_OK;
}

static void watch(void)
{
    double z[COUNT * K * DIM];
    psld_sample_options *options = few_steps();
    options->watch = count_evaluation;
    must("watch", psld_sample(recipe, source, options, 0, COUNT, DIM, NULL, z, NULL));
    tell("watch", 1, &evaluations);
}
#else
static void watch(void) {}
#endif

#ifndef LACKS_psld_sample_options_inpainting
static void inpaint(void)
{
    const double x[DIM] = {1, 0};
    const unsigned char known[DIM] = {1, 0};
    double z[COUNT * K * DIM];
    psld_sample_options *options = few_steps();
    psld_inpainting *inpainting = FENCED(psld_inpainting, PSLD_INPAINTING_DEFAULTS);
    inpainting->x = x;
    inpainting->known = known;
    options->inpainting = inpainting;
    must("inpaint", psld_sample(recipe, source, options, 0, COUNT, DIM, NULL, z, NULL));
    tell("inpaint", COUNT * K * DIM, z);
}
#else
static void inpaint(void) {}
#endif

#ifndef LACKS_psld_states_t
static const double some_z[K * DIM] = {0.1, 0.2, 0.3, 0.4}, some_t = 0.5;

static psld_status half_of_z(void *user, const psld_states *states, double *out)
{
    (void)user;
    for (size_t i = 0; i < states->n * K * states->dim; i++) out[i] = 0.5 * states->z[i];
#ifndef LACKS_psld_states_sample
    if (states->sample) out[0] += (double)states->sample[0];
#endif
    return PSLD_OK;
}

static void ask(void)
{
    double eps[K * DIM], x[DIM];
    psld_source *own;
    psld_states *states = fence_copy(&PSLD_STATES(1, DIM, some_z, &some_t), sizeof(psld_states));
    must("predict", psld_source_predict(source, states, eps));
    tell("predict", K * DIM, eps);
    must("denoise", psld_source_denoise(source, recipe, states, x));
    tell("denoise", DIM, x);

    psld_callback *callback = FENCED(psld_callback, PSLD_CALLBACK_DEFAULTS);
    callback->recipe = recipe;
    callback->predicts = PSLD_PREDICTS_SCORE;
    callback->predict = half_of_z;
    must("callback", psld_source_callback(callback, &own));
    must("own score", psld_source_predict(own, states, eps));
    tell("own score", K * DIM, eps);
    psld_source_free(own);
}
#else
static void ask(void) {}
#endif

static void analyse(void)
{
    psld_analysis *analysis = FENCED(psld_analysis, PSLD_ANALYSIS_EMPTY);
    must("analyse", psld_recipe_analyse(recipe, analysis));
    tell("eigenvalues", K, analysis->eigenvalue_re);
    tell("rate and distance", 2, (double[]){analysis->rate, analysis->distance});
}

static void formulas(void)
{
    psld_process *process;
    psld_process_report *report = FENCED(psld_process_report, PSLD_PROCESS_REPORT_EMPTY);
    psld_exchange *exchange = FENCED(psld_exchange, PSLD_EXCHANGE_EMPTY);
    must("formulas", psld_process_parse("{H: x^4/8 + m^2/2, D: [[0, 0], [0, 1]], Q: [[0, -1], [1, 0]], steps: 200}",
                                        "text", 1, &process));
    must("check", psld_process_check(process, 0, report));
    tell("region", 2, (double[]){report->low[0], report->high[0]});
    must("exchange", psld_process_exchange(process, 32, exchange));
    tell("exchange", 1, exchange->low + 1);
    psld_process_free(process);
}

static void restore(void)
{
    const double y[1] = {0.4}, z[K * DIM] = {0.1, 0.2, 0.3, 0.4}, t = 0.5;
    double eps[K * DIM];
    psld_operator *op;
    psld_source *restored;
    psld_task *task = FENCED(psld_task, PSLD_TASK_DEFAULTS);
    task->rank = 1;
    task->shape[0] = DIM;
    task->factor = DIM;
    must("task", psld_operator_create(task, &op));
    psld_restore_options *options = FENCED(psld_restore_options, PSLD_RESTORE_DEFAULTS);
    options->noise = 0.1;
    must("restore", psld_source_restore(source, recipe, op, y, options, &restored));
#ifndef LACKS_psld_states_t
    must("restored", psld_source_predict(restored, &PSLD_STATES(1, DIM, z, &t), eps));
    tell("restored", K * DIM, eps);
#else
    (void)z, (void)t, (void)eps;
#endif
    psld_source_free(restored);
    psld_operator_free(op);
}

static void open_model(const char *path)
{
    size_t shape[PSLD_MAX_RANK];
    psld_model *model;
    psld_model_options *options = FENCED(psld_model_options, PSLD_MODEL_DEFAULTS);
    options->process = "vp";
    must("model", psld_model_open(path, options, &model));
    tell("model", 2, (double[]){psld_model_shape(model, shape), psld_recipe_get(psld_model_recipe(model))->k});
    psld_model_free(model);
}

/* The library believes the size that it is told, and writes so far. */
static void lie(void)
{
    psld_analysis *analysis = FENCED(psld_analysis, PSLD_ANALYSIS_EMPTY);
    analysis->size = FULL_SIZE;
    must("lie", psld_recipe_analyse(recipe, analysis));
}

int main(int argc, char **argv)
{
    fence_byte = argc > 1 ? (unsigned char)atoi(argv[1]) : 0;
    open_process();
    if (argc < 3) {
        lie();
    } else {
        make_recipe();
        sample();
        watch();
        inpaint();
        ask();
        analyse();
        formulas();
        restore();
        open_model(argv[2]);
    }
    psld_source_free(source);
    psld_recipe_free(recipe);
    fence_free();
    return 0;
}
