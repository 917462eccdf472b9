/* A tile of 12 x 32 sums, in two panels: 24 of 32 registers. A row of B is two loads for 24 multiply-adds, and every
 * second element of A comes for three rows from one pointer: twelve pointers would not fit into the registers. */
#ifndef PSLD_KERNELS_SIMD_AVX512_TILE_H
#define PSLD_KERNELS_SIMD_AVX512_TILE_H

enum { TILE_ROWS = 12, TILE_PANELS = 2, TILE_COLUMNS = 32, ROWS_A_POINTER = 3 };

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

/* No form of this is left alone by clang-format. */
/* clang-format off */
#define EACH_HEIGHT(DO, ...) \
    DO(1, __VA_ARGS__) DO(2, __VA_ARGS__) DO(3, __VA_ARGS__) DO(4, __VA_ARGS__) DO(5, __VA_ARGS__) \
    DO(6, __VA_ARGS__) DO(7, __VA_ARGS__) DO(8, __VA_ARGS__) DO(9, __VA_ARGS__) DO(10, __VA_ARGS__) \
    DO(11, __VA_ARGS__) DO(12, __VA_ARGS__)
/* clang-format on */

#define TILE_HEIGHTS                                                                                                 \
    {                                                                                                                \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 9, 9, 9, 10, 10, 10, 11, \
            11, 11, 12, 12, 12                                                                                       \
    }

#define TILE_KEEP(x) __asm__("" : "+v"(x))

#endif
