/* psld eval: compares sets, or a model with data. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "eval.h"
#include "names.h"

enum { PAGE_IMAGES = 48, DEFAULT_SAMPLES = 10000 };

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static int is_model(const char *path)
{
    char inside[4096];
    struct stat about;
    if (cli_ends_in(path, ".yaml|.yml|.safetensors|.ckpt|.pth|.pt")) return 1;
    snprintf(inside, sizeof inside, "%s/model.safetensors", path);
    return stat(inside, &about) == 0;
}

/* Overrides belong to the model; the other words are the two sides. */
static int split_eval_words(const char *const *words, int count, const char **model_words, int *model_count,
                            const char *names[2])
{
    int sides = 0;
    *model_count = 1;
    for (int i = 0; i < count; i++) {
        if (sides && strchr(words[i], '='))
            model_words[(*model_count)++] = words[i];
        else if (sides == 2)
            return -1;
        else
            names[sides++] = words[i];
    }
    model_words[0] = names[0];
    return sides;
}

static uint64_t sample_count(const eval_request *r)
{
    return r->sampling.n ? (uint64_t)r->sampling.n : DEFAULT_SAMPLES;
}

/* Samples of the model, drawn as psld sample would. */
static psld_status open_samples(const eval_request *r, eval_sides *s)
{
    if (psld_model_kind_of(s->model) == PSLD_CLASSIFIER)
        return cli_bad_input("%s: a classifier has no samples", s->name[0]);
    psld_status status = sampling_choose(&r->sampling, s->model, &s->sampling);
    if (status == PSLD_OK) status = labels_choose(&r->sampling.labels, s->model, s->name[0], &s->labels);
    if (status != PSLD_OK) return status;
    if (s->labels.is_set) s->sampling.labels = &s->labels.labels;
    return psld_set_model(s->model, &s->sampling, sample_count(r), strcmp(r->sampling.quantize, "floor") == 0,
                          &s->first);
}

/* The size of images: that of the model, fitted as in its training, or that of the options. */
static psld_status choose_size(const eval_request *r, eval_sides *s)
{
    s->images = (psld_data_options)PSLD_DATA_DEFAULTS;
    s->images.stretch = 0;
    s->images.resample = PSLD_RESAMPLE_LANCZOS;
    psld_status status = s->model ? psld_model_data_options(s->model, &s->images) : PSLD_OK;
    if (r->size) s->images.image_size = cli_int(r->size);
    if (r->fit) s->images.stretch = strcmp(r->fit, "stretch") == 0;
    const psld_resample_info *filter = r->resample ? psld_resample_find(r->resample) : NULL;
    if (filter) s->images.resample = (int)filter->filter;
    return status;
}

static psld_status open_sides(eval_request *r, const char *const *model_words, int model_count, int eval_likelihood,
                              eval_sides *s)
{
    psld_status status = PSLD_OK;
    int is_a_model = is_model(s->name[0]);
    if (!is_a_model && model_count > 1) return cli_bad_input("%s: overrides (key=value) need a model", model_words[1]);
    if (is_a_model) status = cli_model_open(&r->sampling.model, model_words, model_count, &s->model);
    if (status == PSLD_OK) status = choose_size(r, s);
    if (status == PSLD_OK && is_a_model && !eval_likelihood) status = open_samples(r, s);
    if (status == PSLD_OK && !is_a_model)
        status = psld_set_open_as(s->name[0], (uint64_t)r->sampling.n, &s->images, &s->first);
    /* with a model, -n is the number of its samples, and all data are used */
    uint64_t limit = is_a_model && !eval_likelihood ? 0 : (uint64_t)r->sampling.n;
    if (status == PSLD_OK && s->name[1]) status = psld_set_open_as(s->name[1], limit, &s->images, &s->second);
    return status;
}

static void close_sides(eval_sides *s)
{
    psld_set_free(s->first);
    psld_set_free(s->second);
    psld_features_free(s->features);
    psld_model_free(s->model);
    labels_free(&s->labels);
}

/* ---- Comparing --------------------------------------------------------------------------------------------------- */

static psld_status eval_write_page(const eval_request *r, const eval_sides *s)
{
    cli_progress progress;
    if (!r->page) return PSLD_OK;
    if (!s->second) return cli_bad_input("--page needs a second set, to look for the nearest images in");
    cli_progress_begin(&progress, "nearest images");
    psld_status status = psld_compare_page(s->first, s->second, PAGE_IMAGES, cli_progress_report, &progress, r->page);
    cli_progress_end(&progress);
    return status;
}

