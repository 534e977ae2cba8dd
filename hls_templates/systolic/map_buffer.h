// Map buffers: maps that stay on chip between two layers, the one that gives them and the next one. A pass reads one
// buffer (load) and writes the other (arrange), so that each has one writer and one reader.
#ifndef SYSTOLIC_MAP_BUFFER_H
#define SYSTOLIC_MAP_BUFFER_H

#include "pass.h"
#include "types.h"

// ROWS banks, as the row buffer has: row y lies in bank (y + turn) mod ROWS, where turn is the padding above the map of
// the layer that reads it, so that a whole group of ROWS rows moves into the row buffer together, bank by bank. In a
// bank the rows lie one after the other, [row][block][column] of words, the first at 0: row y is the y / ROWS-th of its
// bank. Without map buffers this one word is unused.
typedef lanes_t map_buffer_t[MAP_DEPTH > 0 ? MAP_DEPTH : 1][ROWS];

// Words from lap · pitch to where a row begins in ``bank``. Of the lap-th round of banks, counted with the padding above,
// or of the one after it. Added, not multiplied: a multiplier a bank would take DSPs that the array has.
inline int row_in_bank(int pitch, bool next_lap, int bank, int turn) {
#pragma HLS INLINE
    return (next_lap ? pitch : 0) - (bank < turn ? pitch : 0);
}

inline bool reads_buffer(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_DEPTH > 0 && pass.in_buffer != 0;
}

inline bool writes_buffer(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_DEPTH > 0 && pass.out_buffer != 0;
}

#endif  // SYSTOLIC_MAP_BUFFER_H
