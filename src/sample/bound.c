/* One time of the bound. With r = eps_theta - eps, w = L^-T r and the same for every coordinate:
 *     1/2 |s_theta - s*|^2_G = beta w'D w.
 * Its gradient, with g = 2 beta D w:
 *     by D: beta w w'      by beta: w'D w      by eps_theta: L^-1 g =: v      by L: -w v' + (by z) eps'
 * where (by z) is what the source's vector-Jacobian product makes of v, and by mu: (by z) x_0. */
#include "sample/bound.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define LOG_2_PI 1.8378770664093453

/* What a time needs: the stabilised factor in the order of the variables, as everywhere. */
typedef struct bound_time {
    int k;
    double t, beta;
    double mu[PSLD_MAX_K], factor[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE];
} bound_time;

typedef struct bound_room {
    double *z, *t, *eps, *weight, *by_z; /* eps: what the source predicts */
} bound_room;

/* Sums of a time by what its kernel is made of. */
typedef struct bound_sums {
    double value, by_beta;
    double by_d[PSLD_MATRIX_SIZE], by_factor[PSLD_MATRIX_SIZE], by_mu[PSLD_MAX_K], by_cov[PSLD_MATRIX_SIZE];
} bound_sums;

static psld_status check_kernel(const psld_recipe *recipe)
{
    if (recipe->spec.mode == PSLD_HSM || recipe->spec.k == 1) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "recipe %s: the bound needs the kernel hsm, not dsm", recipe->spec.name);
}

static psld_status plan_bound_time(const psld_recipe *recipe, double t, bound_time *at)
{
    psld_gaussian kernel;
    memset(at, 0, sizeof *at);
    at->k = recipe->spec.k;
    at->t = t;
    at->beta = psld_beta(recipe, t);
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    for (int i = 0; i < at->k; i++) at->mu[i] = kernel.mean[i * at->k];
    return psld_kernel_factor(recipe, &kernel, t, at->factor, at->inverse);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static void free_bound_room(bound_room *room)
{
    psld_release(room->z);
    psld_release(room->t);
    psld_release(room->eps);
    psld_release(room->weight);
    psld_release(room->by_z);
}

static psld_status make_bound_room(const psld_recipe *recipe, const psld_bound_batch *batch, bound_room *room)
{
    size_t state = (size_t)recipe->spec.k * batch->dim, predicted = (size_t)recipe->predicted * batch->dim;
    memset(room, 0, sizeof *room);
    PSLD_TRY(psld_check_doubles("bound", batch->n, state, 1));
    room->z = psld_alloc(batch->n, state * sizeof(double));
    room->t = room->z ? psld_alloc(batch->n, sizeof(double)) : NULL;
    room->eps = room->t ? psld_alloc(batch->n, predicted * sizeof(double)) : NULL;
    room->weight = room->eps ? psld_alloc(batch->n, predicted * sizeof(double)) : NULL;
    room->by_z = room->weight ? psld_alloc(batch->n, state * sizeof(double)) : NULL;
    return room->by_z ? PSLD_OK : PSLD_NO_MEMORY;
}

/* ---- The term of the source -------------------------------------------------------------------------------------- */

static void fill_states(const bound_time *at, const psld_bound_batch *batch, bound_room *room)
{
    size_t k = (size_t)at->k, dim = batch->dim;
    for (size_t i = 0; i < batch->n; i++) {
        room->t[i] = at->t;
        for (size_t a = 0; a < k; a++)
            for (size_t j = 0; j < dim; j++) {
                double z = at->mu[a] * batch->x[i * dim + j];
                for (size_t b = 0; b < k; b++) z += at->factor[a * k + b] * batch->eps[(i * k + b) * dim + j];
                room->z[(i * k + a) * dim + j] = z;
            }
    }
}

/* One coordinate of a sample: adds to the sums, and writes the weights of the vector-Jacobian product. */
static void add_coordinate(const psld_recipe *recipe, const bound_time *at, const double *r, double scale,
                           double *weight, size_t dim, bound_sums *sums)
{
    int k = at->k;
    double w[PSLD_MAX_K] = {0}, dw[PSLD_MAX_K] = {0}, v[PSLD_MAX_K] = {0}, square = 0;
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) w[a] += at->inverse[b * k + a] * r[b];
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) dw[a] += recipe->spec.D[a * k + b] * w[b];
    for (int a = 0; a < k; a++) square += w[a] * dw[a];
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) v[a] += 2 * at->beta * at->inverse[a * k + b] * dw[b];
    sums->value += scale * at->beta * square;
    sums->by_beta += scale * square;
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k; b++) {
            sums->by_d[a * k + b] += scale * at->beta * w[a] * w[b];
            sums->by_factor[a * k + b] -= scale * w[a] * v[b];
        }
    for (int b = 0; b < recipe->predicted; b++) weight[(size_t)b * dim] = scale * v[recipe->variable[b]];
}

