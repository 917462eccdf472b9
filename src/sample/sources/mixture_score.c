/* What is known exactly of the states of a mixture under every recipe:
 *     p_t(z) = sum_c w_c N(z; mu m_c, C_c),   C_c = kernel covariance with Var x_0 = scale_c^2,   mu = mean map's
 *       first column,
 *     score  s = sum_c r_c s_c,   s_c = C_c^-1 (mu m_c - z),   r_c = w_c N(...) / sum.
 * Components of equal scale (a class) share C, so the sum needs only their total weight and mean.
 *
 * The gradient of v's, for fixed v, is with q_c = v's_c and grad r_c = r_c (s_c - s)
 *     -sum_c r_c C_c^-1 v + sum_c r_c (q_c - q) s_c,   q = sum_c r_c q_c,
 * a sum like s itself, with other weights. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"
#include "base/workspace.h"
#include "process/recipe.h"
#include "sample/sources/classifier.h"
#include "sample/sources/mixture.h"

/* One class of components at one time. Only y = gain z distinguishes its components: the sufficient statistic
 * (docs/explanation/recipe.md, section 6), which is x_0 plus noise of variance 1 / strength. */
typedef struct class_at_time {
    double mu[PSLD_MAX_K];              /* first column of the mean map */
    double gain[PSLD_MAX_K];            /* C^-1 mu / strength */
    double strength;                    /* mu' C^-1 mu */
    double whiten[PSLD_MATRIX_SIZE];    /* L^-1, L L' = C, lower */
    double precision[PSLD_MATRIX_SIZE]; /* C^-1 */
    double log_volume;                  /* sum of log L_aa */
} class_at_time;

/* Consecutive states with the same time. */
typedef struct run {
    double t;
    size_t begin, end;
    psld_status status;
    double factor[PSLD_MATRIX_SIZE]; /* what turns a score into eps: eps = -factor' s */
} run;

typedef struct exact_score {
    psld_recipe recipe; /* copies of its own */
    psld_mixture *mixture;
    psld_workspaces workspaces;
} exact_score;

struct question;
struct scratch;

typedef void (*answer_fn)(const struct question *asked, const run *now, const class_at_time *classes,
                          const struct scratch *work, size_t i);

/* A call under way: what is asked of each state. */
typedef struct question {
    const exact_score *score;
    answer_fn answer;
    const double *z;
    const double *weight; /* of eps, to be differentiated */
    const int32_t *label;
    double *eps, *grad_z, *log_p; /* NULL: not wanted */
    run *runs;
    class_at_time *classes; /* [runs][mixture->classes] */
    atomic_int out_of_memory;
} question;

/* ---- Constants of a time ----------------------------------------------------------------------------------------- */

static void prepare_class(const psld_recipe *recipe, double t, double scale, class_at_time *out)
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

static void prepare_runs(void *context, size_t begin, size_t end)
{
    const question *asked = context;
    const exact_score *score = asked->score;
    for (size_t r = begin; r < end; r++) {
        run *now = &asked->runs[r];
        now->status = psld_recipe_factor(&score->recipe, now->t, score->recipe.spec.mode, now->factor, NULL);
        for (size_t g = 0; now->status == PSLD_OK && g < score->mixture->classes; g++)
            prepare_class(&score->recipe, now->t, score->mixture->scales[g],
                          &asked->classes[r * score->mixture->classes + g]);
    }
}

static psld_status find_runs(question *asked, psld_workspace *memory, size_t n, const double *t, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < n; i++) *count += i == 0 || t[i] != t[i - 1];
    PSLD_TRY(psld_workspace_room(memory, 0, *count, 1, sizeof *asked->runs, (void **)&asked->runs));
    PSLD_TRY(psld_workspace_room(memory, 1, *count, asked->score->mixture->classes, sizeof *asked->classes,
                                 (void **)&asked->classes));
    run *now = asked->runs;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && t[i] != t[i - 1]) now++;
        if (i == 0 || t[i] != t[i - 1]) *now = (run){.t = t[i], .begin = i};
        now->end = i + 1;
    }
    return PSLD_OK;
}

