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
// that share DSPs lie side by side.
struct load_cursor_t {
    int q, bank, slot;       // of the group's first row stride
    int lap;                 // q / ROWS
    int phase, word;
    int burst, column;       // the word's place in its row: of one piece of it, and in that
};

// Row strides that are loaded together: one a port from DDR, one a bank from a map buffer.
inline int together(const pass_t &pass) {
#pragma HLS INLINE
    return reads_buffer(pass) ? ROWS : MAP_PORTS;
}

struct feed_cursor_t {
    int x, ky, group, block;
    int kernel_stride, kernel_phase;  // ky = kernel_stride · stride + kernel_phase
};

inline void next_load(const pass_t &pass, load_cursor_t &at) {
#pragma HLS INLINE
    if (++at.column == pass.burst_words) {
        at.column = 0;
        ++at.burst;
    }
    if (++at.word < pass.row_words) return;
    at.word = at.burst = 0;
    if (++at.phase < pass.phases) return;
    at.phase = 0;
    at.q += together(pass);
    at.bank += together(pass);
    if (at.bank >= ROWS) {
        at.bank -= ROWS;
        ++at.lap;
        at.slot = wrap_once(at.slot + 1, pass.slots);
    }
}

inline void next_feed(const pass_t &pass, int first_block, feed_cursor_t &at) {
#pragma HLS INLINE
    if (++at.block < first_block + pass.tile_blocks) return;
    at.block = first_block;
    if (++at.group < pass.kernel_groups) return;
    at.group = 0;
    if (++at.kernel_phase == pass.stride) {
        at.kernel_phase = 0;
        ++at.kernel_stride;
    }
    if (++at.ky < pass.kernel_height) return;
    at.ky = 0;
    at.kernel_stride = at.kernel_phase = 0;
    at.x += pass.positions;
}

// A pixel is PIXEL_BYTES bytes of DDR. How many a word holds, and how many the array takes a cycle.
static const int WORD_PIXELS = WORD_BYTES / PIXEL_BYTES;
static const int STEP_PIXELS = LANES / PIXEL_LANES;

// A byte p of a pixel as values that the array can multiply, each exact; what is subtracted comes back by the bias
// (scheduler/program.py). 8 bits: p − 128, which flips the top bit. 4 bits: p = 16 · h + l + 136 with two values
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

// Whether row stride q of the group is loaded: it lies in the map, and before the end of the phase.
inline bool row_wanted(const pass_t &pass, const load_cursor_t &at, int q, int end) {
#pragma HLS INLINE
    return q < end && row_exists(pass, padded_row(pass, q, at.phase));
}

// Where a row begins in its bank. Taken for a slot and the one after it, not bank by bank, of which each would have
// multipliers of its own: the array has the DSPs.
inline int row_address(const pass_t &pass, int slot, int phase) {
#pragma HLS INLINE
    return (wrap_once(slot, pass.slots) * pass.phases + phase) * pass.row_words;
}

// A word of every row of a group, from its port or from its bank of the map buffer, where the stride is 1. Each bank is
// written in one place: of writes to a bank that is only known at run time a tool has to assume that they meet.
inline void load_words(const pass_t &pass, const load_cursor_t &at, int end, lanes_t rows[ROW_DEPTH / 2][2][ROWS],
                       const map_buffer_t from, hls::stream<lanes_t> ports[MAP_PORTS]) {
#pragma HLS INLINE
    lanes_t read[MAP_PORTS];
#pragma HLS ARRAY_PARTITION variable=read complete
    for (int port = 0; port < MAP_PORTS; ++port) {
#pragma HLS UNROLL
        const int q = at.q + ((port - at.q) & (MAP_PORTS - 1));  // the group's row of this port
        if (!reads_buffer(pass) && row_wanted(pass, at, q, end)) read[port] = ports[port].read();
    }
    const int here = row_address(pass, at.slot, at.phase) + at.word;
    const int beyond = row_address(pass, at.slot + 1, at.phase) + at.word;
    const int source = pass.in_base + (at.lap - pass.pad_top / ROWS) * pass.in_row_pitch
                       + at.burst * pass.in_block_pitch + at.column;
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const bool wraps = bank < at.bank;
        const int next = bank - at.bank + (wraps ? ROWS : 0), q = at.q + next;
        if (next < together(pass) && row_wanted(pass, at, q, end)) {
            const int address = wraps ? beyond : here;
            rows[address >> 1][address & 1][bank] =
                reads_buffer(pass) ? from[source + row_in_bank(pass.in_row_pitch, wraps, bank, pass.pad_top % ROWS)][bank]
                                   : read[q & (MAP_PORTS - 1)];
        }
    }
}

