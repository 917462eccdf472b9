/* Normal numbers from random words. */
#ifndef PSLD_BASE_QUANTILE_H
#define PSLD_BASE_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

enum { PSLD_QUANTILES = 256 }; /* at a time: all that belongs to them stays in the nearest cache */

/* The middle of one of 2^52 equal cells, so 0 and 1 never occur and u and 1 - u are equally likely. With 2^53 cells, the
 * last middle would not be a double and would round to 1. */
double psld_word_uniform(uint64_t word);

/* out[i] = the inverse normal distribution function of psld_word_uniform(words[i]), relative error about 1e-16. At most
 * PSLD_QUANTILES of them. */
void psld_word_normals(size_t count, const uint64_t *words, double *out);

/* The same, compiled for one of several instruction sets: 0 for all processors, NULL where this one lacks it. All have
 * the same bits. */
enum { PSLD_WORD_NORMALS_FORMS = 3 };
typedef void (*psld_word_normals_fn)(size_t count, const uint64_t *words, double *out);
psld_word_normals_fn psld_word_normals_form(int form);

#endif
