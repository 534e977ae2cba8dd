// Shapes, folding and bit widths of every layer of param.h. Generated.
#ifndef SYSTOLIC_CONFIG_H
#define SYSTOLIC_CONFIG_H

// first
#define FIRST_K 3
#define FIRST_S 1
#define FIRST_P 1
#define FIRST_IFM_CH 3
#define FIRST_IFM_ROW 16
#define FIRST_IFM_COL 32
#define FIRST_OFM_CH 8
#define FIRST_OFM_ROW 16
#define FIRST_OFM_COL 32
#define FIRST_SIMD 9
#define FIRST_PE 1
#define FIRST_IN_BIT 8
#define FIRST_OUT_BIT 4
#define FIRST_W_BIT 4
#define FIRST_W_TILES 24
#define FIRST_INC_BIT 14
#define FIRST_BIAS_BIT 24
#define FIRST_A_TILES 8
#define FIRST_SHIFT 19
#define FIRST_L_SHIFT 8

// sums
#define SUMS_K 1
#define SUMS_S 1
#define SUMS_P 0
#define SUMS_IFM_CH 8
#define SUMS_IFM_ROW 8
#define SUMS_IFM_COL 16
#define SUMS_OFM_CH 36
#define SUMS_OFM_ROW 8
#define SUMS_OFM_COL 16
#define SUMS_SIMD 4
#define SUMS_PE 1
#define SUMS_IN_BIT 4
#define SUMS_OUT_BIT 16
#define SUMS_W_BIT 4
#define SUMS_W_TILES 72

#endif  // SYSTOLIC_CONFIG_H
