#include "sample/inverse/operator.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/sized.h"
#include "base/table.h"
#include "process/matrix.h"

typedef void (*linear_fn)(const psld_operator *op, const double *in, double *work, double *out);

struct psld_task_row {
    psld_task_info info;
    psld_status (*plan)(psld_operator *op, const psld_task *task);
    linear_fn forward, adjoint;
    void (*rotate)(const psld_operator *op, int back, const double *y, double *work, double *out); /* NULL: U = 1 */
};

/* ---- Denoising: A = 1 -------------------------------------------------------------------------------------------- */

static void set_measurement_shape(psld_operator *op, size_t channels, size_t height, size_t width)
{
    size_t image[3] = {channels, height, width}, vector = height * width;
    int is_image = op->rank == 3;
    op->size = channels * height * width;
    memcpy(op->shape, is_image ? image : &vector, (size_t)op->rank * sizeof *op->shape);
}

static psld_status fill_squares(psld_operator *op, double square)
{
    op->squares = psld_alloc(op->size, sizeof *op->squares);
    if (!op->squares) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < op->size; i++) op->squares[i] = square;
    return PSLD_OK;
}

static psld_status plan_identity(psld_operator *op, const psld_task *task)
{
    (void)task;
    set_measurement_shape(op, op->channels, op->height, op->width);
    return fill_squares(op, 1);
}

static void identity_forward(const psld_operator *op, const double *x, double *work, double *y)
{
    (void)work;
    memcpy(y, x, op->dim * sizeof *x);
}

static void identity_adjoint(const psld_operator *op, const double *y, double *work, double *x)
{
    (void)work;
    memcpy(x, y, op->dim * sizeof *x);
}

/* ---- Inpainting: A selects the known elements, A A' = 1 ---------------------------------------------------------- */

static psld_status plan_known(psld_operator *op, const psld_task *task)
{
    if (!task->known) return psld_fail(PSLD_BAD_ARGUMENT, "inpaint: known: expected an array, found NULL");
    op->known = psld_alloc(op->dim, sizeof *op->known);
    if (!op->known) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < op->dim; i++)
        if (task->known[i]) op->known[op->size++] = i;
    if (op->size == 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "inpaint: known: expected at least one known element, found none");
    op->rank = 1;
    op->shape[0] = op->size;
    return fill_squares(op, 1);
}

static void known_forward(const psld_operator *op, const double *x, double *work, double *y)
{
    (void)work;
    for (size_t i = 0; i < op->size; i++) y[i] = x[op->known[i]];
}

static void known_adjoint(const psld_operator *op, const double *y, double *work, double *x)
{
    (void)work;
    memset(x, 0, op->dim * sizeof *x);
    for (size_t i = 0; i < op->size; i++) x[op->known[i]] = y[i];
}

/* ---- Super-resolution: A averages blocks, A A' = 1 / numbers in a block ------------------------------------------ */

static psld_status plan_blocks(psld_operator *op, const psld_task *task)
{
    if (task->factor < 1) return psld_fail(PSLD_BAD_ARGUMENT, "factor: expected at least 1, found %d", task->factor);
    op->factor[1] = (size_t)task->factor;
    op->factor[0] = op->height == 1 ? 1 : op->factor[1];
    if (op->height % op->factor[0] != 0 || op->width % op->factor[1] != 0)
        return psld_fail(PSLD_BAD_ARGUMENT, "super-resolution: factor: expected one that divides %zu x %zu, found %d",
                         op->height, op->width, task->factor);
    set_measurement_shape(op, op->channels, op->height / op->factor[0], op->width / op->factor[1]);
    return fill_squares(op, 1.0 / (double)(op->factor[0] * op->factor[1]));
}

static size_t block_of(const psld_operator *op, size_t row, size_t column)
{
    return row / op->factor[0] * (op->width / op->factor[1]) + column / op->factor[1];
}

static void blocks_forward(const psld_operator *op, const double *x, double *work, double *y)
{
    (void)work;
    double share = 1.0 / (double)(op->factor[0] * op->factor[1]);
    memset(y, 0, op->size * sizeof *y);
    for (size_t row = 0; row < op->channels * op->height; row++)
        for (size_t column = 0; column < op->width; column++)
            y[block_of(op, row, column)] += share * x[row * op->width + column];
}

static void blocks_adjoint(const psld_operator *op, const double *y, double *work, double *x)
{
    (void)work;
    double share = 1.0 / (double)(op->factor[0] * op->factor[1]);
    for (size_t row = 0; row < op->channels * op->height; row++)
        for (size_t column = 0; column < op->width; column++)
            x[row * op->width + column] = share * y[block_of(op, row, column)];
}