/* ---- Which component a state comes from -------------------------------------------------------------------------- */

/* Numbers a state needs on its way: one range of states shares them. A sum over components of f_c s_c is kept as
 * what each class has of it: the sum of f_c and of f_c m_c. */
typedef struct scratch {
    double *r;      /* [components]: posterior probabilities */
    double *weight; /* [classes]: sum of f_c; at first f = r */
    double *mean;   /* [classes][dim]: sum of f_c m_c */
    double *y;      /* [classes][dim] */
    /* for gradients */
    double *q;    /* [components] */
    double *past; /* [classes] */
    double *v;    /* [k][dim]: the direction */
} scratch;

static size_t scratch_size(const exact_score *score)
{
    const psld_mixture *mixture = score->mixture;
    return 2 * mixture->components + mixture->classes * (2 + 2 * mixture->dim) +
           (size_t)score->recipe.spec.k * mixture->dim;
}

static scratch lay_out_scratch(const exact_score *score, double *room)
{
    const psld_mixture *mixture = score->mixture;
    scratch s = {.r = room};
    s.weight = s.r + mixture->components;
    s.mean = s.weight + mixture->classes;
    s.y = s.mean + mixture->classes * mixture->dim;
    s.q = s.y + mixture->classes * mixture->dim;
    s.past = s.q + mixture->components;
    s.v = s.past + mixture->classes;
    return s;
}

/* What y leaves of z, |L^-1 (z - mu y)|^2 summed over coordinates: the same for all components of a class. */
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

/* Log of each component's share in the density at z, up to a common constant. */
static void log_shares(const psld_mixture *mixture, int k, const class_at_time *classes, const double *z,
                       const scratch *s)
{
    size_t dim = mixture->dim;
    for (size_t g = 0; g < mixture->classes; g++) {
        double *y = s->y + g * dim;
        for (size_t j = 0; j < dim; j++) {
            y[j] = 0;
            for (int a = 0; a < k; a++) y[j] += classes[g].gain[a] * z[(size_t)a * dim + j];
        }
        /* with one class alone this is common to all */
        double rest = mixture->classes > 1 ? squared_rest(k, dim, &classes[g], y, z) : 0;
        s->weight[g] = -(double)dim * classes[g].log_volume - rest / 2;
    }
    for (size_t c = 0; c < mixture->components; c++) {
        size_t g = mixture->class_of[c];
        const double *y = s->y + g * dim, *m = mixture->means + c * dim;
        double square = 0;
        for (size_t j = 0; j < dim; j++) square += (y[j] - m[j]) * (y[j] - m[j]);
        s->r[c] = mixture->log_weights[c] + s->weight[g] - classes[g].strength * square / 2;
    }
}

static void clear_sums(const psld_mixture *mixture, const scratch *s)
{
    memset(s->weight, 0, mixture->classes * (1 + mixture->dim) * sizeof(double)); /* and s->mean, which follows it */
}

/* Adds f s_c to the sum. */
static void add_component(const psld_mixture *mixture, const scratch *s, size_t c, double f)
{
    size_t g = mixture->class_of[c], dim = mixture->dim;
    s->weight[g] += f;
    for (size_t j = 0; j < dim; j++) s->mean[g * dim + j] += f * mixture->means[c * dim + j];
}

/* Makes the shares posterior probabilities. Returns the log of what they were divided by. */
static double normalise_shares(const psld_mixture *mixture, const scratch *s)
{
    double largest = s->r[0], sum = 0;
    for (size_t c = 1; c < mixture->components; c++) largest = s->r[c] > largest ? s->r[c] : largest;
    for (size_t c = 0; c < mixture->components; c++) sum += s->r[c] = exp(s->r[c] - largest);
    for (size_t c = 0; c < mixture->components; c++) s->r[c] /= sum;
    return largest + log(sum);
}

/* Posterior probabilities of the components in s->r, and the score as a sum. */
static void find_posterior(const exact_score *score, const class_at_time *classes, const double *z, const scratch *s)
{
    const psld_mixture *mixture = score->mixture;
    log_shares(mixture, score->recipe.spec.k, classes, z, s);
    normalise_shares(mixture, s);
    clear_sums(mixture, s);
    for (size_t c = 0; c < mixture->components; c++) add_component(mixture, s, c, s->r[c]);
}

