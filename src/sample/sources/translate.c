/* One source, any recipe: a source of one recipe made of a source of another.
 *
 * Of a state only y = x_0 + sigma n tells of the data (psld_collapsed_frame), and an ideal source of any recipe knows E[x_0 | y,
 * sigma]. So a state z of the recipe wanted is split into y, sigma and its rest xi; the known recipe has the same sigma
 * at some time t'; there the state with the same y and rest is put together, the source asked, and the clean data it
 * predicts are said again as eps of the recipe wanted. Where the known recipe has more variables, what is missing of xi
 * are normal numbers that belong to the coordinate: a state always gets the same ones, so that the source stays smooth.
 *
 * All of it is linear with the same few numbers for each coordinate but for the source itself, which makes the gradient
 * as short:
 *     z' = move z + rest,   X = state . z' + eps . e(z'),   eps = white z - pull X. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/workspace.h"
#include "sample/samplers/multistep.h"

/* Networks learn from times down to this. */
#define EARLIEST_LEARNED 1e-5

typedef struct translation {
    psld_source *base;
    psld_recipe known, wanted; /* copies of its own */
    double least, most;        /* sigma that the base knows */
    psld_workspaces workspaces;
} translation;

/* Memory of one call. */
typedef struct rooms {
    double *z, *t, *eps, *x; /* [n][known state], [n], [n][known eps], [n][dim] */
    double *weight, *grad;   /* [n][known eps], [n][known state] */
} rooms;

/* Constants of one time. */
typedef struct phrase {
    double t; /* of the known recipe */
    psld_denoiser known, wanted;
    double move[PSLD_MATRIX_SIZE]; /* known k x wanted k */
    double rest[PSLD_MATRIX_SIZE]; /* known k x known k: columns of the xi that z does not have */
} phrase;

static void release_translation(void *user)
{
    translation *tr = user;
    psld_workspaces_release(&tr->workspaces);
    psld_release(tr);
}

static psld_status find_time(const translation *tr, double t, double sigma, double *known)
{
    if (!(sigma >= tr->least && sigma <= tr->most * (1 + 1e-9)))
        return psld_fail(
            PSLD_BAD_ARGUMENT,
            "process: recipe %s has effective noise %.4g at t = %.4g; the model, of recipe %s, knows %.4g to "
            "%.4g",
            tr->wanted.spec.name, sigma, t, tr->known.spec.name, tr->least, tr->most);
    return psld_recipe_time(&tr->known, fmin(sigma, tr->most), known);
}

static psld_status plan_phrase(const translation *tr, double t, phrase *p)
{
    psld_collapsed_frame from, to;
    int k = tr->wanted.spec.k, known = tr->known.spec.k;
    memset(p, 0, sizeof *p);
    PSLD_TRY(psld_collapsed_frame_plan(&tr->wanted, 1, t, &from));
    PSLD_TRY(find_time(tr, t, from.sigma, &p->t));
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
static void draw_rest(int c, size_t begin, size_t width, double *out)
{
    psld_random_normal(0, PSLD_FOR_REST, (uint64_t)c, 0, begin, width, out);
}

static void move_states(const translation *tr, const phrase *p, size_t n, size_t dim, const double *z, double *out)
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
            draw_rest((int)c, begin, width, numbers);
            for (size_t i = 0; i < n; i++)
                for (size_t a = 0; a < known; a++)
                    for (size_t j = 0; j < width; j++)
                        out[(i * known + a) * dim + begin + j] += p->rest[a * known + c] * numbers[j];
        }
}

static psld_status make_rooms(const translation *tr, psld_workspace *memory, size_t n, size_t dim, rooms *room)
{
    size_t state = dim * (size_t)tr->known.spec.k, eps = dim * (size_t)tr->known.predicted;
    struct {
        double **room;
        size_t width;
    } const all[] = {{&room->z, state}, {&room->t, 1},        {&room->eps, eps},
                     {&room->x, dim},   {&room->weight, eps}, {&room->grad, state}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        PSLD_TRY(psld_workspace_room(memory, (int)i, n, all[i].width, sizeof(double), (void **)all[i].room));
    return PSLD_OK;
}

/* Gradient by the clean data, -pull . weight, into room->x, and from there the weights of the base's eps. */
static void weigh(const rooms *room, const phrase *p, size_t n, size_t dim, const double *weight)
{
    size_t wanted = (size_t)p->wanted.predicted, known = (size_t)p->known.predicted;
    memset(room->x, 0, n * dim * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < wanted; c++)
            for (size_t j = 0; j < dim; j++)
                room->x[i * dim + j] -= p->wanted.pull[c] * weight[(i * wanted + c) * dim + j];
        for (size_t c = 0; c < known; c++)
            for (size_t j = 0; j < dim; j++)
                room->weight[(i * known + c) * dim + j] = p->known.eps[c] * room->x[i * dim + j];
    }
}

