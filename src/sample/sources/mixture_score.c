/* The exact score of a Gaussian mixture, for every recipe.
 *     p_t(z) = sum_c w_c N(z; mu m_c, C_c),   C_c: kernel covariance with Var x_0 = scale_c^2,
 *                                             mu: first column of the mean map
 *     s = sum_c r_c s_c,   s_c = C_c^-1 (mu m_c - z),   r_c = w_c N(...) / sum.
 * Components of equal scale form a class. They share C, so the sum needs only their total weight and mean.
 *
 * The gradient of v's for a fixed v, with q_c = v's_c and grad r_c = r_c (s_c - s), is
 *     -sum_c r_c C_c^-1 v + sum_c r_c (q_c - q) s_c,   q = sum_c r_c q_c,
 * which is a sum like s itself, with other weights. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "base/workspace.h"
#include "process/recipe.h"
#include "sample/sources/classifier.h"
#include "sample/sources/mixture.h"

/* One class of components at one time. The sufficient statistic y = gain z (docs/explanation/recipe.md, section 6) is x_0
 * plus noise of variance 1 / strength. The posterior of the components within a class depends on y only. */
typedef struct class_at_time {
    double mu[PSLD_MAX_K];              /* first column of the mean map */
    double gain[PSLD_MAX_K];            /* C^-1 mu / strength */
    double strength;                    /* mu' C^-1 mu */
    double whiten[PSLD_MATRIX_SIZE];    /* L^-1, L L' = C, lower */
    double precision[PSLD_MATRIX_SIZE]; /* C^-1 */
    double log_volume;                  /* sum of log L_aa */
} class_at_time;

/* Consecutive states with the same time. */
typedef struct time_run {
    double t;
    size_t begin, end;
    psld_status status;
    double factor[PSLD_MATRIX_SIZE]; /* what turns a score into eps: eps = -factor' s */
} time_run;

typedef struct exact_score {
    psld_recipe recipe; /* copies */
    psld_mixture *mixture;
    psld_workspaces workspaces;
} exact_score;

struct score_query;
struct mixture_scratch;

typedef void (*answer_fn)(const struct score_query *query, const time_run *now, const class_at_time *classes,
                          const struct mixture_scratch *work, size_t i);

/* One call: what to compute for each state. */
typedef struct score_query {
    const exact_score *score;
    answer_fn answer;
    const double *z;
    const double *weight;         /* of eps, to be differentiated */
    const int32_t *given;         /* the labels of the states; NULL: none */
    const int32_t *label;         /* what a classifier is asked for */
    double *eps, *grad_z, *log_p; /* NULL: not wanted */
    time_run *time_runs;
    class_at_time *classes; /* [time_runs][mixture->classes] */
    atomic_int out_of_memory;
} score_query;

/* ---- Constants of a time ----------------------------------------------------------------------------------------- */

static void plan_class(const psld_recipe *recipe, double t, double scale, class_at_time *out)
{
    psld_gaussian kernel;
    double transposed[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k;
    psld_kernel(recipe, t, PSLD_HSM, scale * scale, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, out->whiten);
    psld_matrix_transpose(k, out->whiten, transposed);
    psld_matrix_multiply(k, transposed, out->whiten, out->precision);
    out->log_volume = out->strength = 0;
    for (int a = 0; a < k; a++) {
        double white = 0;
        for (int b = 0; b <= a; b++) white += out->whiten[a * k + b] * kernel.mean[b * k];
        out->strength += white * white;
        out->mu[a] = kernel.mean[a * k];
        out->log_volume += log(kernel.factor[a * k + a]);
    }
    for (int a = 0; a < k; a++) {
        out->gain[a] = 0;
        for (int b = 0; b < k; b++) out->gain[a] += out->precision[a * k + b] * out->mu[b] / out->strength;
    }
}

static void plan_time_runs(void *context, size_t begin, size_t end)
{
    const score_query *query = context;
    const exact_score *score = query->score;
    for (size_t r = begin; r < end; r++) {
        time_run *now = &query->time_runs[r];
        now->status = psld_recipe_factor(&score->recipe, now->t, score->recipe.spec.mode, now->factor, NULL);
        for (size_t g = 0; now->status == PSLD_OK && g < score->mixture->classes; g++)
            plan_class(&score->recipe, now->t, score->mixture->scales[g],
                       &query->classes[r * score->mixture->classes + g]);
    }
}

static psld_status find_time_runs(score_query *query, psld_workspace *memory, size_t n, const double *t, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < n; i++) *count += i == 0 || t[i] != t[i - 1];
    PSLD_TRY(psld_workspace_room(memory, 0, *count, 1, sizeof *query->time_runs, (void **)&query->time_runs));
    PSLD_TRY(psld_workspace_room(memory, 1, *count, query->score->mixture->classes, sizeof *query->classes,
                                 (void **)&query->classes));
    time_run *now = query->time_runs;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && t[i] != t[i - 1]) now++;
        if (i == 0 || t[i] != t[i - 1]) *now = (time_run){.t = t[i], .begin = i};
        now->end = i + 1;
    }
    return PSLD_OK;
}

