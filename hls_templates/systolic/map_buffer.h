// Map buffers: a map can stay on chip until its last reader is through, instead of going through DDR. There are two: a
// pass reads one (process load) and writes the other (process arrange), so that each has one reader and one writer.
// Several maps lie in a buffer, each from a word of every bank on; maps of a concat side by side, as in DDR.
#ifndef SYSTOLIC_MAP_BUFFER_H
#define SYSTOLIC_MAP_BUFFER_H

#include "pass.h"
#include "types.h"

// A map buffer has ROWS banks, like the row buffer. Row y lies in bank (y + turn) mod ROWS. With stride 1 the row buffer
// begins with the bank that has a row in the bank of the same number in both buffers, and ROWS rows move in one cycle, a
// word from each bank; ``turn`` is the padding above the map, modulo ROWS, in the layer that begins with bank 0. With
// stride 2 see move_words (loader/load.h). The rows of a bank lie one behind the other, [row][block][column] of words,
// from the map's place on: row y is number ⌊y / ROWS⌋ of its bank. Where the engine has no map buffers this is one
// unused word.
typedef word_t map_buffer_t[MAP_DEPTH > 0 ? MAP_DEPTH : 1][ROWS];

// ROWS consecutive rows, counted with the padding, are a *lap*: one row in each bank. The padding takes banks 0 … turn
// − 1 of the first lap that has rows of the map, so that in these banks every row lies ``pitch`` words earlier than in
// the others. Gives where the row of a lap begins in ``bank``, relative to lap · pitch; with ``next_lap`` the row of
// the lap after it. Only adds: a multiplier for each bank would take DSPs that the array has.
inline int row_in_bank(int pitch, bool next_lap, int bank, int turn) {
#pragma HLS INLINE
    return (next_lap ? pitch : 0) - (bank < turn ? pitch : 0);
}

// The bank of a row that is ``rows`` rows below one in bank 0, and the words from that one's lap to its own. A tile gives
// at most UPSCALE · ROWS rows, from any bank on.
inline int bank_of(int rows) {
#pragma HLS INLINE
    return UPSCALE > 1 && rows >= 2 * ROWS ? rows - 2 * ROWS : wrap_once(rows, ROWS);
}

inline int lap_words(int rows, int pitch) {
#pragma HLS INLINE
    return UPSCALE > 1 && rows >= 2 * ROWS ? 2 * pitch : rows >= ROWS ? pitch : 0;
}

// ROWS · laps, of which there are as many as rows of padding at most: multiples of ROWS that are constants, added.
inline int rows_of_laps(int laps) {
#pragma HLS INLINE
    int rows = 0;
    for (int bit = 0; bit < 8; ++bit) {
#pragma HLS UNROLL
        rows += ((laps >> bit) & 1) != 0 ? ROWS << bit : 0;
    }
    return rows;
}

inline bool reads_buffer(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_DEPTH > 0 && pass.in_buffer != 0;
}

// Whether rows are read two by two, with stride 2. Arrays for networks in which no such layer reads a map on chip have
// MAP_STRIDE 1, and nothing of it.
inline bool steps_over_rows(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_STRIDE > 1 && pass.stride == 2;
}

// Whether rows are read further apart, and of each row stride only some.
inline bool leaps_over_rows(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_STRIDE > 2 && pass.stride > 2;
}

// Row strides that move together then, at most: as many banks are chosen from all.
static const int LEAPS = ROWS < 4 ? ROWS : 4;

// Of these as many as lie in banks of their own: the first rows of two are ``stride`` rows apart, or twice that …
inline int leaps_together(int stride) {
#pragma HLS INLINE
    int together = LEAPS;
    for (int s = 3; s <= MAP_STRIDE; ++s) {
#pragma HLS UNROLL
        for (int r = LEAPS - 1; r > 0; --r) {
#pragma HLS UNROLL
            if (stride == s && r * s % ROWS == 0) together = r;
        }
    }
    return together;
}

// Row strides that move from a map buffer in a cycle. Of two rows each those of one parity are read, in every second bank
// where ROWS is even, and else in every bank: for 5 rows in banks 0, 2, 4, 1, 3.
inline int moved_together(const pass_t &pass) {
#pragma HLS INLINE
    if (leaps_over_rows(pass)) return leaps_together(pass.stride);
    return ROWS % 2 == 0 && steps_over_rows(pass) ? ROWS / 2 : ROWS;
}

// Cycles in which ROWS of them move, a word of each.
inline int moved_cycles(const pass_t &pass) {
#pragma HLS INLINE
    const int together = leaps_together(pass.stride);
    if (leaps_over_rows(pass) && together == 1) return ROWS;
    if (leaps_over_rows(pass) && together == 2) return (ROWS + 1) / 2;
    if (leaps_over_rows(pass)) return together == 3 ? (ROWS + 2) / 3 : (ROWS + LEAPS - 1) / LEAPS;
    return ROWS % 2 == 0 && steps_over_rows(pass) ? 2 : 1;
}

inline bool writes_buffer(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_DEPTH > 0 && pass.out_buffer != 0;
}

#endif  // SYSTOLIC_MAP_BUFFER_H
