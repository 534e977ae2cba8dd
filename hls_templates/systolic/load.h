// Loader of maps: the process that owns the row buffer.
//
// Each cycle (II 1) it does two things. It feeds: for each of the ROWS rows of the array it reads a word of the row
// buffer and writes them together to ``activations``. And it loads: while the array computes a tile, the rows that only
// the next tile needs are read from the ports, or moved from a map buffer, into slots whose rows are no longer needed.
// Both happen in one loop, so that transfer costs no cycles of its own and the buffer need not be doubled.
#ifndef SYSTOLIC_LOAD_H
#define SYSTOLIC_LOAD_H

#include <hls_stream.h>

#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "read.h"
#include "types.h"

// A *row stride* is the ``stride`` rows from one output row's window to the next one's; it is the unit of the row
// buffer. Row stride q lies in bank q mod ROWS, so that the ROWS rows that a step needs are always in different banks.
// In its bank it takes a *slot*; the slots of a bank are used in turn. Each bank has two halves, for words of even and
// of odd address, so that two neighbouring words can be read in one cycle: a window of pixels may begin inside a word,
// and two positions that share DSPs lie side by side. Rows are numbered with the padding above the map ("padded rows").
// Addresses are counted up and never multiplied: a slot is named by the address of its first word.

// The word that is loaded next. Several row strides are loaded together, a *group*; the fields are of the group's
// first.
struct load_cursor_t {
    int q, row, bank, slot;   // the row stride, its padded row, its bank, its slot's first word
    int phase, word, offset;  // row within the stride, word within the row, words from the slot's first to this one
    int column;               // word within its contiguous piece of the row
    int lap, piece;           // in a map buffer: where the lap of row q begins (row_in_bank), and the piece in it
};

// Row strides in a group: one for each port where rows come from DDR, one for each bank where from a map buffer.
inline int together(const pass_t &pass) {
#pragma HLS INLINE
    return reads_buffer(pass) ? ROWS : MAP_PORTS;
}

// down[r]: rows from a row stride to the r-th one after it, r · stride.
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

inline void next_load(const pass_t &pass, load_cursor_t &load) {
#pragma HLS INLINE
    ++load.offset;
    if (++load.column == pass.burst_words) {
        load.column = 0;
        load.piece += pass.in_block_pitch;
    }
    if (++load.word < pass.row_words) return;
    load.word = 0;
    ++load.row;
    if (++load.phase == pass.phases) {
        load.phase = load.offset = 0;
        load.q += together(pass);
        // The next group's row; a layer that reads a map buffer has stride 1.
        load.row += (reads_buffer(pass) ? ROWS : MAP_PORTS * pass.stride) - pass.phases;
        load.bank += together(pass);
        if (load.bank >= ROWS) {
            load.bank -= ROWS;
            load.lap += pass.in_row_pitch;
            load.slot = next_slot(pass, load.slot);
        }
    }
    load.piece = load.lap;
}

// Steps back to row stride ``end`` where the last group went beyond it: the next group starts there.
inline void return_to(const pass_t &pass, int end, load_cursor_t &load) {
#pragma HLS INLINE
    const int excess = load.q - end;
    if (excess <= 0) return;
    load.q -= excess;
    load.row -= times(pass.stride, excess);
    load.bank -= excess;
    if (load.bank < 0) {
        load.bank += ROWS;
        load.lap -= pass.in_row_pitch;
        load.slot = load.slot == 0 ? pass.last_slot : load.slot - pass.slot_words;
        load.piece = load.lap;
    }
}

// Where a tile begins: the slot and the padded row of its first input row, and the channel blocks that it reads, with
// the offset of the first of them in a row, in words.
struct feed_start_t {
    int slot, row;
    int block, end_block, block_offset;
};

// The step that is fed next: a kernel row, a group of kernel columns and a channel block of the windows at column x.
struct feed_cursor_t {
    int x, left, pixel;  // columns: of the output, of the window's left edge, of the group of kernel columns
    int ky, group;       // kernel row, group of kernel columns
    int kernel_phase, phase_offset;  // ky mod stride, and words from a slot's first to that row
    int slot, turn;                  // where kernel row ky of the tile's first window lies: its slot, its bank
    int block, block_offset;         // channel block, and words from a row's first to it
};

inline feed_cursor_t first_feed(const pass_t &pass, const feed_start_t &start) {
#pragma HLS INLINE
    feed_cursor_t feed = {};
    feed.left = feed.pixel = -pass.pad_left;
    feed.slot = start.slot;
    feed.block = start.block;
    feed.block_offset = start.block_offset;
    return feed;
}

