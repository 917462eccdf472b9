/* The options of sampling: names, defaults and checks. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "names.h"
#include "sampling.h"

enum { NAMES = NAMES_SIZE, LARGEST = 1000000000 };

int sampling_is_adaptive(const char *sampler)
{
    const psld_sampler_info *info = sampler ? psld_sampler_find(sampler) : NULL;
    return info && info->adaptive;
}

const char *sampling_samplers(void)
{
    static char names[NAMES];
    return names_join(names_sampler, "|", names);
}

const char *sampling_samplers_help(void)
{
    static char names[NAMES], help[NAMES + 16];
    snprintf(help, sizeof help, "instead: %s", names_join(names_sampler, ", ", names));
    return help;
}

/* Adds "em, sscs", the samplers for which `is` is true of the value, to the text; returns whether there were any. */
static int add_samplers(int (*is)(const psld_sampler_info *sampler, const void *value), const void *value,
                        const char *before, char *text, size_t size)
{
    int found = 0;
    const psld_sampler_info *sampler;
    for (int i = 0; (sampler = psld_sampler_at(i)); i++) {
        if (!is(sampler, value)) continue;
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", found++ ? ", " : before, sampler->name);
    }
    return found;
}

static int has_grid(const psld_sampler_info *sampler, const void *grid)
{
    return sampler->grid && strcmp(sampler->grid, grid) == 0;
}

static int has_nfe(const psld_sampler_info *sampler, const void *nfe)
{
    return sampler->nfe == *(const int *)nfe;
}

const char *sampling_grid_help(void)
{
    static char help[NAMES];
    help[0] = 0;
    for (int g = 0; names_grid(g); g++) {
        size_t used = strlen(help);
        snprintf(help + used, sizeof help - used, "%s%s", g ? ", " : "", names_grid(g));
        if (add_samplers(has_grid, names_grid(g), " (default of ", help, sizeof help)) strcat(help, ")");
    }
    size_t used = strlen(help);
    snprintf(help + used, sizeof help - used, ", or times: 1,0.5,0.1,0.001");
    return help;
}

const char *sampling_nfe_help(void)
{
    static char help[NAMES];
    snprintf(help, sizeof help, "evaluations of the score per sample (default: by quality");
    const psld_sampler_info *sampler;
    for (int i = 0; (sampler = psld_sampler_at(i)); i++) {
        int nfe = sampler->nfe, told = 0;
        for (int j = 0; j < i; j++) told |= psld_sampler_at(j)->nfe == nfe;
        if (nfe == 0 || told) continue;
        add_samplers(has_nfe, &nfe, "; ", help, sizeof help);
        size_t used = strlen(help);
        snprintf(help + used, sizeof help - used, " %d", nfe);
    }
    strcat(help, ")");
    return help;
}

static int has_order(const psld_sampler_info *sampler)
{
    return sampler->max_order > 0;
}

static int uses_detail(const psld_sampler_info *sampler)
{
    return sampler->uses_detail;
}

static int uses_eta(const psld_sampler_info *sampler)
{
    return sampler->uses_eta;
}

static int uses_tolerance(const psld_sampler_info *sampler)
{
    return sampler->uses_tolerance;
}

/* Adds "(default 3; ancestral 2)" to the text: the default of the first sampler that uses an option, and other
 * defaults. */
static void add_defaults(int (*uses)(const psld_sampler_info *sampler),
                         double (*initial)(const psld_sampler_info *sampler), char *text, size_t size)
{
    const psld_sampler_info *sampler, *first = NULL;
    for (int i = 0; (sampler = psld_sampler_at(i)); i++) {
        size_t used = strlen(text);
        if (!uses(sampler) || (first && initial(sampler) == initial(first))) continue;
        if (first)
            snprintf(text + used, size - used, "; %s %g", sampler->name, initial(sampler));
        else
            snprintf(text + used, size - used, " (default %g", initial(sampler));
        if (!first) first = sampler;
    }
    strcat(text, ")");
}

static double initial_order(const psld_sampler_info *sampler)
{
    return sampler->order;
}

static double initial_detail(const psld_sampler_info *sampler)
{
    return sampler->detail;
}

const char *sampling_order_help(void)
{
    static char help[2 * NAMES];
    char names[NAMES];
    const psld_sampler_info *sampler;
    int most = 0;
    for (int i = 0; (sampler = psld_sampler_at(i)); i++) most = sampler->max_order > most ? sampler->max_order : most;
    snprintf(help, NAMES + 64, "of %s: 1 to %d", names_samplers_that(has_order, names), most);
    add_defaults(has_order, initial_order, help, sizeof help - 2);
    return help;
}

const char *sampling_detail_help(void)
{
    static char help[2 * NAMES];
    char names[NAMES];
    snprintf(help, NAMES + 128,
             "scale of details, for %s: noise far below D no longer changes the clean data that they extrapolate",
             names_samplers_that(uses_detail, names));
    add_defaults(uses_detail, initial_detail, help, sizeof help - 2);
    return help;
}

const char *sampling_eta_help(void)
{
    static char help[NAMES + 64];
    char names[NAMES];
    snprintf(help, sizeof help, "noise of %s, from 0 to 1 (default 1; draft %g)", names_samplers_that(uses_eta, names),
             psld_quality_find("draft")->eta);
    return help;
}

const char *sampling_tolerance_help(void)
{
    static char help[NAMES + 64];
    char names[NAMES];
    snprintf(help, sizeof help, "tolerance of %s, relative and absolute (default 1e-5)",
             names_samplers_that(uses_tolerance, names));
    return help;
}

const char *sampling_qualities(void)
{
    static char names[NAMES];
    return names_join(names_quality, "|", names);
}

