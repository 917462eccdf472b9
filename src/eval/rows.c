#include "eval/rows.h"

#include <math.h>

static double number_at(const psld_array *rows, size_t i)
{
    return rows->type == PSLD_F64 ? ((const double *)rows->data)[i] : (double)((const float *)rows->data)[i];
}

psld_status psld_rows_check(const psld_array *rows, const char *what)
{
    if ((rows->type != PSLD_F32 && rows->type != PSLD_F64) || rows->rank != 2 || rows->shape[1] == 0)
        return psld_fail(PSLD_BAD_INPUT, "%s: expected features [n, d] of float32 or float64", what);
    for (size_t i = 0; i < rows->count; i++)
        if (!isfinite(number_at(rows, i)))
            return psld_fail(PSLD_BAD_INPUT, "%s: number %zu of row %zu is not finite", what, i % rows->shape[1],
                             i / rows->shape[1]);
    return PSLD_OK;
}

psld_status psld_rows_check_pair(const psld_array *a, const psld_array *b, const char *metric, size_t need)
{
    PSLD_TRY(psld_rows_check(a, metric));
    PSLD_TRY(psld_rows_check(b, metric));
    if (a->shape[1] != b->shape[1])
        return psld_fail(PSLD_BAD_INPUT, "%s: the features of the first set have %zu numbers, those of the second %zu",
                         metric, a->shape[1], b->shape[1]);
    size_t least = a->shape[0] < b->shape[0] ? a->shape[0] : b->shape[0];
    if (least < need)
        return psld_fail(PSLD_BAD_INPUT, "%s: needs at least %zu images in each set, found %zu", metric, need, least);
    return PSLD_OK;
}

void psld_rows_get(const psld_array *rows, const uint32_t *index, size_t first, size_t count, double *out)
{
    size_t dim = rows->shape[1];
    for (size_t i = 0; i < count; i++) {
        size_t row = index ? index[i] : first + i;
        for (size_t j = 0; j < dim; j++) out[i * dim + j] = number_at(rows, row * dim + j);
    }
}
