// Readers: one process a port turns DDR bursts into a stream of words, requests running ahead of data.
#ifndef SYSTOLIC_READ_H
#define SYSTOLIC_READ_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "types.h"

// Row pieces requested before the data of the first is taken: hides the DDR's latency.
static const int BURSTS_AHEAD = OUTSTANDING;
static const int TILES_AHEAD = 2;

// Where the next row piece of a port starts. Rows are numbered with their padding; a port owns the row
// strides q ≡ PORT (mod MAP_PORTS), so that the rows which arrive together go to different banks.
struct row_cursor_t {
    int q, phase, burst;
};

inline int padded_row(const pass_t &pass, int q, int phase) {
#pragma HLS INLINE
    return q * pass.stride + phase;
}

inline bool row_exists(const pass_t &pass, int row) {
#pragma HLS INLINE
    return row >= pass.pad_top && row < pass.pad_top + pass.in_height;
}

// The strides of rows that the whole pass reads: its last tile's rows and what the kernel looks ahead.
inline int row_strides(const pass_t &pass) {
#pragma HLS INLINE
    return pass.row_tiles * ROWS + pass.ahead;
}

inline int burst_address(const pass_t &pass, const row_cursor_t &at) {
#pragma HLS INLINE
    return pass.in_base + (padded_row(pass, at.q, at.phase) - pass.pad_top) * pass.in_row_pitch
           + at.burst * pass.in_block_pitch;
}

inline void next_burst(const pass_t &pass, row_cursor_t &at) {
#pragma HLS INLINE
    if (++at.burst < pass.bursts) return;
    at.burst = 0;
    if (++at.phase == pass.phases) {
        at.phase = 0;
        at.q += MAP_PORTS;
    }
}

template <int PORT>
int count_bursts(const pass_t &pass) {
#pragma HLS INLINE off
    int rows = 0;
    SYSTOLIC_ENTER;
    for (int q = PORT; q < row_strides(pass); q += MAP_PORTS) {
        SYSTOLIC_PIPELINE(1, 2);
#pragma HLS LOOP_TRIPCOUNT min=1 max=512
        for (int phase = 0; phase < MAX_STRIDE; ++phase) {
#pragma HLS UNROLL
            if (phase < pass.phases && row_exists(pass, padded_row(pass, q, phase))) ++rows;
        }
    }
    return rows * pass.bursts;
}

template <int PORT>
void read_rows(pass_t pass, hls::burst_maxi<word_t> maps, hls::stream<lanes_t> &rows) {
    SYSTOLIC_PROCESS("read_rows");
    const int bursts = reads_buffer(pass) ? 0 : count_bursts<PORT>(pass);
    const int words = bursts * pass.burst_words;
    row_cursor_t at = {PORT, 0, 0};
    int requested = 0;
    SYSTOLIC_ENTER;
    while (requested < minimum(bursts, BURSTS_AHEAD)) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
        // Padding above the map has no bytes: step over it without a request. Below it nothing is wanted.
        if (row_exists(pass, padded_row(pass, at.q, at.phase))) {
            maps.read_request(burst_address(pass, at), pass.burst_words);
            ++requested;
        }
        next_burst(pass, at);
    }
    int word = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min=1 max=100000
        rows.write(lanes_of(maps.read()));
        if (++word == pass.burst_words) {
            word = 0;
            if (requested < bursts) {
                maps.read_request(burst_address(pass, at), pass.burst_words);
                next_burst(pass, at);
                ++requested;
            }
        }
    }
}

// Weight tiles in the order in which feed_weights takes them: the tiles of this pass that are not in the
// buffer yet, then the first of the next pass, so that no pass begins by waiting for weights.
struct weight_plan_t {
    int first;       // tiles to load before the first is used: 1 at the start of a frame, else 0
    int loads;       // tiles loaded during this pass, the next pass's first not counted
    int next_steps;  // steps of the next pass's first tile, 0 where there is no next pass
};

inline weight_plan_t plan_weights(const pass_t &pass, const pass_t &next, bool is_first, bool is_last) {
#pragma HLS INLINE
    weight_plan_t plan;
    plan.first = is_first ? 1 : 0;
    const bool once = pass.resident || pass.inputs_resident;
    plan.loads = (once ? pass.channel_tiles : pass.channel_tiles * pass.row_tiles) - 1;
    plan.next_steps = is_last ? 0 : next.steps;
    return plan;
}

static const int BEATS = COLUMNS;                       // words of one step's weights
static const int PORT_BEATS = BEATS / (WEIGHT_PORTS * WEIGHT_WORDS);  // cycles in which one port gives its share

struct tile_cursor_t {
    int tile, requested;
};

inline void request_tile(const pass_t &pass, const pass_t &next, const weight_plan_t &plan, int own,
                         hls::burst_maxi<weight_word_t> &weights, tile_cursor_t &at) {
#pragma HLS INLINE
    const int words = pass.steps * PORT_BEATS;
    if (at.requested < own) weights.read_request(pass.weights_base + at.tile * words, words);
    else weights.read_request(next.weights_base, plan.next_steps * PORT_BEATS);
    at.tile = at.tile + 1 == pass.channel_tiles ? 0 : at.tile + 1;
    ++at.requested;
}

inline void read_weights(pass_t pass, pass_t next, weight_plan_t plan, hls::burst_maxi<weight_word_t> weights,
                         hls::stream<weight_beat_t> &beats) {
    SYSTOLIC_PROCESS("read_weights");
    const int own = plan.first + plan.loads;
    const int total = own + (plan.next_steps > 0 ? 1 : 0);
    const int words = (own * pass.steps + plan.next_steps) * PORT_BEATS;
    tile_cursor_t at = {plan.first ? 0 : 1 % pass.channel_tiles, 0};
    SYSTOLIC_ENTER;
    while (at.requested < minimum(total, TILES_AHEAD)) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min=0 max=2
        request_tile(pass, next, plan, own, weights, at);
    }
    int word = 0, finished = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min=1 max=1000000
        beats.write(beat_of(weights.read()));
        if (++word == (finished < own ? pass.steps : plan.next_steps) * PORT_BEATS) {
            word = 0;
            ++finished;
            if (at.requested < total) request_tile(pass, next, plan, own, weights, at);
        }
    }
}

#endif  // SYSTOLIC_READ_H
