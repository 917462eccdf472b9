/* The probability flow of the golden networks on a device, against SciPy: the same number of evaluations, nearly the same
 * result. NULL: the CPU. Skips the test where there are none. */
#ifndef PSLD_TESTS_FLOW_CHECK_H
#define PSLD_TESTS_FLOW_CHECK_H

void flow_check(const char *device);

#endif
