/* Coefficients of Dormand and Prince's pair of orders 5(4). */
#ifndef PSLD_SAMPLE_DORMAND_PRINCE_H
#define PSLD_SAMPLE_DORMAND_PRINCE_H

enum { PSLD_DP_STAGES = 6, PSLD_DP_SLOPES = PSLD_DP_STAGES + 1 };

/* Dormand and Prince (1980), table 2: nodes, coefficients (the last row is the solution of order 5), and the
 * difference to the embedded solution of order 4. */
static const double psld_dp_node[PSLD_DP_SLOPES] = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
static const double psld_dp_coefficient[PSLD_DP_SLOPES][PSLD_DP_STAGES] = {
    {0},
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
static const double psld_dp_error[PSLD_DP_SLOPES] = {-71.0 / 57600,    0,           71.0 / 16695, -71.0 / 1920,
                                                     17253.0 / 339200, -22.0 / 525, 1.0 / 40};

#endif