static int eval_compare(eval_request *r, eval_sides *s)
{
    psld_comparison c = PSLD_COMPARISON_EMPTY;
    json_t *classes = NULL;
    cli_progress progress;
    cli_progress_begin(&progress, s->model ? "drawing and comparing" : "comparing");
    r->compare.progress = cli_progress_report;
    r->compare.progress_user = &progress;
    psld_status status = psld_compare(s->first, s->second, s->features, &r->compare, &c);
    if (status == PSLD_OK && r->per_class) status = eval_classes(r, s, &classes);
    cli_progress_end(&progress);
    double seconds = cli_seconds() - progress.began;
    if (status == PSLD_OK) status = eval_write_page(r, s);
    if (status != PSLD_OK) {
        json_decref(classes);
        return cli_failed(status);
    }
    eval_report_resize(s);
    if (r->sampling.json) {
        json_t *object = eval_comparison_json(r, s, &c, seconds);
        if (classes) json_object_set_new(object, "classes", classes);
        return cli_json_print(object);
    }
    eval_print_comparison(r, s, &c, seconds);
    if (classes) eval_print_classes(classes, r->compare.metrics);
    json_decref(classes);
    if (r->page) printf("%s: rows of real images, generated ones, and the real images nearest to these\n", r->page);
    return EXIT_DONE;
}

/* ---- Features to files ------------------------------------------------------------------------------------------- */

static psld_status save_features(const eval_request *r, eval_sides *s, cli_progress *progress)
{
    psld_array *rows;
    psld_status status = psld_set_features(s->first, s->features, cli_progress_report, progress, &rows);
    if (status == PSLD_OK) status = psld_array_save(rows, r->features_out);
    psld_array_free(rows);
    return status;
}

static psld_status save_statistics(const eval_request *r, eval_sides *s, cli_progress *progress)
{
    psld_statistics *statistics;
    psld_status status = psld_set_statistics(s->first, s->features, cli_progress_report, progress, &statistics);
    if (status == PSLD_OK) status = psld_statistics_save(statistics, r->statistics_out);
    psld_statistics_free(statistics);
    return status;
}

static int write_features(const eval_request *r, eval_sides *s)
{
    cli_progress progress;
    psld_status status = PSLD_OK;
    cli_progress_begin(&progress, "features");
    if (r->features_out) status = save_features(r, s, &progress);
    if (status == PSLD_OK && r->statistics_out) status = save_statistics(r, s, &progress);
    cli_progress_end(&progress);
    if (status != PSLD_OK) return cli_failed(status);
    eval_report_resize(s);
    uint64_t n = psld_set_count(s->first);
    if (r->sampling.json) {
        json_t *object = json_object();
        json_object_set_new(object, "n_a", json_integer((json_int_t)n));
        json_object_set_new(object, "features", json_string(eval_feature_kind(s)));
        eval_add_resize(object, s);
        eval_add_number(object, "seconds", cli_seconds() - progress.began);
        return cli_json_print(object);
    }
    printf("%s: %llu %s; features: %s\n", s->name[0], (unsigned long long)n,
           psld_set_kind_of(s->first) == PSLD_SET_IMAGES ? "images" : "points", eval_feature_kind(s));
    return EXIT_DONE;
}

/* ---- Likelihood -------------------------------------------------------------------------------------------------- */

