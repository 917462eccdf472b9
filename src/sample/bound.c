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

typedef struct bound_room {
    double *z, *t, *eps, *weight, *by_z; /* eps: what the source predicts */
} bound_room;

static psld_status check_kernel(const psld_recipe *recipe)
{
    if (recipe->spec.mode == PSLD_HSM || recipe->spec.k == 1) return PSLD_OK;
    return psld_fail(PSLD_BAD_ARGUMENT, "recipe %s: the bound needs the kernel hsm, not dsm", recipe->spec.name);
}

psld_status psld_bound_time_plan(const psld_recipe *recipe, double t, psld_bound_time *at)
{
    psld_gaussian kernel;
    PSLD_TRY(check_kernel(recipe));
    memset(at, 0, sizeof *at);
    at->k = recipe->spec.k;
    at->t = t;
    at->beta = psld_beta(recipe, t);
    psld_kernel(recipe, t, PSLD_HSM, 0, &kernel);
    for (int i = 0; i < at->k; i++) at->mu[i] = kernel.mean[i * at->k];
    psld_matrix_copy(at->k, kernel.cov, at->cov);
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

static void fill_states(const psld_bound_time *at, const psld_bound_batch *batch, bound_room *room)
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

/* One coordinate of a sample: adds to the sums, and writes the gradient by what the source says. */
static void add_coordinate(const psld_recipe *recipe, const psld_bound_time *at, const double *r, double scale,
                           double *by_out, size_t stride, psld_bound_sums *sums)
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
    for (int b = 0; by_out && b < recipe->predicted; b++) by_out[(size_t)b * stride] = scale * v[recipe->variable[b]];
}

/* r = eps_theta - eps of the predicted variables; D does not see the others. */
void psld_bound_add_square(const psld_recipe *recipe, const psld_bound_time *at, const psld_bound_part *part,
                           double scale, double *by_out, psld_bound_sums *sums)
{
    for (size_t j = 0; j < part->count; j++) {
        double r[PSLD_MAX_K] = {0};
        for (int b = 0; b < recipe->predicted; b++) {
            int a = recipe->variable[b];
            r[a] = part->out[(size_t)b * part->stride + j] - part->eps[(size_t)a * part->stride + j];
        }
        add_coordinate(recipe, at, r, scale, by_out ? by_out + j : NULL, part->stride, sums);
    }
}

void psld_bound_add_states(const psld_bound_time *at, const psld_bound_part *part, const double *by_z,
                           psld_bound_sums *sums)
{
    size_t k = (size_t)at->k;
    for (size_t a = 0; a < k; a++)
        for (size_t j = 0; j < part->count; j++) {
            double by = by_z[a * part->stride + j];
            sums->by_mu[a] += by * part->x[j];
            for (size_t b = 0; b < k; b++) sums->by_factor[a * k + b] += by * part->eps[b * part->stride + j];
        }
}

static psld_bound_part sample_part(const psld_recipe *recipe, const psld_bound_batch *batch, const bound_room *room,
                                   size_t i)
{
    size_t dim = batch->dim, k = (size_t)recipe->spec.k;
    return (psld_bound_part){.count = dim,
                             .stride = dim,
                             .x = batch->x + i * dim,
                             .eps = batch->eps + i * k * dim,
                             .out = room->eps + i * (size_t)recipe->predicted * dim};
}

static psld_status add_source_term(const psld_recipe *recipe, psld_source *source, const psld_bound_time *at,
                                   const psld_bound_batch *batch, int with_gradient, psld_bound_sums *sums)
{
    bound_room room;
    psld_status status = make_bound_room(recipe, batch, &room);
    psld_states states = PSLD_STATES(batch->n, batch->dim, room.z, room.t);
    if (status != PSLD_OK) goto done;
    fill_states(at, batch, &room);
    PSLD_TRY_OR(done, psld_source_predict(source, &states, room.eps));
    for (size_t i = 0; i < batch->n; i++) {
        psld_bound_part part = sample_part(recipe, batch, &room, i);
        psld_bound_add_square(recipe, at, &part, 1 / (double)batch->n,
                              room.weight + i * (size_t)recipe->predicted * batch->dim, sums);
    }
    if (!with_gradient) goto done;
    PSLD_TRY_OR(done, psld_source_gradient(source, &states, room.weight, NULL, room.by_z));
    for (size_t i = 0; i < batch->n; i++) {
        psld_bound_part part = sample_part(recipe, batch, &room, i);
        psld_bound_add_states(at, &part, room.by_z + i * (size_t)at->k * batch->dim, sums);
    }
done:
    free_bound_room(&room);
    return status;
}

/* ---- The terms without it ---------------------------------------------------------------------------------------- */

/* -dim/2 tr(G S^-1) + dim beta tr(D P) = -dim beta (tr(D S^-1) - tr(D P)). */
static void add_closed_terms(const psld_recipe *recipe, const psld_bound_time *at, size_t dim, psld_bound_sums *sums,
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
static void differentiate_bound_factor(const psld_recipe *recipe, const psld_bound_time *at, psld_bound_sums *sums)
{
    double lower[PSLD_MATRIX_SIZE] = {0}, inverse[PSLD_MATRIX_SIZE] = {0}, by_lower[PSLD_MATRIX_SIZE] = {0};
    double by_cov[PSLD_MATRIX_SIZE];
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

psld_status psld_bound_differentiate(const psld_recipe *recipe, const psld_bound_time *at, psld_bound_sums *sums,
                                     double weight, psld_recipe_gradient *gradient)
{
    psld_recipe_gradient own = {0};
    differentiate_bound_factor(recipe, at, sums);
    for (int i = 0; i < at->k * at->k; i++) own.D[i] += sums->by_d[i];
    psld_beta_differentiate(at->t, sums->by_beta, &own);
    PSLD_TRY(psld_kernel_differentiate(recipe, at->t, sums->by_mu, sums->by_cov, &own));
    psld_recipe_gradient_add(&own, weight, gradient);
    return PSLD_OK;
}

psld_status psld_bound_add_rate(const psld_recipe *recipe, psld_source *source, double t, const psld_bound_batch *batch,
                                double weight, int with_gradient, psld_bound *bound)
{
    psld_bound_time at;
    psld_bound_sums sums = {0};
    psld_recipe_gradient gradient = {0};
    PSLD_TRY(psld_bound_time_plan(recipe, t, &at));
    PSLD_TRY(add_source_term(recipe, source, &at, batch, with_gradient, &sums));
    add_closed_terms(recipe, &at, batch->dim, &sums, &gradient);
    bound->value -= weight * sums.value;
    if (!with_gradient) return PSLD_OK;
    psld_recipe_gradient_add(&gradient, -weight, &bound->gradient);
    return psld_bound_differentiate(recipe, &at, &sums, -weight, &bound->gradient);
}

/* -dim/2 (k log 2 pi + sum log mass) - 1/2 sum over coordinates of tr(P (S + x_0^2 mu mu')), the mean over the batch. */
psld_status psld_bound_add_end(const psld_recipe *recipe, const psld_bound_batch *batch, double weight,
                               psld_bound *bound)
{
    psld_bound_time at;
    psld_recipe_gradient gradient = {0};
    double by_mu[PSLD_MAX_K], by_cov[PSLD_MATRIX_SIZE] = {0}, square = 0, value = 0, dim = (double)batch->dim;
    PSLD_TRY(psld_bound_time_plan(recipe, 1, &at));
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
    psld_recipe_gradient_add(&gradient, weight, &bound->gradient);
    return PSLD_OK;
}