// The order of steps: channel blocks innermost, then kernel columns, kernel rows, positions, channel tiles.
inline void next_feed(const pass_t &pass, feed_start_t &start, feed_cursor_t &feed) {
#pragma HLS INLINE
    ++feed.block;
    feed.block_offset += pass.block_words;
    if (feed.block < start.end_block) return;
    const int next_block_offset = feed.block_offset;
    feed.block = start.block;
    feed.block_offset = start.block_offset;
    feed.pixel += pass.group_pixels;
    if (++feed.group < pass.kernel_groups) return;
    feed.group = 0;
    feed.pixel = feed.left;
    feed.phase_offset += pass.row_words;
    if (++feed.kernel_phase == pass.stride) {
        feed.kernel_phase = feed.phase_offset = 0;
        if (++feed.turn == ROWS) {
            feed.turn = 0;
            feed.slot = next_slot(pass, feed.slot);
        }
    }
    if (++feed.ky < pass.kernel_height) return;
    feed.ky = feed.kernel_phase = feed.phase_offset = feed.turn = 0;
    feed.slot = start.slot;
    feed.x += pass.positions;
    feed.left += pass.stride == 1 ? pass.positions : pass.stride;
    feed.pixel = feed.left;
    if (feed.x < pass.out_width) return;
    if (pass.depthwise) {
        start.block = start.end_block;
        start.end_block += pass.tile_blocks;
        start.block_offset = next_block_offset;
    }
    feed = first_feed(pass, start);
}

// A pixel of the picture is PIXEL_BYTES bytes in DDR: WORD_PIXELS of them in a word, STEP_PIXELS into the array a
// cycle.
static const int WORD_PIXELS = WORD_BYTES / PIXEL_BYTES;
static const int STEP_PIXELS = LANES / PIXEL_LANES;

// A byte p (0 … 255) of a pixel as signed values that the array can multiply. All are exact; the bias of the first
// layer has what is subtracted here (scheduler/systolic/program).
//   16 bits   p itself
//    8 bits   p − 128: the top bit flipped
//    4 bits   two values, h = ⌊p / 16⌋ − 8 in the odd lane and l = p mod 16 − 8 in the even one: the top bit of each
//             nibble flipped. p = 16 · h + l + 136, so that products of odd lanes count 16 times (pe_array.h).
// ``index`` counts the values of the words ``low`` and ``high``, one behind the other.
inline value_t pixel_value(const lanes_t &low, const lanes_t &high, int index) {
#pragma HLS INLINE
    const int lane = VALUE_BITS == 16 ? index / 2 : index;
    const value_t raw = lane < LANES ? low.lane[lane] : high.lane[lane - LANES];
    if (VALUE_BITS == 16) return value_t((raw >> (8 * (index % 2))) & 255);
    return value_t(raw ^ value_t(-(1 << (VALUE_BITS - 1))));
}

// STEP_PIXELS pixels, from pixel ``shift`` of the words ``low`` and ``high`` on. ``first``: the column of the first;
// columns outside of 0 … width − 1 are padding, pixels of 0.
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

// Loads a word of every row of a group, from its port or from its bank of the map buffer, into the row buffer. The loop
// is over banks and not over rows, so that each bank is written in one place of the code: of two writes to banks that
// are chosen at run time a tool has to assume that they are the same bank.
inline void load_words(const pass_t &pass, const strides_t &strides, const load_cursor_t &load, int end,
                       lanes_t rows[ROW_DEPTH / 2][2][ROWS], const map_buffer_t from,
                       hls::stream<lanes_t> ports[MAP_PORTS]) {
#pragma HLS INLINE
    bool wanted[ROWS];  // rows of the group that lie in the map, and before row stride ``end``
#pragma HLS ARRAY_PARTITION variable = wanted complete
    for (int r = 0; r < ROWS; ++r) {
#pragma HLS UNROLL
        wanted[r] = r < together(pass) && load.q + r < end && row_exists(pass, load.row + strides.down[r]);
    }
    lanes_t read[MAP_PORTS];
#pragma HLS ARRAY_PARTITION variable = read complete
    for (int port = 0; port < MAP_PORTS; ++port) {
#pragma HLS UNROLL
        if (!reads_buffer(pass) && wanted[(port - load.q) & (MAP_PORTS - 1)]) read[port] = ports[port].read();
    }
    const int here = load.slot + load.offset, beyond = next_slot(pass, load.slot) + load.offset;
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool wraps = bank < load.bank;
        const int r = bank - load.bank + (wraps ? ROWS : 0);
        if (wanted[r]) {
            const int address = wraps ? beyond : here;
            const int source = load.piece + load.column + row_in_bank(pass.in_row_pitch, wraps, bank, pass.in_turn);
            rows[address >> 1][address & 1][bank] =
                reads_buffer(pass) ? from[source][bank] : read[(load.q + r) & (MAP_PORTS - 1)];
        }
    }
}

