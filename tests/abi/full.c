/* Uses the structs of the other headers that begin with their size, as core.c does those of psld.h. */
#include "fence.h"

#include "psld_eval.h"
#include "psld_train.h"

enum { COUNT = 6, DIM = 2 };

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) exit(2);
}

static void read_data(void)
{
    const uint64_t index[COUNT] = {0, 1, 2, 3, 4, 5};
    float x[COUNT * DIM];
    double first[COUNT * DIM];
    psld_data *data;
    psld_data_options *options = FENCED(psld_data_options, PSLD_DATA_DEFAULTS);
    options->test = 1;
    must("data", psld_data_open("toy:moons", options, &data));
    must("read", psld_data_read(data, COUNT, index, x, NULL));
    for (int i = 0; i < COUNT * DIM; i++) first[i] = (double)x[i];
    tell("data", COUNT * DIM, first);
    psld_data_free(data);
}

static psld_training *open_training(const char *folder, psld_training_options *options)
{
    static const char *const overrides[] = {"train.steps=2"};
    psld_training *training;
    write_text("train.yaml", "process: psld\ndata: {path: \"toy:moons\", channels: 2}\n"
                             "model: {name: mlp, nf: 4, num_res_blocks: 1}\ntrain: {batch: 4, evaluate_every: 0}\n");
    options->config = "train.yaml";
    options->overrides = overrides;
    options->override_count = 1;
    must("training", psld_training_open(folder, options, &training));
    return training;
}

static void train(void)
{
    psld_training *training = open_training("run", FENCED(psld_training_options, PSLD_TRAINING_DEFAULTS));
    psld_training_report *report = FENCED(psld_training_report, PSLD_TRAINING_REPORT_EMPTY);
    psld_run_info *info = FENCED(psld_run_info, PSLD_RUN_INFO_EMPTY);
    must("step", psld_training_step(training, report));
    tell("step", 2, (const double[]){(double)report->step, report->loss});
    must("save", psld_training_save(training));
    must("run", psld_run_inspect("run", info));
    tell("run", 3, (const double[]){(double)info->step, (double)info->saved, info->loss});
    psld_training_free(training);
}

static void measure_kid(void)
{
    double mean[2];
    psld_array *a, *b;
    must("rows", psld_array_create(PSLD_F64, 2, (const size_t[]){COUNT, DIM}, &a));
    must("rows", psld_array_create(PSLD_F64, 2, (const size_t[]){COUNT, DIM}, &b));
    for (int i = 0; i < COUNT * DIM; i++) ((double *)a->data)[i] = i % 5, ((double *)b->data)[i] = i % 3;
#ifndef LACKS_psld_kid_options_subset_size
    psld_kid_options *options = FENCED(psld_kid_options, PSLD_KID_DEFAULTS);
    options->subset_size = 4;
    must("kid", psld_kid(a, b, options, &mean[0], &mean[1]));
    tell("kid", 2, mean);
#else
    (void)mean;
#endif
    psld_array_free(a);
    psld_array_free(b);
}

static void compare(psld_model *model)
{
    psld_set *drawn, *real;
    psld_sample_options sampling = PSLD_SAMPLE_DEFAULTS;
    psld_compare_options *options = FENCED(psld_compare_options, PSLD_COMPARE_DEFAULTS);
    psld_comparison *comparison = FENCED(psld_comparison, PSLD_COMPARISON_EMPTY);
    sampling.nfe = 3;
    options->metrics = PSLD_FRECHET | PSLD_PRECISION_RECALL;
    must("drawn", psld_set_model(model, &sampling, COUNT, 0, &drawn));
    must("real", psld_set_open("toy:moons", COUNT, &real));
    must("compare", psld_compare(drawn, real, NULL, options, comparison));
    tell("compare", 2, (const double[]){(double)comparison->count[1], comparison->frechet});
    psld_set_free(drawn);
    psld_set_free(real);
}

static void find_likelihood(psld_model *model)
{
    psld_set *set;
    psld_likelihood_options *options = FENCED(psld_likelihood_options, PSLD_LIKELIHOOD_DEFAULTS);
    psld_nll *nll = FENCED(psld_nll, PSLD_NLL_EMPTY);
    options->tolerance = 1e-2;
    options->seed = 5;
    must("points", psld_set_open("toy:moons", COUNT, &set));
    must("likelihood", psld_model_nll(model, set, options, nll));
    tell("likelihood", 2, (const double[]){nll->bits, nll->nats});
    psld_set_free(set);
}

static void sweep(void)
{
    psld_sweep *sweep;
    psld_sweep_cell *cell = FENCED(psld_sweep_cell, PSLD_SWEEP_CELL_EMPTY);
    psld_sweep_result *result = FENCED(psld_sweep_result, PSLD_SWEEP_RESULT_EMPTY);
    write_text("sweep.yaml", "models: {a: exact.yaml}\nsamplers: [em]\nnfe: [4]\nmetrics: fid\nnumber: 8\n");
    must("sweep", psld_sweep_open("sweep.yaml", NULL, 0, &sweep));
    must("cell", psld_sweep_cell_at(sweep, 0, cell));
    must("run of a cell", psld_sweep_run(sweep, 0, NULL, NULL, result));
    tell(cell->sampler, 2, (const double[]){cell->nfe, result->comparison->frechet});
    psld_sweep_free(sweep);
}

int main(int argc, char **argv)
{
    psld_model *model;
    fence_byte = argc > 1 ? (unsigned char)atoi(argv[1]) : 0;
    if (system("rm -rf run") != 0) return 2;
    write_text("exact.yaml", "process: vp\nmixture: {weights: [1], means: [[0, 0]], scales: [1]}\n");
    must("model", psld_model_open("exact.yaml", NULL, &model));
    read_data();
    train();
    measure_kid();
    compare(model);
    find_likelihood(model);
    sweep();
    psld_model_free(model);
    fence_free();
    return 0;
}
