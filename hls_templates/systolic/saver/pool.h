// Saver, first part: the max pool on accumulators. Requantisation is monotonic (multipliers are not negative), so that
// pooling before it gives the same bits. A 2 × 2 pool then needs a quarter of the requantisers.
//
// Process ``plan_tiles`` computes the tiles of a pass in advance, one in TILE_CYCLES cycles. So the loop of ``pool``,
// which runs every cycle, only compares its counters with given numbers.
//
// A window of any size is a pass of its own (WINDOWS) whose weights are an identity. The Loader feeds the places of a
// window as consecutive positions, and the array outputs each unchanged (``steps`` has no kernel factor). ``pool``
// stores the largest value so far, with the comparators that it has anyway. This takes one cycle per place, and is
// exact for every map.
//
// Two maps are multiplied in the same way (MAP_PRODUCTS): their rows are read alternately, so that the values of both
// maps at a place are a window of two. The output is the first value times the second.
//
// Process ``pool`` reads a position of every row when a window begins, and writes SAVE_ROWS rows of pooled sums per
// cycle (II 1). Without a pool it only regroups the rows. An upsample (UPSCALE) is the inverse of a pool: every column
// is output twice, and every row as two rows. The map is stored upsampled, so that its readers treat it like any other
// map. Its values are written four times.
#ifndef SYSTOLIC_POOL_H
#define SYSTOLIC_POOL_H

#include <hls_stream.h>

#include "countdown.h"
#include "instrument.h"
#include "pass.h"
#include "types.h"

// Cycles per tile of plan_tiles and plan_chunks. arrange (save.h) needs more for every tile, so that it never waits for
// these processes.
static const int TILE_CYCLES = 4;

// The rows of a row tile. The last row of the tile above is stored if a pool window reaches from it into this tile,
// which happens if ROWS is odd or the pool's stride is 1.
struct tile_rows_t {
    int16_t stored_rows;  // rows stored from the tile above: 0 or 1
    int16_t rows;         // rows of the convolution in this tile
    int16_t output_rows;  // rows after the pool
};

// Return whether the output is upsampled, which is always by a factor of 2. UPSCALE is 1 in engines for networks without
// an upsample; these have no logic for it.
inline bool upscales(const pass_t &pass) {
#pragma HLS INLINE
    return UPSCALE > 1 && pass.upscale > 1;
}

// Return the rows of this tile.
inline tile_rows_t rows_of_tile(const pass_t &pass, const tile_t &tile) {
#pragma HLS INLINE
    tile_rows_t out;
    const bool last = tile.row + 1 == pass.row_tiles;
    out.rows = minimum(ROWS, pass.out_height - tile.first_row);
    out.stored_rows = pass.pool_size == 1 ? 0 : pass.pool_stride == 2 ? (tile.first_row & 1) : (tile.row > 0 ? 1 : 0);
    const int available = out.stored_rows + out.rows;
    if (pass.pool_size == 1) out.output_rows = upscales(pass) ? 2 * available : available;
    else if (pass.pool_stride == 2) out.output_rows = last ? (available + 1) / 2 : available / 2;
    else out.output_rows = last ? available : available - 1;
    return out;
}

// Return the cycles in which ``rows`` rows of a position are output, SAVE_ROWS per cycle.
inline int groups_of(int rows) {
#pragma HLS INLINE
    return (rows + SAVE_ROWS - 1) / SAVE_ROWS;
}

// A tile in the form in which ``pool`` needs it.
struct pool_tile_t {
    tile_rows_t rows;
    int16_t last_group;  // output cycles per column, minus 1
    int16_t channel;     // number of the channel tile
    bool last;           // the last tile of the pass
    int stored_address;  // address of the stored sums of the first column
};

