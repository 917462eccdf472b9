#include "sample/samplers/quadrature.h"

#include <math.h>
#include <pthread.h>

static psld_quadrature gauss_rule;
static pthread_once_t gauss_rule_once = PTHREAD_ONCE_INIT;

double psld_lagrange(int n, const double *nodes, int j, double x)
{
    double value = 1;
    for (int m = 0; m < n; m++)
        if (m != j) value *= (x - nodes[m]) / (nodes[j] - nodes[m]);
    return value;
}

/* The Legendre polynomial of degree PSLD_NODES on [-1, 1], and its derivative. */
static double legendre_value(double x, double *slope)
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

static void fill_gauss_rule(void)
{
    double slope;
    for (int i = 0; i < PSLD_NODES; i++) {
        double x = -cos(3.14159265358979323846 * (i + 0.75) / (PSLD_NODES + 0.5));
        for (int newton = 0; newton < 10; newton++) x -= legendre_value(x, &slope) / slope;
        legendre_value(x, &slope);
        gauss_rule.node[i] = (1 + x) / 2;
        gauss_rule.weight[i] = 1 / ((1 - x * x) * slope * slope);
    }
    for (int i = 0; i < PSLD_NODES; i++)
        for (int j = 0; j < PSLD_NODES; j++) /* exact: the rule integrates polynomials of degree 11 */
            for (int m = 0; m < PSLD_NODES; m++)
                gauss_rule.partial[i][j] +=
                    gauss_rule.node[i] * gauss_rule.weight[m] *
                    psld_lagrange(PSLD_NODES, gauss_rule.node, j, gauss_rule.node[i] * gauss_rule.node[m]);
}

const psld_quadrature *psld_quadrature_get(void)
{
    pthread_once(&gauss_rule_once, fill_gauss_rule);
    return &gauss_rule;
}
