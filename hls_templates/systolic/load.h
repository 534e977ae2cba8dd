// Loader of maps: owns the circular row buffers and feeds the array a word a row every cycle, while the
// next tile's new rows arrive into the rows that are no longer needed, in the same pipelined loop.
#ifndef SYSTOLIC_LOAD_H
#define SYSTOLIC_LOAD_H

#include <hls_stream.h>

#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "read.h"
#include "types.h"

// Row stride q lives in bank q mod ROWS, so that the ROWS rows of a step are always in different banks,
// whatever the stride; its slot in the bank is circular. Each bank is two interleaved halves, so that
// two neighbouring words can be read in one cycle: a window of pixels may straddle words, and two positions
// that share DSPs lie side by side. All places are counted up, never multiplied: slots are words, too.
struct load_cursor_t {
    int q, row, bank, slot;   // of the group's first row stride: its padded row, its bank, the slot's first word there
    int phase, word, offset;  // offset: words from the slot's first to this one
    int column;               // the word's place in its piece of the row
    int lap, piece;           // words of a map buffer: where stride q's round of banks begins, that piece of its rows
};

// Row strides that are loaded together: one a port from DDR, one a bank from a map buffer.
inline int together(const pass_t &pass) {
#pragma HLS INLINE
    return reads_buffer(pass) ? ROWS : MAP_PORTS;
}

// From the first row stride of a group, or of a tile, to the others, in rows.
struct strides_t {
    int down[ROWS];
};

inline strides_t strides_of(const pass_t &pass) {
#pragma HLS INLINE
    strides_t out;
    out.down[0] = 0;
    for (int r = 1; r < ROWS; ++r) {
#pragma HLS UNROLL
        out.down[r] = out.down[r - 1] + pass.stride;
    }
    return out;
}

inline int next_slot(const pass_t &pass, int slot) {
#pragma HLS INLINE
    return slot == pass.last_slot ? 0 : slot + pass.slot_words;
}

inline void next_load(const pass_t &pass, load_cursor_t &at) {
#pragma HLS INLINE
    ++at.offset;
    if (++at.column == pass.burst_words) {
        at.column = 0;
        at.piece += pass.in_block_pitch;
    }
    if (++at.word < pass.row_words) return;
    at.word = 0;
    ++at.row;
    if (++at.phase == pass.phases) {
        at.phase = at.offset = 0;
        at.q += together(pass);
        // A map buffer is read with stride 1.
        at.row += (reads_buffer(pass) ? ROWS : MAP_PORTS * pass.stride) - pass.phases;
        at.bank += together(pass);
        if (at.bank >= ROWS) {
            at.bank -= ROWS;
            at.lap += pass.in_row_pitch;
            at.slot = next_slot(pass, at.slot);
        }
    }
    at.piece = at.lap;
}

// The next group starts at stride ``end``, also where the last group went beyond it.
inline void return_to(const pass_t &pass, int end, load_cursor_t &at) {
#pragma HLS INLINE
    const int excess = at.q - end;
    if (excess <= 0) return;
    at.q -= excess;
    at.row -= times(pass.stride, excess);
    at.bank -= excess;
    if (at.bank < 0) {
        at.bank += ROWS;
        at.lap -= pass.in_row_pitch;
        at.slot = at.slot == 0 ? pass.last_slot : at.slot - pass.slot_words;
        at.piece = at.lap;
    }
}

// Where the computing of a tile begins.
struct feed_start_t {
    int slot, row;                   // of its first row: the slot's first word, the padded row
    int block, end_block, block_at;  // its channel blocks, and words from a row's first to the first of them
};

struct feed_cursor_t {
    int x, left, pixel;  // column of the output, of the window's left edge, of the group in the window
    int ky, group;
    int kernel_phase, phase_at;  // ky mod stride, and words from a slot's first to that row
    int slot, turn;              // of row ky of the first window: its slot, its bank
    int block, block_at;
};

