// The layer program, which the engine reads at run time: an array of passes in DDR, PASS_WORDS words of 32 bits each.
//
// A pass is one convolution with its fused pool over one column tile; fully connected layers and pools are expressed as
// convolutions. The scheduler computes whatever would need a division or a large product, so that the engine only
// counts. A "word" of maps and weights is a lanes_t (types.h); addresses count words.
#ifndef SYSTOLIC_PASS_H
#define SYSTOLIC_PASS_H

#include <cstdint>

#include "parameters.h"

// X(field): the order is the layout of the program, shared with scheduler/systolic/program (a test compares).
// clang-format off: a table, a line a field with what it means
#define SYSTOLIC_PASS_FIELDS(X)                                                                             \
    /* input map: [row][block][column] of words */                                                          \
    X(in_base) X(in_row_pitch) X(in_block_pitch)                                                            \
    X(burst_words)   /* words of one contiguous piece of a row */                                           \
    X(bursts)        /* pieces of a row */                                                                  \
    X(row_words)     /* words of a row in the row buffer: burst_words · bursts */                           \
    X(block_words)   /* words between channel blocks of a row in the row buffer */                          \
    X(in_blocks) X(in_width) X(in_height)                                                                   \
    X(in_buffer)     /* 0: the map lies in DDR; 1, 2: in that map buffer (map_buffer.h) */                  \
    X(in_lap)        /* ⌊pad_top / ROWS⌋; of a map buffer that of the rows by which its banks are turned */  \
    X(in_turn)       /* the same mod ROWS: row y lies in bank (y + in_turn) mod ROWS of the buffer */       \
    X(pixel_input)   /* 1: uint8 pixels, WORD_PIXELS to a word, a window of STEP_PIXELS a cycle */          \
    /* window */                                                                                            \
    X(kernel_height) X(kernel_groups) X(group_pixels)                                                       \
    X(stride)        /* rows from a window to the next one below */                                         \
    X(advance)       /* columns from a window, or the windows computed together, to the next */             \
    X(pad_top) X(pad_left)                                                                                  \
    X(depthwise)     /* 1: a channel tile reads only its own channel blocks (depthwise, pools) */           \
    X(tile_blocks)   /* channel blocks a tile reads */                                                      \
    X(steps)         /* cycles a position: kernel_height · kernel_groups · tile_blocks, compared: the last */ \
    /* tiles */                                                                                             \
    X(out_height) X(out_width) X(row_tiles) X(channel_tiles)                                                \
    X(phases)        /* rows of a stride that are read: min(stride, kernel_height) */                       \
    X(row_strides)   /* row strides that the pass reads: row_tiles · ROWS + ahead */                        \
    X(ahead)         /* row strides that the last window reaches further: ⌊(kernel_height − 1) / stride⌋ */  \
    X(positions)     /* columns computed together: POSITIONS, or 1 where the stride is above 1 */           \
    X(slot_words)    /* words of a slot, the rows of one stride in a bank: phases · row_words */            \
    X(last_slot)     /* the last slot's first word in its bank */                                           \
    X(first_loads)   /* words that each port brings before the first tile is complete */                    \
    X(first_moves)   /* the same where a map buffer is read: words of each bank, those of padding too */    \
    X(overlap)       /* 1: the next tile's rows are loaded while this one is computed */                    \
    X(inputs_resident) /* 1: all rows stay in the row buffer, channel tiles are the outer loop */           \
    X(row_feeds)     /* steps of the array between two changes of its row tile */                           \
    X(weight_feeds)  /* steps between two changes of its weight tile */                                     \
    X(array_steps)   /* steps of the whole pass */                                                          \
    /* weights: [channel tile][step][beat] of words, dealt beat by beat to the ports */                     \
    X(weights_base)                                                                                         \
    X(first_step)    /* where the first tile lies in the weight buffer */                                   \
    X(resident)      /* 1: all tiles stay in the weight buffer over the row tiles */                        \
    X(tile_beats)    /* words of a tile that come from each port */                                        \
    X(tile_uses)     /* weight tiles that are fed in this pass, each as often as it is used */              \
    X(tile_loads)    /* weight tiles that are loaded for this pass */                                       \
    X(load_beats)    /* words of those that come from each port */                                          \
    X(requantiser_base) X(channels) /* requantisers of all channel tiles */                                 \
    /* fused pool and output map: [row][block][column] of words */                                          \
    X(pool_size)                                                                                            \
    X(pool_stride)   /* 0: the places of the kernel's window are positions, and compared; −1: multiplied (pool.h) */ \
    X(upscale)       /* how often each value is written in a row, and how many rows of it: 1, or UPSCALE */ \
    X(save_width)                                                                                           \
    X(out_base) X(out_row_pitch) X(out_block_pitch) X(out_blocks)                                           \
    X(value_words)   /* words of LANES results: 1, or RESULT_WORDS where they leave as int16 */             \
    X(out_buffer)    /* as in_buffer; never the same one */                                                 \
    X(out_turn)      /* in_turn of the passes that read the output map, or the one that is added */         \
    X(chunks)        /* chunks of columns that the Saver arranges in this pass (save.h) */                  \
    X(limits)        /* saturation: the greatest value in the upper 16 bits, the least in the lower ones */ \
    X(around)        /* what padding holds: a value of a map, a pixel; where places are compared, the least value */