/* ---- Colouring: A is the luma of a colour, A A' = sum of its squared weights ------------------------------------- */

static psld_status plan_grey(psld_operator *op, const psld_task *task)
{
    static const double luma[3] = {0.299, 0.587, 0.114};
    (void)task;
    if (op->rank != 3 || op->channels != 3)
        return psld_fail(PSLD_BAD_ARGUMENT, "colorize: expected a model of images with 3 channels, found %zu",
                         op->channels);
    memcpy(op->weight, luma, sizeof luma);
    set_measurement_shape(op, 1, op->height, op->width);
    return fill_squares(op, luma[0] * luma[0] + luma[1] * luma[1] + luma[2] * luma[2]);
}

static void grey_forward(const psld_operator *op, const double *x, double *work, double *y)
{
    (void)work;
    for (size_t i = 0; i < op->size; i++)
        y[i] = op->weight[0] * x[i] + op->weight[1] * x[op->size + i] + op->weight[2] * x[2 * op->size + i];
}

static void grey_adjoint(const psld_operator *op, const double *y, double *work, double *x)
{
    (void)work;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < op->size; i++) x[c * op->size + i] = op->weight[c] * y[i];
}

/* ---- Deblurring: A is a periodic convolution with a Gaussian, down and across ------------------------------------ */

static const double two_pi = 6.28318530717958647693;

/* Periodic convolution weights for n pixels: a Gaussian wrapped around, cut where it is below 1e-12. */
static void periodic_gaussian(size_t n, double deviation, double *ring)
{
    double sum = 0;
    long reach = (long)ceil(7.5 * deviation);
    memset(ring, 0, n * sizeof *ring);
    for (long i = -reach; i <= reach; i++) {
        long index = i % (long)n;
        double x = (double)i / deviation, value = exp(-x * x / 2); /* the square of a tiny deviation would underflow */
        ring[index < 0 ? index + (long)n : index] += value;
        sum += value;
    }
    for (size_t i = 0; i < n; i++) ring[i] /= sum;
}

/* The matrices of one direction, and the eigenvalue of each frequency (real, since the weights are symmetric). */
static psld_status plan_blur_direction(size_t n, double deviation, double **blur, double **hartley, double **response)
{
    *blur = psld_alloc(n, n * sizeof(double));
    *hartley = *blur ? psld_alloc(n, n * sizeof(double)) : NULL;
    *response = *hartley ? psld_alloc(2 * n, sizeof(double)) : NULL;
    if (!*response) return PSLD_NO_MEMORY;
    double *ring = *response + n;
    periodic_gaussian(n, deviation, ring);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double angle = two_pi * (double)(i * j % n) / (double)n;
            (*blur)[i * n + j] = ring[(i + n - j) % n];
            (*hartley)[i * n + j] = (cos(angle) + sin(angle)) / sqrt((double)n);
            (*response)[i] += ring[j] * cos(angle);
        }
    return PSLD_OK;
}

static psld_status plan_blur(psld_operator *op, const psld_task *task)
{
    double *down = NULL, *across = NULL;
    if (!(task->blur > 0 && task->blur <= 100))
        return psld_fail(PSLD_BAD_ARGUMENT, "blur: expected a deviation in (0, 100] pixels, found %g", task->blur);
    set_measurement_shape(op, op->channels, op->height, op->width);
    psld_status status = fill_squares(op, 1);
    if (status == PSLD_OK) status = plan_blur_direction(op->height, task->blur, &op->blur[0], &op->hartley[0], &down);
    if (status == PSLD_OK) status = plan_blur_direction(op->width, task->blur, &op->blur[1], &op->hartley[1], &across);
    for (size_t i = 0; status == PSLD_OK && i < op->size; i++) {
        double value = down[i / op->width % op->height] * across[i % op->width];
        op->squares[i] = value * value;
    }
    psld_release(down);
    psld_release(across);
    return status;
}

/* Applies one symmetric matrix along the columns of an image and one along its rows. */
static void apply_separable(const psld_operator *op, double *const matrix[2], const double *in, double *work,
                            double *out)
{
    size_t width = op->width, height = op->height;
    memset(work, 0, op->dim * sizeof *work);
    memset(out, 0, op->dim * sizeof *out);
    for (size_t row = 0; row < op->channels * height; row++)
        for (size_t j = 0; j < width; j++)
            for (size_t i = 0; i < width; i++) work[row * width + i] += matrix[1][j * width + i] * in[row * width + j];
    for (size_t row = 0; row < op->channels * height; row++)
        for (size_t j = 0; j < height; j++) {
            double f = matrix[0][row % height * height + j];
            const double *from = work + (row - row % height + j) * width;
            for (size_t i = 0; i < width; i++) out[row * width + i] += f * from[i];
        }
}