inline feed_cursor_t first_feed(const pass_t &pass, const feed_start_t &start) {
#pragma HLS INLINE
    feed_cursor_t at = {};
    at.left = at.pixel = -pass.pad_left;
    at.slot = start.slot;
    at.block = start.block;
    at.block_at = start.block_at;
    return at;
}

// Channel blocks are the inner loop, then kernel columns, kernel rows, positions, and channel tiles.
inline void next_feed(const pass_t &pass, feed_start_t &start, feed_cursor_t &at) {
#pragma HLS INLINE
    ++at.block;
    at.block_at += pass.block_words;
    if (at.block < start.end_block) return;
    const int next_block_at = at.block_at;
    at.block = start.block;
    at.block_at = start.block_at;
    at.pixel += pass.group_pixels;
    if (++at.group < pass.kernel_groups) return;
    at.group = 0;
    at.pixel = at.left;
    at.phase_at += pass.row_words;
    if (++at.kernel_phase == pass.stride) {
        at.kernel_phase = at.phase_at = 0;
        if (++at.turn == ROWS) {
            at.turn = 0;
            at.slot = next_slot(pass, at.slot);
        }
    }
    if (++at.ky < pass.kernel_height) return;
    at.ky = at.kernel_phase = at.phase_at = at.turn = 0;
    at.slot = start.slot;
    at.x += pass.positions;
    at.left += pass.stride == 1 ? pass.positions : pass.stride;
    at.pixel = at.left;
    if (at.x < pass.out_width) return;
    if (pass.diagonal) {
        start.block = start.end_block;
        start.end_block += pass.tile_blocks;
        start.block_at = next_block_at;
    }
    at = first_feed(pass, start);
}

// A pixel is PIXEL_BYTES bytes of DDR. How many a word holds, and how many the array takes a cycle.
static const int WORD_PIXELS = WORD_BYTES / PIXEL_BYTES;
static const int STEP_PIXELS = LANES / PIXEL_LANES;

// A byte p of a pixel as values that the array can multiply, each exact; what is subtracted comes back by the bias
// (scheduler/systolic/program.py). 8 bits: p − 128, which flips the top bit. 4 bits: p = 16 · h + l + 136 with two values
// h = ⌊p / 16⌋ − 8 and l = p mod 16 − 8, the top bit of each nibble flipped; h stands in the odd lane, and the array
// gives its products 16 times the weight. 16 bits: p itself. ``at``: which value of the pair of words it is.
inline value_t pixel_value(const lanes_t &low, const lanes_t &high, int at) {
#pragma HLS INLINE
    const int lane = VALUE_BITS == 16 ? at / 2 : at;
    const value_t raw = lane < LANES ? low.lane[lane] : high.lane[lane - LANES];
    if (VALUE_BITS == 16) return value_t((raw >> (8 * (at % 2))) & 255);
    return value_t(raw ^ value_t(-(1 << (VALUE_BITS - 1))));
}

// The window of STEP_PIXELS pixels that starts ``shift`` pixels into the pair of words. A padded pixel is 0.
inline lanes_t window(const lanes_t &low, const lanes_t &high, int shift, int first, int width) {
#pragma HLS INLINE
    const value_t zero = VALUE_BITS == 16 ? value_t(0) : value_t(-(1 << (VALUE_BITS - 1)));
    lanes_t out;
    for (int p = 0; p < STEP_PIXELS; ++p) {
#pragma HLS UNROLL
        const bool inside = first + p >= 0 && first + p < width;
        for (int c = 0; c < PIXEL_LANES; ++c) {
#pragma HLS UNROLL
            const value_t value = pixel_value(low, high, (shift + p) * PIXEL_LANES + c);
            out.lane[p * PIXEL_LANES + c] = inside ? value : zero;
        }
    }
    return out;
}

