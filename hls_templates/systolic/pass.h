// The layer program: an array of passes in DDR, each PASS_WORDS words of 32 bits. The engine reads it at run time.
//
// A pass is one convolution with its fused pool, over one column tile. Fully connected layers and separate pools are
// expressed as convolutions. The scheduler computes every field that needs a division or a large product, so that the
// engine only counts. A "word" of maps and weights is LANES values (word_t in types.h). Addresses count words.
#ifndef SYSTOLIC_PASS_H
#define SYSTOLIC_PASS_H

#include <cstdint>

#include "parameters.h"

// X(field) for every field, in the order of its words in the program. contract/program.py defines this table, and
// tools/program.py renews it here.
// clang-format off: a table with one field and its meaning per line
#define SYSTOLIC_PASS_FIELDS(X)                                                                             \
    /* input map: [row][block][column] of words */                                                          \
    X(in_base) X(in_row_pitch) X(in_block_pitch)                                                            \
    X(burst_words)   /* words of one contiguous piece of a row */                                           \
    X(bursts)        /* pieces of a row */                                                                  \
    X(row_words)     /* words of a row in the row buffer: burst_words · bursts */                           \
    X(block_words)   /* words between channel blocks of a row in the row buffer */                          \
    X(in_blocks) X(in_width) X(in_height)                                                                   \
    X(in_buffer)     /* 0: the map is in DDR; 1, 2: it is in that map buffer (map_buffer.h) */              \
    X(in_lap)        /* ⌊t / ROWS⌋; t: pad_top, or the rows by which the banks of a map buffer are rotated */ \
    X(in_turn)       /* t mod ROWS: row y is in bank (y + in_turn) mod ROWS of the buffer */                \
    X(pixel_input)   /* 1: uint8 pixels, WORD_PIXELS per word, a window of STEP_PIXELS per cycle */         \
    /* window */                                                                                            \
    X(kernel_height) X(kernel_groups) X(group_pixels)                                                       \
    X(stride)        /* rows from a window to the next one below */                                         \
    X(advance)       /* columns from one group of windows computed together to the next */                  \
    X(pad_top) X(pad_left)                                                                                  \
    X(depthwise)     /* 1: a channel tile reads only its own channel blocks (depthwise, pools) */           \
    X(tile_blocks)   /* channel blocks that a tile reads */                                                 \
    X(steps)         /* cycles per position: kernel_height · kernel_groups · tile_blocks, or tile_blocks if places are compared */ \
    /* tiles */                                                                                             \
    X(out_height) X(out_width) X(row_tiles) X(channel_tiles)                                                \
    X(phases)        /* rows of a stride that are read: min(stride, kernel_height) */                       \
    X(row_strides)   /* row strides that the pass reads: row_tiles · ROWS + ahead */                        \
    X(ahead)         /* row strides that a window reaches beyond its first: ⌊(kernel_height − 1) / stride⌋ */ \
    X(positions)     /* columns computed together: POSITIONS, or 1 if the stride is above 1 */              \
    X(slot_words)    /* words of a slot, which holds the rows of one stride in a bank: phases · row_words */ \
    X(last_slot)     /* first word of the last slot in its bank */                                          \
    X(first_loads)   /* words per port that complete the first tile, if the map is in DDR */                \
    X(first_moves)   /* words per bank that complete the first tile, padding included, if a map buffer is read */ \
    X(overlap)       /* 1: the next tile's rows are loaded while this one is computed */                    \
    X(inputs_resident) /* 1: all rows stay in the row buffer, channel tiles are the outer loop */           \
    X(row_feeds)     /* steps of the array between two changes of its row tile */                           \
    X(weight_feeds)  /* steps between two changes of its weight tile */                                     \
    X(array_steps)   /* steps of the whole pass */                                                          \
    /* weights: [channel tile][step][beat] of words, distributed beat by beat over the ports */             \
    X(weights_base)                                                                                         \
    X(first_step)    /* place of the first tile in the weight buffer */                                     \
    X(resident)      /* 1: all tiles stay in the weight buffer for all row tiles */                         \
    X(tile_beats)    /* words of a tile per port */                                                         \
    X(tile_uses)     /* weight tiles that are fed to the array, each counted as often as it is used */      \
    X(tile_loads)    /* weight tiles that are loaded from DDR */                                            \
    X(load_beats)    /* words of these tiles per port */                                                    \
    X(requantiser_base) X(channels) /* address and number of the requantisers of all channel tiles */       \
    /* fused pool and output map: [row][block][column] of words */                                          \
    X(pool_size)                                                                                            \
    X(pool_stride)   /* 0: the places of a window are separate positions, which are compared; −1: multiplied (pool.h) */ \
    X(upscale)       /* copies of each value in its row, and of each row: 1 or UPSCALE */                   \
    X(save_width)                                                                                           \
    X(out_base) X(out_row_pitch) X(out_block_pitch) X(out_blocks)                                           \
    X(value_words)   /* words of LANES results: 1, or RESULT_WORDS if they are written as int16 */          \
    X(out_buffer)    /* as in_buffer; never the same buffer */                                              \
    X(out_turn)      /* in_turn of the passes that read the output map; it also holds for the residual map */ \
    X(chunks)        /* chunks of columns that the Saver collects (save.h) */                               \
    X(limits)        /* saturation: the highest value in the upper 16 bits, the lowest in the lower 16 bits */ \
    X(around)        /* padding: a value of a map or a pixel; the lowest value if places are compared */
// clang-format on

#define SYSTOLIC_DECLARE(field) int32_t field;

