/* The files of this folder are compiled once for each instruction set (kernels/sets.def). The build says which by three
 * macros: SIMD_SET, its name; SIMD_VEC_H, the header of its vectors; SIMD_TILE_H, the header of its register tile.
 *
 * Each copy needs its functions under a name of its own: simd_add is psld_avx2_add in one of them. A function that is
 * not static has a line here. */
#ifndef PSLD_KERNELS_SIMD_NAMES_H
#define PSLD_KERNELS_SIMD_NAMES_H

#define SIMD_JOIN_NAMES(set, name) psld_##set##_##name
#define SIMD_JOIN(set, name)       SIMD_JOIN_NAMES(set, name)
#define SIMD_NAME(name)            SIMD_JOIN(SIMD_SET, name)

#define SIMD_QUOTE_NAME(name) #name
#define SIMD_QUOTE(name)      SIMD_QUOTE_NAME(name)
/* A kernel's name in printed plans, "avx2_conv". */
#define SIMD_TEXT(name) SIMD_QUOTE(SIMD_SET) "_" name

#define simd_adam                     SIMD_NAME(adam)
#define simd_add                      SIMD_NAME(add)
#define simd_affine                   SIMD_NAME(affine)
#define simd_backend                  SIMD_NAME(backend)
#define simd_conv                     SIMD_NAME(conv)
#define simd_conv_block               SIMD_NAME(conv_block)
#define simd_conv_dw                  SIMD_NAME(conv_dw)
#define simd_conv_dx                  SIMD_NAME(conv_dx)
#define simd_conv_is_thin             SIMD_NAME(conv_is_thin)
#define simd_conv_read_block          SIMD_NAME(conv_read_block)
#define simd_conv_scratch             SIMD_NAME(conv_scratch)
#define simd_conv_thin_dw             SIMD_NAME(conv_thin_dw)
#define simd_conv_thin_scratch        SIMD_NAME(conv_thin_scratch)
#define simd_conv_transpose           SIMD_NAME(conv_transpose)
#define simd_conv_unblock             SIMD_NAME(conv_unblock)
#define simd_conv_weights             SIMD_NAME(conv_weights)
#define simd_conv_write_block         SIMD_NAME(conv_write_block)
#define simd_copy                     SIMD_NAME(copy)
#define simd_finish_rows              SIMD_NAME(finish_rows)
#define simd_gemm_pack                SIMD_NAME(gemm_pack)
#define simd_gemm_pack_transposed     SIMD_NAME(gemm_pack_transposed)
#define simd_gemm_panel               SIMD_NAME(gemm_panel)
#define simd_gemm_rows                SIMD_NAME(gemm_rows)
#define simd_gemm_run                 SIMD_NAME(gemm_run)
#define simd_gemm_tn                  SIMD_NAME(gemm_tn)
#define simd_moments                  SIMD_NAME(moments)
#define simd_norm_dx                  SIMD_NAME(norm_dx)
#define simd_norm_dx_scratch          SIMD_NAME(norm_dx_scratch)
#define simd_norm_sums                SIMD_NAME(norm_sums)
#define simd_norm_tables              SIMD_NAME(norm_tables)
#define simd_silu                     SIMD_NAME(silu)
#define simd_silu_dx                  SIMD_NAME(silu_dx)
#define simd_softmax_rows             SIMD_NAME(softmax_rows)
#define simd_sum_pixels               SIMD_NAME(sum_pixels)
#define simd_sum_squares              SIMD_NAME(sum_squares)
#define simd_square_chunks            SIMD_NAME(square_chunks)
#define simd_table_attention          SIMD_NAME(table_attention)
#define simd_table_convolutions       SIMD_NAME(table_convolutions)
#define simd_table_moves              SIMD_NAME(table_moves)
#define simd_table_norms              SIMD_NAME(table_norms)
#define simd_table_one_task           SIMD_NAME(table_one_task)
#define simd_table_pointwise          SIMD_NAME(table_pointwise)
#define simd_table_pools              SIMD_NAME(table_pools)
#define simd_table_products           SIMD_NAME(table_products)
#define simd_winograd                 SIMD_NAME(winograd)
#define simd_winograd_dw              SIMD_NAME(winograd_dw)
#define simd_winograd_dw_scratch      SIMD_NAME(winograd_dw_scratch)
#define simd_winograd_in_time         SIMD_NAME(winograd_in_time)
#define simd_winograd_in_time_scratch SIMD_NAME(winograd_in_time_scratch)
#define simd_winograd_mirror          SIMD_NAME(winograd_mirror)
#define simd_winograd_panel           SIMD_NAME(winograd_panel)
#define simd_winograd_scratch         SIMD_NAME(winograd_scratch)
#define simd_winograd_tile_row        SIMD_NAME(winograd_tile_row)
#define simd_winograd_tiles           SIMD_NAME(winograd_tiles)
#define simd_winograd_weights         SIMD_NAME(winograd_weights)
#define simd_winograd_weights_size    SIMD_NAME(winograd_weights_size)

#endif