// clang-format on

#define SYSTOLIC_DECLARE(field) int32_t field;

// Of engines that add maps (ADDED_MAPS) further words of a pass: what the Saver adds to its results (add.h).
// clang-format off: the same
#define SYSTOLIC_ADDED_FIELDS(X)                                                                            \
    X(added_base) X(added_row_pitch) /* the other map; its blocks lie as those of the output */             \
    X(added_buffer)  /* as in_buffer; not the one that is read, and the one that is written where any is */ \
    X(added_words)   /* words of the results to which one of the other map is added; 0: nothing is added */ \
    X(added_own) X(added_other) /* what values of the results, and of the other map, are multiplied with */ \
    X(added_offset)  /* the lower 32 bits of what is added to both products */                              \
    X(added_shift)   /* its upper 16 bits, in the upper half, and the shift behind it */                    \
    X(added_limits)  /* limits of the sum; ``limits`` are those of the results before */
// clang-format on

struct pass_t {
    SYSTOLIC_PASS_FIELDS(SYSTOLIC_DECLARE)
    SYSTOLIC_ADDED_FIELDS(SYSTOLIC_DECLARE)
};
#undef SYSTOLIC_DECLARE

#define SYSTOLIC_COUNT(field) +1
static const int PASS_FIELDS = 0 SYSTOLIC_PASS_FIELDS(SYSTOLIC_COUNT);
static const int ADDED_FIELDS = 0 SYSTOLIC_ADDED_FIELDS(SYSTOLIC_COUNT);
#undef SYSTOLIC_COUNT
static const int PASS_WORDS = 64 + (ADDED_MAPS > 0 ? ADDED_FIELDS : 0);

inline pass_t decode_pass(const uint32_t words[PASS_WORDS]) {
#pragma HLS INLINE
    pass_t pass;
    int index = 0;
#define SYSTOLIC_TAKE(field) pass.field = static_cast<int32_t>(words[index++]);
    SYSTOLIC_PASS_FIELDS(SYSTOLIC_TAKE)
#undef SYSTOLIC_TAKE
    index = PASS_WORDS - ADDED_FIELDS;  // they are the last ones, where there are any
#define SYSTOLIC_TAKE(field) pass.field = ADDED_MAPS > 0 ? static_cast<int32_t>(words[index++]) : 0;
    SYSTOLIC_ADDED_FIELDS(SYSTOLIC_TAKE)
#undef SYSTOLIC_TAKE
    return pass;
}

// Whether the window's values are compared and not added up: a max pool of any size, which is a pass of its own.
// Engines for networks without one have WINDOWS 0, and nothing of this.
inline bool compares(const pass_t &pass) {
#pragma HLS INLINE
    return WINDOWS > 0 && pass.pool_stride == 0;
}

// The same of two places that are multiplied: two maps, whose rows are read in turn. MAP_PRODUCTS is 0 for most networks.
inline bool multiplies(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_PRODUCTS > 0 && pass.pool_stride < 0;
}

// Whether another map is added to the results where they leave. ADDED_MAPS is 0 for networks without.
inline bool adds(const pass_t &pass) {
#pragma HLS INLINE
    return ADDED_MAPS > 0 && pass.added_words > 0;
}

inline bool adds_from_ddr(const pass_t &pass) {
#pragma HLS INLINE
    return adds(pass) && (MAP_DEPTH == 0 || pass.added_buffer == 0);
}

// A tile of the output: ROWS rows of a channel tile. rows_above = row · ROWS.
struct tile_t {
    int row, channel;
    int rows_above;
};

// Goes to the next tile; false after the last. Channel tiles are the inner loop; where the pass keeps all its input
// rows on chip (inputs_resident), row tiles are.
inline bool next_tile(const pass_t &pass, tile_t &tile) {
#pragma HLS INLINE
    if (!pass.inputs_resident) {
        if (++tile.channel < pass.channel_tiles) return true;
        tile.channel = 0;
    }
    tile.rows_above += ROWS;
    if (++tile.row < pass.row_tiles) return true;
    if (!pass.inputs_resident) return false;
    tile.row = tile.rows_above = 0;
    return ++tile.channel < pass.channel_tiles;
}

inline int minimum(int a, int b) { return a < b ? a : b; }
inline int maximum(int a, int b) { return a > b ? a : b; }
inline int within(int low, int value, int high) { return maximum(low, minimum(value, high)); }
inline int wrap_once(int value, int limit) { return value >= limit ? value - limit : value; }

// Bits of a count that addresses are multiplied by: rows or blocks of a tile, ports, rows of padding. All are below
// 512, the padding below 256 (rules of scheduler/systolic/array.py).
static const int COUNT_BITS = 9;

// value · count, the only product of addresses; all others are counted up. It is narrow, and made of LUTs because the
// array needs the DSPs. scheduler/systolic/area/fabric.py counts where it is called.
inline int times(int value, int count) {
#pragma HLS INLINE
    int product;
#pragma HLS BIND_OP variable = product op = mul impl = fabric
    product = value * (count & ((1 << COUNT_BITS) - 1));
    return product;
}

#endif  // SYSTOLIC_PASS_H