// Additional fields for engines with residual adds (ADDED_MAPS): the residual map and its multipliers (add.h).
// clang-format off: a table with one field and its meaning per line
#define SYSTOLIC_ADDED_FIELDS(X)                                                                            \
    X(added_base) X(added_row_pitch) /* the residual map; its blocks have the layout of the output's blocks */ \
    X(added_buffer)  /* as in_buffer; never the buffer that is read; out_buffer if the output is written to a buffer */ \
    X(added_words)   /* words of the results per word of the residual map; 0: nothing is added */           \
    X(added_own) X(added_other) /* multipliers of the results and of the residual map */                    \
    X(added_offset)  /* lower 32 bits of the offset that is added to both products */                       \
    X(added_shift)   /* upper half: the offset's upper 16 bits; lower half: the shift after it */           \
    X(added_limits)  /* saturation of the sum; ``limits`` saturates the results before it */
// clang-format on

// All fields are signed words of 32 bits.
struct pass_t {
    SYSTOLIC_PASS_FIELDS(SYSTOLIC_DECLARE)
    SYSTOLIC_ADDED_FIELDS(SYSTOLIC_DECLARE)
};
#undef SYSTOLIC_DECLARE

#define SYSTOLIC_COUNT(field) +1
static const int PASS_FIELDS = 0 SYSTOLIC_PASS_FIELDS(SYSTOLIC_COUNT);
static const int ADDED_FIELDS = 0 SYSTOLIC_ADDED_FIELDS(SYSTOLIC_COUNT);
#undef SYSTOLIC_COUNT
// Words per pass. The fields of a residual add are the last words, if the engine has them.
static const int PASS_WORDS = 64 + (ADDED_MAPS > 0 ? ADDED_FIELDS : 0);

// Return the pass that these words of the program describe.
inline pass_t decode_pass(const uint32_t words[PASS_WORDS]) {
#pragma HLS INLINE
    pass_t pass;
    int index = 0;
#define SYSTOLIC_DECODE(field) pass.field = static_cast<int32_t>(words[index++]);
    SYSTOLIC_PASS_FIELDS(SYSTOLIC_DECODE)
#undef SYSTOLIC_DECODE
    index = PASS_WORDS - ADDED_FIELDS;  // the fields of a residual add are the last words
#define SYSTOLIC_DECODE(field) pass.field = ADDED_MAPS > 0 ? static_cast<int32_t>(words[index++]) : 0;
    SYSTOLIC_ADDED_FIELDS(SYSTOLIC_DECODE)
#undef SYSTOLIC_DECODE
    return pass;
}

// Return whether the values of a window are compared instead of summed: a max pool of any size, a pass of its own.
// WINDOWS is 0 in engines for networks without such a pool, which then have no logic for it.
inline bool compares_places(const pass_t &pass) {
#pragma HLS INLINE
    return WINDOWS > 0 && pass.pool_stride == 0;
}

// Return whether two maps are multiplied value by value. Their rows are read alternately, so that the two factors are the two
// places of a window. MAP_PRODUCTS is 0 in engines for networks without such a layer.
inline bool multiplies_maps(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_PRODUCTS > 0 && pass.pool_stride < 0;
}

// Return whether the Saver adds a residual map to the results. ADDED_MAPS is 0 in engines for networks without residual adds.
inline bool has_residual_add(const pass_t &pass) {
#pragma HLS INLINE
    return ADDED_MAPS > 0 && pass.added_words > 0;
}

// Return whether that residual map is read from DDR, and not from a map buffer.
inline bool residual_in_ddr(const pass_t &pass) {
#pragma HLS INLINE
    return has_residual_add(pass) && (MAP_DEPTH == 0 || pass.added_buffer == 0);
}

// A tile of the output: the numbers of its row tile (ROWS output rows) and of its channel tile (COLUMNS channels).
// first_row is the tile's first output row, row · ROWS.
struct tile_t {
    int row, channel;
    int first_row;
};

// Advance to the next tile. Return false after the last one. Channel tiles are the inner loop. If all input rows of the
// pass stay on chip (inputs_resident), row tiles are the inner loop.
inline bool next_tile(const pass_t &pass, tile_t &tile) {
#pragma HLS INLINE
    if (!pass.inputs_resident) {
        if (++tile.channel < pass.channel_tiles) return true;
        tile.channel = 0;
    }
    tile.first_row += ROWS;
    if (++tile.row < pass.row_tiles) return true;
    if (!pass.inputs_resident) return false;
    tile.row = tile.first_row = 0;
    return ++tile.channel < pass.channel_tiles;
}

inline int minimum(int a, int b) { return a < b ? a : b; }
inline int maximum(int a, int b) { return a > b ? a : b; }
inline int clamp(int low, int value, int high) { return maximum(low, minimum(value, high)); }
// Return ``value`` modulo ``limit``. The value must be below 2 · limit, so that no divider is needed.
inline int wrap_once(int value, int limit) { return value >= limit ? value - limit : value; }

// Bits of the second factor of an address product: rows or blocks of a tile, ports, or rows of padding. These counts
// are below 512, and rows of padding are below 256 (rules of scheduler/systolic/array.py).
static const int COUNT_BITS = 9;

// Return value · count. This is the only product of addresses; all other addresses are accumulated. It is narrow and
// made of LUTs, because the array needs the DSPs. scheduler/systolic/area/fabric.py counts its instances.
inline int address_product(int value, int count) {
#pragma HLS INLINE
    int product;
#pragma HLS BIND_OP variable = product op = mul impl = fabric
    product = value * (count & ((1 << COUNT_BITS) - 1));
    return product;
}

#endif  // SYSTOLIC_PASS_H
