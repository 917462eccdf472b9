/* Gauss-Legendre quadrature and collocation on [0, 1] with six nodes: order 12. */
#ifndef PSLD_SAMPLE_QUADRATURE_H
#define PSLD_SAMPLE_QUADRATURE_H

enum { PSLD_NODES = 6 };

typedef struct psld_quadrature {
    double node[PSLD_NODES], weight[PSLD_NODES];
    double partial[PSLD_NODES][PSLD_NODES]; /* integral from 0 to node i of the Lagrange polynomial of node j */
} psld_quadrature;

const psld_quadrature *psld_quadrature_get(void);

/* The Lagrange polynomial of node j among n, at x. */
double psld_lagrange(int n, const double *nodes, int j, double x);

#endif
