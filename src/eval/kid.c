/* Kernel inception distance (Binkowski et al. 2018): the unbiased estimate of the squared maximum mean discrepancy with
 * the kernel (x'y / d + 1)^3, on random subsets of both sets; mean and deviation over subsets. The subsets are those of
 * torch-fidelity: NumPy's RandomState(seed).choice without replacement, first set before second. */
#include <math.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "eval/linear.h"
#include "eval/mersenne.h"
#include "eval/rows.h"
#include "psld_eval.h"

typedef struct discrepancy {
    size_t dim, size;       /* of a subset */
    double *x, *y;          /* [size][dim] */
    double *products;       /* [size][size] */
    uint32_t *order;        /* [larger set] */
    psld_mersenne mersenne; /* draws all subsets one after the other */
} discrepancy;

static void choose_subset(discrepancy *d, const psld_array *from, double *rows)
{
    psld_mersenne_permutation(&d->mersenne, from->shape[0], d->order);
    psld_rows_get(from, d->order, 0, d->size, rows);
}

/* Sum of the kernel over all pairs; with `apart`, without the pairs of a row with itself. */
static psld_status kernel_sum(discrepancy *d, const double *a, const double *b, int apart, double *result)
{
    double sum = 0;
    PSLD_TRY(psld_linear_products(d->dim, d->size, a, d->size, b, d->products));
    for (size_t i = 0; i < d->size; i++)
        for (size_t j = 0; j < d->size; j++) {
            double k = d->products[i * d->size + j] / (double)d->dim + 1;
            if (!apart || i != j) sum += k * k * k;
        }
    *result = sum;
    return PSLD_OK;
}

static psld_status measure_subset(discrepancy *d, double *value)
{
    double n = (double)d->size, within_x, within_y, between;
    PSLD_TRY(kernel_sum(d, d->x, d->x, 1, &within_x));
    PSLD_TRY(kernel_sum(d, d->y, d->y, 1, &within_y));
    PSLD_TRY(kernel_sum(d, d->x, d->y, 0, &between));
    *value = (within_x + within_y) / (n * (n - 1)) - 2 * between / (n * n);
    return PSLD_OK;
}

static psld_status measure_subsets(discrepancy *d, const psld_array *a, const psld_array *b,
                                   const psld_kid_options *options, double *values)
{
    psld_mersenne_seed(&d->mersenne, (uint32_t)options->seed);
    for (int s = 0; s < options->subsets; s++) {
        choose_subset(d, a, d->x);
        choose_subset(d, b, d->y);
        PSLD_TRY(measure_subset(d, &values[s]));
    }
    return PSLD_OK;
}

static psld_status read_kid_options(const psld_kid_options *options, psld_kid_options *own)
{
    PSLD_TRY(PSLD_SIZED_READ(psld_kid_options, options, own, PSLD_KID_DEFAULTS));
    PSLD_FILL_ZERO(own->subsets, 100);
    PSLD_FILL_ZERO(own->subset_size, 1000);
    PSLD_FILL_UNSET(own->seed, 2020);
    if (own->subsets < 1 || own->subset_size < 2)
        return psld_fail(PSLD_BAD_ARGUMENT, "kid: expected subsets of at least 2, and at least one subset");
    if (own->seed < 0 || own->seed > UINT32_MAX)
        return psld_fail(PSLD_BAD_ARGUMENT, "kid: expected a seed from 0 to %u, found %lld", UINT32_MAX,
                         (long long)own->seed);
    return PSLD_OK;
}

psld_status psld_kid(const psld_array *a, const psld_array *b, const psld_kid_options *options, double *mean,
                     double *deviation)
{
    psld_kid_options own;
    PSLD_TRY(read_kid_options(options, &own));
    size_t subsets = (size_t)own.subsets;
    PSLD_TRY(psld_rows_check_pair(a, b, "kid", (size_t)own.subset_size));
    size_t more = a->shape[0] > b->shape[0] ? a->shape[0] : b->shape[0];
    discrepancy d = {.dim = a->shape[1], .size = (size_t)own.subset_size};
    double *values = psld_alloc(subsets, sizeof *values);
    d.x = values ? psld_alloc(d.size, d.dim * sizeof *d.x) : NULL;
    d.y = d.x ? psld_alloc(d.size, d.dim * sizeof *d.y) : NULL;
    d.products = d.y ? psld_alloc(d.size, d.size * sizeof *d.products) : NULL;
    d.order = d.products ? psld_alloc(more, sizeof *d.order) : NULL;
    psld_status status = d.order ? measure_subsets(&d, a, b, &own, values) : PSLD_NO_MEMORY;
    if (status == PSLD_OK) {
        double sum = 0, square = 0, count = (double)subsets;
        for (size_t s = 0; s < subsets; s++) sum += values[s];
        *mean = sum / count;
        for (size_t s = 0; s < subsets; s++) square += (values[s] - *mean) * (values[s] - *mean);
        *deviation = sqrt(square / count);
    }
    psld_release(d.order);
    psld_release(d.products);
    psld_release(d.y);
    psld_release(d.x);
    psld_release(values);
    return status;
}
