/* Inpainting: states whose known part is kept at what is known, while a walk fills in the rest.
 *
 * Given x_0, every coordinate of z_t is N(mean x_0, cov), independently. So the known coordinates of all variables can
 * be drawn at any time without the score, and a walk in which they are replaced by such a draw after every step sees
 * the unknown coordinates follow p(unknown_t | known_t) (the paper's method). Adaptive samplers need slopes that are
 * smooth in t; for them the noise of a sample's known part is drawn once, and the path of the known part is
 *     z_t = mean(t) x_0 + factor(t) n.
 *
 * Resampling walks a stretch from t to u again and again, the unknown part being noised back from u to t between. The
 * forward process itself would do that, but not well: what it adds to the auxiliary variables over a short while has
 * hardly reached the position before the walk takes it back. All that z_u tells of the data is y = x_0 + sigma_u n
 * (psld_collapsed_frame), so the jump is made there: y is noised from sigma_u to sigma_t, and z_t drawn given y. With k = 1 that is
 * the forward process; for every recipe it takes p_u to p_t, and the data move as fast as with k = 1. */
#ifndef PSLD_SAMPLE_INPAINT_H
#define PSLD_SAMPLE_INPAINT_H

#include "sample/samplers/sampler.h"

/* A caller's inpainting as a whole struct, with what is unset filled in. */
psld_status psld_inpainting_read(const psld_inpainting *inpainting, psld_inpainting *own);
psld_status psld_inpaint_check(const psld_inpainting *inpainting, const psld_sampler *sampler);

/* Replaces the known part of `count` states z, which begin with state `begin` of the reverse, where a step from time
 * `from` has reached time t: with noise number `draw`, or at t = 0 without noise. Nothing happens in a walk without
 * inpainting. */
void psld_inpaint_apply(const psld_reverse *reverse, size_t begin, size_t count, double from, double t, uint64_t draw,
                        double *z);

/* Takes all states from time u back up to t > u: the jump of resampling, number `jump`. */
psld_status psld_inpaint_diffuse(const psld_reverse *reverse, double u, double t, uint64_t jump);

#endif