// What the array takes in a step: for each of its rows the word, or the STEP_PIXELS pixels, at ``feed``, and zeros
// where they are padding. ``row``: padded row of the tile's first input row.
inline activations_t gather(const pass_t &pass, const strides_t &strides, const feed_cursor_t &feed, int row,
                            lanes_t rows[ROW_DEPTH / 2][2][ROWS]) {
#pragma HLS INLINE
    // pixel / WORD_PIXELS, rounded down for the negative columns of padding too: they are fewer than 64 words.
    const int word = pass.pixel_input ? (feed.pixel + 64 * WORD_PIXELS) / WORD_PIXELS - 64 : feed.pixel;
    const int shift = pass.pixel_input ? feed.pixel - word * WORD_PIXELS : 0;

    // Words ``word`` and ``word`` + 1 of every bank are read: one is in the even half, the other in the odd one. Where
    // such a word lies left or right of the map, or its channel block beyond the last, its values are not used below;
    // its address is moved inside the buffer, so that the read is legal.
    const bool block_exists = feed.block < pass.in_blocks;
    const int last_word = pass.block_words - 1;
    const int low_word = within(-1, word, last_word), next = low_word < last_word ? 1 : 0;
    const int from = feed.phase_offset + (block_exists ? feed.block_offset : 0) + low_word;
    const int here = feed.slot + from, beyond = next_slot(pass, feed.slot) + from;
    lanes_t low[ROWS], high[ROWS];
#pragma HLS ARRAY_PARTITION variable = low complete
#pragma HLS ARRAY_PARTITION variable = high complete
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const int address = bank < feed.turn ? beyond : here;
        const lanes_t even = rows[maximum(0, (address + next) >> 1)][0][bank];
        const lanes_t odd = rows[maximum(0, address >> 1)][1][bank];
        low[bank] = (address & 1) != 0 ? odd : even;
        high[bank] = (address & 1) != 0 ? even : odd;
    }

    activations_t out;
    for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
        const int bank = wrap_once(m + feed.turn, ROWS);
        const bool exists = row_exists(pass, row + strides.down[m] + feed.ky) && block_exists;
        for (int p = 0; p < POSITIONS; ++p) {
#pragma HLS UNROLL
            const int column = feed.pixel + p;  // two positions are computed together only where the stride is 1
            const bool inside = exists && column >= 0 && column < pass.in_width;
            if (pass.pixel_input) {
                out.row[m].position[p] =
                    window(low[bank], high[bank], shift + p, exists ? column : -LANES, exists ? pass.in_width : 0);
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

// One phase of the loop, max(feeds, loads) cycles: feeds ``feeds`` steps from ``start`` on, channel tile after channel
// tile, and loads ``loads`` words from each port or bank, as far as row stride ``end``.
inline void load_phase(const pass_t &pass, const strides_t &strides, feed_start_t start, int feeds, load_cursor_t &load,
                       int loads, int end, lanes_t rows[ROW_DEPTH / 2][2][ROWS], const map_buffer_t from,
                       hls::stream<lanes_t> ports[MAP_PORTS], hls::stream<words_t> activations[ROWS]) {
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
        // Loads are spread evenly over the phase: a load waits for DDR, and the array would wait with it if all came at
        // once. The readers run ahead meanwhile.
        credit += loads;
        if (credit >= cycles) {
            credit -= cycles;
            load_words(pass, strides, load, end, rows, from, ports);
            next_load(pass, load);
        }
        if (i < feeds) {
            const activations_t step = gather(pass, strides, feed, row, rows);
            for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
                activations[m].write(step.row[m]);
            }
            next_feed(pass, start, feed);
        }
    }
    return_to(pass, end, load);
}

// The function is static, as every one that keeps a memory: the static variables of an inline function may be shared by
// libraries, and the address sanitizer does not watch such variables.
static inline void load(pass_t pass, const map_buffer_t from, hls::stream<lanes_t> ports[MAP_PORTS],
                        hls::stream<words_t> activations[ROWS]) {
    SYSTOLIC_PROCESS("load");
    // lint: allow(static-local) a memory of its own, filled anew by every pass; on the stack it is too large
    static lanes_t rows[ROW_DEPTH / 2][2][ROWS];
#pragma HLS ARRAY_PARTITION variable = rows complete dim = 2
#pragma HLS ARRAY_PARTITION variable = rows complete dim = 3
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = rows type = ram_s2p impl = ROW_MEMORY)
    const strides_t strides = strides_of(pass);
    const int tile_rows = times(pass.stride, ROWS);
    // Words from each port or bank: for the first tile, whose kernel also looks ahead, and for each tile after it.
    const int first_loads = reads_buffer(pass) ? pass.first_moves : pass.first_loads;
    const int loads = times(pass.slot_words, reads_buffer(pass) ? 1 : (ROWS + MAP_PORTS - 1) / MAP_PORTS);
    // Where padded row 0 would lie: before the map.
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
            const bool during = more && pass.overlap;  // the next tile's rows are loaded while this one is fed
            load_phase(pass, strides, start, pass.row_feeds, cursor, during ? loads : 0, during ? end : cursor.q, rows,
                       from, ports, activations);
            if (more && !pass.overlap) {
                load_phase(pass, strides, start, 0, cursor, loads, end, rows, from, ports, activations);
            }
            start.slot = next_slot(pass, start.slot);
            start.row += tile_rows;
        }
        if (pass.depthwise) {
            start.block = start.end_block;
            start.end_block += pass.tile_blocks;
            start.block_offset += times(pass.block_words, pass.tile_blocks);
        }
    }
}

#endif  // SYSTOLIC_LOAD_H
