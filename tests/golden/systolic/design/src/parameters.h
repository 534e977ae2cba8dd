// tiny on a 6×8×8 systolic array: the geometry of the array and its buffers. Generated; the reasons are the scheduler's.
#ifndef SYSTOLIC_PARAMETERS_H
#define SYSTOLIC_PARAMETERS_H

static const int ROWS = 6;  // M: output rows computed together
static const int COLUMNS = 8;  // N: output channels computed together
static const int LANES = 8;  // L: input channels that a PE multiplies per cycle
static const int PIXEL_BYTES = 4;  // bytes of one input pixel
static const int PIXEL_LANES = 4;  // lanes of one input pixel
static const int VALUE_BITS = 8;  // bits of an activation and of a weight
static const int PACK_COLUMNS = 2;  // columns that share a DSP48E1
static const int POSITIONS = 1;  // positions that share a DSP48E1
static const int PACK_SHIFT = 17;  // bits of a product's field
static const int PACK_CHAIN = 4;  // packed products summed before they are separated
static const int SAVE_ROWS = 1;  // rows of a position that are requantised per cycle
static const int MAP_PORTS = 2;  // AXI ports for maps
static const int WEIGHT_PORTS = 1;  // AXI ports for weights
static const int WEIGHT_WORDS = 1;  // words of weights per cycle and weight port
static const int ROW_DEPTH = 1024;  // words of a row-buffer bank
static const int WEIGHT_DEPTH = 512;  // steps of the weight buffer
static const int KEPT_DEPTH = 512;  // sums that a fused pool can store for the row tile below
static const int MAP_DEPTH = 32;  // words of a map-buffer bank; 0: no map stays on chip
static const int UPSCALE = 1;  // largest factor by which an output map is upsampled
static const int WINDOWS = 0;  // 1: a max pool of any window can be a pass of its own; 0: it cannot
static const int LATE_OFFSETS = 0;  // 1: requantisers may add after products; 2: and round halves to even; 0: neither
static const int MAP_PRODUCTS = 0;  // 1: maps can be multiplied by maps; 0: they cannot
static const int ADDED_MAPS = 0;  // 1: the Saver can add a residual map; 0: it cannot
static const int MAP_STRIDE = 1;  // largest stride with which a map on chip is read
static const int TABLE_DEPTH = 0;  // entries of an activation's lookup table; 0: no table
static const int TABLE_SLOPES = 0;  // 1: tables may be piecewise linear; 0: each value has an entry
static const int CHUNK = 8;  // columns collected before they are written as bursts
static const int CHANNEL_TILES = 2;  // channel tiles whose requantisers are stored
static const int OUTSTANDING = 8;  // outstanding bursts per port
static const int REQUEST_STAGES = 18;  // cycles of a request to a port

// Primitives of the buffers and of the requantisers' multipliers (impl of BIND_STORAGE and BIND_OP). The scheduler
// chose those that take the least area and fit the board.
#define ROW_MEMORY bram  // 12 × 512 words of 64 bits in 12 BRAM36
#define WEIGHT_MEMORY bram  // 8 × 512 words of 64 bits in 8 BRAM36
#define KEPT_MEMORY bram  // 1 × 512 words of 256 bits in 4 BRAM36
#define REQUANTISER_MEMORY lutram  // 8 × 2 words of 72 bits in 384 LUTRAM
#define MAP_MEMORY lutram  // 12 × 32 words of 64 bits in 528 LUTRAM
#define ARRANGED_MEMORY lutram  // 4 × 64 words of 64 bits in 352 LUTRAM
#define REQUANTISE_PRODUCT dsp  // 8 × 32 × 16 bits in 16 DSP
#define TABLE_MEMORY lutram  // 8 × 0 words of 16 bits in 0 LUTRAM

#endif  // SYSTOLIC_PARAMETERS_H