/* Adds coordinate j of the sum to out [k]: for each class C^-1 (mu mean - weight z). */
static void add_sum(const exact_score *score, const class_at_time *classes, const double *z, const scratch *work,
                    size_t j, double *out)
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

static const double *state_of(const question *asked, size_t i)
{
    return asked->z + i * (size_t)asked->score->recipe.spec.k * asked->score->mixture->dim;
}

/* eps of a state whose posterior has been found. */
static void write_eps(const question *asked, const run *now, const class_at_time *classes, const scratch *work,
                      size_t i)
{
    const exact_score *score = asked->score;
    size_t dim = score->mixture->dim;
    int k = score->recipe.spec.k, predicted = score->recipe.predicted;
    const int *variable = score->recipe.variable;
    double *eps = asked->eps + i * (size_t)predicted * dim;
    for (size_t j = 0; j < dim; j++) {
        double s[PSLD_MAX_K] = {0};
        add_sum(score, classes, state_of(asked, i), work, j, s);
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

static void answer_score(const question *asked, const run *now, const class_at_time *classes, const scratch *work,
                         size_t i)
{
    find_posterior(asked->score, classes, state_of(asked, i), work);
    write_eps(asked, now, classes, work, i);
}

/* The direction v for which sum(weight * eps) = v's: eps = -factor' s. Quiet variables have none. */
static void find_direction(const question *asked, const run *now, size_t i, double *v)
{
    const exact_score *score = asked->score;
    size_t dim = score->mixture->dim;
    int k = score->recipe.spec.k, predicted = score->recipe.predicted;
    const int *variable = score->recipe.variable;
    const double *weight = asked->weight + i * (size_t)predicted * dim;
    memset(v, 0, (size_t)k * dim * sizeof *v);
    for (int a = 0; a < predicted; a++)
        for (int b = 0; b < predicted; b++) {
            double f = now->factor[variable[a] * k + variable[b]];
            for (size_t j = 0; f != 0 && j < dim; j++)
                v[(size_t)variable[a] * dim + j] -= f * weight[(size_t)b * dim + j];
        }
}

/* grad -= r C^-1 v for class g, and q_c = along m_c - past for its components; `along` takes y's place. */
static void differentiate_class(const exact_score *score, const class_at_time *at, size_t g, const double *z,
                                const scratch *work, double *grad)
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

/* Makes the sum that of r_c (q_c - q) s_c. */
static void sum_differences(const psld_mixture *mixture, const scratch *work)
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

static void add_sum_everywhere(const exact_score *score, const class_at_time *classes, const double *z,
                               const scratch *work, double *out)
{
    size_t dim = score->mixture->dim, k = (size_t)score->recipe.spec.k;
    for (size_t j = 0; j < dim; j++) {
        double column[PSLD_MAX_K] = {0};
        add_sum(score, classes, z, work, j, column);
        for (size_t a = 0; a < k; a++) out[a * dim + j] += column[a];
    }
}

static void answer_gradient(const question *asked, const run *now, const class_at_time *classes, const scratch *work,
                            size_t i)
{
    const exact_score *score = asked->score;
    size_t size = (size_t)score->recipe.spec.k * score->mixture->dim;
    const double *z = state_of(asked, i);
    double *grad = asked->grad_z + i * size;
    find_posterior(score, classes, z, work);
    if (asked->eps) write_eps(asked, now, classes, work, i);
    find_direction(asked, now, i, work->v);
    memset(grad, 0, size * sizeof *grad);
    for (size_t g = 0; g < score->mixture->classes; g++) differentiate_class(score, &classes[g], g, z, work, grad);
    sum_differences(score->mixture, work);
    add_sum_everywhere(score, classes, z, work, grad);
}

/* ---- The components as classes ----------------------------------------------------------------------------------- */

/* grad log r_y = s_y - s. */
static void answer_component(const question *asked, const run *now, const class_at_time *classes, const scratch *work,
                             size_t i)
{
    const exact_score *score = asked->score;
    const psld_mixture *mixture = score->mixture;
    size_t size = (size_t)score->recipe.spec.k * mixture->dim, label = (size_t)asked->label[i];
    double *grad = asked->grad_z + i * size;
    const double *z = state_of(asked, i);
    (void)now;
    log_shares(mixture, score->recipe.spec.k, classes, z, work);
    double share = work->r[label], all = normalise_shares(mixture, work);
    if (asked->log_p) asked->log_p[i] = share - all;
    clear_sums(mixture, work);
    for (size_t c = 0; c < mixture->components; c++) add_component(mixture, work, c, (c == label) - work->r[c]);
    memset(grad, 0, size * sizeof *grad);
    add_sum_everywhere(score, classes, z, work, grad);
}

/* ---- Asking all states ------------------------------------------------------------------------------------------- */

static void answer_range(void *context, size_t begin, size_t end)
{
    question *asked = context;
    const exact_score *score = asked->score;
    size_t size = scratch_size(score), r = 0;
    double stack[256], *room = stack;
    if (size > sizeof stack / sizeof *stack) room = psld_alloc(size, sizeof *room);
    if (!room) {
        atomic_store(&asked->out_of_memory, 1);
        return;
    }
    scratch work = lay_out_scratch(score, room);
    for (size_t i = begin; i < end; i++) {
        while (i >= asked->runs[r].end) r++;
        asked->answer(asked, &asked->runs[r], &asked->classes[r * score->mixture->classes], &work, i);
    }
    if (room != stack) psld_release(room);
}

static psld_status ask_with(question *asked, psld_workspace *memory, size_t n, const double *t)
{
    const exact_score *score = asked->score;
    size_t runs = 0;
    PSLD_TRY(find_runs(asked, memory, n, t, &runs));
    psld_parallel(runs, 4, prepare_runs, asked);
    for (size_t r = 0; r < runs; r++)
        if (asked->runs[r].status != PSLD_OK) /* again, in this thread, for the text */
            return psld_recipe_factor(&score->recipe, asked->runs[r].t, score->recipe.spec.mode, asked->runs[r].factor,
                                      NULL);
    psld_parallel(n, 4096 / (score->mixture->dim * score->mixture->components) + 1, answer_range, asked);
    if (atomic_load(&asked->out_of_memory)) return psld_fail(PSLD_NO_MEMORY, "out of memory in the score of a mixture");
    return PSLD_OK;
}

static psld_status ask(exact_score *score, const psld_states *states, question asked)
{
    if (states->dim != score->mixture->dim)
        return psld_fail(PSLD_BAD_ARGUMENT, "mixture: states have %zu dimensions, the mixture %zu", states->dim,
                         score->mixture->dim);
    psld_workspace *memory = psld_workspace_take(&score->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    asked.score = score;
    asked.z = states->z;
    psld_status status = ask_with(&asked, memory, states->n, states->t);
    psld_workspace_give(&score->workspaces, memory);
    return status;
}

static psld_status predict_exactly(void *user, const psld_states *states, double *eps)
{
    return ask(user, states, (question){.answer = answer_score, .eps = eps});
}

static psld_status differentiate_exactly(void *user, const psld_states *states, const double *weight, double *eps,
                                         double *grad_z)
{
    return ask(user, states, (question){.answer = answer_gradient, .weight = weight, .eps = eps, .grad_z = grad_z});
}

static psld_status classify_exactly(void *user, const psld_states *states, const int32_t *label, double *log_p,
                                    double *grad_z)
{
    return ask(user, states, (question){.answer = answer_component, .label = label, .log_p = log_p, .grad_z = grad_z});
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
    return PSLD_OK;
}

psld_status psld_classifier_mixture(const psld_mixture *mixture, const psld_recipe *recipe,
                                    psld_classifier **classifier)
{
    exact_score *score;
    *classifier = NULL;
    PSLD_TRY(create_score(mixture, recipe, &score));
    return psld_classifier_create(recipe, classify_exactly, release_score, score, mixture->components, classifier);
}