void sampling_defaults(sampling_request *s)
{
    memset(s, 0, sizeof *s);
    s->options = (psld_sample_options)PSLD_SAMPLE_DEFAULTS;
    s->model.options = (psld_model_options)PSLD_MODEL_DEFAULTS;
    s->quantize = "round";
}

int sampling_parse(const cli_command *command, const cli_option *options, int argc, char **argv, const char **words,
                   int *count, int *exit_code)
{
    *exit_code = EXIT_USAGE;
    if (argc > SAMPLING_WORDS) return cli_wrong_usage(command, "too many words"), 0;
    if (!cli_parse(command, options, argc, argv, words, count, exit_code)) return 0;
    int models = *count;
    for (int i = 1; i < *count; i++) models -= strchr(words[i], '=') != NULL;
    if (models != 1) *exit_code = cli_wrong_usage(command, "expected one model, found %d", models);
    return models == 1;
}

static int option_as_int(long number)
{
    return number > LARGEST ? LARGEST : (int)number;
}

/* Options that the sampler does not use are refused: they would have no effect. */
static int check_uses(const cli_command *command, const sampling_request *s)
{
    char names[NAMES];
    const char *sampler = s->sampler ? s->sampler : psld_quality_find(s->quality ? s->quality : "normal")->sampler;
    const psld_sampler_info *info = psld_sampler_find(sampler);
    if (info->adaptive && s->nfe)
        return cli_wrong_usage(command, "--nfe: %s chooses its steps itself; give --tol", info->name);
    if (!info->uses_tolerance && s->tolerance != 0)
        return cli_wrong_usage(command, "--tol is for %s alone; %s takes --nfe",
                               names_samplers_that(uses_tolerance, names),
                               s->sampler ? s->sampler : "what is chosen by --quality");
    if (!info->uses_eta && s->eta)
        return cli_wrong_usage(command, "--eta is for %s alone", names_samplers_that(uses_eta, names));
    return EXIT_DONE;
}

int sampling_check(const cli_command *command, sampling_request *s)
{
    if (s->sampler && s->quality)
        return cli_wrong_usage(command, "--quality chooses the sampler: give one of --quality and --sampler");
    int exit_code = check_uses(command, s);
    if (exit_code != EXIT_DONE) return exit_code;
    if (s->sampler && strcmp(s->sampler, psld_quality_find("normal")->sampler) == 0)
        s->sampler = NULL, s->default_sampler = 1; /* the default of most models */
    if (s->eps != 0 && s->options.end_sigma > 0)
        return cli_wrong_usage(command, "--eps and --end-sigma both choose the end of sampling; give one of them");
    if (s->eta && (cli_numbers(s->eta, &s->options.eta, 1) != 1 || s->options.eta < 0))
        return cli_wrong_usage(command, "--eta: expected a number from 0 to 1, found \"%s\"", s->eta);
    if (s->detail && (cli_numbers(s->detail, &s->options.detail, 1) != 1 || s->options.detail < 0))
        return cli_wrong_usage(command, "--detail: expected a number from 0 on, found \"%s\"", s->detail);
    if (s->sampler) s->options.sampler = s->sampler;
    s->options.eps = s->eps;
    s->options.tolerance = s->tolerance;
    s->options.nfe = option_as_int(s->nfe);
    s->options.order = option_as_int(s->order);
    s->options.corrector = option_as_int(s->corrector);
    s->options.batch = option_as_int(s->batch);
    s->options.ode_group = option_as_int(s->ode_group);
    return EXIT_DONE;
}

/* The output is a folder if its name ends in '/' or has no ending, or if it is an existing folder. */
static int is_folder_name(const char *path)
{
    struct stat about;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!*path) return 0;
    return !*name || !strchr(name, '.') || (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

/* ".a|.b|.c" as ".a, .b or .c". */
static const char *endings_text(const char *endings, char words[NAMES])
{
    words[0] = 0;
    for (const char *e = endings, *next; e; e = next) {
        size_t used = strlen(words);
        next = strchr(e, '|');
        snprintf(words + used, NAMES - used, "%s%.*s",
                 e == endings ? ""
                 : next       ? ", "
                              : " or ",
                 (int)strcspn(e, "|"), e);
        if (next) next++;
    }
    return words;
}

int sampling_check_out(const cli_command *command, const sampling_request *s, const char *endings)
{
    char words[NAMES];
    endings_text(endings, words);
    if (!s->out) return cli_wrong_usage(command, "no output given; add -o OUT (%s, or a folder)", words);
    if (s->state && !cli_ends_in(s->out, ".npy|.npz"))
        return cli_wrong_usage(command, "--state: states are written as %s",
                               strstr(endings, ".npz") ? ".npy or .npz" : ".npy");
    if (cli_ends_in(s->out, endings)) return cli_output_possible(s->out) ? EXIT_DONE : EXIT_FAILED;
    if (is_folder_name(s->out)) return EXIT_DONE;
    return cli_wrong_usage(command, "-o: expected a name that ends in %s, or a folder, found \"%s\"", words, s->out);
}

int sampling_check_conditions(const cli_command *command, sampling_request *s)
{
    if (s->classifier && !s->label) return cli_wrong_usage(command, "--classifier needs --label");
    if ((s->labels.cfg || s->labels.range) && !s->label)
        return cli_wrong_usage(command, "--cfg and --cfg-range need --label");
    int labels = labels_check(command, &s->labels);
    return labels == EXIT_DONE ? sampling_check(command, s) : labels;
}

int sampling_check_restored(const cli_command *command, const sampling_request *s)
{
    int exit_code = sheet_check_zoom(command, s->zoom, s->out && !cli_ends_in(s->out, ".npy"));
    return exit_code == EXIT_DONE ? sampling_check_out(command, s, ".npy|.png") : exit_code;
}
