/* Scores by a user's callback, which may predict eps, the score, or clean data. Inside the library a source predicts eps,
 * so the other two are converted_callback. The constants depend on t only:
 *     score s:       eps_P = -L[P, P]' s_P      P: the predicted variables, L: the stabilised factor (add_gradient.h)
 *     clean data X:  eps_P = white z - gain X   (denoiser.h)
 * Both are linear, so the gradient of sum(weight eps) follows by the chain rule:
 *     score s:       the callback's gradient for the weight -L[P, P] weight,
 *     clean data X:  white' weight + the callback's gradient for the weight -gain . weight. */
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/workspace.h"
#include "sample/linear.h"
#include "sample/sources/denoiser.h"

typedef struct converted_callback {
    psld_recipe recipe; /* a copy of its own */
    psld_callback callback;
    size_t outputs; /* numbers per coordinate that the callback predicts */
    psld_workspaces workspaces;
} converted_callback;

/* eps = z_part z + out_part out, for each coordinate. */
typedef struct callback_conversion {
    size_t k, predicted, outputs;
    double z_part[PSLD_MATRIX_SIZE];   /* predicted x k */
    double out_part[PSLD_MATRIX_SIZE]; /* predicted x outputs */
} callback_conversion;

/* ---- Constants of a time ----------------------------------------------------------------------------------------- */

static psld_status plan_from_score(const psld_recipe *recipe, double t, callback_conversion *c)
{
    double factor[PSLD_MATRIX_SIZE];
    const int *variable = recipe->variable;
    PSLD_TRY(psld_recipe_factor(recipe, t, recipe->spec.mode, factor, NULL));
    for (size_t b = 0; b < c->predicted; b++)
        for (size_t a = 0; a < c->predicted; a++)
            c->out_part[b * c->outputs + a] = -factor[(size_t)variable[a] * c->k + (size_t)variable[b]];
    return PSLD_OK;
}

static psld_status plan_from_data(const psld_recipe *recipe, double t, callback_conversion *c)
{
    psld_denoiser denoiser;
    PSLD_TRY(psld_denoiser_plan(recipe, 1, t, &denoiser));
    memcpy(c->z_part, denoiser.white, sizeof c->z_part);
    for (size_t b = 0; b < c->predicted; b++) c->out_part[b] = -denoiser.gain[b];
    return PSLD_OK;
}

static psld_status plan_callback(const converted_callback *own, double t, callback_conversion *c)
{
    memset(c, 0, sizeof *c);
    c->k = (size_t)own->recipe.spec.k;
    c->predicted = (size_t)own->recipe.predicted;
    c->outputs = own->outputs;
    if (own->callback.predicts == PSLD_PREDICTS_SCORE) return plan_from_score(&own->recipe, t, c);
    return plan_from_data(&own->recipe, t, c);
}

/* ---- States of one time ------------------------------------------------------------------------------------------ */

static void add_multiple(size_t dim, double factor, const double *from, double *to)
{
    for (size_t j = 0; factor != 0 && j < dim; j++) to[j] += factor * from[j];
}

static void convert_output(const callback_conversion *c, const psld_states *states, const double *out, double *eps)
{
    const psld_linear_part parts[2] = {{c->z_part, c->k, states->z}, {c->out_part, c->outputs, out}};
    psld_linear_apply(states->n, states->dim, c->predicted, 2, parts, eps);
}

static void convert_weight(const callback_conversion *c, size_t n, size_t dim, const double *weight, double *of_out)
{
    memset(of_out, 0, n * c->outputs * dim * sizeof *of_out);
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < c->outputs; a++)
            for (size_t b = 0; b < c->predicted; b++)
                add_multiple(dim, c->out_part[b * c->outputs + a], weight + (i * c->predicted + b) * dim,
                             of_out + (i * c->outputs + a) * dim);
}

/* The part of the gradient that does not go through the callback. */
static void add_direct_gradient(const callback_conversion *c, size_t n, size_t dim, const double *weight,
                                double *grad_z)
{
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < c->k; a++)
            for (size_t b = 0; b < c->predicted; b++)
                add_multiple(dim, c->z_part[b * c->k + a], weight + (i * c->predicted + b) * dim,
                             grad_z + (i * c->k + a) * dim);
}

/* ---- The source -------------------------------------------------------------------------------------------------- */

static psld_status predict_callback(const converted_callback *own, psld_workspace *memory, const psld_states *states,
                                    double *eps)
{
    size_t dim = states->dim, state = (size_t)own->recipe.spec.k * dim;
    double *out;
    PSLD_TRY(psld_workspace_room(memory, 0, states->n, own->outputs * dim, sizeof *out, (void **)&out));
    PSLD_TRY(own->callback.predict(own->callback.user, states, out));
    for (size_t begin = 0, end; begin < states->n; begin = end) {
        callback_conversion c;
        end = psld_states_same_time(states, begin);
        psld_states part = psld_states_part(states, begin, end, state);
        PSLD_TRY(plan_callback(own, part.t[0], &c));
        convert_output(&c, &part, out + begin * c.outputs * dim, eps + begin * c.predicted * dim);
    }
    return PSLD_OK;
}

