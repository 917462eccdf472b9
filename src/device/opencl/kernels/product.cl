/* C = A B in tiles: convolution and its gradients (as implicit products), linear maps, the products of attention, and
 * the middle of Winograd's.
 *
 * A group of GROUP_M x GROUP_N work items computes TILE_M x TILE_N results, each item REG_M x REG_N of them in
 * registers. Slices of 8 of the sum go through local memory, in two buffers: the next slice is on its way while this
 * one is used. A result is one chain of fused multiplications and additions, slice by slice, so that its bits do not
 * depend on how tiles are cut. Results lie in groups of four, GROUP_M (GROUP_N) groups apart, which keeps the reads of
 * neighbours in local memory apart as well.
 *
 * Where the factors come from is chosen when this is compiled:
 *   A_FROM  ROWS      row m holds its sum's numbers: a + m lda + k
 *           COLUMNS   number k of the sum holds all rows: a + k lda + m
 *           PIXELS    row m is a pixel of the result, its numbers are the channels below each tap of a window
 *   B_FROM  PANEL     b + k ldb + n
 *           ROWS      b + n ldb + k
 *           PIXELS    column n is a tap and a channel, number k of the sum is a pixel: the gradient of weights
 *   A_HALF, B_HALF    they are kept in half precision
 *   SPREAD            rows of A lie `spread` apart with zeros between: the gradient of a convolution with strides
 * Where a tile reaches over the edge of a factor, what lies at the edge is read again: these results are not written,
 * and in a sum the other factor is zero there.
 * Vectors are at multiples of four elements, and counted from the beginning of their factor in 32 bits. */
#define ROWS    1
#define COLUMNS 2
#define PIXELS  3
#define PANEL   4

#define SLICE   8
#define TILE_M  (GROUP_M * REG_M)
#define TILE_N  (GROUP_N * REG_N)
#define ITEMS   (GROUP_M * GROUP_N)
/* A slice of A is stored across; four more keep the items that store it apart. */
#define A_LINE  (TILE_M + (ITEMS > 1 ? 4 : 0))
#define B_LINE  (TILE_N + (ITEMS > 1 ? 4 : 0))
/* Vectors that an item brings in for a slice. */
#define A_LOADS ((TILE_M * SLICE / 4 + ITEMS - 1) / ITEMS)
#define B_LOADS ((TILE_N * SLICE / 4 + ITEMS - 1) / ITEMS)
#define A_WHOLE (TILE_M * SLICE / 4 % ITEMS == 0)
#define B_WHOLE (TILE_N * SLICE / 4 % ITEMS == 0)

#define FINISH_BIAS          1
#define FINISH_VECTOR        2
#define FINISH_RESIDUAL      4
#define FINISH_SCALE         8
#define FINISH_RELU          16
#define FINISH_HALF_VECTOR   32 /* these are kept in half precision */
#define FINISH_HALF_RESIDUAL 64
#define FINISH_HALF_OUT      128

/* The same on the host: product.h. Places and lines are in elements. */
typedef struct product_shape {
    long a, b, bias, vector, residual, out; /* where they begin */
    long a_batch, b_batch;                  /* from a product to the next, */
    long out_batch, residual_batch;         /* likewise */
    int m, n, k;                            /* n: a multiple of 4; k of 8 where A comes by rows or pixels */
    int columns;                            /* of n, those that are not zero lanes */
    int b_rows;                             /* lines of a panel */
    int lda, ldb, ldc, ldv, ldr;            /* from a line to the next, also of vector and residual */
    int height, width;                      /* of the pixels that are read */
    int out_height, out_width;              /* of those that are rows of the result, or numbers of the sum */
    int taps_y, taps_x, stride_y, stride_x;
    int pad_y, pad_x, spread_y, spread_x;
    int lanes;                              /* of a tap */
    int chunk;                              /* numbers of the sum that a product of the batch takes; 0: all */
    int finish;
    float by;
} product_shape;

