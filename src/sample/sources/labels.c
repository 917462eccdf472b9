/* Labels for samples, with classifier-free guidance (Ho & Salimans 2022):
 *     eps = eps_none + scale (eps_label - eps_none).
 * Both predictions of a state are evaluated in one batch: `n` states with their labels, then a second copy without label
 * of those that are guided. A state without a label, at scale 1 or at a noise outside the range needs one prediction only,
 * and so does scale 0, whose prediction is the one without label. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/workspace.h"
#include "process/recipe.h"
#include "sample/sources/source.h"

typedef struct labelled_source {
    psld_source *base;
    psld_recipe recipe; /* a copy of its own */
    psld_labels labels; /* with `label` of its own */
    int32_t *label;
    psld_workspaces workspaces;
} labelled_source;

static void release_labels(void *user)
{
    labelled_source *s = user;
    psld_workspaces_release(&s->workspaces);
    psld_release(s->label);
    psld_release(s);
}

/* ---- The batch --------------------------------------------------------------------------------------------------- */

/* A call of the base: `all` states, of which the last all - n are those of guided[...] once more, without label. */
typedef struct label_batch {
    size_t n, all, dim, state, predicted; /* the last two: numbers per state and per eps */
    size_t *guided;                       /* [all - n] */
    double *z, *t;
    uint64_t *sample;
    int32_t *label;
    double *weight, *eps, *grad;
} label_batch;

static int32_t label_of(const labelled_source *s, const psld_states *states, size_t i)
{
    uint64_t sample = states->sample ? states->sample[i] : s->labels.first + i;
    return s->label[(sample - s->labels.first) % s->labels.count];
}

/* Whether the guidance acts at time t. */
static psld_status is_in_range(const labelled_source *s, double t, int *inside)
{
    double sigma;
    *inside = 1;
    if (s->labels.sigma_min == PSLD_UNSET && s->labels.sigma_max == PSLD_UNSET) return PSLD_OK;
    PSLD_TRY(psld_recipe_sigma(&s->recipe, t, &sigma));
    if (s->labels.sigma_min != PSLD_UNSET && sigma < s->labels.sigma_min) *inside = 0;
    if (s->labels.sigma_max != PSLD_UNSET && sigma > s->labels.sigma_max) *inside = 0;
    return PSLD_OK;
}

/* Fills in the labels, and which states are guided. */
static psld_status choose_labels(const labelled_source *s, const psld_states *states, label_batch *b)
{
    int inside = 0;
    b->all = b->n;
    for (size_t i = 0; i < b->n; i++) {
        if (i == 0 || states->t[i] != states->t[i - 1]) PSLD_TRY(is_in_range(s, states->t[i], &inside));
        b->label[i] = label_of(s, states, i);
        if (inside && s->labels.cfg == 0) b->label[i] = -1;
        if (b->label[i] < 0 || !inside || s->labels.cfg == 1) continue;
        b->label[b->all] = -1;
        b->guided[b->all++ - b->n] = i;
    }
    return PSLD_OK;
}

