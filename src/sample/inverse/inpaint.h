/* Inpainting: the known part of a state is replaced by what is known, while the reverse process fills in the rest.
 *
 * Given x_0, the coordinates of z_t are independent, each N(mu x_0, Sigma). So the known coordinates of all variables can
 * be drawn at any time without the score. If they are replaced by such a draw after every reverse step, the unknown
 * coordinates follow p(unknown_t | known_t). This is the paper's method (Sec. 4.4). Adaptive samplers need slopes that are
 * smooth in t. For them the noise n of a sample's known part is drawn once, and the known part follows the trajectory
 *     z_t = mu(t) x_0 + L(t) n.
 *
 * Resampling (as in RePaint) repeats the reverse steps from t to u. Before each repetition the state is noised from u
 * back to t. The forward process is a poor choice for that: the noise that it adds to the auxiliary variables has hardly
 * reached the position before the reverse steps remove it. Instead the sufficient statistic y = x_0 + sigma_u n
 * (collapsed_frame.h) is noised from sigma_u to sigma_t, and z_t is drawn given y. For k = 1 this is the forward process.
 * For every recipe it takes p_u to p_t, and the data change as fast as for k = 1. */
#ifndef PSLD_SAMPLE_INPAINT_H
#define PSLD_SAMPLE_INPAINT_H

#include "sample/samplers/sampler.h"

/* Copies a caller's struct into one of this version, with defaults for what is unset. */
psld_status psld_inpainting_read(const psld_inpainting *inpainting, psld_inpainting *own);
psld_status psld_inpaint_check(const psld_inpainting *inpainting, const psld_sampler *sampler);

/* Replaces the known part of `count` states z after a reverse step from time `from` to t. The first of them is state
 * `begin` of the batch. `draw` is the address of the noise; at t = 0 there is none. Without inpainting it does nothing. */
void psld_inpaint_apply(const psld_reverse *reverse, size_t begin, size_t count, double from, double t, uint64_t draw,
                        double *z);

/* Noises all states from time u back to t > u: jump number `jump` of resampling. */
psld_status psld_inpaint_diffuse(const psld_reverse *reverse, double u, double t, uint64_t jump);

#endif
