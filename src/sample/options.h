/* Options of sampling: their defaults, and the text form of samplers. */
#ifndef PSLD_SAMPLE_OPTIONS_H
#define PSLD_SAMPLE_OPTIONS_H

#include "sample/samplers/sampler.h"

/* Checks options and fills in what they leave open: sampler, order, detail, grid, evaluations, and eps by
 * end_sigma. */
psld_status psld_sample_resolve(const psld_recipe *recipe, const psld_sample_options *options,
                                const psld_sampler **sampler, psld_sample_options *resolved);
/* A sampler and its options, "NAME [key=value ...]", into options, which keep all that the text does not say. */
psld_status psld_sample_options_parse(const char *text, psld_sample_options *options);

#endif