// Process that computes the tiles of a pass in advance.
static inline void plan_tiles(pass_t pass, hls::stream<pool_tile_t> &tiles) {
    SYSTOLIC_PROCESS("plan_tiles");
    tile_t tile = {0, 0, 0};
    int stored_address = 0;
    bool more = true;
    SYSTOLIC_ENTER;
    while (more) {
        SYSTOLIC_PIPELINE(TILE_CYCLES, 6);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        const int row = tile.row;
        pool_tile_t out;
        out.rows = rows_of_tile(pass, tile);
        out.last_group = groups_of(out.rows.output_rows) - 1;  // every tile outputs at least one row
        out.channel = tile.channel;
        out.stored_address = stored_address;
        more = next_tile(pass, tile);
        stored_address = tile.row == row ? stored_address + pass.save_width : 0;
        out.last = !more;
        tiles.write(out);
    }
}

// Keep the larger of two sums for each column of the array.
inline void update_maximum(sums_t &into, const sums_t &other) {
#pragma HLS INLINE
    for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
        if (other.column[n] > into.column[n]) into.column[n] = other.column[n];
    }
}

// Return row ``row`` of the tile's output: the larger of its two input rows, of which the first may be the stored one.
inline sums_t pool_row(const pass_t &pass, const tile_rows_t &tile, int row, const sums_t &stored_sums,
                       const sums_t sums[ROWS]) {
#pragma HLS INLINE
    const int input = upscales(pass) ? row / 2 : pass.pool_stride == 2 ? 2 * row : row;
    const int first = input - tile.stored_rows;  // −1 is the stored row
    sums_t out = first < 0 ? stored_sums : sums[minimum(first, ROWS - 1)];
    if (pass.pool_size == 2 && first + 1 < tile.rows) update_maximum(out, sums[minimum(first + 1, ROWS - 1)]);
    return out;
}

// Return the values of one map times the values of another. The array has multiplied each value by 1, so that both
// factors fit into VALUE_BITS. The product is made of LUTs, because the array needs the DSPs.
inline sums_t multiply_maps(const sums_t &first, const sums_t &second) {
#pragma HLS INLINE
    sums_t out;
    for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
        sum_t product;
#pragma HLS BIND_OP variable = product op = mul impl = fabric
        product = value_t(first.column[n]) * value_t(second.column[n]);
        out.column[n] = product;
    }
    return out;
}

// Pipeline depth of ``pool``.
static const int POOL_STAGES = MAP_PRODUCTS > 0 ? 8 : 5;

static inline void pool(pass_t pass, hls::stream<pool_tile_t> &tiles, hls::stream<positions_t> sums[ROWS],
                        hls::stream<group_t> &groups) {
    SYSTOLIC_PROCESS("pool");
    // [channel tile][column]: the last row of a tile, until the tile below it is processed.
    // lint: allow(static-local) every pass fills this memory anew; it would be too large for the stack
    static sums_t stored_sums[KEPT_DEPTH];
#pragma HLS AGGREGATE variable = stored_sums compact = bit
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = stored_sums type = ram_s2p impl = KEPT_MEMORY)
    positions_t read_sums[ROWS];
    sums_t column[ROWS], previous[ROWS], window[ROWS];