/* grad_z = white' weight + move' (state g + the base's gradient). */
static void collect_gradient(const translation *tr, const rooms *room, const phrase *p, size_t n, size_t dim,
                             const double *weight, double *grad_z)
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
                              (p->known.state[a] * room->x[i * dim + j] + room->grad[(i * known + a) * dim + j]);
        }
}

/* States of one time; `weight` NULL: eps alone. */
static psld_status translate_time(const translation *tr, const rooms *room, const psld_states *states,
                                  const double *weight, double *eps, double *grad_z)
{
    phrase p;
    size_t n = states->n, dim = states->dim;
    psld_states known = psld_states_replace(states, room->z, room->t);
    PSLD_TRY(plan_phrase(tr, states->t[0], &p));
    move_states(tr, &p, n, dim, states->z, room->z);
    for (size_t i = 0; i < n; i++) room->t[i] = p.t;
    if (weight) {
        weigh(room, &p, n, dim, weight);
        PSLD_TRY(psld_source_gradient(tr->base, &known, room->weight, room->eps, room->grad));
        collect_gradient(tr, room, &p, n, dim, weight, grad_z);
    } else {
        PSLD_TRY(psld_source_predict(tr->base, &known, room->eps));
    }
    if (!eps) return PSLD_OK;
    psld_denoiser_apply(&p.known, n, dim, room->z, room->eps, room->x);
    psld_denoiser_eps(&p.wanted, n, dim, states->z, room->x, eps);
    return PSLD_OK;
}

static psld_status translate_all(const translation *tr, psld_workspace *memory, const psld_states *states,
                                 const double *weight, double *eps, double *grad_z)
{
    rooms room;
    size_t dim = states->dim, state = (size_t)tr->wanted.spec.k * dim, predicted = (size_t)tr->wanted.predicted * dim;
    PSLD_TRY(make_rooms(tr, memory, states->n, dim, &room));
    for (size_t begin = 0, end; begin < states->n; begin = end) {
        end = psld_states_same_time(states, begin);
        psld_states part = psld_states_part(states, begin, end, state);
        PSLD_TRY(translate_time(tr, &room, &part, weight ? weight + begin * predicted : NULL,
                                eps ? eps + begin * predicted : NULL, grad_z ? grad_z + begin * state : NULL));
    }
    return PSLD_OK;
}

static psld_status differentiate_translation(void *user, const psld_states *states, const double *weight, double *eps,
                                             double *grad_z)
{
    translation *tr = user;
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

/* What the base knows, whether the walk can begin there, and the earliest time it can be asked for. */
static psld_status find_range(translation *tr, double *earliest)
{
    double top, bottom;
    PSLD_TRY(psld_recipe_sigma(&tr->known, 1, &tr->most));
    PSLD_TRY(psld_recipe_sigma(&tr->known, EARLIEST_LEARNED, &tr->least));
    PSLD_TRY(psld_recipe_sigma(&tr->wanted, 1, &top));
    PSLD_TRY(psld_recipe_sigma(&tr->wanted, EARLIEST_LEARNED, &bottom));
    if (top > tr->most * (1 + 1e-9))
        return psld_fail(PSLD_BAD_ARGUMENT,
                         "process: recipe %s begins with effective noise %.4g; the model, of recipe %s, knows %.4g to "
                         "%.4g",
                         tr->wanted.spec.name, top, tr->known.spec.name, tr->least, tr->most);
    *earliest = EARLIEST_LEARNED;
    if (bottom < tr->least) PSLD_TRY(psld_recipe_time(&tr->wanted, tr->least, earliest));
    return PSLD_OK;
}

psld_status psld_source_translate(psld_source *base, const psld_recipe *known, const psld_recipe *recipe,
                                  psld_source **source)
{
    double earliest = 0;
    *source = NULL;
    PSLD_TRY(psld_source_check(base, known));
    translation *tr = psld_alloc(1, sizeof *tr);
    if (!tr) return PSLD_NO_MEMORY;
    *tr = (translation){.base = base, .known = *known, .wanted = *recipe};
    psld_status status = find_range(tr, &earliest);
    if (status != PSLD_OK) {
        release_translation(tr);
        return status;
    }
    PSLD_TRY(psld_source_create(recipe, predict_translation, release_translation, tr, source));
    if (psld_source_has_gradient(base)) (*source)->gradient = differentiate_translation;
    (*source)->exact = 1; /* its eps is made of the kernel itself */
    (*source)->earliest = earliest;
    return PSLD_OK;
}
