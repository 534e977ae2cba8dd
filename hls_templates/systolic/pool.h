// Saver, first part: max pool on the exact sums. Requantising never decreases with the sum (multipliers
// are not negative), so the maximum may be taken before it: a quarter of the requantisers do for a 2 × 2
// pool, and the bits are the same.
#ifndef SYSTOLIC_POOL_H
#define SYSTOLIC_POOL_H

#include <hls_stream.h>

#include "instrument.h"
#include "pass.h"
#include "types.h"

// Rows that a row tile gives to the Saver. ``kept`` is 1 when the last row of the tile above waits for
// its partner, which happens where ROWS is odd or the pool's stride is 1.
struct tile_rows_t {
    int kept;   // rows from the tile above: 0 or 1
    int rows;   // rows of the convolution in this tile
    int saved;  // rows that leave
};

inline tile_rows_t rows_of_tile(const pass_t &pass, const tile_t &tile) {
#pragma HLS INLINE
    tile_rows_t out;
    const bool last = tile.row + 1 == pass.row_tiles;
    out.rows = minimum(ROWS, pass.out_height - tile.rows_above);
    out.kept = pass.pool_size == 1 ? 0 : pass.pool_stride == 2 ? (tile.rows_above & 1) : (tile.row > 0 ? 1 : 0);
    const int available = out.kept + out.rows;
    if (pass.pool_size == 1) out.saved = available;
    else if (pass.pool_stride == 2) out.saved = last ? (available + 1) / 2 : available / 2;
    else out.saved = last ? available : available - 1;
    return out;
}

// Groups of SAVE_ROWS rows in which a position's results leave.
inline int groups_of(int rows) {
#pragma HLS INLINE
    return (rows + SAVE_ROWS - 1) / SAVE_ROWS;
}

inline void keep_larger(sums_t &into, const sums_t &other) {
#pragma HLS INLINE
    for (int n = 0; n < COLUMNS; ++n) {
#pragma HLS UNROLL
        if (other.column[n] > into.column[n]) into.column[n] = other.column[n];
    }
}

// The rows that pool together: row i of the window list is the kept row or a row of the tile.
inline sums_t pooled_row(const pass_t &pass, const tile_rows_t &tile, int row, const sums_t &kept,
                         const sums_t sums[ROWS]) {
#pragma HLS INLINE
    const int first = (pass.pool_stride == 2 ? 2 * row : row) - tile.kept;  // −1 is the kept row
    sums_t out = first < 0 ? kept : sums[minimum(first, ROWS - 1)];
    if (pass.pool_size == 2 && first + 1 < tile.rows) keep_larger(out, sums[minimum(first + 1, ROWS - 1)]);
    return out;
}

static inline void pool(pass_t pass, hls::stream<positions_t> sums[ROWS], hls::stream<group_t> &groups) {
    SYSTOLIC_PROCESS("pool");
    // [channel tile][column]: last rows that wait for the tile below.
    // lint: allow(static-local) a memory of its own, filled anew by every pass; on the stack it is too large
    static sums_t kept[KEPT_DEPTH];
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = kept type = ram_s2p impl = KEPT_MEMORY)
    positions_t taken[ROWS];
    sums_t column[ROWS], before[ROWS], window[ROWS];
#pragma HLS ARRAY_PARTITION variable = taken complete
#pragma HLS ARRAY_PARTITION variable = column complete
#pragma HLS ARRAY_PARTITION variable = before complete
#pragma HLS ARRAY_PARTITION variable = window complete
    // A pool of stride 1 gives column x − 1 when column x arrives, and its last one step later.
    const bool lagging = pass.pool_size == 2 && pass.pool_stride == 1;
    const int columns = pass.out_width + (lagging ? 1 : 0);
    // Windows straddle row tiles where ROWS is odd or the pool's stride is 1; only then are sums kept.
    const bool keeps = pass.pool_size == 2 && pass.row_tiles > 1 && (pass.pool_stride == 1 || ROWS % 2 == 1);
    int x = 0, group = 0, kept_at = 0;
    tile_t at = {0, 0, 0};
    tile_rows_t tile = rows_of_tile(pass, at);
    bool more = true;
    sums_t kept_row;
    SYSTOLIC_ENTER;
    while (more) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = kept type = inter false
        const bool odd = (x & 1) != 0;
        if (group == 0) {
            const int position = pass.positions > 1 && odd ? POSITIONS - 1 : 0;
            for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
                before[m] = column[m];
                if (x < pass.out_width) {
                    if (position == 0) taken[m] = sums[m].read();
                    column[m] = taken[m].position[position];
                }
                window[m] = lagging && x > 0 ? before[m] : column[m];
                const bool pair = lagging ? x > 0 && x < pass.out_width : pass.pool_size == 2 && odd;
                if (pair) keep_larger(window[m], lagging ? column[m] : before[m]);
            }
        }
        // A window is whole: at every column without a pool, from the second on with stride 1, at every
        // second (and at a lonely last one) with stride 2.
        const bool whole = pass.pool_size == 1 ? true : lagging ? x > 0 : odd || x == pass.out_width - 1;
        const int count = whole ? groups_of(tile.saved) : 0;
        if (keeps && whole && group == 0) {
            kept_row = kept[kept_at];
            kept[kept_at] = window[ROWS - 1];
        }
        if (group < count) {
            group_t out;
            for (int r = 0; r < SAVE_ROWS; ++r) {
#pragma HLS UNROLL
                out.row[r] = pooled_row(pass, tile, group * SAVE_ROWS + r, kept_row, window);
            }
            groups.write(out);
        }
        if (++group >= count) {
            group = 0;
            if (keeps && whole) ++kept_at;
            if (++x == columns) {
                x = 0;
                const int row_tile = at.row;
                more = next_tile(pass, at);
                if (at.row != row_tile) kept_at = 0;
                tile = rows_of_tile(pass, at);
            }
        }
    }
}

#endif  // SYSTOLIC_POOL_H
