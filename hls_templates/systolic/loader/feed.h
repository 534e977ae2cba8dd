// Loader, weights: process feed_weights owns the weight buffer, a circular buffer of steps (the weights of one cycle of
// the array).
//
// Each cycle (II 1) it writes the weights of one step, LANES · COLUMNS values, to the array. While the next weight tile
// arrives, it also reads one weight_word_t per cycle from every weight port into the buffer. One loop does both, so
// that loading takes no cycles of its own.
#ifndef SYSTOLIC_FEED_H
#define SYSTOLIC_FEED_H

#include <hls_stream.h>

#include "countdown.h"
#include "instrument.h"
#include "pass.h"
#include "read.h"
#include "six_products.h"
#include "types.h"

// The weights of WEIGHT_DEPTH steps. A step has BEATS words, and each of them has a bank of its own.
typedef word_t weight_buffer_t[WEIGHT_DEPTH][BEATS];

static const int BEAT_WORDS = WEIGHT_PORTS * WEIGHT_WORDS;  // words that arrive per cycle, from all ports

// Return the address of the next step in the circular buffer.
inline int next_step(int step) {
#pragma HLS INLINE
    return step == WEIGHT_DEPTH - 1 ? 0 : step + 1;
}

static const int BANK_GROUPS = BEATS / BEAT_WORDS;  // cycles in which the words of a step arrive

// The destination of the next words: the address of their step, and one flag per group of BEAT_WORDS banks, set for the
// group that is written next (one-hot). A flag is shifted instead of comparing a number, which keeps the logic short.
struct weight_cursor_t {
    int step;
    bool bank_group[BANK_GROUPS];
};

inline weight_cursor_t first_weights(int step) {
#pragma HLS INLINE
    weight_cursor_t out;
    out.step = step;
    for (int group = 0; group < BANK_GROUPS; ++group) {
#pragma HLS UNROLL
        out.bank_group[group] = group == 0;
    }
    return out;
}

// Advance to the next words: shift the flag, and go to the next step after the last group of banks.
inline void next_weights(weight_cursor_t &cursor) {
#pragma HLS INLINE
    const bool last = cursor.bank_group[BANK_GROUPS - 1];
    if (last) cursor.step = next_step(cursor.step);
    for (int group = BANK_GROUPS - 1; group > 0; --group) {
#pragma HLS UNROLL
        cursor.bank_group[group] = cursor.bank_group[group - 1];
    }
    cursor.bank_group[0] = last;
}

// Read WEIGHT_WORDS words from every port into the buffer. The loop is over banks and not over ports, so that each bank
// has a single write in the code. If two writes selected their banks at run time, the HLS tool would have to assume
// that they use the same bank.
inline void store_weights(const weight_cursor_t &cursor, weight_buffer_t buffer,
                          hls::stream<weight_word_t> ports[WEIGHT_PORTS]) {
#pragma HLS INLINE
    weight_word_t words[WEIGHT_PORTS];
#pragma HLS ARRAY_PARTITION variable = words complete
    for (int port = 0; port < WEIGHT_PORTS; ++port) {
#pragma HLS UNROLL
        words[port] = ports[port].read();
    }
    for (int bank = 0; bank < BEATS; ++bank) {
#pragma HLS UNROLL
        const int port = bank % BEAT_WORDS / WEIGHT_WORDS;
        if (cursor.bank_group[bank / BEAT_WORDS]) buffer[cursor.step][bank] = word_at(words[port], bank % WEIGHT_WORDS);
    }
}

// Return the weights of one step in the array's order.
inline weights_t read_step(int step, const weight_buffer_t buffer) {
#pragma HLS INLINE
    weights_t out;
    for (int beat = 0; beat < BEATS; ++beat) {
#pragma HLS UNROLL
        const lanes_t word = lanes_of(buffer[step][beat]);
        for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
            out.value[beat * LANES + l] = word.lane[l];
        }
    }
    return out;
}

// Pipeline depth of feed_phase. Six products per DSP need one more stage (subtract_borrows).
static const int FEED_STAGES = SIX_PRODUCTS ? 5 : 4;

// One phase of the loop, max(feeds, loads) cycles long. It feeds ``feeds`` steps: the ``steps`` steps of the tile at
// address ``base``, again and again. It stores ``loads`` beats from each port, spread evenly over the phase. ``next``
// is the cursor of the stores and is advanced.
inline void feed_phase(int feeds, int steps, int base, int loads, weight_cursor_t &next, weight_buffer_t buffer,
                       hls::stream<weight_word_t> ports[WEIGHT_PORTS], hls::stream<weights_t> &weights) {
#pragma HLS INLINE off
    const int cycles = maximum(feeds, loads), cycles_without_load = cycles - loads;
    weight_cursor_t cursor = next;
    countdown_t tile_steps;
    start_countdown(tile_steps, steps);
    int step = base, credit = -cycles_without_load;
    SYSTOLIC_ENTER;
    for (int i = 0; i < cycles; ++i) {
        SYSTOLIC_PIPELINE(1, FEED_STAGES);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// The words that a phase stores belong to other steps than those it feeds, so that its iterations are independent.
#pragma HLS DEPENDENCE variable = buffer type = inter false
        const bool storing = credit >= 0;
        // The credit rises by ``loads`` in a cycle without a store and falls by ``cycles_without_load`` in a cycle with
        // one. This spreads the stores evenly, as in Bresenham's algorithm.
        credit += storing ? -cycles_without_load : loads;
        if (storing) {
            store_weights(cursor, buffer, ports);
            next_weights(cursor);
        }
        // After the last feed, ``step`` still advances, but is not used.
        if (i < feeds) weights.write(subtract_borrows(read_step(step, buffer)));
        step = tile_steps.last ? base : next_step(step);
        count_down(tile_steps, true);
    }
    next = cursor;
}

// The buffer belongs to the top function, because it holds the first tile of the next pass when a pass ends. The
// program gives the address of that tile (first_step), so that this process has no state.
inline void feed_weights(pass_t pass, weight_plan_t plan, weight_buffer_t buffer,
                         hls::stream<weight_word_t> ports[WEIGHT_PORTS], hls::stream<weights_t> &weights) {
    SYSTOLIC_PROCESS("feed_weights");
    // All phases share one instance of the loop, because they run one after the other.
#pragma HLS ALLOCATION function instances = feed_phase limit = 1
    int tile_base = pass.first_step;
    weight_cursor_t cursor = first_weights(plan.first ? tile_base : wrap_once(tile_base + pass.steps, WEIGHT_DEPTH));
    if (plan.first) feed_phase(0, pass.steps, tile_base, pass.tile_beats, cursor, buffer, ports, weights);
    int tile = 0, loaded = 0;
    for (int use = 0; use < pass.tile_uses; ++use) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        const bool last = use + 1 == pass.tile_uses;
        const int loads = loaded < plan.loads ? pass.tile_beats : last ? plan.next_beats : 0;
        feed_phase(pass.weight_feeds, pass.steps, tile_base, loads, cursor, buffer, ports, weights);
        ++loaded;
        tile = tile + 1 == pass.channel_tiles ? 0 : tile + 1;
        tile_base = pass.resident && tile == 0 ? pass.first_step : wrap_once(tile_base + pass.steps, WEIGHT_DEPTH);
    }
}

#endif  // SYSTOLIC_FEED_H
