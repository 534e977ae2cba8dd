// Readers: for each port a process that reads DDR in bursts and writes the words to a stream, one a cycle. It requests
// bursts before it takes the data of earlier ones, so that DDR's latency is hidden.
//
//   read_rows      rows of the input map, for the Loader of maps (load.h)
//   read_weights   tiles of weights, for the Loader of weights (feed.h)
#ifndef SYSTOLIC_READ_H
#define SYSTOLIC_READ_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "types.h"

// Pieces of rows, and tiles of weights, that are requested before the data of the first is taken.
static const int BURSTS_AHEAD = OUTSTANDING;
static const int TILES_AHEAD = 2;

// The piece of a row that a port requests next. Rows are numbered with the padding above the map. Port p reads row
// strides p, p + MAP_PORTS, …, so that rows which arrive together go to different banks of the row buffer.
struct row_cursor_t {
    int row, phase, burst;           // padded row, row within its stride, piece of the row
    int row_address, piece_address;  // where the row and its piece begin, in words
};

inline bool row_exists(const pass_t &pass, int row) {
#pragma HLS INLINE
    return row >= pass.pad_top && row < pass.pad_top + pass.in_height;
}

template <int PORT>
row_cursor_t first_burst(const pass_t &pass) {
#pragma HLS INLINE
    const int row = times(pass.stride, PORT);
    const int address = pass.in_base + times(pass.in_row_pitch, row) - times(pass.in_row_pitch, pass.pad_top);
    const row_cursor_t first = {row, 0, 0, address, address};
    return first;
}

// Rows from the last one that is read of a row stride to the first of the port's next row stride.
inline int rows_between(const pass_t &pass) {
#pragma HLS INLINE
    return MAP_PORTS * pass.stride - pass.phases;
}

// ``skip``: rows_between in words.
inline void next_burst(const pass_t &pass, int skip, row_cursor_t &cursor) {
#pragma HLS INLINE
    cursor.piece_address += pass.in_block_pitch;
    if (++cursor.burst < pass.bursts) return;
    cursor.burst = 0;
    ++cursor.row;
    cursor.row_address += pass.in_row_pitch;
    if (++cursor.phase == pass.phases) {
        cursor.phase = 0;
        cursor.row += rows_between(pass);
        cursor.row_address += skip;
    }
    cursor.piece_address = cursor.row_address;
}

// What a port reads in a whole pass.
struct count_t {
    int bursts, words;
};

template <int PORT>
count_t count_bursts(const pass_t &pass) {
#pragma HLS INLINE off
    count_t count = {0, 0};
    int row = times(pass.stride, PORT);
    SYSTOLIC_ENTER;
    for (int q = PORT; q < pass.row_strides; q += MAP_PORTS) {
        SYSTOLIC_PIPELINE(1, 2);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 512
        for (int phase = 0; phase < MAX_STRIDE; ++phase) {
#pragma HLS UNROLL
            if (phase < pass.phases && row_exists(pass, row + phase)) {
                count.bursts += pass.bursts;
                count.words += pass.row_words;
            }
        }
        row += MAP_PORTS * pass.stride;
    }
    return count;
}

template <int PORT>
void read_rows(pass_t pass, hls::burst_maxi<word_t> maps, hls::stream<lanes_t> &rows) {
    SYSTOLIC_PROCESS("read_rows");
    const count_t none = {0, 0};
    const count_t count = reads_buffer(pass) ? none : count_bursts<PORT>(pass);
    const int skip = times(pass.in_row_pitch, rows_between(pass));
    row_cursor_t cursor = first_burst<PORT>(pass);
    int requested = 0;
    SYSTOLIC_ENTER;
    while (requested < minimum(count.bursts, BURSTS_AHEAD)) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 32
        // Padding above the map has no bytes and is stepped over. The count ends before the padding below it.
        if (row_exists(pass, cursor.row)) {
            maps.read_request(cursor.piece_address, pass.burst_words);
            ++requested;
        }
        next_burst(pass, skip, cursor);
    }
    int word = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < count.words; ++i) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 100000
        rows.write(lanes_of(maps.read()));
        if (++word == pass.burst_words) {
            word = 0;
            if (requested < count.bursts) {
                maps.read_request(cursor.piece_address, pass.burst_words);
                next_burst(pass, skip, cursor);
                ++requested;
            }
        }
    }
}

// Which weight tiles a pass loads, in the order in which feed_weights takes them: those of this pass that are not yet
// in the buffer, then the first one of the next pass, so that no pass begins by waiting for weights.
struct weight_plan_t {
    int first;       // 1 at the start of a frame: the first tile of the pass is not in the buffer yet; else 0
    int loads;       // further tiles of this pass
    int next_steps;  // steps of the next pass's first tile; 0 where there is no next pass
    int next_beats;  // beats of that tile that each port brings
};

inline weight_plan_t plan_weights(const pass_t &pass, const pass_t &next, bool is_first, bool is_last) {
#pragma HLS INLINE
    weight_plan_t plan;
    plan.first = is_first ? 1 : 0;
    plan.loads = pass.tile_loads - 1;
    plan.next_steps = is_last ? 0 : next.steps;
    plan.next_beats = is_last ? 0 : next.tile_beats;
    return plan;
}

static const int BEATS = COLUMNS;  // words in which the weights of one step come

// The tile that is requested next, where it begins in words from weights_base, and how many were requested.
struct tile_cursor_t {
    int tile, offset, requested;
};

// ``own``: tiles of this pass; the one after them is the next pass's first.
inline void request_tile(const pass_t &pass, const pass_t &next, const weight_plan_t &plan, int own,
                         hls::burst_maxi<weight_word_t> &weights, tile_cursor_t &cursor) {
#pragma HLS INLINE
    if (cursor.requested < own) weights.read_request(pass.weights_base + cursor.offset, pass.tile_beats);
    else weights.read_request(next.weights_base, plan.next_beats);
    cursor.offset += pass.tile_beats;
    if (++cursor.tile == pass.channel_tiles) cursor.tile = cursor.offset = 0;
    ++cursor.requested;
}

inline void read_weights(pass_t pass, pass_t next, weight_plan_t plan, hls::burst_maxi<weight_word_t> weights,
                         hls::stream<weight_beat_t> &beats) {
    SYSTOLIC_PROCESS("read_weights");
    const int own = plan.first + plan.loads;
    const int total = own + (plan.next_steps > 0 ? 1 : 0);
    const int words = pass.load_beats - (plan.first ? 0 : pass.tile_beats) + plan.next_beats;
    // But for the start of a frame, the pass before has loaded the first tile.
    const bool skips = !plan.first && pass.channel_tiles > 1;
    tile_cursor_t cursor = {skips ? 1 : 0, skips ? pass.tile_beats : 0, 0};
    SYSTOLIC_ENTER;
    while (cursor.requested < minimum(total, TILES_AHEAD)) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 0 max = 2
        request_tile(pass, next, plan, own, weights, cursor);
    }
    int word = 0, finished = 0;
    SYSTOLIC_ENTER;
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        beats.write(beat_of(weights.read()));
        if (++word == (finished < own ? pass.tile_beats : plan.next_beats)) {
            word = 0;
            ++finished;
            if (cursor.requested < total) request_tile(pass, next, plan, own, weights, cursor);
        }
    }
}

#endif  // SYSTOLIC_READ_H
