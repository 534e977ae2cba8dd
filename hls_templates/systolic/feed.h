// Loader of weights: the process that owns the weight buffer, a circular buffer of steps.
//
// Each cycle (II 1) it writes the weights of one step to the array, LANES · COLUMNS of them, and, while the next tile
// of weights arrives, reads a word from every weight port into the buffer. Both happen in one loop.
#ifndef SYSTOLIC_FEED_H
#define SYSTOLIC_FEED_H

#include <hls_stream.h>

#include "instrument.h"
#include "pass.h"
#include "read.h"
#include "types.h"

// Where the next words go: the step, that is the address in the buffer, and the beat within it.
struct weight_cursor_t {
    int step, beat;
};

// Reads one beat, WEIGHT_WORDS words, from every port into the buffer.
inline void store_weights(weight_cursor_t &cursor, lanes_t buffer[WEIGHT_DEPTH][BEATS],
                          hls::stream<weight_beat_t> ports[WEIGHT_PORTS]) {
#pragma HLS INLINE
    for (int port = 0; port < WEIGHT_PORTS; ++port) {
#pragma HLS UNROLL
        const weight_beat_t beat = ports[port].read();
        for (int w = 0; w < WEIGHT_WORDS; ++w) {
#pragma HLS UNROLL
            buffer[cursor.step][cursor.beat + port * WEIGHT_WORDS + w] = beat.word[w];
        }
    }
    cursor.beat += WEIGHT_PORTS * WEIGHT_WORDS;
    if (cursor.beat == BEATS) {
        cursor.beat = 0;
        cursor.step = cursor.step + 1 == WEIGHT_DEPTH ? 0 : cursor.step + 1;
    }
}

// The weights of a step, as the array takes them.
inline weights_t read_step(int step, lanes_t buffer[WEIGHT_DEPTH][BEATS]) {
#pragma HLS INLINE
    weights_t out;
    for (int beat = 0; beat < BEATS; ++beat) {
#pragma HLS UNROLL
        for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
            out.value[beat * LANES + l] = buffer[step][beat].lane[l];
        }
    }
    return out;
}

// One phase of the loop, max(feeds, loads) cycles: feeds ``feeds`` steps, over and over the ``steps`` steps of the tile
// that begins at ``base``, and stores ``loads`` beats of each port, spread evenly over the phase.
inline void feed_phase(int feeds, int steps, int base, int loads, weight_cursor_t &cursor,
                       lanes_t buffer[WEIGHT_DEPTH][BEATS], hls::stream<weight_beat_t> ports[WEIGHT_PORTS],
                       hls::stream<weights_t> &weights) {
#pragma HLS INLINE off
    const int cycles = maximum(feeds, loads);
    int step = 0, credit = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < cycles; ++i) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = buffer type = inter false
        credit += loads;
        if (credit >= cycles) {
            credit -= cycles;
            store_weights(cursor, buffer, ports);
        }
        if (i < feeds) {
            weights.write(read_step(wrap_once(base + step, WEIGHT_DEPTH), buffer));
            step = step + 1 == steps ? 0 : step + 1;
        }
    }
}

static inline void feed_weights(pass_t pass, weight_plan_t plan, hls::stream<weight_beat_t> ports[WEIGHT_PORTS],
                                hls::stream<weights_t> &weights) {
    SYSTOLIC_PROCESS("feed_weights");
    // lint: allow(static-local) holds the first tile of the next pass when a pass ends
    static lanes_t buffer[WEIGHT_DEPTH][BEATS];
#pragma HLS ARRAY_PARTITION variable = buffer complete dim = 2
    SYSTOLIC_PRAGMA(HLS BIND_STORAGE variable = buffer type = ram_s2p impl = WEIGHT_MEMORY)
    // lint: allow(static-local) the first tile of this pass was loaded during the one before
    static weight_cursor_t cursor = {0, 0};
    // lint: allow(static-local) the address at which that tile begins
    static int base = 0;
    if (plan.first) {
        cursor.step = cursor.beat = 0;
        base = 0;
        feed_phase(0, pass.steps, 0, pass.tile_beats, cursor, buffer, ports, weights);
    }
    int tile = 0, tile_base = base, loaded = 0;
    for (int use = 0; use < pass.tile_uses; ++use) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1024
        const bool last = use + 1 == pass.tile_uses;
        const int loads = loaded < plan.loads ? pass.tile_beats : last ? plan.next_beats : 0;
        feed_phase(pass.weight_feeds, pass.steps, tile_base, loads, cursor, buffer, ports, weights);
        ++loaded;
        tile = tile + 1 == pass.channel_tiles ? 0 : tile + 1;
        tile_base = pass.resident && tile == 0 ? base : wrap_once(tile_base + pass.steps, WEIGHT_DEPTH);
    }
    base = cursor.step - plan.next_steps;
    if (base < 0) base += WEIGHT_DEPTH;
}

#endif  // SYSTOLIC_FEED_H
