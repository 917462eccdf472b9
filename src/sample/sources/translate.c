/* A source of one recipe made from a source of another recipe.
 *
 * The sufficient statistic of a state for the data is y = x_0 + sigma n (collapsed_frame.h), under every recipe. An ideal
 * source of any recipe therefore determines the same denoiser E[x_0 | y, sigma]. To evaluate a state z of the wanted
 * recipe:
 *   1. split z into y, sigma and the rest xi;
 *   2. find the time t' at which the known recipe has the same sigma, and form its state z' with the same y and xi;
 *   3. evaluate the known source at z', which gives the clean data X;
 *   4. convert X to the eps of the wanted recipe.
 * If the known recipe has more variables, the missing xi are normal numbers that depend on the coordinate only. So the
 * same state always gets the same numbers, and the source stays smooth.
 *
 * Apart from the source all of this is linear, with the same constants for each coordinate:
 *     z' = move z + rest,   X = state . z' + eps . e(z'),   eps = white z - gain X. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/workspace.h"
#include "sample/samplers/multistep.h"

/* The smallest time in training. */
#define TRAINING_T_MIN 1e-5

typedef struct translated_source {
    psld_source *base;
    psld_recipe known, wanted;   /* copies */
    double sigma_min, sigma_max; /* range in which the base was trained */
    psld_workspaces workspaces;
} translated_source;

/* Memory of one call. */
typedef struct translation_memory {
    double *z, *t, *eps, *x; /* [n][known state], [n], [n][known eps], [n][dim] */
    double *weight, *grad;   /* [n][known eps], [n][known state] */
} translation_memory;

/* Constants of one time. */
typedef struct translation_at_time {
    double t; /* of the known recipe */
    psld_denoiser known, wanted;
    double move[PSLD_MATRIX_SIZE]; /* known k x wanted k */
    double rest[PSLD_MATRIX_SIZE]; /* known k x known k: columns of the xi that z does not have */
} translation_at_time;

static void release_translation(void *user)
{
    translated_source *tr = user;
    psld_workspaces_release(&tr->workspaces);
    psld_release(tr);
}

static psld_status known_time(const translated_source *tr, double t, double sigma, double *known)
{
    if (!(sigma >= tr->sigma_min && sigma <= tr->sigma_max * (1 + 1e-9)))
        return psld_fail(
            PSLD_BAD_ARGUMENT,
            "process: recipe %s has effective noise %.4g at t = %.4g; the model, of recipe %s, was trained for "
            "%.4g to %.4g",
            tr->wanted.spec.name, sigma, t, tr->known.spec.name, tr->sigma_min, tr->sigma_max);
    return psld_recipe_time(&tr->known, fmin(sigma, tr->sigma_max), known);
}

static psld_status plan_translation(const translated_source *tr, double t, translation_at_time *p)
{
    psld_collapsed_frame from, to;
    int k = tr->wanted.spec.k, known = tr->known.spec.k;
    memset(p, 0, sizeof *p);
    PSLD_TRY(psld_collapsed_frame_plan(&tr->wanted, 1, t, &from));
    PSLD_TRY(known_time(tr, t, from.sigma, &p->t));
    PSLD_TRY(psld_collapsed_frame_plan(&tr->known, tr->base->exact, p->t, &to));
    PSLD_TRY(psld_denoiser_plan(&tr->wanted, 1, t, &p->wanted));
    PSLD_TRY(psld_denoiser_plan(&tr->known, tr->base->exact, p->t, &p->known));
    for (int a = 0; a < known; a++)
        for (int c = 0; c < known; c++) {
            double column = to.frame[a * known + c] * (c == 0 ? from.sigma / to.sigma : 1);
            if (c >= k) p->rest[a * known + c] = column;
            for (int b = 0; c < k && b < k; b++) p->move[a * k + b] += column * from.inverse[c * k + b];
        }
    return PSLD_OK;
}

/* Normal numbers of variable c in coordinates begin ... begin + width - 1. */
static void draw_missing_noise(int c, size_t begin, size_t width, double *out)
{
    psld_random_normal(0, PSLD_FOR_REST, (uint64_t)c, 0, begin, width, out);
}

