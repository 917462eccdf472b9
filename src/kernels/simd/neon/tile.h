/* A tile of 6 x 16 sums, 24 of 32 registers of four floats. */
#ifndef PSLD_KERNELS_SIMD_NEON_TILE_H
#define PSLD_KERNELS_SIMD_NEON_TILE_H

enum { TILE_ROWS = 6, TILE_PANELS = 1, TILE_COLUMNS = 16, ROWS_A_POINTER = 1 };

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

#define EACH_HEIGHT(DO, ...) \
    DO(1, __VA_ARGS__) DO(2, __VA_ARGS__) DO(3, __VA_ARGS__) DO(4, __VA_ARGS__) DO(5, __VA_ARGS__) DO(6, __VA_ARGS__)

#define TILE_HEIGHTS                                            \
    {                                                           \
        0, 1, 2, 3, 4, 5, 6, 4, 4, 5, 5, 6, 6, 5, 5, 5, 6, 6, 6 \
    }

#define TILE_KEEP(x) __asm__("" : "+w"((x).a), "+w"((x).b))

#endif
