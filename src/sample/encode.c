/* From data to noise: states for given data at the end of a walk, to be taken up to t = 1.
 *
 * A state is put together of y = x, as if the data had been seen through the effective noise there, and of a rest xi that
 * tells nothing of them (psld_split), drawn by address. A walk back down returns to y = x. */
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "sample/multistep.h"

psld_status psld_encode_start(const psld_recipe *recipe, int exact, double t, uint64_t seed, uint64_t first,
                              size_t count, size_t dim, const double *x, double *z)
{
    psld_split split;
    size_t k = (size_t)recipe->spec.k;
    PSLD_TRY(psld_split_plan(recipe, exact, t, &split));
    double *xi = psld_alloc(k * dim, sizeof *xi);
    if (!xi) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        double *state = z + i * k * dim;
        psld_random_normal(seed, PSLD_FOR_REST, first + i, 1, 0, k * dim, xi);
        for (size_t j = 0; j < dim; j++) xi[j] = x[i * dim + j] / split.sigma;
        memset(state, 0, k * dim * sizeof *state);
        for (size_t a = 0; a < k; a++)
            for (size_t b = 0; b < k; b++)
                for (size_t j = 0; j < dim; j++) state[a * dim + j] += split.frame[a * k + b] * xi[b * dim + j];
    }
    psld_release(xi);
    return PSLD_OK;
}