static void known_states(const translated_source *tr, const translation_at_time *p, size_t n, size_t dim,
                         const double *z, double *out)
{
    enum { CHUNK = 512 };
    size_t k = (size_t)tr->wanted.spec.k, known = (size_t)tr->known.spec.k;
    double numbers[CHUNK];
    memset(out, 0, n * known * dim * sizeof *out);
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < known; a++)
            for (size_t b = 0; b < k; b++)
                for (size_t j = 0; j < dim; j++)
                    out[(i * known + a) * dim + j] += p->move[a * k + b] * z[(i * k + b) * dim + j];
    for (size_t c = k; c < known; c++)
        for (size_t begin = 0; begin < dim; begin += CHUNK) {
            size_t width = dim - begin < CHUNK ? dim - begin : CHUNK;
            draw_missing_noise((int)c, begin, width, numbers);
            for (size_t i = 0; i < n; i++)
                for (size_t a = 0; a < known; a++)
                    for (size_t j = 0; j < width; j++)
                        out[(i * known + a) * dim + begin + j] += p->rest[a * known + c] * numbers[j];
        }
}

static psld_status translation_allocate(const translated_source *tr, psld_workspace *memory, size_t n, size_t dim,
                                        translation_memory *m)
{
    size_t state = dim * (size_t)tr->known.spec.k, eps = dim * (size_t)tr->known.predicted;
    struct {
        double **array;
        size_t width;
    } const all[] = {{&m->z, state}, {&m->t, 1}, {&m->eps, eps}, {&m->x, dim}, {&m->weight, eps}, {&m->grad, state}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        PSLD_TRY(psld_workspace_room(memory, (int)i, n, all[i].width, sizeof(double), (void **)all[i].array));
    return PSLD_OK;
}

/* The gradient by the clean data, -gain . weight, into m->x; then the weight of the base's eps. */
static void weight_of_known_eps(const translation_memory *m, const translation_at_time *p, size_t n, size_t dim,
                                const double *weight)
{
    size_t wanted = (size_t)p->wanted.predicted, known = (size_t)p->known.predicted;
    memset(m->x, 0, n * dim * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < wanted; c++)
            for (size_t j = 0; j < dim; j++)
                m->x[i * dim + j] -= p->wanted.gain[c] * weight[(i * wanted + c) * dim + j];
        for (size_t c = 0; c < known; c++)
            for (size_t j = 0; j < dim; j++) m->weight[(i * known + c) * dim + j] = p->known.eps[c] * m->x[i * dim + j];
    }
}

/* grad_z = white' weight + move' (state g + the base's gradient). */
static void collect_gradient(const translated_source *tr, const translation_memory *m, const translation_at_time *p,
                             size_t n, size_t dim, const double *weight, double *grad_z)
{
    size_t k = (size_t)tr->wanted.spec.k, known = (size_t)tr->known.spec.k, wanted = (size_t)p->wanted.predicted;
    memset(grad_z, 0, n * k * dim * sizeof *grad_z);
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < k; b++) {
            double *out = grad_z + (i * k + b) * dim;
            for (size_t c = 0; c < wanted; c++)
                for (size_t j = 0; j < dim; j++)
                    out[j] += p->wanted.white[c * k + b] * weight[(i * wanted + c) * dim + j];
            for (size_t a = 0; a < known; a++)
                for (size_t j = 0; j < dim; j++)
                    out[j] += p->move[a * k + b] *
                              (p->known.state[a] * m->x[i * dim + j] + m->grad[(i * known + a) * dim + j]);
        }
}

/* States of one time; `weight` NULL: eps alone. */
static psld_status translate_time(const translated_source *tr, const translation_memory *m, const psld_states *states,
                                  const double *weight, double *eps, double *grad_z)
{
    translation_at_time p;
    size_t n = states->n, dim = states->dim;
    psld_states known = psld_states_replace(states, m->z, m->t);
    PSLD_TRY(plan_translation(tr, states->t[0], &p));
    known_states(tr, &p, n, dim, states->z, m->z);
    for (size_t i = 0; i < n; i++) m->t[i] = p.t;
    if (weight) {
        weight_of_known_eps(m, &p, n, dim, weight);
        PSLD_TRY(psld_source_gradient(tr->base, &known, m->weight, m->eps, m->grad));
        collect_gradient(tr, m, &p, n, dim, weight, grad_z);
    } else {
        PSLD_TRY(psld_source_predict(tr->base, &known, m->eps));
    }
    if (!eps) return PSLD_OK;
    psld_denoiser_apply(&p.known, n, dim, m->z, m->eps, m->x);
    psld_denoiser_eps(&p.wanted, n, dim, states->z, m->x, eps);
    return PSLD_OK;
}