static int eval_likelihood(eval_request *r, eval_sides *s)
{
    psld_nll nll = PSLD_NLL_EMPTY;
    cli_progress progress;
    cli_progress_begin(&progress, "likelihood");
    r->likelihood.progress = cli_progress_report;
    r->likelihood.progress_user = &progress;
    psld_status status = psld_model_nll(s->model, s->second, &r->likelihood, &nll);
    cli_progress_end(&progress);
    if (status != PSLD_OK) return cli_failed(status);
    eval_report_resize(s);
    return eval_print_nll(r, s, &nll, cli_seconds() - progress.began);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static void fill_eval_options(eval_request *r)
{
    const sampling_request *s = &r->sampling;
    r->likelihood.eps = s->eps != 0 ? s->eps : 1e-5; /* chosen by the library, and printed */
    r->likelihood.tolerance = s->tolerance != 0 ? s->tolerance : 1e-5;
    if (s->batch) r->likelihood.batch = cli_int(s->batch);
    r->likelihood.seed = r->compare.seed = s->options.seed;
    if (r->splits) r->compare.splits = cli_int(r->splits);
    if (r->neighbours) r->compare.neighbours = cli_int(r->neighbours);
    if (r->kid_subsets) r->compare.kid_subsets = cli_int(r->kid_subsets);
    if (r->kid_size) r->compare.kid_subset_size = cli_int(r->kid_size);
    if (r->probes) r->likelihood.probes = cli_int(r->probes);
    r->likelihood.exact = strcmp(r->divergence, "auto") == 0 ? PSLD_UNSET : strcmp(r->divergence, "exact") == 0;
}

/* Whether a word is one of a list with commas between. */
static int is_listed(const char *list, const char *word)
{
    for (size_t length; *list; list += length + (list[length] == ',')) {
        length = strcspn(list, ",");
        if (length == strlen(word) && strncmp(list, word, length) == 0) return 1;
    }
    return 0;
}

/* Checks the options before anything is opened. Returns EXIT_DONE if they are right. */
static int eval_check_request(const cli_command *command, eval_request *r, const eval_sides *s, int sides, int nll)
{
    int files = r->features_out || r->statistics_out;
    const char *const outputs[] = {r->features_out, r->statistics_out, r->page};
    if (sides < 1) return cli_wrong_usage(command, "nothing to evaluate; give two sets, or a model and data");
    if (!nll && is_listed(r->metric, "nll"))
        return cli_wrong_usage(command, "--metric: nll cannot be combined with other metrics, found \"%s\"", r->metric);
    if (nll && sides < 2) return cli_wrong_usage(command, "nll needs a model and data");
    if (r->size && is_model(s->name[0]))
        return cli_wrong_usage(command, "--size: data are resized to the model's images; leave it out");
    if (nll && !is_model(s->name[0])) return cli_wrong_usage(command, "nll: %s is not a model", s->name[0]);
    if (r->features_out && !cli_ends_in(r->features_out, ".npy"))
        return cli_wrong_usage(command, "--features-out: expected a name that ends in .npy");
    if (r->statistics_out && !cli_ends_in(r->statistics_out, ".npz"))
        return cli_wrong_usage(command, "--statistics-out: expected a name that ends in .npz");
    if (r->page && !cli_ends_in(r->page, ".png")) return cli_wrong_usage(command, "--page: expected a name.png");
    if (files && sides > 1)
        return cli_wrong_usage(command, "--features-out and --statistics-out take one set, found two");
    if (r->per_class && (sides < 2 || nll || files))
        return cli_wrong_usage(command, "--per-class compares two sets, or a model and data");
    if ((r->sampling.labels.label || r->sampling.labels.file || r->sampling.labels.cfg || r->sampling.labels.range) &&
        (nll || !is_model(s->name[0])))
        return cli_wrong_usage(command, "--label, --labels and --cfg are for the samples of a model");
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (outputs[i] && !cli_output_possible(outputs[i])) return EXIT_FAILED;
    return nll ? EXIT_DONE : sampling_check(command, &r->sampling);
}

static const char *device_of(const eval_request *r)
{
    return cli_device(r->sampling.model.options.device);
}

static int eval_evaluate(eval_request *r, const char *const *model_words, int model_count, int nll, eval_sides *s)
{
    psld_status status = nll ? PSLD_OK : psld_metrics_parse(r->metric, &r->compare.metrics);
    if (status == PSLD_OK && r->weights && !nll) status = psld_features_open_on(r->weights, device_of(r), &s->features);
    if (status == PSLD_OK) status = open_sides(r, model_words, model_count, nll, s);
    if (status != PSLD_OK) return cli_failed(status);
    if (nll) return eval_likelihood(r, s);
    if (r->features_out || r->statistics_out) return write_features(r, s);
    return eval_compare(r, s);
}

static const char *metric_help(void)
{
    static char help[NAMES_SIZE + 64];
    char names[NAMES_SIZE];
    snprintf(help, sizeof help, "some of %s; or nll (default fid)", names_join(names_metric, ", ", names));
    return help;
}

static int eval_run(const cli_command *command, int argc, char **argv)
{
    char filters[NAMES_SIZE];
    const char *words[64], *model_words[64];
    int count, exit_code, model_count;
    eval_request r = {.metric = "fid",
                      .divergence = "auto",
                      .likelihood = PSLD_LIKELIHOOD_DEFAULTS,
                      .compare = PSLD_COMPARE_DEFAULTS};
    eval_sides s = {0};
    const cli_option options[] = {
        {"metric", 'm', CLI_TEXT, "LIST", metric_help(), &r.metric, NULL},
        {"weights", 'w', CLI_FILE, "FILE", "features of images: the FID network, or a classifier of psld", &r.weights,
         NULL},
        {"number", 'n', CLI_COUNT, "N", "samples to draw from a model (default 10000), or items to take from each set",
         &r.sampling.n, NULL},
        {"size", 0, CLI_COUNT, "N", "resize the images of all sets to N x N", &r.size, NULL},
        {"fit", 0, CLI_TEXT, "crop|stretch",
         "how images that are not square are fitted (default crop; with a model: as in its training)", &r.fit,
         "crop|stretch"},
        {"resample", 0, CLI_TEXT, "FILTER", "resampling filter (default lanczos; with a model: as in its training)",
         &r.resample, names_join(names_resample, "|", filters)},
        {"features-out", 0, CLI_FILE, "FILE.npy", "write the features of one set", &r.features_out, NULL},
        {"statistics-out", 0, CLI_FILE, "FILE.npz", "write mean and covariance of one set (mu, sigma)",
         &r.statistics_out, NULL},
        {"page", 0, CLI_FILE, "FILE.png", "real images, generated ones, and the real ones nearest to these", &r.page,
         NULL},
        {"per-class", 0, CLI_FLAG, NULL, "also compare each class, for a model with classes or labelled data",
         &r.per_class, NULL},
        LABEL_OPTIONS(r.sampling.labels),
        {"splits", 0, CLI_COUNT, "N", "parts of the inception score (default 10)", &r.splits, NULL},
        {"kid-subsets", 0, CLI_COUNT, "N", "subsets of kid (default 100)", &r.kid_subsets, NULL},
        {"kid-size", 0, CLI_COUNT, "N", "images of a subset of kid (default 1000)", &r.kid_size, NULL},
        {"neighbours", 0, CLI_COUNT, "K", "neighbours of precision and recall (default 3)", &r.neighbours, NULL},
        {"divergence", 0, CLI_TEXT, "auto|exact|hutchinson", "divergence of nll (default: exact if cheap)",
         &r.divergence, "auto|exact|hutchinson"},
        {"probes", 0, CLI_COUNT, "N", "directions of Hutchinson's estimate (default 1)", &r.probes, NULL},
        SAMPLING_WALK(r.sampling),
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    sampling_defaults(&r.sampling);
    if (argc > 64) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    int nll = strcmp(r.metric, "nll") == 0, sides = split_eval_words(words, count, model_words, &model_count, s.name);
    if (sides < 0) return cli_wrong_usage(command, "expected at most two sets, found \"%s\" too", words[count - 1]);
    fill_eval_options(&r);
    exit_code = eval_check_request(command, &r, &s, sides, nll);
    if (exit_code == EXIT_DONE) exit_code = eval_evaluate(&r, model_words, model_count, nll, &s);
    close_sides(&s);
    return exit_code;
}

const cli_command command_eval = {
    .name = "eval",
    .summary = "FID, IS, KID, precision and recall between sets, or of a model; bits per dimension",
    .usage = "A B | MODEL DATA | MODEL DATA --metric nll | A --features-out F.npy [options] [key=value ...]",
    .description =
        "Sets are images (a folder, an archive, .npy of uint8, CIFAR, MNIST), features or points (.npy of floats [n, "
        "d]), "
        "or statistics\n"
        "(.npz with mu and sigma). Of a MODEL samples are drawn first, as psld sample draws them; the data are brought "
        "to its size as in its\n"
        "training. Otherwise images must be alike, or be given a --size. Images are compared as 8-bit values, and "
        "nothing is left out;\n"
        "A is the generated side.\n\n"
        "Features of images need --weights: the FID network, pt_inception-2015-12-05-6726825d.pth from the releases of "
        "pytorch-fid and of\n"
        "torch-fidelity (SHA-256 6726825d...; also after psld convert to .safetensors), or a classifier of psld, whose "
        "distance is not FID.\n\n"
        "--metric nll gives the negative log-likelihood of data under a model by its probability flow, in bits per "
        "dimension; --tol is then\n"
        "its tolerance (default 1e-5), --eps the time it begins at (default 1e-5), --seed that of directions and "
        "dequantisation.\n"
        "docs/reference/evaluation.md has all definitions.",
    .examples = "  psld eval samples/ cifar10/train.tar --weights pt_inception-2015-12-05-6726825d.pth --metric "
                "fid,is,kid,prc\n"
                "  psld eval samples/ cifar10-train.npz --weights inception.safetensors  # published statistics\n"
                "  psld eval run/ mnist/ -n 10000 --sampler sscs --nfe 100 --weights digits-classifier.safetensors\n"
                "  psld eval cifar10/train.tar --statistics-out cifar10-train.npz --weights inception.safetensors\n"
                "  psld eval mixture.yaml points.npy --metric nll\n",
    .run = eval_run,
};
