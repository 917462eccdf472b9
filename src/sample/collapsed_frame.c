/* Let a = L^-1 mu, so that |a| = 1 / sigma. The frame is S = L U, where U rotates e_1 to a / |a| in the plane of both. This
 * is the simplest choice that changes smoothly with t. */
#include "sample/collapsed_frame.h"

#include <math.h>

#include "sample/sources/denoiser.h"

/* The rotation that takes e_1 to the unit vector b and fixes everything orthogonal to both. With c = e_1 + b,
 *     U v = v - (c . v) / (1 + b_1) c + 2 v_1 b.
 * Near b = -e_1, 1 + b_1 cancels and is computed from the other coordinates. At b = -e_1 any plane is chosen. */
static void rotate_first_axis(int k, const double *b, double *rotation)
{
    double c[PSLD_MAX_K] = {0}, others = 0;
    for (int i = 1; i < k; i++) others += (c[i] = b[i]) * b[i];
    if (b[0] < 0 && others < 1e-300) others = (c[1] = 1e-150) * 1e-150;
    c[0] = b[0] < 0 ? others / (1 - b[0]) : 1 + b[0];
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) rotation[i * k + j] = (i == j) - c[i] * c[j] / c[0] + (j == 0 ? 2 * b[i] : 0);
}

psld_status psld_collapsed_frame_plan(const psld_recipe *recipe, int exact, double t, psld_collapsed_frame *frame)
{
    psld_gaussian kernel;
    double inverse[PSLD_MATRIX_SIZE], rotation[PSLD_MATRIX_SIZE], back[PSLD_MATRIX_SIZE], a[PSLD_MAX_K] = {0};
    double square = 0;
    int k = recipe->spec.k;
    psld_source_kernel(recipe, exact, t, &kernel);
    psld_matrix_invert_lower(k, kernel.factor, inverse);
    for (int i = 0; i < k; i++) {
        for (int j = 0; j <= i; j++) a[i] += inverse[i * k + j] * kernel.mean[j * k];
        square += a[i] * a[i];
    }
    frame->sigma = 1 / sqrt(square);
    if (!isfinite(frame->sigma)) return psld_fail_singular(recipe, t);
    for (int i = 0; i < k; i++) a[i] *= frame->sigma;
    rotate_first_axis(k, a, rotation);
    psld_matrix_multiply(k, kernel.factor, rotation, frame->frame);
    psld_matrix_transpose(k, rotation, back);
    psld_matrix_multiply(k, back, inverse, frame->inverse);
    return PSLD_OK;
}