inline activations_t gather(const pass_t &pass, const feed_cursor_t &at, int tile, int tile_slot,
                            lanes_t rows[ROW_DEPTH / 2][2][ROWS]) {
#pragma HLS INLINE
    const int pixel = at.x * pass.stride - pass.pad_left + at.group * pass.group_pixels;
    // Rounded down, also left of the map: a kernel is narrower than 64 words.
    const int word = pass.pixel_input ? (pixel + 64 * WORD_PIXELS) / WORD_PIXELS - 64 : pixel;
    const int shift = pass.pixel_input ? pixel - word * WORD_PIXELS : 0;
    const int rotate = at.kernel_stride % ROWS, slots_down = at.kernel_stride / ROWS;

    // Words ``word`` and ``word`` + 1 of every bank: one of them is in the even half, the other in the odd one. Of one
    // that lies beside the map no value is taken, and its address is one that is there.
    const int last_word = pass.block_words - 1;
    const int low_word = within(-1, word, last_word), next = low_word < last_word ? 1 : 0;
    const int from = minimum(at.block, pass.in_blocks - 1) * pass.block_words + low_word;
    const int here = row_address(pass, tile_slot + slots_down, at.kernel_phase) + from;
    const int beyond = row_address(pass, tile_slot + slots_down + 1, at.kernel_phase) + from;
    lanes_t low[ROWS], high[ROWS];
#pragma HLS ARRAY_PARTITION variable=low complete
#pragma HLS ARRAY_PARTITION variable=high complete
    for (int bank = 0; bank < ROWS; ++bank) {
#pragma HLS UNROLL
        const int a = bank < rotate ? beyond : here;
        const lanes_t even = rows[maximum(0, (a + next) >> 1)][0][bank];
        const lanes_t odd = rows[maximum(0, a >> 1)][1][bank];
        low[bank] = (a & 1) != 0 ? odd : even;
        high[bank] = (a & 1) != 0 ? even : odd;
    }

    activations_t out;
    for (int m = 0; m < ROWS; ++m) {
#pragma HLS UNROLL
        const int bank = wrap_once(m + rotate, ROWS);
        const bool exists = row_exists(pass, (tile * ROWS + m) * pass.stride + at.ky) && at.block < pass.in_blocks;
        for (int p = 0; p < POSITIONS; ++p) {
#pragma HLS UNROLL
            // The stride is 1 where there are two positions.
            const int here = pixel + p;
            const bool inside = exists && here >= 0 && here < pass.in_width;
            if (pass.pixel_input) {
                out.row[m].position[p] = window(low[bank], high[bank], shift + p, exists ? here : -LANES, exists ? pass.in_width : 0);
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

// One phase: compute row tile ``tile`` for ``channel_tiles`` channel tiles from ``channel_tile`` on (nothing where
// that is 0 tiles), and load the rows up to stride ``end``.
inline void load_phase(const pass_t &pass, int tile, int tile_slot, int channel_tile, int channel_tiles,
                       load_cursor_t &load, int end,
                       lanes_t rows[ROW_DEPTH / 2][2][ROWS], const map_buffer_t from,
                       hls::stream<lanes_t> ports[MAP_PORTS], hls::stream<activations_t> &activations) {
#pragma HLS INLINE off
    const int feeds = channel_tiles * pass.places * pass.steps;
    const int strides = end - load.q;
    const int groups = reads_buffer(pass) ? (strides + ROWS - 1) / ROWS : (strides + MAP_PORTS - 1) / MAP_PORTS;
    const int loads = maximum(groups, 0) * pass.phases * pass.row_words;
    const int cycles = maximum(feeds, loads);
    int first_block = pass.diagonal ? channel_tile * pass.tile_blocks : 0, credit = 0;
    feed_cursor_t feed = {0, 0, 0, first_block, 0, 0};
    SYSTOLIC_ENTER;
    for (int i = 0; i < cycles; ++i) {
        SYSTOLIC_PIPELINE(1, 8);
#pragma HLS LOOP_TRIPCOUNT min=1 max=1000000
#pragma HLS DEPENDENCE variable=rows type=inter false
        // Loads are spread evenly over the phase: the readers run ahead, so that the array never waits
        // for a row that is only needed by the next tile.
        credit += loads;
        if (credit >= cycles) {
            credit -= cycles;
            load_words(pass, load, end, rows, from, ports);
            next_load(pass, load);
        }
        if (i < feeds) {
            activations.write(gather(pass, feed, tile, tile_slot, rows));
            next_feed(pass, first_block, feed);
            if (feed.x >= pass.out_width) {
                feed.x = 0;
                if (pass.diagonal) first_block += pass.tile_blocks;
                feed.block = first_block;
            }
        }
    }
    // The next group starts where this one ended, also where the last group was not full.
    const int excess = load.q - end;
    if (excess > 0) {
        load.q -= excess;
        load.bank -= excess;
        if (load.bank < 0) {
            load.bank += ROWS;
            --load.lap;
            load.slot = load.slot == 0 ? pass.slots - 1 : load.slot - 1;
        }
    }
}

// static, here and wherever a function keeps a memory: sanitizers do not watch what the linker might share.
static inline void load(pass_t pass, const map_buffer_t from, hls::stream<lanes_t> ports[MAP_PORTS],
                        hls::stream<activations_t> &activations) {
    SYSTOLIC_PROCESS("load");
    // lint: allow(static-local) a memory of its own, filled anew by every pass; on the stack it is too large
    static lanes_t rows[ROW_DEPTH / 2][2][ROWS];
#pragma HLS ARRAY_PARTITION variable=rows complete dim=2
#pragma HLS ARRAY_PARTITION variable=rows complete dim=3
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = rows type = ram_s2p impl = ROW_MEMORY)
    load_cursor_t cursor = {0, 0, 0, 0, 0, 0, 0, 0};
    load_phase(pass, 0, 0, 0, 0, cursor, ROWS + pass.ahead, rows, from, ports, activations);
    const int rounds = pass.inputs_resident ? pass.channel_tiles : 1;
    const int channel_tiles = pass.inputs_resident ? 1 : pass.channel_tiles;
    for (int round = 0; round < rounds; ++round) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        int tile_slot = 0;
        for (int tile = 0; tile < pass.row_tiles; ++tile) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
            const bool more = round == 0 && tile + 1 < pass.row_tiles;
            const int next_end = (tile + 2) * ROWS + pass.ahead;
            load_phase(pass, tile, tile_slot, round, channel_tiles, cursor, more && pass.overlap ? next_end : cursor.q,
                       rows, from, ports, activations);
            if (more && !pass.overlap) load_phase(pass, 0, 0, 0, 0, cursor, next_end, rows, from, ports, activations);
            tile_slot = wrap_once(tile_slot + 1, pass.slots);
        }
    }
}

#endif  // SYSTOLIC_LOAD_H
