// Loader, readers: one process per port reads DDR in bursts and writes the words to a stream, one per cycle. Requests
// and reads are in separate loops. In one loop, the HLS tool may order a read after the request before it; then each
// word takes the cycles of a request. The next bursts are always requested before the current ones are read,
// which hides the latency of DDR.
//
//   read_rows      rows of the input map, for the Loader of maps (load.h)
//   read_weights   tiles of weights, for the Loader of weights (feed.h)
#ifndef SYSTOLIC_READ_H
#define SYSTOLIC_READ_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include "countdown.h"
#include "instrument.h"
#include "map_buffer.h"
#include "pass.h"
#include "types.h"

// Pieces of rows that are requested in one group. Two groups may be requested and not yet read. The ``latency`` option
// of the m_axi ports (top.cpp) is chosen so that a port accepts this many requests.
static const int PIECES_PER_GROUP = OUTSTANDING;

// Read ``words`` requested words, one per cycle.
template <typename T>
void read_words(int words, hls::burst_maxi<T> &port, hls::stream<T> &out) {
#pragma HLS INLINE
    SYSTOLIC_ENTER;
    for (int i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 4);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 100000
        out.write(port.read());
    }
}

// The piece of a row that a port requests next. A row is stored in DDR as ``bursts`` contiguous pieces. Row numbers
// include the padding above the map ("padded rows"). Port p reads row strides p, p + MAP_PORTS, …, so that rows which
// arrive together are stored in different banks of the row buffer.
struct row_cursor_t {
    int row;                              // padded row
    int row_address, piece_address;       // addresses of the row and of the piece, in words
    bool more;                            // false after the last piece of the port
    countdown_t bursts, phases, strides;  // pieces of the row, rows of the row stride, row strides of the port
};

// Return whether a padded row is in the map, and not in the padding above or below it.
inline bool row_exists(const pass_t &pass, int row) {
#pragma HLS INLINE
    return row >= pass.pad_top && row < pass.pad_top + pass.in_height;
}

// Return the first piece that port PORT requests.
template <int PORT>
row_cursor_t first_piece(const pass_t &pass) {
#pragma HLS INLINE
    row_cursor_t first;
    first.row = address_product(pass.stride, PORT);
    first.row_address =
        pass.in_base + address_product(pass.in_row_pitch, first.row) - address_product(pass.in_row_pitch, pass.pad_top);
    first.piece_address = first.row_address;
    start_countdown(first.bursts, pass.bursts);
    first.more = !reads_buffer(pass);
    start_countdown(first.phases, pass.phases);
    start_countdown(first.strides, (pass.row_strides - PORT + MAP_PORTS - 1) / MAP_PORTS);
    return first;
}

// Request the next PIECES_PER_GROUP pieces. Rows of padding are not in DDR and are skipped, so that fewer may be
// requested. Return the number of requested pieces. skip, skip_words: the distance from the last row read of a row
// stride to the first row of the port's next row stride, in rows and in words.
inline int request_pieces(const pass_t &pass, int skip, int skip_words, hls::burst_maxi<word_t> &maps,
                          row_cursor_t &next) {
#pragma HLS INLINE
    int requested = 0;
    row_cursor_t cursor = next;
    SYSTOLIC_ENTER;
    for (int i = 0; i < PIECES_PER_GROUP; ++i) {
        SYSTOLIC_PIPELINE(1, REQUEST_STAGES + 1);
        if (cursor.more && row_exists(pass, cursor.row)) {
            maps.read_request(cursor.piece_address, pass.burst_words);
            ++requested;
        }
        const bool ends_row = cursor.bursts.last, ends_stride = ends_row && cursor.phases.last;
        if (ends_row) {
            cursor.row += ends_stride ? skip : 1;
            cursor.row_address += ends_stride ? skip_words : pass.in_row_pitch;
        }
        cursor.piece_address = ends_row ? cursor.row_address : cursor.piece_address + pass.in_block_pitch;
        count_down(cursor.bursts, true);
        count_down(cursor.phases, ends_row);
        if (ends_stride && cursor.strides.last) cursor.more = false;
        count_down(cursor.strides, ends_stride);
    }
    next = cursor;
    return requested;
}

// Process of one map port: it reads its rows of the input map.
template <int PORT>
void read_rows(pass_t pass, hls::burst_maxi<word_t> maps, hls::stream<word_t> &rows) {
    SYSTOLIC_PROCESS("read_rows");
    const int skip = MAP_PORTS * pass.stride - pass.phases + 1;
    const int skip_words = address_product(pass.in_row_pitch, skip);
    row_cursor_t cursor = first_piece<PORT>(pass);
    int requested = 0;
    while (cursor.more || requested > 0) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000
        const int next_requested = cursor.more ? request_pieces(pass, skip, skip_words, maps, cursor) : 0;
        read_words(address_product(pass.burst_words, requested), maps, rows);
        requested = next_requested;
    }
}

// The weight tiles that a pass loads, in the order of feed_weights. The first are the tiles of this pass that are not
// in the buffer yet. Then follows the first tile of the next pass, so that no pass waits for its first weights.
struct weight_plan_t {
    int first;       // 1 at the start of a frame, when the first tile of the pass is not in the buffer yet; otherwise 0
    int loads;       // further tiles of this pass
    int next_beats;  // beats per port of the next pass's first tile; 0 if there is no next pass
};

// Plan the loads of a pass. is_first, is_last: whether the pass is the first or the last one of the frame.
inline weight_plan_t plan_weights(const pass_t &pass, const pass_t &next, bool is_first, bool is_last) {
#pragma HLS INLINE
    weight_plan_t plan;
    plan.first = is_first ? 1 : 0;
    plan.loads = pass.tile_loads - 1;
    plan.next_beats = is_last ? 0 : next.tile_beats;
    return plan;
}

static const int BEATS = COLUMNS;  // words per step

// Process of one weight port: it reads the port's share of every tile of the plan.
inline void read_weights(pass_t pass, pass_t next, weight_plan_t plan, hls::burst_maxi<weight_word_t> weights,
                         hls::stream<weight_word_t> &beats) {
    SYSTOLIC_PROCESS("read_weights");
    const int pass_tiles = plan.first + plan.loads;
    const int total = pass_tiles + (plan.next_beats > 0 ? 1 : 0);  // one more for the next pass's first tile
    // The pass before has loaded the first tile, except at the start of a frame.
    const bool first_is_loaded = !plan.first && pass.channel_tiles > 1;
    int tile = first_is_loaded ? 1 : 0, offset = first_is_loaded ? pass.tile_beats : 0;
    int words = 0;  // words of the tile that was requested and is read next
    for (int i = 0; i <= total; ++i) {
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000
        const bool is_next = i >= pass_tiles;
        const int tile_words = is_next ? plan.next_beats : pass.tile_beats;
        if (i < total) {
            weights.read_request(is_next ? next.weights_base : pass.weights_base + offset, tile_words);
            SYSTOLIC_SEQUENTIAL(REQUEST_STAGES);
        }
        read_words(words, weights, beats);
        words = tile_words;
        offset = tile + 1 == pass.channel_tiles ? 0 : offset + pass.tile_beats;
        tile = tile + 1 == pass.channel_tiles ? 0 : tile + 1;
    }
}

#endif  // SYSTOLIC_READ_H
