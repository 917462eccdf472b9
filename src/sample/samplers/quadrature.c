#include "sample/samplers/quadrature.h"

#include <math.h>
#include <pthread.h>

static psld_quadrature rule;
static pthread_once_t rule_once = PTHREAD_ONCE_INIT;

double psld_lagrange(int n, const double *nodes, int j, double x)
{
    double value = 1;
    for (int m = 0; m < n; m++)
        if (m != j) value *= (x - nodes[m]) / (nodes[j] - nodes[m]);
    return value;
}

/* The Legendre polynomial of degree PSLD_NODES on [-1, 1], and its derivative. */
static double legendre(double x, double *slope)
{
    double before = 1, now = x;
    for (int n = 2; n <= PSLD_NODES; n++) {
        double next = ((2 * n - 1) * x * now - (n - 1) * before) / n;
        before = now;
        now = next;
    }
    *slope = PSLD_NODES * (x * now - before) / (x * x - 1);
    return now;
}

static void fill_rule(void)
{
    double slope;
    for (int i = 0; i < PSLD_NODES; i++) {
        double x = -cos(3.14159265358979323846 * (i + 0.75) / (PSLD_NODES + 0.5));
        for (int newton = 0; newton < 10; newton++) x -= legendre(x, &slope) / slope;
        legendre(x, &slope);
        rule.node[i] = (1 + x) / 2;
        rule.weight[i] = 1 / ((1 - x * x) * slope * slope);
    }
    for (int i = 0; i < PSLD_NODES; i++)
        for (int j = 0; j < PSLD_NODES; j++) /* the rule itself integrates a polynomial exactly */
            for (int m = 0; m < PSLD_NODES; m++)
                rule.partial[i][j] += rule.node[i] * rule.weight[m] *
                                      psld_lagrange(PSLD_NODES, rule.node, j, rule.node[i] * rule.node[m]);
}

const psld_quadrature *psld_quadrature_get(void)
{
    pthread_once(&rule_once, fill_rule);
    return &rule;
}
