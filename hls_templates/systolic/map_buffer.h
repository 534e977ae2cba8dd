// Map buffers: a map can stay on chip until its last reader has read it, instead of going through DDR. There are two
// buffers. A pass reads one (process load) and writes the other (process arrange), so that each has one reader and one
// writer. A buffer can hold several maps; each starts at one address in all banks. The inputs of a concatenation are
// stored next to each other, as in DDR.
#ifndef SYSTOLIC_MAP_BUFFER_H
#define SYSTOLIC_MAP_BUFFER_H

#include "pass.h"
#include "types.h"

// A map buffer has ROWS banks, like the row buffer. Row y of a map is in bank (y + turn) mod ROWS. A bank stores its
// rows one after the other, [row][block][column] of words, from the map's base address on: row y is row ⌊y / ROWS⌋ of
// its bank.
//
// With stride 1, a row is in the bank of the same number in both buffers, so that ROWS rows move per cycle, one word
// per bank. ``turn`` is the padding above the map, modulo ROWS, of the layer that starts with bank 0. move_words
// (loader/load.h) explains stride 2. Engines without map buffers have a single unused word here.
typedef word_t map_buffer_t[MAP_DEPTH > 0 ? MAP_DEPTH : 1][ROWS];

// A *lap* is ROWS consecutive rows of the map with its padding: one row per bank. In the first lap that contains rows
// of the map, banks 0 … turn − 1 contain padding, which is not stored. So every row of these banks is stored ``pitch``
// words earlier than in the other banks.
//
// Return the address of a lap's row in ``bank``, relative to lap · pitch; with ``next_lap`` the address of the next
// lap's row. Only additions are used, because a multiplier per bank would take DSPs from the array.
inline int row_offset_in_bank(int pitch, bool next_lap, int bank, int turn) {
#pragma HLS INLINE
    return (next_lap ? pitch : 0) - (bank < turn ? pitch : 0);
}

// bank_of: the bank of the row that is ``rows`` rows below a row in bank 0. lap_offset: the words between the laps of
// these two rows. A tile has at most UPSCALE · ROWS rows, and its first row may be in any bank, so that two
// subtractions suffice.
inline int bank_of(int rows) {
#pragma HLS INLINE
    return UPSCALE > 1 && rows >= 2 * ROWS ? rows - 2 * ROWS : wrap_once(rows, ROWS);
}

inline int lap_offset(int rows, int pitch) {
#pragma HLS INLINE
    return UPSCALE > 1 && rows >= 2 * ROWS ? 2 * pitch : rows >= ROWS ? pitch : 0;
}

// Return ROWS · laps. ``laps`` is at most the number of rows of padding, which has 8 bits. The result is a sum of
// constants, so that no multiplier is needed.
inline int laps_to_rows(int laps) {
#pragma HLS INLINE
    int rows = 0;
    for (int bit = 0; bit < 8; ++bit) {
#pragma HLS UNROLL
        rows += ((laps >> bit) & 1) != 0 ? ROWS << bit : 0;
    }
    return rows;
}

// Return whether the pass reads its input map from a map buffer.
inline bool reads_buffer(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_DEPTH > 0 && pass.in_buffer != 0;
}

// Return whether rows are read from a map buffer in pairs (stride 2). MAP_STRIDE is 1 in engines for networks in which no
// layer with stride 2 or more reads a map buffer; these have no logic for it.
inline bool reads_row_pairs(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_STRIDE > 1 && pass.stride == 2;
}

// Return whether the stride is above 2: only some rows of a row stride are read from the map buffer.
inline bool has_large_stride(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_STRIDE > 2 && pass.stride > 2;
}

// Upper limit for the row strides that move per cycle if the stride is above 2. Each is selected from all banks.
static const int MAX_STRIDED_ROWS = ROWS < 4 ? ROWS : 4;

// Return how many of these MAX_STRIDED_ROWS row strides are in different banks. Row strides r apart are r · stride rows
// apart; if that is a multiple of ROWS, they are in the same bank.
inline int strided_rows_per_cycle(int stride) {
#pragma HLS INLINE
    int group_size = MAX_STRIDED_ROWS;
    for (int s = 3; s <= MAP_STRIDE; ++s) {
#pragma HLS UNROLL
        for (int r = MAX_STRIDED_ROWS - 1; r > 0; --r) {
#pragma HLS UNROLL
            if (stride == s && r * s % ROWS == 0) group_size = r;
        }
    }
    return group_size;
}

// Return the row strides that move from a map buffer per cycle. With stride 2, rows of one parity move at a time. If
// ROWS is even, these rows are in every second bank, so that half of the banks move. If ROWS is odd, they are in all
// banks (for 5 rows: 0, 2, 4, 1, 3).
inline int row_strides_per_cycle(const pass_t &pass) {
#pragma HLS INLINE
    if (has_large_stride(pass)) return strided_rows_per_cycle(pass.stride);
    return ROWS % 2 == 0 && reads_row_pairs(pass) ? ROWS / 2 : ROWS;
}

// Return the cycles in which ROWS row strides move, one word of each.
inline int move_cycles(const pass_t &pass) {
#pragma HLS INLINE
    const int group_size = strided_rows_per_cycle(pass.stride);
    if (has_large_stride(pass) && group_size == 1) return ROWS;
    if (has_large_stride(pass) && group_size == 2) return (ROWS + 1) / 2;
    if (has_large_stride(pass))
        return group_size == 3 ? (ROWS + 2) / 3 : (ROWS + MAX_STRIDED_ROWS - 1) / MAX_STRIDED_ROWS;
    return ROWS % 2 == 0 && reads_row_pairs(pass) ? 2 : 1;
}

// Return whether the pass writes its output map to a map buffer.
inline bool writes_buffer(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_DEPTH > 0 && pass.out_buffer != 0;
}

#endif  // SYSTOLIC_MAP_BUFFER_H
