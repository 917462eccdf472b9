/* psld eval --per-class: the classes of two sets, one by one. */
#include <stdio.h>
#include <string.h>

#include "eval.h"

enum { CLASS_NAME = 256 };

/* The class of the second side with the name of a class of the first; psld_set_classes: there is none. */
static psld_status find_class(const eval_sides *s, const char *name, size_t *match)
{
    char other[CLASS_NAME];
    size_t count = psld_set_classes(s->second);
    for (*match = 0; *match < count; ++*match) {
        psld_status status = psld_set_class(s->second, *match, other, sizeof other);
        if (status != PSLD_OK || strcmp(name, other) == 0) return status;
    }
    return PSLD_OK;
}

/* Classes are matched by name; if both sides have no name in common, by number. */
static psld_status have_common_names(const eval_sides *s, int *common)
{
    char name[CLASS_NAME];
    size_t count = psld_set_classes(s->first), match;
    *common = 0;
    for (size_t class = 0; !*common && class < count; class ++) {
        psld_status status = psld_set_class(s->first, class, name, sizeof name);
        if (status == PSLD_OK) status = find_class(s, name, &match);
        if (status != PSLD_OK) return status;
        *common = match < count;
    }
    return PSLD_OK;
}

static psld_status match_class(const eval_sides *s, size_t class, int by_name, char name[CLASS_NAME], size_t *match)
{
    psld_status status = psld_set_class(s->first, class, name, CLASS_NAME);
    *match = class;
    if (status != PSLD_OK || !by_name) return status;
    status = find_class(s, name, match);
    if (status == PSLD_OK && *match == psld_set_classes(s->second))
        return cli_bad_input("--per-class: %s has no class \"%s\", which %s has", s->name[1], name, s->name[0]);
    return status;
}

static psld_status check_classes(const eval_sides *s)
{
    size_t a = psld_set_classes(s->first), b = psld_set_classes(s->second);
    if (a == 0 || b == 0) return cli_bad_input("--per-class: %s has no classes", s->name[a != 0]);
    return a == b ? PSLD_OK
                  : cli_bad_input("--per-class: %s has %zu classes, %s has %zu; expected the same", s->name[0], a,
                                  s->name[1], b);
}

static psld_status compare_class(const eval_request *r, eval_sides *s, size_t class, int by_name, json_t *row)
{
    psld_comparison c = PSLD_COMPARISON_EMPTY;
    psld_set *first = NULL, *second = NULL;
    char name[CLASS_NAME];
    size_t match = 0;
    psld_status status = match_class(s, class, by_name, name, &match);
    if (status == PSLD_OK) status = psld_set_of_class(s->first, class, &first);
    if (status == PSLD_OK) status = psld_set_of_class(s->second, match, &second);
    if (status == PSLD_OK) status = psld_compare(first, second, s->features, &r->compare, &c);
    psld_set_free(first);
    psld_set_free(second);
    if (status != PSLD_OK) return status;
    json_object_set_new(row, "class", json_string(name));
    json_object_set_new(row, "n_a", json_integer((json_int_t)c.count[0]));
    json_object_set_new(row, "n_b", json_integer((json_int_t)c.count[1]));
    eval_add_metrics(row, r->compare.metrics, eval_is_fid(s), &c);
    return PSLD_OK;
}

/* Classes without samples are left out. */
static int is_drawn(const eval_sides *s, size_t class)
{
    const label_choice *l = &s->labels;
    int drawn = !s->model || l->labels.count == 0;
    for (size_t i = 0; i < l->labels.count; i++)
        if (l->numbers[i] == (int32_t) class) drawn = 1;
    return drawn;
}

psld_status eval_classes(const eval_request *r, eval_sides *s, json_t **rows)
{
    int by_name = 0;
    psld_status status = check_classes(s);
    if (status == PSLD_OK) status = have_common_names(s, &by_name);
    *rows = json_array();
    for (size_t class = 0; status == PSLD_OK && class < psld_set_classes(s->first); class ++) {
        if (!is_drawn(s, class)) continue;
        json_t *row = json_object();
        status = compare_class(r, s, class, by_name, row);
        json_array_append_new(*rows, row);
    }
    return status;
}

void eval_print_classes(const json_t *rows, unsigned metrics)
{
    static const struct column {
        unsigned metric;
        const char *key, *title;
    } columns[] = {{PSLD_FRECHET, "frechet_distance", "frechet"},
                   {PSLD_INCEPTION_SCORE, "is", "is"},
                   {PSLD_KID, "kid", "kid"},
                   {PSLD_PRECISION_RECALL, "precision", "precision"},
                   {PSLD_PRECISION_RECALL, "recall", "recall"},
                   {PSLD_SLICED, "swd", "swd"}};
    enum { COLUMNS = sizeof columns / sizeof *columns };
    size_t index;
    json_t *row;
    printf("%-20s %8s %8s", "class", "a", "b");
    for (int c = 0; c < COLUMNS; c++)
        if (metrics & columns[c].metric) printf(" %12s", columns[c].title);
    printf("\n");
    json_array_foreach(rows, index, row)
    {
        printf("%-20s %8lld %8lld", json_string_value(json_object_get(row, "class")),
               (long long)json_integer_value(json_object_get(row, "n_a")),
               (long long)json_integer_value(json_object_get(row, "n_b")));
        for (int c = 0; c < COLUMNS; c++)
            if (metrics & columns[c].metric) printf(" %12.6g", json_number_value(json_object_get(row, columns[c].key)));
        printf("\n");
    }
}