// A word of every row of a group, from its port or from its bank of the map buffer. Each bank is written in one
// place: of writes to a bank that is only known at run time a tool has to assume that they meet.
inline void load_words(const pass_t &pass, const strides_t &strides, const load_cursor_t &at, int end,
                       lanes_t rows[ROW_DEPTH / 2][2][ROWS], const map_buffer_t from,
                       hls::stream<lanes_t> ports[MAP_PORTS]) {
#pragma HLS INLINE
    bool wanted[ROWS];  // rows that lie in the map, and before the end of the phase
#pragma HLS ARRAY_PARTITION variable = wanted complete
    for (int r = 0; r < ROWS; ++r) {
#pragma HLS UNROLL
        wanted[r] = r < together(pass) && at.q + r < end && row_exists(pass, at.row + strides.down[r]);
    }
    lanes_t read[MAP_PORTS];
#pragma HLS ARRAY_PARTITION variable = read complete
    for (int port = 0; port < MAP_PORTS; ++port) {
#pragma HLS UNROLL
        if (!reads_buffer(pass) && wanted[(port - at.q) & (MAP_PORTS - 1)]) read[port] = ports[port].read();
    }
    const int here = at.slot + at.offset, beyond = next_slot(pass, at.slot) + at.offset;
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool wraps = bank < at.bank;
        const int r = bank - at.bank + (wraps ? ROWS : 0);
        if (wanted[r]) {
            const int address = wraps ? beyond : here;
            const int source = at.piece + at.column + row_in_bank(pass.in_row_pitch, wraps, bank, pass.in_turn);
            rows[address >> 1][address & 1][bank] =
                reads_buffer(pass) ? from[source][bank] : read[(at.q + r) & (MAP_PORTS - 1)];
        }
    }
}

// ``row``: the padded row of the tile's first one.
inline activations_t gather(const pass_t &pass, const strides_t &strides, const feed_cursor_t &at, int row,
                            lanes_t rows[ROW_DEPTH / 2][2][ROWS]) {
#pragma HLS INLINE
    // Rounded down, also left of the map: a kernel is narrower than 64 words.
    const int word = pass.pixel_input ? (at.pixel + 64 * WORD_PIXELS) / WORD_PIXELS - 64 : at.pixel;
    const int shift = pass.pixel_input ? at.pixel - word * WORD_PIXELS : 0;

    // Words ``word`` and ``word`` + 1 of every bank: one of them is in the even half, the other in the odd one. Of one
    // that lies beside the map, or of a channel block beyond the last, no value is taken, and its address is one that
    // is there.
    const bool block_exists = at.block < pass.in_blocks;
    const int last_word = pass.block_words - 1;
    const int low_word = within(-1, word, last_word), next = low_word < last_word ? 1 : 0;
    const int from = at.phase_at + (block_exists ? at.block_at : 0) + low_word;
    const int here = at.slot + from, beyond = next_slot(pass, at.slot) + from;
    lanes_t low[ROWS], high[ROWS];
#pragma HLS ARRAY_PARTITION variable = low complete
#pragma HLS ARRAY_PARTITION variable = high complete
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const int a = bank < at.turn ? beyond : here;
        const lanes_t even = rows[maximum(0, (a + next) >> 1)][0][bank];
        const lanes_t odd = rows[maximum(0, a >> 1)][1][bank];
        low[bank] = (a & 1) != 0 ? odd : even;
        high[bank] = (a & 1) != 0 ? even : odd;
    }

    activations_t out;
    for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
        const int bank = wrap_once(m + at.turn, ROWS);
        const bool exists = row_exists(pass, row + strides.down[m] + at.ky) && block_exists;
        for (int p = 0; p < POSITIONS; ++p) {
#pragma HLS UNROLL
            // The stride is 1 where there are two positions.
            const int here = at.pixel + p;
            const bool inside = exists && here >= 0 && here < pass.in_width;
            if (pass.pixel_input) {
                out.row[m].position[p] =
                    window(low[bank], high[bank], shift + p, exists ? here : -LANES, exists ? pass.in_width : 0);
            } else {
                for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                    const value_t value = p == 0 ? low[bank].lane[l] : high[bank].lane[l];
                    out.row[m].position[p].lane[l] = inside ? value : value_t(0);
                }
            }
        }
    }
    return out;
}