/* ---- Which component a state comes from -------------------------------------------------------------------------- */

/* Work memory for one state at a time, one per thread. A sum over components of f_c s_c is stored by class: the sum of f_c
 * and of f_c m_c. */
typedef struct mixture_scratch {
    double *r;      /* [components]: posterior probabilities */
    double *weight; /* [classes]: sum of f_c; at first f = r */
    double *mean;   /* [classes][dim]: sum of f_c m_c */
    double *y;      /* [classes][dim] */
    /* for gradients */
    double *q;    /* [components] */
    double *past; /* [classes] */
    double *v;    /* [k][dim]: the direction */
} mixture_scratch;

static size_t scratch_size(const exact_score *score)
{
    const psld_mixture *mixture = score->mixture;
    return 2 * mixture->components + mixture->classes * (2 + 2 * mixture->dim) +
           (size_t)score->recipe.spec.k * mixture->dim;
}

static mixture_scratch lay_out_scratch(const exact_score *score, double *memory)
{
    const psld_mixture *mixture = score->mixture;
    mixture_scratch s = {.r = memory};
    s.weight = s.r + mixture->components;
    s.mean = s.weight + mixture->classes;
    s.y = s.mean + mixture->classes * mixture->dim;
    s.q = s.y + mixture->classes * mixture->dim;
    s.past = s.q + mixture->components;
    s.v = s.past + mixture->classes;
    return s;
}

/* |L^-1 (z - mu y)|^2, summed over coordinates: the part of the exponent that all components of a class share. */
static double squared_rest(int k, size_t dim, const class_at_time *at, const double *y, const double *z)
{
    double sum = 0;
    for (size_t j = 0; j < dim; j++)
        for (int a = 0; a < k; a++) {
            double white = 0;
            for (int b = 0; b <= a; b++) white += at->whiten[a * k + b] * (z[(size_t)b * dim + j] - at->mu[b] * y[j]);
            sum += white * white;
        }
    return sum;
}

/* Whether a component belongs to a class; to `label` -1 all do. */
static int has_label(const psld_mixture *mixture, size_t c, int32_t label)
{
    return label < 0 || (mixture->label ? mixture->label[c] == label : c == (size_t)label);
}

/* log (w_c N(z; mu m_c, C_c)) for each component of the class, up to a common constant. */
static void log_posterior_weights(const psld_mixture *mixture, int k, const class_at_time *classes, const double *z,
                                  int32_t label, const mixture_scratch *s)
{
    size_t dim = mixture->dim;
    for (size_t g = 0; g < mixture->classes; g++) {
        double *y = s->y + g * dim;
        for (size_t j = 0; j < dim; j++) {
            y[j] = 0;
            for (int a = 0; a < k; a++) y[j] += classes[g].gain[a] * z[(size_t)a * dim + j];
        }
        /* with one class this is common to all components */
        double rest = mixture->classes > 1 ? squared_rest(k, dim, &classes[g], y, z) : 0;
        s->weight[g] = -(double)dim * classes[g].log_volume - rest / 2;
    }
    for (size_t c = 0; c < mixture->components; c++) {
        size_t g = mixture->class_of[c];
        const double *y = s->y + g * dim, *m = mixture->means + c * dim;
        double square = 0;
        for (size_t j = 0; j < dim; j++) square += (y[j] - m[j]) * (y[j] - m[j]);
        s->r[c] = mixture->log_weights[c] + s->weight[g] - classes[g].strength * square / 2;
        if (!has_label(mixture, c, label)) s->r[c] = -INFINITY;
    }
}

static void clear_sums(const psld_mixture *mixture, const mixture_scratch *s)
{
    memset(s->weight, 0, mixture->classes * (1 + mixture->dim) * sizeof(double)); /* and s->mean, which follows it */
}

