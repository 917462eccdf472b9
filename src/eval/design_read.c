#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/sized.h"
#include "base/table.h"
#include "base/text.h"
#include "eval/design.h"
#include "eval/empirical.h"
#include "sample/options.h"

static const psld_design_criterion_info criteria[PSLD_DESIGN_CRITERIA] = {
    {"error", "sliced distance of samples drawn at so many evaluations from the data"},
    {"distance", "distance from stationarity at t = 1, nats per coordinate"},
    {"factors", "largest share of an error of the score that enters the data in two steps"},
};

const psld_design_criterion_info *psld_design_criterion_at(int index)
{
    return PSLD_TABLE_AT(criteria, index);
}

static const psld_design_criterion_info *criterion_row(const char *name)
{
    return PSLD_TABLE_FIND(criteria, "criterion", name);
}

/* ---- "error,distance=0.1" ---------------------------------------------------------------------------------------- */

/* One item of the list: a name, perhaps followed by `=` and a number. */
static psld_status read_criterion(const char *what, char *word, int needs_number, double *values)
{
    char *equals = strchr(word, '=');
    double value = 1;
    if (equals) *equals++ = 0;
    const psld_design_criterion_info *row = criterion_row(word);
    if (!row) return psld_fail_in(PSLD_BAD_ARGUMENT, "%s", what);
    if (needs_number && !equals)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected NAME=NUMBER, found \"%s\"", what, word);
    if (equals && (!psld_text_number(equals, &value) || !(value > 0) || isinf(value)))
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: %s: expected a number above 0, found \"%s\"", what, word, equals);
    values[row - criteria] = value;
    return PSLD_OK;
}

static psld_status read_criteria(const char *what, const char *text, int needs_number, double *values)
{
    char copy[256], *rest = NULL;
    int count = 0;
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected less than %zu characters", what, sizeof copy);
    for (char *word = strtok_r(copy, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest), count++)
        PSLD_TRY(read_criterion(what, word, needs_number, values));
    if (count) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected some of error, distance, factors, found nothing", what);
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static psld_status read_count(const char *what, int fallback, int least, int most, int *count)
{
    PSLD_FILL_UNSET(*count, fallback);
    if (*count >= least && *count <= most) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "%s: expected a whole number from %d to %d, found %d", what, least, most,
                     *count);
}

static psld_status read_counts(psld_design_options *o)
{
    PSLD_TRY(read_count("trials", 300, 0, 1000000, &o->trials));
    PSLD_TRY(read_count("searches", 2, 1, 1000, &o->searches));
    PSLD_TRY(read_count("number", 2000, 2, 1000000, &o->number));
    PSLD_TRY(read_count("final number", 10000, 2, 1000000, &o->final_number));
    PSLD_TRY(read_count("directions", 64, 1, 100000, &o->directions));
    PSLD_TRY(read_count("components", 1000, 1, 1000000, &o->components));
    PSLD_FILL_UNSET(o->scale, 0.1);
    if (o->scale > 0 && o->scale <= 1e6) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "scale: expected a number above 0, found %g", o->scale);
}

/* The sampler that the text names; its budget is `nfe`, unless the text gives one. */
static psld_status read_sampling(const psld_design_options *o, psld_design *design)
{
    const char *text = o->sampler ? o->sampler : "sscs";
    design->sampling = (psld_sample_options)PSLD_SAMPLE_DEFAULTS;
    PSLD_TRY(psld_sample_options_parse(text, &design->sampling));
    snprintf(design->sampler, sizeof design->sampler, "%s", text);
    if (psld_sampler_find(design->sampling.sampler)->adaptive)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "sampler: expected one with a number of evaluations, found %s, which is "
                         "adaptive",
                         design->sampling.sampler);
    if (design->sampling.nfe == PSLD_UNSET) design->sampling.nfe = o->nfe;
    return read_count("nfe", 10, 1, 100000, &design->sampling.nfe);
}

psld_status psld_design_read(const psld_design_options *options, psld_design *design)
{
    psld_design_options *o = &design->options;
    PSLD_TRY(PSLD_SIZED_READ(psld_design_options, options, o, PSLD_DESIGN_DEFAULTS));
    PSLD_TRY(read_counts(o));
    PSLD_TRY(psld_learn_parse("learn", o->learn ? o->learn : "D,Q,mass,beta", &design->learn));
    for (int i = 0; i < PSLD_DESIGN_CRITERIA; i++) design->limit[i] = INFINITY;
    PSLD_TRY(read_criteria("criterion", o->criterion ? o->criterion : "error", 0, design->weight));
    if (o->limits) PSLD_TRY(read_criteria("limit", o->limits, 1, design->limit));
    return read_sampling(o, design);
}

/* ---- The mixture ------------------------------------------------------------------------------------------------- */

static uint64_t mixture_fingerprint(const psld_mixture *m)
{
    uint64_t hash = psld_hash_words(PSLD_HASH_START, m->means, m->components * m->dim * sizeof *m->means);
    hash = psld_hash_words(hash, m->log_weights, m->components * sizeof *m->log_weights);
    hash = psld_hash_words(hash, m->class_of, m->components * sizeof *m->class_of);
    return psld_hash_words(hash, m->scales, m->classes * sizeof *m->scales);
}

static psld_status mixture_of_model(const char *path, psld_mixture **mixture)
{
    psld_model *model;
    PSLD_TRY(psld_model_open(path, NULL, &model));
    const psld_mixture *own = psld_model_mixture(model);
    psld_status status = own ? psld_mixture_copy(own, mixture)
                             : psld_fail(PSLD_BAD_INPUT, "%s: expected an exact model, with a mixture, or data", path);
    psld_model_free(model);
    return status;
}

static psld_status mixture_of_data(const char *path, const psld_design_options *o, psld_mixture **mixture)
{
    psld_data *data;
    PSLD_TRY(psld_data_open(path, NULL, &data));
    psld_status status = psld_empirical_mixture(data, (size_t)o->components, o->scale, mixture);
    psld_data_free(data);
    return status;
}

psld_status psld_design_open_mixture(const char *path, psld_design *design)
{
    if (psld_text_ends_in(path, ".yaml") || psld_text_ends_in(path, ".yml"))
        PSLD_TRY(mixture_of_model(path, &design->mixture));
    else
        PSLD_TRY(mixture_of_data(path, &design->options, &design->mixture));
    design->fingerprint = mixture_fingerprint(design->mixture);
    return PSLD_OK;
}

/* ---- Starts ------------------------------------------------------------------------------------------------------ */

psld_status psld_design_open_starts(psld_design *design)
{
    const psld_design_options *o = &design->options;
    int given = o->starts && o->start_count > 0, count = given ? o->start_count : 0;
    while (!given && psld_preset_at(count)) count++;
    if (given) PSLD_TRY(psld_text_list_check("starts", o->starts, (size_t)count));
    design->starts = psld_alloc((size_t)count, sizeof *design->starts);
    if (!design->starts) return PSLD_NO_MEMORY;
    for (int i = 0; i < count; i++) {
        PSLD_TRY(psld_recipe_open(given ? o->starts[i] : psld_preset_at(i)->name, &design->starts[i].recipe));
        design->starts[i].cost = INFINITY;
        design->start_count++;
    }
    return PSLD_OK;
}