#pragma HLS ARRAY_PARTITION variable = read_sums complete dim = 0
#pragma HLS ARRAY_PARTITION variable = column complete dim = 0
#pragma HLS ARRAY_PARTITION variable = previous complete dim = 0
#pragma HLS ARRAY_PARTITION variable = window complete dim = 0
    // A pool of stride 1 outputs column x − 1 when column x arrives, and its last column one step after the last
    // arrival.
    const bool no_pool = pass.pool_size == 1, stride_one = !no_pool && pass.pool_stride == 1,
               stride_two = !no_pool && !stride_one;
    // A position may become several columns of the output, so that save_width counts columns and out_width counts
    // arrivals.
    const int last_arrival = (no_pool && !upscales(pass) ? pass.save_width : pass.out_width) - 1,
              last_column = last_arrival + (stride_one ? 1 : 0);
    // A pool window reaches into the next row tile if ROWS is odd or the pool's stride is 1; only then are sums stored.
    const bool stores_row = !no_pool && pass.row_tiles > 1 && (stride_one || ROWS % 2 == 1);
    // The next tile is read before this tile begins, so that no comparison depends on a FIFO's output of the same
    // cycle.
    pool_tile_t tile = tiles.read(), next = tile;
    if (!tile.last) next = tiles.read();
    // The places of a window: all columns of a kernel row, then the next kernel row.
    countdown_t kernel_columns, kernel_rows;
    start_countdown(kernel_columns, pass.kernel_groups);
    start_countdown(kernel_rows, pass.kernel_height);
    int x = 0, group = 0;
    const bool one_place =
        !compares_places(pass) && !multiplies_maps(pass);  // the array has summed the places of a window
    bool first_place = true, last_place = one_place | (kernel_columns.last & kernel_rows.last);
    bool more = true, repeats = false;  // repeats: the column is output for the second time
    sums_t stored_row;
    SYSTOLIC_ENTER;
    while (more) {
        SYSTOLIC_PIPELINE(1, POOL_STAGES);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// An iteration reads and writes one address, and no other iteration of the tile uses that address. The row tile below
// reads it, 2 iterations later or more: the scheduler refuses a pool of stride 2 over one column, whose tiles can take a
// single iteration (STORED_SUMS_DISTANCE in scheduler/systolic/tiling.py). The tool keeps the write before that read.
#pragma HLS DEPENDENCE variable = stored_sums type = inter direction = RAW distance = 2 true
        // Columns of a row, counted in ``x``. A column takes one cycle per group of SAVE_ROWS output rows.
        const bool odd = (x & 1) != 0, is_last_arrival = x == last_arrival, first_group = (group == 0) & !repeats;
        // True if a window is complete. Without a pool: at every column. With stride 1: from the second column on. With
        // stride 2: at every second column, and at the last one if the width is odd. If places are compared or
        // multiplied: at the last place.
        const bool complete = (no_pool & last_place) | (stride_one & (x != 0)) | (stride_two & (odd | is_last_arrival));
        const bool last_group = !complete | (group == tile.last_group),
                   repeat_next = last_group & upscales(pass) & !repeats;
        const bool column_ends = last_group & last_place & !repeat_next, tile_ends = column_ends & (x == last_column);
        if (first_group) {
            const int position = pass.positions > 1 && odd ? POSITIONS - 1 : 0;
            const bool reads_column = !stride_one || x != last_column;
            for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
                previous[m] = column[m];
                if (reads_column) {
                    if (position == 0) read_sums[m] = sums[m].read();
                    column[m] = read_sums[m].position[position];
                }
                window[m] = stride_one && x != 0 ? previous[m] : column[m];
                const bool compares_pair = stride_one ? x != 0 && reads_column
                                                      : (stride_two && odd) || (compares_places(pass) && !first_place);
                if (compares_pair) update_maximum(window[m], stride_one ? column[m] : previous[m]);
                if (compares_places(pass)) column[m] = window[m];
            }
            if (stores_row && complete) {
                const int address = tile.stored_address + (stride_one ? x - 1 : x >> 1);
                stored_row = stored_sums[address];
                stored_sums[address] = window[ROWS - 1];
            }
        }
        if (complete) {
            group_t out;
            for (int r = 0; r < SAVE_ROWS; ++r) {
#pragma HLS UNROLL
                const int row = group * SAVE_ROWS + r;
                out.row[r] = pool_row(pass, tile.rows, row, stored_row, window);
                if (multiplies_maps(pass)) out.row[r] = multiply_maps(previous[minimum(row, ROWS - 1)], out.row[r]);
            }
            out.channel = tile.channel;
            out.last = tile_ends && tile.last;
            groups.write(out);
        }
        group = last_group ? 0 : group + 1;
        if (last_group) repeats = repeat_next;
        if (column_ends) x = tile_ends ? 0 : x + 1;
        if (last_group) first_place = last_place;
        count_down(kernel_rows, last_group & kernel_columns.last);
        count_down(kernel_columns, last_group);
        last_place = one_place | (kernel_columns.last & kernel_rows.last);
        if (tile_ends) {
            more = !tile.last;
            tile = next;
            if (!next.last) next = tiles.read();
        }
    }
}

#endif  // SYSTOLIC_POOL_H