/* Adds f s_c to the sum. */
static void add_component(const psld_mixture *mixture, const mixture_scratch *s, size_t c, double f)
{
    size_t g = mixture->class_of[c], dim = mixture->dim;
    s->weight[g] += f;
    for (size_t j = 0; j < dim; j++) s->mean[g * dim + j] += f * mixture->means[c * dim + j];
}

/* Turns the logarithms into posterior probabilities. Returns the log of their normalisation. */
static double normalise_posterior(const psld_mixture *mixture, const mixture_scratch *s)
{
    double largest = s->r[0], sum = 0;
    for (size_t c = 1; c < mixture->components; c++) largest = s->r[c] > largest ? s->r[c] : largest;
    for (size_t c = 0; c < mixture->components; c++) sum += s->r[c] = exp(s->r[c] - largest);
    for (size_t c = 0; c < mixture->components; c++) s->r[c] /= sum;
    return largest + log(sum);
}

/* Posterior probabilities of the components in s->r, and the score as a sum. */
static void find_posterior(const exact_score *score, const class_at_time *classes, const double *z, int32_t label,
                           const mixture_scratch *s)
{
    const psld_mixture *mixture = score->mixture;
    log_posterior_weights(mixture, score->recipe.spec.k, classes, z, label, s);
    normalise_posterior(mixture, s);
    clear_sums(mixture, s);
    for (size_t c = 0; c < mixture->components; c++) add_component(mixture, s, c, s->r[c]);
}

/* Adds coordinate j of the sum to out [k]: for each class C^-1 (mu mean - weight z). */
static void add_sum(const exact_score *score, const class_at_time *classes, const double *z,
                    const mixture_scratch *work, size_t j, double *out)
{
    size_t dim = score->mixture->dim;
    int k = score->recipe.spec.k;
    double pull[PSLD_MAX_K];
    for (size_t g = 0; g < score->mixture->classes; g++) {
        for (int a = 0; a < k; a++)
            pull[a] = classes[g].mu[a] * work->mean[g * dim + j] - work->weight[g] * z[(size_t)a * dim + j];
        for (int a = 0; a < k; a++)
            for (int b = 0; b < k; b++) out[a] += classes[g].precision[a * k + b] * pull[b];
    }
}

/* ---- The score and its gradient ---------------------------------------------------------------------------------- */

static const double *state_of(const score_query *query, size_t i)
{
    return query->z + i * (size_t)query->score->recipe.spec.k * query->score->mixture->dim;
}

static int32_t given_label(const score_query *query, size_t i)
{
    return query->given ? query->given[i] : -1;
}

/* eps of a state whose posterior has been found. */
static void write_eps(const score_query *query, const time_run *now, const class_at_time *classes,
                      const mixture_scratch *work, size_t i)
{
    const exact_score *score = query->score;
    size_t dim = score->mixture->dim;
    int k = score->recipe.spec.k, predicted = score->recipe.predicted;
    const int *variable = score->recipe.variable;
    double *eps = query->eps + i * (size_t)predicted * dim;
    for (size_t j = 0; j < dim; j++) {
        double s[PSLD_MAX_K] = {0};
        add_sum(score, classes, state_of(query, i), work, j, s);
        for (int b = 0; b < predicted; b++) {
            double sum = 0;
            for (int a = 0; a < predicted; a++) { /* above the triangle the factor is 0, in the recipe's own order */
                double f = now->factor[variable[a] * k + variable[b]];
                if (f != 0) sum += f * s[variable[a]];
            }
            eps[(size_t)b * dim + j] = -sum;
        }
    }
}

static void answer_score(const score_query *query, const time_run *now, const class_at_time *classes,
                         const mixture_scratch *work, size_t i)
{
    find_posterior(query->score, classes, state_of(query, i), given_label(query, i), work);
    write_eps(query, now, classes, work, i);
}

/* The direction v for which sum(weight * eps) = v's, since eps = -factor' s. It is 0 for variables without noise. */
static void find_direction(const score_query *query, const time_run *now, size_t i, double *v)
{
    const exact_score *score = query->score;
    size_t dim = score->mixture->dim;
    int k = score->recipe.spec.k, predicted = score->recipe.predicted;
    const int *variable = score->recipe.variable;
    const double *weight = query->weight + i * (size_t)predicted * dim;
    memset(v, 0, (size_t)k * dim * sizeof *v);
    for (int a = 0; a < predicted; a++)
        for (int b = 0; b < predicted; b++) {
            double f = now->factor[variable[a] * k + variable[b]];
            for (size_t j = 0; f != 0 && j < dim; j++)
                v[(size_t)variable[a] * dim + j] -= f * weight[(size_t)b * dim + j];
        }
}

