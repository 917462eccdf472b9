/* Langevin corrector steps at a fixed time. They leave p_t unchanged and so reduce the errors of the reverse steps.
 *
 * The predicted variables, given the others, have the kernel covariance L L' (L: their block of the factor) and the score
 * -L^-T eps. A Langevin step of size a, preconditioned with L L', is
 *     z <- z - a L eps + sqrt(2 a) L n.
 * With sqrt(2 a - a^2) in place of sqrt(2 a), equal to first order, the step is exact where noise dominates: there
 * eps = L^-1 (z - ...) is standard normal, and the step replaces a part of it by fresh noise at constant variance. If eps
 * belongs to the kernel given z_0, with factor S, then L' S^-T eps is the eps of the same score (denoiser.h). */
#include <math.h>
#include <string.h>

#include "sample/corrector.h"

psld_status psld_corrector_plan(const psld_recipe *recipe, double t, double size, psld_affine *affine)
{
    double factor[PSLD_MATRIX_SIZE], block[PSLD_MATRIX_SIZE] = {0}, square[PSLD_MATRIX_SIZE];
    int k = recipe->spec.k, predicted = recipe->predicted;
    const int *variable = recipe->variable;
    PSLD_TRY(psld_recipe_factor(recipe, t, PSLD_HSM, factor, NULL));
    psld_affine_identity(recipe, affine);
    for (int r = 0; r < predicted; r++)
        for (int c = 0; c < predicted; c++) {
            int a = variable[r], b = variable[c];
            block[a * k + b] = factor[a * k + b];
            affine->eps[a * predicted + c] = -size * factor[a * k + b];
            affine->noise[a * k + b] = sqrt(2 * size - size * size) * factor[a * k + b];
        }
    if (recipe->spec.mode == PSLD_HSM) return PSLD_OK;
    psld_matrix_multiply_t(k, block, block, square);
    for (int i = 0; i < k * k; i++) square[i] *= size;
    return psld_affine_score(recipe, t, square, affine);
}