static psld_status differentiate_callback(const converted_callback *own, psld_workspace *memory,
                                          const psld_states *states, const double *weight, double *eps, double *grad_z)
{
    size_t n = states->n, dim = states->dim, state = (size_t)own->recipe.spec.k * dim;
    size_t predicted = (size_t)own->recipe.predicted * dim, outputs = own->outputs * dim;
    double *out, *of_out;
    callback_conversion *plans; /* [n]: for each time, at the index of its first state */
    PSLD_TRY(psld_workspace_room(memory, 0, n, outputs, sizeof *out, (void **)&out));
    PSLD_TRY(psld_workspace_room(memory, 1, n, outputs, sizeof *of_out, (void **)&of_out));
    PSLD_TRY(psld_workspace_room(memory, 2, n, 1, sizeof *plans, (void **)&plans));
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = psld_states_same_time(states, begin);
        PSLD_TRY(plan_callback(own, states->t[begin], &plans[begin]));
        convert_weight(&plans[begin], end - begin, dim, weight + begin * predicted, of_out + begin * outputs);
    }
    PSLD_TRY(own->callback.gradient(own->callback.user, states, of_out, eps ? out : NULL, grad_z));
    for (size_t begin = 0, end; begin < n; begin = end) {
        end = psld_states_same_time(states, begin);
        psld_states part = psld_states_part(states, begin, end, state);
        add_direct_gradient(&plans[begin], end - begin, dim, weight + begin * predicted, grad_z + begin * state);
        if (eps) convert_output(&plans[begin], &part, out + begin * outputs, eps + begin * predicted);
    }
    return PSLD_OK;
}

static psld_status predict_converted(void *user, const psld_states *states, double *eps)
{
    converted_callback *own = user;
    psld_workspace *memory = psld_workspace_take(&own->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    psld_status status = predict_callback(own, memory, states, eps);
    psld_workspace_give(&own->workspaces, memory);
    return status;
}

static psld_status differentiate_converted(void *user, const psld_states *states, const double *weight, double *eps,
                                           double *grad_z)
{
    converted_callback *own = user;
    psld_workspace *memory = psld_workspace_take(&own->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    psld_status status = differentiate_callback(own, memory, states, weight, eps, grad_z);
    psld_workspace_give(&own->workspaces, memory);
    return status;
}

static void release_converted(void *user)
{
    converted_callback *own = user;
    psld_workspaces_release(&own->workspaces);
    psld_release(own);
}

static psld_status create_converted(const psld_callback *callback, psld_source **source)
{
    if (!callback->recipe)
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "score source: a callback that predicts %s needs the recipe of its states, found NULL",
                         callback->predicts == PSLD_PREDICTS_SCORE ? "the score" : "clean data");
    converted_callback *own = psld_alloc(1, sizeof *own);
    if (!own) return PSLD_NO_MEMORY;
    *own = (converted_callback){.recipe = *callback->recipe, .callback = *callback};
    own->outputs = callback->predicts == PSLD_PREDICTS_SCORE ? (size_t)callback->recipe->predicted : 1;
    PSLD_TRY(psld_source_create(callback->recipe, predict_converted, release_converted, own, source));
    if (callback->gradient) (*source)->gradient = differentiate_converted;
    (*source)->exact = 1;
    return PSLD_OK;
}

static psld_status create_source(const psld_callback *callback, psld_source **source)
{
    switch (callback->predicts) {
    case PSLD_PREDICTS_EPS:
        PSLD_TRY(psld_source_create(callback->recipe, callback->predict, NULL, callback->user, source));
        (*source)->gradient = callback->gradient;
        (*source)->exact = callback->is_exact > 0;
        return PSLD_OK;
    case PSLD_PREDICTS_SCORE:
    case PSLD_PREDICTS_DATA:
        return create_converted(callback, source);
    }
    return psld_fail(PSLD_BAD_ARGUMENT,
                     "score source: predicts: expected PSLD_PREDICTS_EPS, _SCORE or _DATA, found the value %d",
                     (int)callback->predicts);
}

psld_status psld_source_callback(const psld_callback *callback, psld_source **source)
{
    psld_callback own = PSLD_CALLBACK_DEFAULTS;
    *source = NULL;
    PSLD_TRY(psld_sized_copy(callback, &own, sizeof own, "PSLD_CALLBACK_DEFAULTS"));
    if (!own.predict) return psld_fail(PSLD_BAD_ARGUMENT, "score source: expected a callback, found NULL");
    if (own.classes < PSLD_UNSET)
        return psld_fail(PSLD_BAD_ARGUMENT, "score source: classes: expected at least 0, found %d", own.classes);
    PSLD_TRY(create_source(&own, source));
    (*source)->classes = own.classes > 0 ? (size_t)own.classes : 0;
    (*source)->needs_label = own.needs_label > 0;
    (*source)->is_foreign = 1;
    return PSLD_OK;
}