/* grad -= r C^-1 v for class g. For its components q_c = along . m_c - past. `along` is stored in place of y. */
static void differentiate_class(const exact_score *score, const class_at_time *at, size_t g, const double *z,
                                const mixture_scratch *work, double *grad)
{
    size_t dim = score->mixture->dim;
    int k = score->recipe.spec.k;
    double *along = work->y + g * dim, *past = work->past + g;
    *past = 0;
    for (size_t j = 0; j < dim; j++) {
        along[j] = 0;
        for (int a = 0; a < k; a++) {
            double u = 0;
            for (int b = 0; b < k; b++) u += at->precision[a * k + b] * work->v[(size_t)b * dim + j];
            grad[(size_t)a * dim + j] -= work->weight[g] * u;
            along[j] += at->mu[a] * u;
            *past += u * z[(size_t)a * dim + j];
        }
    }
}

/* Replaces the sum by that of r_c (q_c - q) s_c. */
static void sum_of_differences(const psld_mixture *mixture, const mixture_scratch *work)
{
    double mean = 0;
    for (size_t c = 0; c < mixture->components; c++) {
        size_t g = mixture->class_of[c];
        const double *along = work->y + g * mixture->dim, *m = mixture->means + c * mixture->dim;
        work->q[c] = -work->past[g];
        for (size_t j = 0; j < mixture->dim; j++) work->q[c] += along[j] * m[j];
        mean += work->r[c] * work->q[c];
    }
    clear_sums(mixture, work);
    for (size_t c = 0; c < mixture->components; c++) add_component(mixture, work, c, work->r[c] * (work->q[c] - mean));
}

static void add_sum_of_all_coordinates(const exact_score *score, const class_at_time *classes, const double *z,
                                       const mixture_scratch *work, double *out)
{
    size_t dim = score->mixture->dim, k = (size_t)score->recipe.spec.k;
    for (size_t j = 0; j < dim; j++) {
        double column[PSLD_MAX_K] = {0};
        add_sum(score, classes, z, work, j, column);
        for (size_t a = 0; a < k; a++) out[a * dim + j] += column[a];
    }
}

static void answer_gradient(const score_query *query, const time_run *now, const class_at_time *classes,
                            const mixture_scratch *work, size_t i)
{
    const exact_score *score = query->score;
    size_t size = (size_t)score->recipe.spec.k * score->mixture->dim;
    const double *z = state_of(query, i);
    double *grad = query->grad_z + i * size;
    find_posterior(score, classes, z, given_label(query, i), work);
    if (query->eps) write_eps(query, now, classes, work, i);
    find_direction(query, now, i, work->v);
    memset(grad, 0, size * sizeof *grad);
    for (size_t g = 0; g < score->mixture->classes; g++) differentiate_class(score, &classes[g], g, z, work, grad);
    sum_of_differences(score->mixture, work);
    add_sum_of_all_coordinates(score, classes, z, work, grad);
}

/* ---- Classes: of the labels, or each component one --------------------------------------------------------------- */

/* The probability of class y is R = sum of r_c over its components, and grad log R = sum of (r_c / R) s_c - s. */
static void answer_class(const score_query *query, const time_run *now, const class_at_time *classes,
                         const mixture_scratch *work, size_t i)
{
    const exact_score *score = query->score;
    const psld_mixture *mixture = score->mixture;
    size_t size = (size_t)score->recipe.spec.k * mixture->dim;
    double *grad = query->grad_z + i * size, largest = -INFINITY, sum = 0;
    const double *z = state_of(query, i);
    int32_t label = query->label[i];
    (void)now;
    log_posterior_weights(mixture, score->recipe.spec.k, classes, z, -1, work);
    memcpy(work->q, work->r, mixture->components * sizeof *work->q);
    for (size_t c = 0; c < mixture->components; c++)
        if (has_label(mixture, c, label)) largest = fmax(largest, work->q[c]);
    for (size_t c = 0; c < mixture->components; c++)
        sum += work->q[c] = has_label(mixture, c, label) ? exp(work->q[c] - largest) : 0;
    double all = normalise_posterior(mixture, work);
    if (query->log_p) query->log_p[i] = largest + log(sum) - all;
    clear_sums(mixture, work);
    for (size_t c = 0; c < mixture->components; c++) add_component(mixture, work, c, work->q[c] / sum - work->r[c]);
    memset(grad, 0, size * sizeof *grad);
    add_sum_of_all_coordinates(score, classes, z, work, grad);
}