// One phase: ``feeds`` steps for the array from ``start`` on, which goes on with the channel tiles, and ``loads`` words of
// every bank or port to load, up to stride ``end``.
inline void load_phase(const pass_t &pass, const strides_t &strides, feed_start_t start, int feeds, load_cursor_t &load,
                       int loads, int end, lanes_t rows[ROW_DEPTH / 2][2][ROWS], const map_buffer_t from,
                       hls::stream<lanes_t> ports[MAP_PORTS], hls::stream<activations_t> &activations) {
#pragma HLS INLINE off
    const int cycles = maximum(feeds, loads);
    const int row = start.row;
    int credit = 0;
    feed_cursor_t feed = first_feed(pass, start);
    SYSTOLIC_ENTER;
    for (int i = 0; i < cycles; ++i) {
        SYSTOLIC_PIPELINE(1, 8);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = rows type = inter false
        // Loads are spread evenly over the phase: the readers run ahead, so that the array never waits
        // for a row that is only needed by the next tile.
        credit += loads;
        if (credit >= cycles) {
            credit -= cycles;
            load_words(pass, strides, load, end, rows, from, ports);
            next_load(pass, load);
        }
        if (i < feeds) {
            activations.write(gather(pass, strides, feed, row, rows));
            next_feed(pass, start, feed);
        }
    }
    return_to(pass, end, load);
}

// static, here and wherever a function keeps a memory: sanitizers do not watch what the linker might share.
static inline void load(pass_t pass, const map_buffer_t from, hls::stream<lanes_t> ports[MAP_PORTS],
                        hls::stream<activations_t> &activations) {
    SYSTOLIC_PROCESS("load");
    // lint: allow(static-local) a memory of its own, filled anew by every pass; on the stack it is too large
    static lanes_t rows[ROW_DEPTH / 2][2][ROWS];
#pragma HLS ARRAY_PARTITION variable = rows complete dim = 2
#pragma HLS ARRAY_PARTITION variable = rows complete dim = 3
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = rows type = ram_s2p impl = ROW_MEMORY)
    const strides_t strides = strides_of(pass);
    const int tile_rows = times(pass.stride, ROWS);
    // Words of the first tile, with what its kernel looks ahead, and of each tile after it.
    const int first_loads = reads_buffer(pass) ? pass.first_moves : pass.first_loads;
    const int loads = times(pass.slot_words, reads_buffer(pass) ? 1 : (ROWS + MAP_PORTS - 1) / MAP_PORTS);
    // The padding above lies before the map.
    const int lap = pass.in_base - times(pass.in_row_pitch, pass.in_lap);
    load_cursor_t cursor = {0, 0, 0, 0, 0, 0, 0, 0, lap, lap};
    int end = ROWS + pass.ahead;
    feed_start_t start = {0, 0, 0, pass.tile_blocks, 0};
    load_phase(pass, strides, start, 0, cursor, first_loads, end, rows, from, ports, activations);
    const int rounds = pass.inputs_resident ? pass.channel_tiles : 1;
    for (int round = 0; round < rounds; ++round) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 64
        start.slot = start.row = 0;
        for (int tile = 0; tile < pass.row_tiles; ++tile) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 64
            const bool more = round == 0 && tile + 1 < pass.row_tiles;
            if (more) end += ROWS;
            const bool beside = more && pass.overlap;
            load_phase(pass, strides, start, pass.row_feeds, cursor, beside ? loads : 0, beside ? end : cursor.q, rows,
                       from, ports, activations);
            if (more && !pass.overlap) {
                load_phase(pass, strides, start, 0, cursor, loads, end, rows, from, ports, activations);
            }
            start.slot = next_slot(pass, start.slot);
            start.row += tile_rows;
        }
        if (pass.diagonal) {
            start.block = start.end_block;
            start.end_block += pass.tile_blocks;
            start.block_at += times(pass.block_words, pass.tile_blocks);
        }
    }
}

#endif  // SYSTOLIC_LOAD_H
