/* The network of a golden folder on one backend, with gradients, against the numbers there, on poisoned memory. */
#ifndef PSLD_TESTS_NETWORK_CHECK_H
#define PSLD_TESTS_NETWORK_CHECK_H

#include "model/networks/network.h"

/* Both sides round to float32 at each operation, about 60 deep. */
#define NETWORK_GRADIENT_TOLERANCE 5e-5

/* Largest difference over the largest value, or over `floor_value` where that is more. */
double network_error(const float *found, const float *expected, size_t count, double floor_value);
/* The output within `tolerance` of its largest value; `file` says where the weights are from. */
void network_check(const char *folder, const char *file, const psld_network *network, const psld_backend *backend,
                   double tolerance);

#endif
