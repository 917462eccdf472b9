#include "labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int labels_check(const cli_command *command, const label_request *r)
{
    double numbers[2];
    if (r->label && r->file)
        return cli_wrong_usage(command, "--label and --labels both choose classes; give one of them");
    if (r->cfg && cli_numbers(r->cfg, numbers, 1) != 1)
        return cli_wrong_usage(command, "--cfg: expected a number, found \"%s\"", r->cfg);
    if (r->range && (cli_numbers(r->range, numbers, 2) != 2 || !(numbers[0] >= 0 && numbers[0] < numbers[1])))
        return cli_wrong_usage(command, "--cfg-range: expected two numbers LO,HI with 0 <= LO < HI, found \"%s\"",
                               r->range);
    return EXIT_DONE;
}

/* ---- --label ----------------------------------------------------------------------------------------------------- */

static psld_status add_label(label_choice *c, int32_t number)
{
    int32_t *more = realloc(c->numbers, (c->labels.count + 1) * sizeof *more);
    if (!more) return cli_bad_input("out of memory");
    c->numbers = more;
    c->numbers[c->labels.count++] = number;
    return PSLD_OK;
}

static psld_status read_list(const psld_model *model, const char *text, label_choice *c)
{
    psld_array *labels;
    psld_status status = psld_model_labels(model, text, &labels);
    for (size_t i = 0; status == PSLD_OK && i < labels->count; i++)
        status = add_label(c, ((const int32_t *)labels->data)[i]);
    psld_array_free(labels);
    return status;
}

/* ---- --labels ---------------------------------------------------------------------------------------------------- */

static psld_status read_label_file(const psld_model *model, const char *path, label_choice *c)
{
    psld_array *loaded = NULL, *numbers = NULL;
    double classes = (double)psld_model_classes(model);
    psld_status status = psld_array_load(path, &loaded);
    if (status == PSLD_OK) status = psld_array_convert(loaded, PSLD_F64, &numbers);
    if (status == PSLD_OK && (numbers->count == 0 || numbers->count != numbers->shape[0]))
        status = cli_bad_input("%s: expected one label per sample, [n]", path);
    for (size_t i = 0; status == PSLD_OK && i < numbers->count; i++) {
        double value = ((const double *)numbers->data)[i];
        if (value >= -1 && value < classes && value == floor(value))
            status = add_label(c, (int32_t)value);
        else
            status = cli_bad_input("%s: label %zu: expected a class from 0 to %.0f, or -1 for none, found %g", path, i,
                                   classes - 1, value);
    }
    psld_array_free(numbers);
    psld_array_free(loaded);
    return status;
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static psld_status check_model(const label_request *r, const psld_model *model, const char *origin)
{
    if (psld_model_classes(model) > 0 && psld_model_kind_of(model) != PSLD_CLASSIFIER) return PSLD_OK;
    return cli_bad_input("%s: %s has no classes, so it takes no labels%s",
                         r->label  ? "--label"
                         : r->file ? "--labels"
                         : r->cfg  ? "--cfg"
                                   : "--cfg-range",
                         origin, r->label ? " (psld guide steers it with a classifier)" : "");
}

psld_status labels_choose(const label_request *r, const psld_model *model, const char *origin, label_choice *c)
{
    *c = (label_choice){.labels = PSLD_LABELS_DEFAULTS};
    if (!r->label && !r->file && !r->cfg && !r->range) return PSLD_OK;
    psld_status status = check_model(r, model, origin);
    if (status == PSLD_OK && r->label) status = read_list(model, r->label, c);
    if (status == PSLD_OK && r->file) status = read_label_file(model, r->file, c);
    if (status != PSLD_OK) return status;
    double range[2];
    if (r->cfg) cli_numbers(r->cfg, &c->labels.cfg, 1);
    if (r->cfg && c->labels.cfg == PSLD_UNSET) c->labels.cfg = nextafter(PSLD_UNSET, 0); /* -1 would mean unset */
    if (r->range) {
        cli_numbers(r->range, range, 2);
        c->labels.sigma_min = range[0];
        c->labels.sigma_max = range[1];
    }
    c->labels.label = c->numbers;
    c->is_set = 1;
    return PSLD_OK;
}

void labels_free(label_choice *choice)
{
    free(choice->numbers);
    choice->numbers = NULL;
}

const char *labels_text(const label_request *r, const label_choice *c, char *text, size_t size)
{
    snprintf(text, size, "%s%s",
             r->label && c->labels.count > 1 ? "classes "
             : r->label                      ? "class "
                                             : "",
             r->label ? r->label : "");
    return text;
}