__kernel GROUP_OF(GROUP_N, GROUP_M) void product(__global const float *restrict a, __global const float *restrict b,
                                                 __global const float *restrict bias,
                                                 __global const float *vector, __global const float *residual,
                                                 __global float *out, const product_shape s)
{
    __local float as[2][SLICE * A_LINE] ALIGNED;
    __local float bs[2][SLICE * B_LINE] ALIGNED;
    const int tn = (int)get_local_id(0), tm = (int)get_local_id(1), item = tm * GROUP_N + tn;
    const int first_m = (int)get_group_id(0) * TILE_M, first_n = (int)get_group_id(1) * TILE_N;
    const int batch = (int)get_group_id(2);
    const int begin = s.chunk * batch;
    const int end = s.chunk && begin + s.chunk < s.k ? begin + s.chunk : s.k;
    const int slices = (end - begin + SLICE - 1) / SLICE;
    a = FROM(A_HALF, a, s.a + (s.chunk ? 0 : batch * s.a_batch));
    b = FROM(B_HALF, b, s.b + batch * s.b_batch);
    float4 a_next[A_LOADS], b_next[B_LOADS], sum[REG_M][REG_N / 4];

    /* ---- Where this item's vectors of A come from ---- */
#if A_FROM == PIXELS
    int a_at[A_LOADS], a_y[A_LOADS], a_x[A_LOADS];
    int tap_y = 0, tap_x = 0, channel = 0;
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        const int m = first_m + (item + i * ITEMS) / 2, x = m % s.out_width, line = m / s.out_width;
        a_y[i] = m < s.m ? line % s.out_height * s.stride_y - s.pad_y : -(1 << 29);
        a_x[i] = x * s.stride_x - s.pad_x;
        a_at[i] = line / s.out_height * s.height * s.width * (s.lda / 4) + (item + i * ITEMS) % 2;
    }
#elif A_FROM == ROWS
    int a_at[A_LOADS];
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        const int m = first_m + (item + i * ITEMS) / 2;
        a_at[i] = min(m, s.m - 1) * (s.lda / 4) + (item + i * ITEMS) % 2;
    }
#else
#endif

    /* ---- and of B ---- */
#if B_FROM == PIXELS
    const int step_x = SLICE % s.out_width, step_y = SLICE / s.out_width % s.out_height;
    const int step_image = SLICE / s.out_width / s.out_height;
    int b_y[B_LOADS], b_x[B_LOADS], b_image[B_LOADS], b_tap_y[B_LOADS], b_tap_x[B_LOADS], b_channel[B_LOADS];
#pragma unroll
    for (int i = 0; i < B_LOADS; i++) {
        const int n = first_n + (item + i * ITEMS) % (TILE_N / 4) * 4, tap = n / s.lanes;
        const int pixel = begin + (item + i * ITEMS) / (TILE_N / 4);
        b_channel[i] = n % s.lanes;
        b_tap_y[i] = n < s.n ? tap / s.taps_x - s.pad_y : -(1 << 29);
        b_tap_x[i] = tap % s.taps_x - s.pad_x;
        b_x[i] = pixel % s.out_width;
        b_y[i] = pixel / s.out_width % s.out_height;
        b_image[i] = pixel / s.out_width / s.out_height;
    }
#elif B_FROM == ROWS
    int b_at[B_LOADS];
#pragma unroll
    for (int i = 0; i < B_LOADS; i++) {
        const int n = first_n + (item + i * ITEMS) / 2;
        b_at[i] = n < s.columns ? n * (s.ldb / 4) + (item + i * ITEMS) % 2 : -1;
    }
#endif

#pragma unroll
    for (int i = 0; i < REG_M; i++)