/* r = eps_theta - eps of the predicted variables; D does not see the others. */
static void add_residuals(const psld_recipe *recipe, const bound_time *at, const psld_bound_batch *batch,
                          const bound_room *room, bound_sums *sums)
{
    size_t k = (size_t)at->k, dim = batch->dim, predicted = (size_t)recipe->predicted;
    for (size_t i = 0; i < batch->n; i++)
        for (size_t j = 0; j < dim; j++) {
            double r[PSLD_MAX_K] = {0};
            for (size_t b = 0; b < predicted; b++) {
                size_t a = (size_t)recipe->variable[b];
                r[a] = room->eps[(i * predicted + b) * dim + j] - batch->eps[(i * k + a) * dim + j];
            }
            add_coordinate(recipe, at, r, 1 / (double)batch->n, room->weight + i * predicted * dim + j, dim, sums);
        }
}

static void add_through_states(const bound_time *at, const psld_bound_batch *batch, const double *by_z,
                               bound_sums *sums)
{
    size_t k = (size_t)at->k, dim = batch->dim;
    for (size_t i = 0; i < batch->n; i++)
        for (size_t a = 0; a < k; a++)
            for (size_t j = 0; j < dim; j++) {
                double by = by_z[(i * k + a) * dim + j];
                sums->by_mu[a] += by * batch->x[i * dim + j];
                for (size_t b = 0; b < k; b++) sums->by_factor[a * k + b] += by * batch->eps[(i * k + b) * dim + j];
            }
}

static psld_status add_source_term(const psld_recipe *recipe, psld_source *source, const bound_time *at,
                                   const psld_bound_batch *batch, int with_gradient, bound_sums *sums)
{
    bound_room room;
    psld_status status = make_bound_room(recipe, batch, &room);
    psld_states states = PSLD_STATES(batch->n, batch->dim, room.z, room.t);
    if (status != PSLD_OK) goto done;
    fill_states(at, batch, &room);
    PSLD_TRY_OR(done, psld_source_predict(source, &states, room.eps));
    add_residuals(recipe, at, batch, &room, sums);
    if (!with_gradient) goto done;
    PSLD_TRY_OR(done, psld_source_gradient(source, &states, room.weight, NULL, room.by_z));
    add_through_states(at, batch, room.by_z, sums);
done:
    free_bound_room(&room);
    return status;
}

/* ---- The terms without it ---------------------------------------------------------------------------------------- */

/* -dim/2 tr(G S^-1) + dim beta tr(D P) = -dim beta (tr(D S^-1) - tr(D P)). */
static void add_closed_terms(const psld_recipe *recipe, const bound_time *at, size_t dim, bound_sums *sums,
                             psld_recipe_gradient *gradient)
{
    int k = at->k;
    const double *D = recipe->spec.D;
    double precision[PSLD_MATRIX_SIZE] = {0}, half[PSLD_MATRIX_SIZE], whole[PSLD_MATRIX_SIZE], trace = 0;
    double scale = (double)dim * at->beta;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++)
            for (int l = 0; l < k; l++) precision[i * k + j] += at->inverse[l * k + i] * at->inverse[l * k + j];
    for (int i = 0; i < k * k; i++) trace += D[i] * precision[i];
    for (int i = 0; i < k; i++) {
        double mass = i ? recipe->spec.mass[i - 1] : 1;
        trace -= D[i * k + i] / mass;
        sums->by_d[i * k + i] += scale / mass;
        if (i) gradient->mass[i - 1] -= scale * D[i * k + i] / (mass * mass);
    }
    sums->value -= scale * trace;
    sums->by_beta -= (double)dim * trace;
    psld_matrix_multiply(k, precision, D, half);
    psld_matrix_multiply(k, half, precision, whole);
    for (int i = 0; i < k * k; i++) {
        sums->by_d[i] -= scale * precision[i];
        sums->by_cov[i] += scale * whole[i];
    }
}

