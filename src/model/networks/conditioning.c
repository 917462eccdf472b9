#include "model/networks/conditioning.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { MAX_STEPS = 1 << 16 };

static const double pi = 3.14159265358979323846;

psld_conditioning psld_conditioning_ours(double deviation)
{
    return (psld_conditioning){.kind = PSLD_CONDITION_OURS, .deviation = deviation, .sigma_max = (double)INFINITY};
}

void psld_conditioning_clear(psld_conditioning *c)
{
    psld_release(c->sigma);
    *c = (psld_conditioning){0};
}

/* ---- Input and output of a network ------------------------------------------------------------------------------- */

/* The time at which vp has noise sigma, in float as those networks compute it. */
static double vp_time(const psld_conditioning *c, double sigma)
{
    float s = (float)sigma, d = (float)c->beta_d, min = (float)c->beta_min;
    float root = sqrtf((float)(c->beta_min * c->beta_min) + (float)(2 * c->beta_d) * logf(1 + s * s));
    return (double)((root - min) / d * (float)(c->steps - 1));
}

/* The last row of the table at which sigma is not larger; 0 below all. */
static size_t row_below(const psld_conditioning *c, double sigma)
{
    size_t low = 0, high = c->steps;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (c->sigma[middle] <= sigma)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double table_time(const psld_conditioning *c, double sigma)
{
    size_t row = row_below(c, sigma);
    if (sigma <= c->sigma[0]) return 0;
    if (row + 1 >= c->steps) return (double)(c->steps - 1);
    return (double)row + log(sigma / c->sigma[row]) / log(c->sigma[row + 1] / c->sigma[row]);
}

static double nearest_row(const psld_conditioning *c, double sigma)
{
    size_t row = row_below(c, sigma);
    if (row + 1 < c->steps && c->sigma[row + 1] - sigma <= sigma - c->sigma[row]) row++;
    return (double)row;
}

static void scale_as_edm(double sigma, double deviation, psld_scaling *s)
{
    s->divide = hypot(sigma, deviation);
    s->keep = deviation * deviation / s->divide;
    s->scale = sigma * deviation / s->divide;
}

/* X = y - sigma F, or the form for another output F. */
static void scale_as_vp(double sigma, psld_prediction predicts, psld_scaling *s)
{
    s->divide = sqrt(1 + sigma * sigma);
    s->keep = predicts == PSLD_PREDICTS_NOISE ? s->divide : predicts == PSLD_PREDICTS_V ? 1 / s->divide : 0;
    s->scale = predicts == PSLD_PREDICTS_NOISE ? -sigma : predicts == PSLD_PREDICTS_V ? -sigma / s->divide : 1;
}

void psld_conditioning_at(const psld_conditioning *c, double sigma, psld_scaling *s)
{
    switch (c->kind) {
    case PSLD_CONDITION_OURS:
        scale_as_edm(sigma, c->deviation, s);
        s->time = sigma / (sigma + c->deviation);
        return;
    case PSLD_CONDITION_EDM:
        scale_as_edm(sigma, c->deviation, s);
        s->time = (double)(logf((float)sigma) / 4);
        return;
    case PSLD_CONDITION_VP:
        scale_as_vp(sigma, PSLD_PREDICTS_NOISE, s);
        s->time = vp_time(c, sigma);
        return;
    case PSLD_CONDITION_VE:
        *s = (psld_scaling){1, 1, sigma, (double)logf(0.5F * (float)sigma)};
        return;
    case PSLD_CONDITION_IDDPM:
        scale_as_vp(sigma, PSLD_PREDICTS_NOISE, s);
        s->time = nearest_row(c, sigma);
        return;
    case PSLD_CONDITION_TIMESTEPS:
        break;
    }
    scale_as_vp(sigma, c->predicts, s);
    s->time = table_time(c, sigma);
}

/* Less noise: the score that the network gives for its smallest noise is that of data with so little noise, too, and
 *     X = y + sigma^2 score = y + r^2 (X_min - y),     r = sigma / sigma_min.
 * More: y is mostly noise, with almost no information on the data, like that of the largest noise; it is scaled to
 * that. */
void psld_conditioning_within(const psld_conditioning *c, double sigma, psld_scaling *s)
{
    double least = c->sigma_min, most = c->sigma_max;
    if (sigma < least) {
        double square = sigma / least * (sigma / least);
        psld_conditioning_at(c, least, s);
        s->keep = (1 - square) * s->divide + square * s->keep;
        s->scale *= square;
    } else if (sigma > most) {
        psld_conditioning_at(c, most, s);
        s->divide *= sqrt((1 + sigma * sigma) / (1 + most * most));
    } else {
        psld_conditioning_at(c, sigma, s);
    }
}

static double table_noise(const psld_conditioning *c, double timestep)
{
    size_t row = (size_t)timestep;
    if (row + 1 >= c->steps) return c->sigma[c->steps - 1];
    return c->sigma[row] * pow(c->sigma[row + 1] / c->sigma[row], timestep - (double)row);
}

static double vp_noise(const psld_conditioning *c, double t)
{
    return sqrt(expm1(c->beta_d * t * t / 2 + c->beta_min * t));
}

double psld_conditioning_sigma(const psld_conditioning *c, double time)
{
    switch (c->kind) {
    case PSLD_CONDITION_OURS:
        return c->deviation * time / (1 - time);
    case PSLD_CONDITION_EDM:
        return exp(4 * time);
    case PSLD_CONDITION_VP:
        return vp_noise(c, time / (double)(c->steps - 1));
    case PSLD_CONDITION_VE:
        return 2 * exp(time);
    case PSLD_CONDITION_IDDPM:
    case PSLD_CONDITION_TIMESTEPS:
        break;
    }
    return table_noise(c, time);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static const char *const kind_names[] = {"", "edm", "vp", "ve", "iddpm", "timesteps"};
#define KINDS       "edm|vp|ve|iddpm|timesteps"
#define PREDICTIONS "epsilon|sample|v_prediction"

const char *psld_conditioning_name(const psld_conditioning *c)
{
    return kind_names[c->kind];
}

const char *psld_conditioning_predicts(const psld_conditioning *c)
{
    static const char *const predictions[] = {"epsilon", "sample", "v_prediction"};
    static const char *const kinds[] = {"data", "data", "epsilon", "epsilon", "epsilon"};
    return c->kind == PSLD_CONDITION_TIMESTEPS ? predictions[c->predicts] : kinds[c->kind];
}

/* A number; unchanged if the map does not have it. */
static psld_status read_between(const psld_node *map, const char *key, double min, double max, double *value)
{
    const psld_node *node = psld_node_get(map, key);
    const char *text;
    if (!node) return PSLD_OK;
    PSLD_TRY(psld_node_text(node, &text));
    if (strcmp(text, "inf") == 0 && max == (double)INFINITY)
        *value = (double)INFINITY;
    else
        PSLD_TRY(psld_node_number(node, value));
    if (*value >= min && *value <= max) return PSLD_OK;
    return psld_node_fail(node, "expected a number from %g to %g, found %s", min, max, text);
}

static psld_status allocate_table(psld_conditioning *c)
{
    c->sigma = psld_alloc(c->steps, sizeof *c->sigma);
    return c->sigma ? PSLD_OK : PSLD_NO_MEMORY;
}

/* abar and 1 - abar, each of which may be tiny: neither is subtracted from 1. */
static psld_status noise_of_betas(const psld_node *map, size_t steps, double *beta)
{
    double left = 1, lost = 0;
    for (size_t i = 0; i < steps; i++) {
        if (!(beta[i] > 0 && beta[i] < 1))
            return psld_node_fail(map, "beta %zu of the schedule: expected a number between 0 and 1, found %g", i,
                                  beta[i]);
        lost += left * beta[i];
        left *= 1 - beta[i];
        beta[i] = sqrt(lost / left);
        if (!isfinite(beta[i])) return psld_node_fail(map, "beta %zu of the schedule removes all of the data", i);
        if (i && !(beta[i] > beta[i - 1])) return psld_node_fail(map, "beta %zu of the schedule adds no noise", i);
    }
    return PSLD_OK;
}

static double cosine_left(double t)
{
    double c = cos((t + 0.008) / 1.008 * pi / 2);
    return c * c;
}

typedef enum schedule { LINEAR, SCALED_LINEAR, COSINE, SIGMOID, TABLE } schedule;

static double beta_of(schedule kind, size_t i, size_t steps, double start, double end)
{
    double u = steps > 1 ? (double)i / (double)(steps - 1) : 0, root = sqrt(start) + (sqrt(end) - sqrt(start)) * u;
    if (kind == LINEAR) return start + (end - start) * u;
    if (kind == SCALED_LINEAR) return root * root;
    if (kind == SIGMOID) return start + (end - start) / (1 + exp(6 - 12 * u));
    return fmin(1 - cosine_left((double)(i + 1) / (double)steps) / cosine_left((double)i / (double)steps), 0.999);
}

static psld_status read_timesteps(const psld_node *map, const psld_node *name, psld_conditioning *c)
{
    const psld_node *betas = psld_node_get(map, "betas"), *predicts = psld_node_get(map, "predicts");
    double start = 1e-4, end = 0.02;
    int kind = LINEAR, prediction = 0;
    if (name) PSLD_TRY(psld_node_choice(name, "linear|scaled_linear|squaredcos_cap_v2|sigmoid|table", &kind));
    if (predicts) PSLD_TRY(psld_node_choice(predicts, PREDICTIONS, &prediction));
    c->predicts = (psld_prediction)prediction;
    PSLD_TRY(read_between(map, "beta_start", 0, 1, &start));
    PSLD_TRY(read_between(map, "beta_end", 0, 1, &end));
    if (kind == TABLE) {
        c->steps = betas ? psld_node_size(betas) : 0;
        if (c->steps < 1 || c->steps > MAX_STEPS)
            return psld_node_fail(map, "betas: expected 1 to %d numbers", MAX_STEPS);
    }
    PSLD_TRY(allocate_table(c));
    if (kind == TABLE) PSLD_TRY(psld_node_numbers(betas, c->steps, c->sigma));
    for (size_t i = 0; kind != TABLE && i < c->steps; i++)
        c->sigma[i] = beta_of((schedule)kind, i, c->steps, start, end);
    PSLD_TRY(noise_of_betas(map, c->steps, c->sigma));
    c->sigma_min = c->sigma[0];
    c->sigma_max = c->sigma[c->steps - 1];
    return PSLD_OK;
}

/* u_M = 0,  u_(j-1)^2 = (u_j^2 + 1) / max(abar_(j-1) / abar_j, C_1) - 1,  abar_j = sin^2(pi j / (2 M (1 + C_2))). The
 * network's time is M - 1 - j, so the table increases with it. */
static psld_status read_iddpm(const psld_node *map, psld_conditioning *c)
{
    double c1 = 0.001, c2 = 0.008, u = 0, m = (double)c->steps;
    PSLD_TRY(read_between(map, "c1", 0, 1, &c1));
    PSLD_TRY(read_between(map, "c2", 0, 1e6, &c2));
    PSLD_TRY(allocate_table(c));
    for (size_t i = 0; i < c->steps; i++) {
        double j = m - (double)i, above = sin(pi / 2 * (j - 1) / m / (c2 + 1)), below = sin(pi / 2 * j / m / (c2 + 1));
        u = sqrt((u * u + 1) / fmax(above * above / (below * below), c1) - 1);
        c->sigma[i] = u;
        if (!isfinite(u) || !(u > (i ? c->sigma[i - 1] : 0)))
            return psld_node_fail(map, "the table of noise levels does not increase at %zu", i);
    }
    c->sigma_min = c->sigma[0];
    c->sigma_max = c->sigma[c->steps - 1];
    return PSLD_OK;
}

static psld_status read_vp(const psld_node *map, psld_conditioning *c)
{
    double first = 1e-5;
    c->beta_d = 19.9;
    c->beta_min = 0.1;
    PSLD_TRY(read_between(map, "beta_d", 1e-9, 1e3, &c->beta_d));
    PSLD_TRY(read_between(map, "beta_min", 0, 1e3, &c->beta_min));
    PSLD_TRY(read_between(map, "epsilon_t", 0, 1, &first));
    c->sigma_min = vp_noise(c, first);
    c->sigma_max = vp_noise(c, 1);
    return PSLD_OK;
}

/* `name` is the schedule of timesteps; NULL: the default. */
static psld_status read_kind(const psld_node *map, const psld_node *name, psld_conditioning *c)
{
    double infinite = (double)INFINITY;
    switch (c->kind) {
    case PSLD_CONDITION_VP:
        return read_vp(map, c);
    case PSLD_CONDITION_IDDPM:
        return read_iddpm(map, c);
    case PSLD_CONDITION_VE:
        c->sigma_min = 0.02;
        c->sigma_max = 100;
        break;
    case PSLD_CONDITION_TIMESTEPS:
        return read_timesteps(map, name, c);
    case PSLD_CONDITION_EDM:
    case PSLD_CONDITION_OURS:
        c->sigma_max = infinite;
        PSLD_TRY(read_between(map, "sigma_data", 1e-6, 1e6, &c->deviation));
        break;
    }
    PSLD_TRY(read_between(map, "sigma_min", 0, 1e9, &c->sigma_min));
    return read_between(map, "sigma_max", 1e-9, infinite, &c->sigma_max);
}

static const char *const keys[] = {"kind",       "sigma_data", "sigma_min", "sigma_max", "beta_d",   "beta_min",
                                   "epsilon_t",  "steps",      "c1",        "c2",        "schedule", "timesteps",
                                   "beta_start", "beta_end",   "betas",     "predicts",  NULL};

/* All but the kind. */
static psld_status read_rest(const psld_node *map, const psld_node *name, int kind, psld_conditioning *c)
{
    double steps = 1000;
    *c = (psld_conditioning){.kind = (psld_conditioning_kind)kind, .deviation = 0.5};
    PSLD_TRY(read_between(map, "steps", 2, MAX_STEPS, &steps));
    c->steps = (size_t)steps;
    return read_kind(map, name, c);
}

psld_status psld_conditioning_read(const psld_node *map, psld_conditioning *c)
{
    const psld_node *kind = psld_node_get(map, "kind");
    int which = 0;
    *c = (psld_conditioning){0};
    PSLD_TRY(psld_node_check_keys(map, keys));
    if (!kind) return psld_node_fail(map, "kind is missing: one of " KINDS);
    PSLD_TRY(psld_node_choice(kind, KINDS, &which));
    return read_rest(map, psld_node_get(map, "schedule"), which + 1, c);
}

psld_status psld_conditioning_read_short(const psld_node *node, psld_conditioning *c)
{
    const psld_node *name = psld_node_get(node, "timesteps");
    int which = 0;
    *c = (psld_conditioning){0};
    if (name) {
        PSLD_TRY(psld_node_check_keys(node, keys));
        return read_rest(node, name, PSLD_CONDITION_TIMESTEPS, c);
    }
    if (psld_node_kind_of(node) == PSLD_NODE_MAP) return psld_conditioning_read(node, c);
    PSLD_TRY(psld_node_choice(node, KINDS, &which));
    return read_rest(node, NULL, which + 1, c);
}