/* ---- Computing all states ---------------------------------------------------------------------------------------- */

static void answer_range(void *context, size_t begin, size_t end)
{
    score_query *query = context;
    const exact_score *score = query->score;
    size_t size = scratch_size(score), r = 0;
    double stack[256], *memory = stack;
    if (size > sizeof stack / sizeof *stack) memory = psld_alloc(size, sizeof *memory);
    if (!memory) {
        atomic_store(&query->out_of_memory, 1);
        return;
    }
    mixture_scratch work = lay_out_scratch(score, memory);
    for (size_t i = begin; i < end; i++) {
        while (i >= query->time_runs[r].end) r++;
        query->answer(query, &query->time_runs[r], &query->classes[r * score->mixture->classes], &work, i);
    }
    if (memory != stack) psld_release(memory);
}

static psld_status answer_states(score_query *query, psld_workspace *memory, size_t n, const double *t)
{
    const exact_score *score = query->score;
    size_t time_runs = 0;
    PSLD_TRY(find_time_runs(query, memory, n, t, &time_runs));
    psld_parallel(time_runs, 4, plan_time_runs, query);
    for (size_t r = 0; r < time_runs; r++)
        if (query->time_runs[r].status != PSLD_OK) /* repeated in this thread, for its error text */
            return psld_recipe_factor(&score->recipe, query->time_runs[r].t, score->recipe.spec.mode,
                                      query->time_runs[r].factor, NULL);
    psld_parallel(n, 4096 / (score->mixture->dim * score->mixture->components) + 1, answer_range, query);
    if (atomic_load(&query->out_of_memory)) return psld_fail(PSLD_NO_MEMORY, "out of memory in the score of a mixture");
    return PSLD_OK;
}

static psld_status answer_query(exact_score *score, const psld_states *states, score_query query)
{
    if (states->dim != score->mixture->dim)
        return psld_fail(PSLD_BAD_ARGUMENT, "mixture: states have %zu dimensions, the mixture %zu", states->dim,
                         score->mixture->dim);
    psld_workspace *memory = psld_workspace_take(&score->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    query.score = score;
    query.z = states->z;
    query.given = score->mixture->label ? states->label : NULL;
    psld_status status = answer_states(&query, memory, states->n, states->t);
    psld_workspace_give(&score->workspaces, memory);
    return status;
}

static psld_status predict_exactly(void *user, const psld_states *states, double *eps)
{
    return answer_query(user, states, (score_query){.answer = answer_score, .eps = eps});
}

static psld_status differentiate_exactly(void *user, const psld_states *states, const double *weight, double *eps,
                                         double *grad_z)
{
    return answer_query(user, states,
                        (score_query){.answer = answer_gradient, .weight = weight, .eps = eps, .grad_z = grad_z});
}

static psld_status classify_exactly(void *user, const psld_states *states, const int32_t *label, double *log_p,
                                    double *grad_z)
{
    return answer_query(user, states,
                        (score_query){.answer = answer_class, .label = label, .log_p = log_p, .grad_z = grad_z});
}

static void release_score(void *user)
{
    exact_score *score = user;
    psld_mixture_free(score->mixture);
    psld_workspaces_release(&score->workspaces);
    psld_release(score);
}

static psld_status create_score(const psld_mixture *mixture, const psld_recipe *recipe, exact_score **score)
{
    *score = psld_alloc(1, sizeof **score);
    if (!*score) return PSLD_NO_MEMORY;
    (*score)->recipe = *recipe;
    psld_status status = psld_mixture_copy(mixture, &(*score)->mixture);
    if (status != PSLD_OK) release_score(*score);
    return status;
}

psld_status psld_source_mixture(const psld_mixture *mixture, const psld_recipe *recipe, psld_source **source)
{
    exact_score *score;
    *source = NULL;
    PSLD_TRY(create_score(mixture, recipe, &score));
    PSLD_TRY(psld_source_create(recipe, predict_exactly, release_score, score, source));
    (*source)->gradient = differentiate_exactly;
    (*source)->exact = 1;
    (*source)->classes = mixture->labels;
    return PSLD_OK;
}

psld_status psld_classifier_mixture(const psld_mixture *mixture, const psld_recipe *recipe,
                                    psld_classifier **classifier)
{
    exact_score *score;
    *classifier = NULL;
    PSLD_TRY(create_score(mixture, recipe, &score));
    size_t classes = mixture->labels ? mixture->labels : mixture->components;
    return psld_classifier_create(recipe, classify_exactly, release_score, score, classes, classifier);
}
