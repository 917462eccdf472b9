/* Options of sampling: defaults, checks, and the text form of samplers. */
#ifndef PSLD_SAMPLE_OPTIONS_H
#define PSLD_SAMPLE_OPTIONS_H

#include "sample/samplers/sampler.h"

/* Copies a caller's options into a struct of this version; NULL: all unset. psld_sample_options_read also fills in the
 * numbers whose default does not depend on recipe, sampler or model. */
psld_status psld_sample_options_copy(const psld_sample_options *options, psld_sample_options *own);
psld_status psld_sample_options_read(const psld_sample_options *options, psld_sample_options *own);

/* Complete options. options.inpainting is NULL or points to `inpainting`. */
typedef struct psld_sample_resolved {
    psld_sample_options options;
    psld_inpainting inpainting;
} psld_sample_resolved;

/* Reads a caller's options, checks them and fills in what is unset. */
psld_status psld_sample_resolve(const psld_recipe *recipe, const psld_sample_options *options,
                                const psld_sampler **sampler, psld_sample_resolved *resolved);
/* The smallest time of a sampler if none is asked for: 1e-3, or the time of its end_sigma if that is larger. */
psld_status psld_sample_t_min(const psld_recipe *recipe, const psld_sampler *sampler, double *t_min);
/* Parses "NAME [key=value ...]", a sampler and its options. Options that the text does not name are kept. */
psld_status psld_sample_options_parse(const char *text, psld_sample_options *options);

#endif