/* ---- Together ---------------------------------------------------------------------------------------------------- */

/* The gradient by the factor becomes one by the covariance, in the order in which the factor is triangular. */
static void differentiate_bound_factor(const psld_recipe *recipe, const bound_time *at, bound_sums *sums)
{
    double lower[PSLD_MATRIX_SIZE], inverse[PSLD_MATRIX_SIZE], by_lower[PSLD_MATRIX_SIZE], by_cov[PSLD_MATRIX_SIZE];
    int k = at->k;
    const int *order = recipe->order;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            lower[i * k + j] = at->factor[order[i] * k + order[j]];
            inverse[i * k + j] = at->inverse[order[i] * k + order[j]];
            by_lower[i * k + j] = sums->by_factor[order[i] * k + order[j]];
        }
    psld_factor_differentiate(k, lower, inverse, by_lower, by_cov);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) sums->by_cov[order[i] * k + order[j]] += by_cov[i * k + j];
}

static void add_recipe_gradient(const psld_recipe_gradient *from, double weight, psld_recipe_gradient *to)
{
    for (int i = 0; i < PSLD_MATRIX_SIZE; i++) {
        to->D[i] += weight * from->D[i];
        to->Q[i] += weight * from->Q[i];
    }
    for (int i = 0; i < PSLD_MAX_K - 1; i++) to->mass[i] += weight * from->mass[i];
    for (int i = 0; i < 2; i++) to->beta[i] += weight * from->beta[i];
}

psld_status psld_bound_add_rate(const psld_recipe *recipe, psld_source *source, double t, const psld_bound_batch *batch,
                                double weight, int with_gradient, psld_bound *bound)
{
    bound_time at;
    bound_sums sums = {0};
    psld_recipe_gradient gradient = {0};
    PSLD_TRY(check_kernel(recipe));
    PSLD_TRY(plan_bound_time(recipe, t, &at));
    PSLD_TRY(add_source_term(recipe, source, &at, batch, with_gradient, &sums));
    add_closed_terms(recipe, &at, batch->dim, &sums, &gradient);
    bound->value -= weight * sums.value;
    if (!with_gradient) return PSLD_OK;
    differentiate_bound_factor(recipe, &at, &sums);
    for (int i = 0; i < at.k * at.k; i++) gradient.D[i] += sums.by_d[i];
    psld_beta_differentiate(t, sums.by_beta, &gradient);
    PSLD_TRY(psld_kernel_differentiate(recipe, t, sums.by_mu, sums.by_cov, &gradient));
    add_recipe_gradient(&gradient, -weight, &bound->gradient);
    return PSLD_OK;
}

/* -dim/2 (k log 2 pi + sum log mass) - 1/2 sum over coordinates of tr(P (S + x_0^2 mu mu')), the mean over the batch. */
psld_status psld_bound_add_end(const psld_recipe *recipe, const psld_bound_batch *batch, double weight,
                               psld_bound *bound)
{
    bound_time at;
    psld_recipe_gradient gradient = {0};
    double by_mu[PSLD_MAX_K], by_cov[PSLD_MATRIX_SIZE] = {0}, square = 0, value = 0, dim = (double)batch->dim;
    PSLD_TRY(check_kernel(recipe));
    PSLD_TRY(plan_bound_time(recipe, 1, &at));
    for (size_t i = 0; i < batch->n * batch->dim; i++) square += batch->x[i] * batch->x[i] / (double)batch->n;
    for (int i = 0, k = at.k; i < k; i++) {
        double mass = i ? recipe->spec.mass[i - 1] : 1, variance = square * at.mu[i] * at.mu[i];
        for (int j = 0; j < k; j++) variance += dim * at.factor[i * k + j] * at.factor[i * k + j];
        value -= (dim * (LOG_2_PI + log(mass)) + variance / mass) / 2;
        by_mu[i] = -square * at.mu[i] / mass;
        by_cov[i * k + i] = -dim / (2 * mass);
        if (i) gradient.mass[i - 1] += (variance / mass - dim) / (2 * mass);
    }
    PSLD_TRY(psld_kernel_differentiate(recipe, 1, by_mu, by_cov, &gradient));
    bound->value += weight * value;
    add_recipe_gradient(&gradient, weight, &bound->gradient);
    return PSLD_OK;
}
