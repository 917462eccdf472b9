/* Options of sampling: their defaults, and the text form of samplers. */
#ifndef PSLD_SAMPLE_OPTIONS_H
#define PSLD_SAMPLE_OPTIONS_H

#include "sample/samplers/sampler.h"

/* A caller's options as a whole struct; NULL: all unset. psld_sample_options_read also fills in the numbers whose default
 * depends on neither recipe, sampler nor model. */
psld_status psld_sample_options_copy(const psld_sample_options *options, psld_sample_options *own);
psld_status psld_sample_options_read(const psld_sample_options *options, psld_sample_options *own);

/* Complete options. They point to the inpainting beside them, or to none. */
typedef struct psld_sample_resolved {
    psld_sample_options options;
    psld_inpainting inpainting;
} psld_sample_resolved;

/* Reads a caller's options, checks them and fills in what is unset. */
psld_status psld_sample_resolve(const psld_recipe *recipe, const psld_sample_options *options,
                                const psld_sampler **sampler, psld_sample_resolved *resolved);
/* Where a sampler ends by itself: at t = 1e-3, or before, at its end_sigma. */
psld_status psld_sample_end(const psld_recipe *recipe, const psld_sampler *sampler, double *eps);
/* A sampler and its options, "NAME [key=value ...]", into options, which keep all that the text does not say. */
psld_status psld_sample_options_parse(const char *text, psld_sample_options *options);

#endif