static psld_status translate_all(const translated_source *tr, psld_workspace *memory, const psld_states *states,
                                 const double *weight, double *eps, double *grad_z)
{
    translation_memory m;
    size_t dim = states->dim, state = (size_t)tr->wanted.spec.k * dim, predicted = (size_t)tr->wanted.predicted * dim;
    PSLD_TRY(translation_allocate(tr, memory, states->n, dim, &m));
    for (size_t begin = 0, end; begin < states->n; begin = end) {
        end = psld_states_same_time(states, begin);
        psld_states part = psld_states_part(states, begin, end, state);
        PSLD_TRY(translate_time(tr, &m, &part, weight ? weight + begin * predicted : NULL,
                                eps ? eps + begin * predicted : NULL, grad_z ? grad_z + begin * state : NULL));
    }
    return PSLD_OK;
}

static psld_status differentiate_translation(void *user, const psld_states *states, const double *weight, double *eps,
                                             double *grad_z)
{
    translated_source *tr = user;
    psld_workspace *memory = psld_workspace_take(&tr->workspaces);
    if (!memory) return PSLD_NO_MEMORY;
    psld_status status = translate_all(tr, memory, states, weight, eps, grad_z);
    psld_workspace_give(&tr->workspaces, memory);
    return status;
}

static psld_status predict_translation(void *user, const psld_states *states, double *eps)
{
    return differentiate_translation(user, states, NULL, eps, NULL);
}

/* The range of sigma of the base, whether it covers the start of the reverse process, and the smallest time it covers. */
static psld_status find_sigma_range(translated_source *tr, double *earliest)
{
    double top, bottom;
    PSLD_TRY(psld_recipe_sigma(&tr->known, 1, &tr->sigma_max));
    PSLD_TRY(psld_recipe_sigma(&tr->known, TRAINING_T_MIN, &tr->sigma_min));
    PSLD_TRY(psld_recipe_sigma(&tr->wanted, 1, &top));
    PSLD_TRY(psld_recipe_sigma(&tr->wanted, TRAINING_T_MIN, &bottom));
    if (top > tr->sigma_max * (1 + 1e-9))
        return psld_fail(
            PSLD_BAD_ARGUMENT,
            "process: recipe %s starts with effective noise %.4g; the model, of recipe %s, was trained for "
            "%.4g to %.4g: choose a recipe with a smaller beta",
            tr->wanted.spec.name, top, tr->known.spec.name, tr->sigma_min, tr->sigma_max);
    *earliest = TRAINING_T_MIN;
    if (bottom < tr->sigma_min) PSLD_TRY(psld_recipe_time(&tr->wanted, tr->sigma_min, earliest));
    return PSLD_OK;
}

psld_status psld_source_translate(psld_source *base, const psld_recipe *known, const psld_recipe *recipe,
                                  psld_source **source)
{
    double earliest = 0;
    *source = NULL;
    PSLD_TRY(psld_source_check(base, known));
    translated_source *tr = psld_alloc(1, sizeof *tr);
    if (!tr) return PSLD_NO_MEMORY;
    *tr = (translated_source){.base = base, .known = *known, .wanted = *recipe};
    psld_status status = find_sigma_range(tr, &earliest);
    if (status != PSLD_OK) {
        release_translation(tr);
        return status;
    }
    PSLD_TRY(psld_source_create(recipe, predict_translation, release_translation, tr, source));
    if (psld_source_has_gradient(base)) (*source)->gradient = differentiate_translation;
    (*source)->exact = 1; /* its eps belongs to the kernel without the stabiliser */
    (*source)->earliest = earliest;
    (*source)->kind = base->kind;
    psld_source_take_labels(*source, base);
    return PSLD_OK;
}
