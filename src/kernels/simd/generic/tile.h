/* A tile of 6 x 8 sums in vectors of four: twelve of sixteen registers. A panel is two strips of them. */
#ifndef PSLD_KERNELS_SIMD_GENERIC_TILE_H
#define PSLD_KERNELS_SIMD_GENERIC_TILE_H

enum { TILE_ROWS = 6, TILE_PANELS = 1, TILE_COLUMNS = 8, ROWS_A_POINTER = 1 };

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

#define EACH_HEIGHT(DO, ...) \
    DO(1, __VA_ARGS__) DO(2, __VA_ARGS__) DO(3, __VA_ARGS__) DO(4, __VA_ARGS__) DO(5, __VA_ARGS__) DO(6, __VA_ARGS__)

/* Fewer than four rows cannot fill the multiply-add units: 16 is 6 + 5 + 5, 8 is 4 + 4. */
#define TILE_HEIGHTS                                            \
    {                                                           \
        0, 1, 2, 3, 4, 5, 6, 4, 4, 5, 5, 6, 6, 5, 5, 5, 6, 6, 6 \
    }

/* On an unknown processor the compiler chooses best where to keep them. */
#define TILE_KEEP(x) ((void)(x))

#endif
