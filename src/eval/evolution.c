#include "eval/evolution.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "process/matrix.h"

#define TARGET    (2.0 / 11) /* intended rate of successes: with more of them, larger steps pay */
#define AVERAGING (1.0 / 12)
#define THRESHOLD 0.44 /* with a higher rate the step is too small to learn a direction */

struct psld_evolution {
    int n;
    double *parent, *trial, *normal, *move, *path; /* [n] */
    double *cov, *root;                            /* [n][n] */
    double step, successes, cost;
    uint64_t seed, number, count;
};

void psld_evolution_free(psld_evolution *evolution)
{
    if (!evolution) return;
    psld_release(evolution->parent);
    psld_release(evolution);
}

psld_status psld_evolution_create(int n, const double *start, double cost, double step, uint64_t seed, uint64_t number,
                                  psld_evolution **evolution)
{
    size_t width = (size_t)n;
    *evolution = NULL;
    psld_evolution *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->parent = psld_alloc(5 * width + 2 * width * width, sizeof(double));
    if (!made->parent) {
        psld_evolution_free(made);
        return PSLD_NO_MEMORY;
    }
    made->n = n;
    made->trial = made->parent + width;
    made->normal = made->trial + width;
    made->move = made->normal + width;
    made->path = made->move + width;
    made->cov = made->path + width;
    made->root = made->cov + width * width;
    memcpy(made->parent, start, width * sizeof *start);
    psld_matrix_identity(n, made->cov);
    psld_matrix_identity(n, made->root);
    made->step = step;
    made->successes = TARGET;
    made->cost = cost;
    made->seed = seed;
    made->number = number;
    *evolution = made;
    return PSLD_OK;
}

const double *psld_evolution_propose(psld_evolution *e)
{
    int n = e->n;
    psld_random_normal(e->seed, PSLD_FOR_SEARCH, e->number, e->count++, 0, (size_t)n, e->normal);
    for (int i = 0; i < n; i++) {
        e->move[i] = 0;
        for (int j = 0; j <= i; j++) e->move[i] += e->root[i * n + j] * e->normal[j];
        e->trial[i] = e->parent[i] + e->step * e->move[i];
    }
    return e->trial;
}

/* A successful move makes moves in its direction more likely. */
static void learn_direction(psld_evolution *e)
{
    int n = e->n;
    double path_rate = 2.0 / (n + 2), rate = 2.0 / (n * (double)n + 6), keep = 1 - rate, gain = 0;
    if (e->successes < THRESHOLD)
        gain = sqrt(path_rate * (2 - path_rate));
    else
        keep += rate * path_rate * (2 - path_rate);
    for (int i = 0; i < n; i++) e->path[i] = (1 - path_rate) * e->path[i] + gain * e->move[i];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) e->cov[i * n + j] = keep * e->cov[i * n + j] + rate * e->path[i] * e->path[j];
    psld_matrix_cholesky(n, e->cov, e->root);
}

void psld_evolution_tell(psld_evolution *e, double cost)
{
    int success = cost <= e->cost;
    e->successes = (1 - AVERAGING) * e->successes + AVERAGING * success;
    e->step *= exp((e->successes - TARGET) / ((1 - TARGET) * (1 + e->n / 2.0)));
    if (!success) return;
    e->cost = cost;
    memcpy(e->parent, e->trial, (size_t)e->n * sizeof *e->parent);
    learn_direction(e);
}