static void blur_forward(const psld_operator *op, const double *in, double *work, double *out)
{
    apply_separable(op, op->blur, in, work, out);
}

static void rotate_hartley(const psld_operator *op, int back, const double *y, double *work, double *out)
{
    (void)back; /* it is its own inverse */
    apply_separable(op, op->hartley, y, work, out);
}

/* ---- Any matrix -------------------------------------------------------------------------------------------------- */

enum { MAX_MATRIX_ROWS = 512 };

/* Makes a diagonal; rows of `vectors` become its eigenvectors. */
static void jacobi_diagonalise(size_t n, double *a, double *vectors)
{
    double size = 0;
    for (size_t i = 0; i < n; i++) vectors[i * n + i] = 1, size = fmax(size, a[i * n + i]);
    for (int sweep = 0; sweep < 60; sweep++) {
        double largest = 0;
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++) {
                largest = fmax(largest, fabs(a[p * n + q]));
                if (fabs(a[p * n + q]) > 1e-17 * size) psld_matrix_rotate(n, p, q, a, vectors);
            }
        if (largest <= 1e-15 * size) return;
    }
}

static psld_status plan_matrix(psld_operator *op, const psld_task *task)
{
    if (!task->matrix || task->rows < 1 || task->rows > MAX_MATRIX_ROWS)
        return psld_fail(PSLD_BAD_ARGUMENT, "matrix: expected 1 to %d rows, found %d", MAX_MATRIX_ROWS, task->rows);
    op->rank = 1;
    op->size = op->shape[0] = (size_t)task->rows;
    op->matrix = psld_copy_bytes(task->matrix, op->size * op->dim * sizeof(double));
    op->vectors = psld_alloc(op->size, op->size * sizeof(double));
    double *square = psld_alloc(op->size, op->size * sizeof(double));
    if (!op->matrix || !op->vectors || !square || fill_squares(op, 0) != PSLD_OK) {
        psld_release(square);
        return PSLD_NO_MEMORY;
    }
    for (size_t i = 0; i < op->size; i++)
        for (size_t j = 0; j < op->size; j++)
            for (size_t l = 0; l < op->dim; l++)
                square[i * op->size + j] += op->matrix[i * op->dim + l] * op->matrix[j * op->dim + l];
    jacobi_diagonalise(op->size, square, op->vectors);
    for (size_t i = 0; i < op->size; i++) op->squares[i] = fmax(square[i * op->size + i], 0);
    psld_release(square);
    return PSLD_OK;
}

/* out [rows] = matrix in, or out [columns] = matrix' in. */
static void multiply_vector(size_t rows, size_t columns, const double *matrix, const double *in, double *out)
{
    for (size_t i = 0; i < rows; i++) {
        out[i] = 0;
        for (size_t j = 0; j < columns; j++) out[i] += matrix[i * columns + j] * in[j];
    }
}

static void multiply_transposed(size_t rows, size_t columns, const double *matrix, const double *in, double *out)
{
    memset(out, 0, columns * sizeof *out);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) out[j] += matrix[i * columns + j] * in[i];
}

static void matrix_forward(const psld_operator *op, const double *x, double *work, double *y)
{
    (void)work;
    multiply_vector(op->size, op->dim, op->matrix, x, y);
}

static void matrix_adjoint(const psld_operator *op, const double *y, double *work, double *x)
{
    (void)work;
    multiply_transposed(op->size, op->dim, op->matrix, y, x);
}