static psld_status allocate_label_batch(psld_workspace *memory, label_batch *b)
{
    size_t n = 2 * b->n;
    const struct {
        void **array;
        size_t width, element;
    } all[] = {{(void **)&b->guided, 1, sizeof *b->guided},      {(void **)&b->label, 1, sizeof *b->label},
               {(void **)&b->sample, 1, sizeof *b->sample},      {(void **)&b->t, 1, sizeof *b->t},
               {(void **)&b->z, b->state, sizeof *b->z},         {(void **)&b->weight, b->predicted, sizeof *b->weight},
               {(void **)&b->eps, b->predicted, sizeof *b->eps}, {(void **)&b->grad, b->state, sizeof *b->grad}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        PSLD_TRY(psld_workspace_room(memory, (int)i, n, all[i].width, all[i].element, all[i].array));
    return PSLD_OK;
}

static void copy_rows(size_t width, const double *from, const size_t *rows, size_t count, double *to)
{
    for (size_t i = 0; i < count; i++) memcpy(to + i * width, from + rows[i] * width, width * sizeof *to);
}

/* The states of the base's call: those of the caller, and the guided ones once more. */
static psld_states batch_states(const labelled_source *s, const psld_states *states, label_batch *b)
{
    psld_states base = *states;
    base.label = b->label;
    if (b->all == b->n) return base;
    memcpy(b->z, states->z, b->n * b->state * sizeof *b->z);
    memcpy(b->t, states->t, b->n * sizeof *b->t);
    copy_rows(b->state, states->z, b->guided, b->all - b->n, b->z + b->n * b->state);
    copy_rows(1, states->t, b->guided, b->all - b->n, b->t + b->n);
    for (size_t i = 0; i < b->all; i++) {
        size_t row = i < b->n ? i : b->guided[i - b->n];
        b->sample[i] = states->sample ? states->sample[row] : s->labels.first + row;
    }
    base.n = b->all;
    base.z = b->z;
    base.t = b->t;
    base.sample = b->sample;
    return base;
}

/* ---- Predictions ------------------------------------------------------------------------------------------------- */

static void combine_rows(const label_batch *b, double scale, size_t width, double *rows)
{
    for (size_t i = b->n; i < b->all; i++) {
        const double *none = rows + i * width;
        double *label = rows + b->guided[i - b->n] * width;
        for (size_t j = 0; j < width; j++) label[j] = none[j] + scale * (label[j] - none[j]);
    }
}

/* The gradient of sum(weight eps) is linear in both predictions, so it is combined as they are. */
static psld_status evaluate_labels(labelled_source *s, psld_workspace *memory, const psld_states *states,
                                   const double *weight, double *eps, double *grad_z)
{
    label_batch b = {.n = states->n,
                     .dim = states->dim,
                     .state = (size_t)s->recipe.spec.k * states->dim,
                     .predicted = (size_t)s->recipe.predicted * states->dim};
    PSLD_TRY(allocate_label_batch(memory, &b));
    PSLD_TRY(choose_labels(s, states, &b));
    psld_states base = batch_states(s, states, &b);
    if (weight) {
        memcpy(b.weight, weight, b.n * b.predicted * sizeof *weight);
        copy_rows(b.predicted, weight, b.guided, b.all - b.n, b.weight + b.n * b.predicted);
        PSLD_TRY(psld_source_gradient(s->base, &base, b.weight, b.eps, b.grad));
        combine_rows(&b, s->labels.cfg, b.state, b.grad);
        memcpy(grad_z, b.grad, b.n * b.state * sizeof *grad_z);
    } else {
        PSLD_TRY(psld_source_predict(s->base, &base, b.eps));
    }
    if (!eps) return PSLD_OK;
    combine_rows(&b, s->labels.cfg, b.predicted, b.eps);
    memcpy(eps, b.eps, b.n * b.predicted * sizeof *eps);
    return PSLD_OK;
}

static psld_status differentiate_labels(void *user, const psld_states *states, const double *weight, double *eps,
                                        double *grad_z)
{
    labelled_source *s = user;
    psld_workspace *memory = psld_workspace_take(&s->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    psld_status status = evaluate_labels(s, memory, states, weight, eps, grad_z);
    psld_workspace_give(&s->workspaces, memory);
    return status;
}

static psld_status predict_labels(void *user, const psld_states *states, double *eps)
{
    return differentiate_labels(user, states, NULL, eps, NULL);
}

/* ---- Making it --------------------------------------------------------------------------------------------------- */

static psld_status check_range(const psld_labels *l)
{
    int has_min = l->sigma_min != PSLD_UNSET, has_max = l->sigma_max != PSLD_UNSET;
    if ((!has_min || l->sigma_min >= 0) && (!has_max || l->sigma_max > 0) &&
        (!has_min || !has_max || l->sigma_min < l->sigma_max))
        return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "cfg range: expected 0 <= sigma_min < sigma_max, found %g to %g", l->sigma_min,
                     l->sigma_max);
}

static psld_status check_label_options(const psld_source *base, const psld_labels *l)
{
    if (base->classes == 0) return psld_fail(PSLD_BAD_ARGUMENT, "label: this model takes no labels");
    if (!l->label || l->count == 0) return psld_fail(PSLD_BAD_ARGUMENT, "labels: expected at least one");
    if (!isfinite(l->cfg)) return psld_fail(PSLD_BAD_ARGUMENT, "cfg: expected a finite number, found %g", l->cfg);
    if (base->needs_label && l->cfg != 1)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "cfg: this model cannot predict without a label, so there is no classifier-free guidance; "
                         "expected 1, found %g",
                         l->cfg);
    for (size_t i = 0; i < l->count; i++)
        if (l->label[i] < (base->needs_label ? 0 : -1) || (l->label[i] >= 0 && (size_t)l->label[i] >= base->classes))
            return psld_fail(PSLD_BAD_ARGUMENT, "label: expected a class from 0 to %zu%s, found %d", base->classes - 1,
                             base->needs_label ? "" : ", or -1 for none", (int)l->label[i]);
    return check_range(l);
}

psld_status psld_source_label(psld_source *base, const psld_recipe *recipe, const psld_labels *labels,
                              psld_source **source)
{
    psld_labels own;
    *source = NULL;
    PSLD_TRY(PSLD_SIZED_READ(psld_labels, labels, &own, PSLD_LABELS_DEFAULTS));
    PSLD_FILL_UNSET(own.cfg, 1);
    PSLD_TRY(check_label_options(base, &own));
    labelled_source *s = psld_alloc(1, sizeof *s);
    if (!s) return PSLD_NO_MEMORY;
    *s = (labelled_source){.base = base, .recipe = *recipe, .labels = own};
    s->label = psld_copy_bytes(own.label, own.count * sizeof *own.label);
    if (!s->label) {
        release_labels(s);
        return PSLD_NO_MEMORY;
    }
    PSLD_TRY(psld_source_wrap(base, recipe, predict_labels, release_labels, s, source));
    (*source)->classes = 0; /* it has its labels */
    (*source)->needs_label = 0;
    if (base->gradient) (*source)->gradient = differentiate_labels;
    return PSLD_OK;
}