#pragma unroll
        for (int j = 0; j < REG_N / 4; j++) sum[i][j] = SPLAT4(0.0f);

    for (int slice = 0; slice <= slices; slice++) {
        /* ---- Begin to read a slice ---- */
        if (slice < slices) {
            const int k = begin + slice * SLICE;
#pragma unroll
            for (int i = 0; i < A_LOADS; i++) {
                const int unit = item + i * ITEMS;
                a_next[i] = SPLAT4(0.0f);
                if (!A_WHOLE && unit >= TILE_M * SLICE / 4) continue;
#if A_FROM == PIXELS
                int y = a_y[i] + tap_y, x = a_x[i] + tap_x;
#ifdef SPREAD
                if (y < 0 || x < 0 || y % s.spread_y || x % s.spread_x) continue;
                y /= s.spread_y;
                x /= s.spread_x;
#endif
                if ((uint)y < (uint)s.height && (uint)x < (uint)s.width)
                    a_next[i] = LOAD4(A_HALF, a, a_at[i] + (y * s.width + x) * (s.lda / 4) + channel / 4);
#elif A_FROM == ROWS
                a_next[i] = LOAD4(A_HALF, a, a_at[i] + k / 4);
#else
                const int row = k + unit / (TILE_M / 4), m = min(first_m + unit % (TILE_M / 4) * 4, (s.m - 1) / 4 * 4);
#if B_FROM == PIXELS
                a_next[i] = LOAD4(A_HALF, a, min(row, end - 1) * (s.lda / 4) + m / 4);
#else
                if (row < end) a_next[i] = LOAD4(A_HALF, a, row * (s.lda / 4) + m / 4);
#endif
#endif
            }
#pragma unroll
            for (int i = 0; i < B_LOADS; i++) {
                const int unit = item + i * ITEMS;
                b_next[i] = SPLAT4(0.0f);
                if (!B_WHOLE && unit >= TILE_N * SLICE / 4) continue;
#if B_FROM == PIXELS
                const int y = b_y[i] * s.stride_y + b_tap_y[i], x = b_x[i] * s.stride_x + b_tap_x[i];
                if (k + unit / (TILE_N / 4) < end && (uint)y < (uint)s.height && (uint)x < (uint)s.width)
                    b_next[i] = LOAD4(B_HALF, b, ((b_image[i] * s.height + y) * s.width + x) * (s.ldb / 4) + b_channel[i] / 4);
                b_x[i] += step_x;
                b_y[i] += step_y + (b_x[i] >= s.out_width);
                b_x[i] -= b_x[i] >= s.out_width ? s.out_width : 0;
                b_image[i] += step_image + (b_y[i] >= s.out_height);
                b_y[i] -= b_y[i] >= s.out_height ? s.out_height : 0;
#elif B_FROM == ROWS
                if (b_at[i] >= 0) b_next[i] = LOAD4(B_HALF, b, b_at[i] + k / 4);
#else
                const int row = min(k + unit / (TILE_N / 4), s.b_rows - 1);
                const int n = min(first_n + unit % (TILE_N / 4) * 4, s.n - 4);
                b_next[i] = LOAD4(B_HALF, b, row * (s.ldb / 4) + n / 4);
#endif
            }
#if A_FROM == PIXELS
            channel += SLICE;
            if (channel == s.lanes) {
                channel = 0;
                if (++tap_x == s.taps_x) {
                    tap_x = 0;
                    tap_y++;
                }
            }
#endif
        }

        /* ---- Use the one before ---- */
        if (slice > 0) {
            const LOCAL_POINTER *la = as[(slice - 1) % 2], *lb = bs[(slice - 1) % 2];
#pragma unroll
            for (int k = 0; k < SLICE; k++) {
                float4 of_b[REG_N / 4];
#pragma unroll
                for (int j = 0; j < REG_N / 4; j++) of_b[j] = LOCAL_VECTOR(lb + k * B_LINE + (j * GROUP_N + tn) * 4);
#pragma unroll
                for (int i = 0; i < REG_M; i += 4) {
                    const float4 of_a = LOCAL_VECTOR(la + k * A_LINE + (i / 4 * GROUP_M + tm) * 4);
#pragma unroll
                    for (int j = 0; j < REG_N / 4; j++) {
                        sum[i][j] = FMA4(of_a.x, of_b[j], sum[i][j]);
                        sum[i + 1][j] = FMA4(of_a.y, of_b[j], sum[i + 1][j]);
                        sum[i + 2][j] = FMA4(of_a.z, of_b[j], sum[i + 2][j]);
                        sum[i + 3][j] = FMA4(of_a.w, of_b[j], sum[i + 3][j]);
                    }
                }
            }
        }

        /* ---- Put what was read where all items see it ---- */
        if (slice < slices) {
            LOCAL_POINTER *la = as[slice % 2], *lb = bs[slice % 2];
#pragma unroll
            for (int i = 0; i < A_LOADS; i++) {
                const int unit = item + i * ITEMS;
                if (!A_WHOLE && unit >= TILE_M * SLICE / 4) continue;
#if A_FROM == COLUMNS
                LOCAL_VECTOR(la + unit / (TILE_M / 4) * A_LINE + unit % (TILE_M / 4) * 4) = a_next[i];
#else
                const int at = unit % 2 * 4 * A_LINE + unit / 2;
                la[at] = a_next[i].x;
                la[at + A_LINE] = a_next[i].y;
                la[at + 2 * A_LINE] = a_next[i].z;
                la[at + 3 * A_LINE] = a_next[i].w;
#endif
            }
#pragma unroll
            for (int i = 0; i < B_LOADS; i++) {
                const int unit = item + i * ITEMS;
                if (!B_WHOLE && unit >= TILE_N * SLICE / 4) continue;
#if B_FROM != ROWS
                LOCAL_VECTOR(lb + unit / (TILE_N / 4) * B_LINE + unit % (TILE_N / 4) * 4) = b_next[i];
#else
                const int at = unit % 2 * 4 * B_LINE + unit / 2;
                lb[at] = b_next[i].x;
                lb[at + B_LINE] = b_next[i].y;
                lb[at + 2 * B_LINE] = b_next[i].z;
                lb[at + 3 * B_LINE] = b_next[i].w;
#endif
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    /* ---- Finish and write ---- */
#pragma unroll
    for (int i = 0; i < REG_M; i++) {
        const int m = first_m + (i / 4 * GROUP_M + tm) * 4 + i % 4;
        if (m >= s.m) continue;
#pragma unroll
        for (int j = 0; j < REG_N / 4; j++) {
            const int n = first_n + (j * GROUP_N + tn) * 4;
            float4 v = sum[i][j];
            if (n >= s.n) continue;
            if (s.finish & FINISH_BIAS)
                v = v + MAKE4(n < s.columns ? bias[s.bias + n] : 0.0f, n + 1 < s.columns ? bias[s.bias + n + 1] : 0.0f,
                              n + 2 < s.columns ? bias[s.bias + n + 2] : 0.0f,
                              n + 3 < s.columns ? bias[s.bias + n + 3] : 0.0f);
            if (s.finish & FINISH_VECTOR)
                v = v + LOAD4(s.finish & FINISH_HALF_VECTOR, vector,
                              (s.vector + m / (s.out_height * s.out_width) * s.ldv + n) / 4);
            if (s.finish & FINISH_RESIDUAL)
                v = v + LOAD4(s.finish & FINISH_HALF_RESIDUAL, residual, (s.residual + batch * s.residual_batch + (long)m * s.ldr + n) / 4);
            if (s.finish & FINISH_SCALE) v = v * SPLAT4(s.by);
            if (s.finish & FINISH_RELU) v = MAX4(v, SPLAT4(0.0f));
            STORE4(s.finish & FINISH_HALF_OUT, v, out, (s.out + batch * s.out_batch + (long)m * s.ldc + n) / 4);
        }
    }
}