static void rotate_matrix(const psld_operator *op, int back, const double *y, double *work, double *out)
{
    (void)work;
    if (back)
        multiply_transposed(op->size, op->size, op->vectors, y, out);
    else
        multiply_vector(op->size, op->size, op->vectors, y, out);
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static const psld_task_row tasks[] = {
    {{.name = "super-resolution", .summary = "means of blocks", .uses_factor = 1},
     plan_blocks,
     blocks_forward,
     blocks_adjoint,
     NULL},
    {{.name = "deblur", .summary = "a Gaussian blur, periodic at the edges", .uses_blur = 1},
     plan_blur,
     blur_forward,
     blur_forward,
     rotate_hartley},
    {{.name = "colorize", .summary = "the luma of colours", .needs_colour = 1},
     plan_grey,
     grey_forward,
     grey_adjoint,
     NULL},
    {{.name = "denoise", .summary = "the data themselves"}, plan_identity, identity_forward, identity_adjoint, NULL},
    {{.name = "inpaint", .summary = "some of the data", .uses_known = 1},
     plan_known,
     known_forward,
     known_adjoint,
     NULL},
    {{.name = "linear", .summary = "any matrix of at most 512 rows", .uses_matrix = 1},
     plan_matrix,
     matrix_forward,
     matrix_adjoint,
     rotate_matrix},
};

const psld_task_info *psld_task_at(int index)
{
    return PSLD_TABLE_AT(tasks, index);
}

const psld_task_info *psld_task_find(const char *name)
{
    return PSLD_TABLE_FIND(tasks, "task", name);
}

static psld_status read_task(const psld_task *task, psld_task *own)
{
    PSLD_TRY(psld_sized_check(task, sizeof *own, "PSLD_TASK_DEFAULTS"));
    PSLD_TRY(PSLD_SIZED_READ(psld_task, task, own, PSLD_TASK_DEFAULTS));
    if (!own->name) own->name = tasks[0].info.name;
    PSLD_FILL_ZERO(own->factor, 4);
    PSLD_FILL_UNSET(own->blur, 2);
    return PSLD_OK;
}

static psld_status read_data_shape(const psld_task *task, psld_operator *op)
{
    if (task->rank != 1 && task->rank != 3)
        return psld_fail(PSLD_BAD_ARGUMENT, "restore: expected vectors or images, found data of rank %d", task->rank);
    op->rank = task->rank;
    op->channels = task->rank == 3 ? task->shape[0] : 1;
    op->height = task->rank == 3 ? task->shape[1] : 1;
    op->width = task->shape[task->rank - 1];
    PSLD_TRY(psld_check_doubles("restore", op->channels, op->height, op->width));
    op->dim = op->channels * op->height * op->width;
    return op->dim ? PSLD_OK : psld_fail(PSLD_BAD_ARGUMENT, "restore: expected data of at least one number");
}

psld_status psld_operator_create(const psld_task *task, psld_operator **op)
{
    psld_task own;
    *op = NULL;
    PSLD_TRY(read_task(task, &own));
    const psld_task_row *row = PSLD_TABLE_FIND(tasks, "task", own.name);
    if (!row) return PSLD_BAD_ARGUMENT;
    psld_operator *made = psld_alloc(1, sizeof *made);
    if (!made) return PSLD_NO_MEMORY;
    made->task = row;
    psld_status status = read_data_shape(&own, made);
    if (status == PSLD_OK) status = row->plan(made, &own);
    if (status != PSLD_OK) {
        psld_operator_free(made);
        return status;
    }
    *op = made;
    return PSLD_OK;
}

void psld_operator_free(psld_operator *op)
{
    if (!op) return;
    psld_release(op->squares);
    psld_release(op->known);
    for (int i = 0; i < 2; i++) {
        psld_release(op->blur[i]);
        psld_release(op->hartley[i]);
    }
    psld_release(op->matrix);
    psld_release(op->vectors);
    psld_release(op);
}

int psld_operator_shape(const psld_operator *op, size_t shape[PSLD_MAX_RANK])
{
    memcpy(shape, op->shape, sizeof op->shape);
    return op->rank;
}

void psld_operator_forward(const psld_operator *op, const double *x, double *work, double *y)
{
    op->task->forward(op, x, work, y);
}

void psld_operator_adjoint(const psld_operator *op, const double *y, double *work, double *x)
{
    op->task->adjoint(op, y, work, x);
}

void psld_operator_rotate(const psld_operator *op, int back, const double *y, double *work, double *out)
{
    if (op->task->rotate)
        op->task->rotate(op, back, y, work, out);
    else
        memcpy(out, y, op->size * sizeof *out);
}

/* y itself if it has the shape of the data; grey for all channels; else A' (A A')^-1 y, where A A' is one number. */
psld_status psld_operator_show(const psld_operator *op, const double *y, double *x)
{
    double *work = psld_alloc(op->dim, sizeof *work);
    if (!work) return PSLD_NO_MEMORY;
    psld_operator_adjoint(op, y, work, x);
    for (size_t i = 0; i < op->dim; i++) {
        if (op->size == op->dim)
            x[i] = y[i];
        else if (op->weight[0] > 0)
            x[i] = y[i % op->size];
        else if (!op->vectors)
            x[i] /= op->squares[0];
    }
    psld_release(work);
    return PSLD_OK;
}

psld_status psld_operator_measure(const psld_operator *op, const double *x, double noise, uint64_t seed,
                                  uint64_t number, double *y)
{
    double *work = psld_alloc(op->dim > op->size ? op->dim : op->size, sizeof *work);
    if (!work) return PSLD_NO_MEMORY;
    psld_operator_forward(op, x, work, y);
    if (noise > 0) {
        psld_random_normal(seed, PSLD_FOR_MEASURING, number, 0, 0, op->size, work);
        for (size_t i = 0; i < op->size; i++) y[i] += noise * work[i];
    }
    psld_release(work);
    return PSLD_OK;
}
