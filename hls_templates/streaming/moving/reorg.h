// Reorg (space to depth): blocks of STRIDE × STRIDE pixels become the channels of one pixel. A word a cycle, II 1.
// G = CHANNELS / LANES; s is the stride:
//
//   reorg_block     channels in the order [row of the block][column of the block][channel]: a window without overlap
//   reorg_darknet   darknet's reorg_cpu, which reads the map's memory as if it had CHANNELS / s² channels:
//                   output channel (i · s + j) · CHANNELS + c of pixel (y, x) is channel c of the input's pixel
//                   (⌊y / s⌋ · s² + i · s + y mod s, x · s + j), where s² divides HEIGHT. Else rows and channels
//                   mix across the whole map: two frames are kept, and a word has one value.
//
//   depth_to_space  the inverse of reorg_block, by ROWS × COLUMNS; G = CHANNELS / LANES of the map that comes. Rows of
//                   blocks wait until they are there: first = WIDTH pixels, buffer = 2 rows
//
//   iterations = first · G + WALK_LANDING − 1 + F · HEIGHT · WIDTH · G
//   first      = pixels up to the last one that the first output pixel needs: (s − 1) · WIDTH + s for reorg_block,
//                (s − 1) · s · WIDTH + s for darknet's, or the whole frame
//   buffer     = s rows, 2 · s · (s − 1) + 1 rows, or two frames
#ifndef SYSTOLIC_REORG_H
#define SYSTOLIC_REORG_H

#include <hls_stream.h>

#include "constant.h"
#include "counter.h"
#include "ram.h"
#include "walk.h"
#include "window.h"
#include "word.h"

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE, int RAM = RAM_AUTO, class T>
void reorg_block(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(HEIGHT % STRIDE == 0 && WIDTH % STRIDE == 0, "whole blocks make the map");
    window_default<LANES, CHANNELS, HEIGHT, WIDTH, STRIDE, STRIDE, STRIDE, 0, 0, 0, 0, 1, false, RAM>(frames, in, out);
}

// darknet's order where STRIDE² divides HEIGHT: a window whose rows of taps are STRIDE rows of the map apart.
template <int G, int HEIGHT, int WIDTH, int STRIDE>
struct darknet_walk {
    static constexpr int ROW = WIDTH * G, OUT_WIDTH = WIDTH / STRIDE, BLOCKS = HEIGHT / (STRIDE * STRIDE);
    static constexpr int HIGH = (STRIDE - 1) * STRIDE * ROW;
    static constexpr int CAPACITY = (2 * STRIDE * (STRIDE - 1) + 1) * ROW + STRIDE * G + WALK_LANDING + 1;
    static constexpr int SLOTS = walk_slots(CAPACITY);
    static constexpr int TAP_ROW_STEP = cyclic(STRIDE * ROW - STRIDE * G + 1, SLOTS);
    static constexpr int POSITION_STEP = cyclic(1 - HIGH, SLOTS);
    static constexpr int BLOCK_STEP = 1;  // the last tap of the last position is the block's last word

    static constexpr int FRAME_WORDS = HEIGHT * ROW, PACE = 1, SHARE = 1, START = 0, NEED = HIGH + STRIDE * G;

    counter_t<G> group;
    counter_t<STRIDE> tap_y, tap_x, row;
    counter_t<OUT_WIDTH> out_x;
    counter_t<BLOCKS> block;

    bool inside() const { return true; }

    move_t step() {
#pragma HLS INLINE
        const bool tap = group.last, taps = tap && tap_x.last, position = taps && tap_y.last;
        const bool rows = position && out_x.last && row.last;
        // What a position has left behind: its words of the first row, and with its last row those of all rows.
        const int behind = rows ? STRIDE * G + HIGH : position ? STRIDE * G : 0;
        const move_t move = {rows       ? BLOCK_STEP
                             : position ? POSITION_STEP
                             : taps     ? TAP_ROW_STEP
                                        : 1,
                             behind, behind, rows && block.last};
        if (group.next() && tap_x.next() && tap_y.next() && out_x.next() && row.next()) block.next();
        return move;
    }
};

// darknet's order for any HEIGHT. With P = k · HEIGHT · WIDTH / s² + y · WIDTH / s + x, output channel ((i · s + j) ·
// CHANNELS / s² + b) · s² + k of pixel (y, x) is value (⌊P / WIDTH⌋ · s + i) · WIDTH · s + (P mod WIDTH) · s + j of the
// memory of input channels b · s² … b · s² + s² − 1.
template <int CHANNELS, int HEIGHT, int WIDTH, int STRIDE>
struct darknet_whole_walk {
    static constexpr int MAP = HEIGHT * WIDTH, FRAME = MAP * CHANNELS, SQUARE = STRIDE * STRIDE;
    static constexpr int PART = MAP / SQUARE, BLOCKS = CHANNELS / SQUARE;
    static constexpr int CAPACITY = 2 * FRAME + WALK_LANDING;
    static constexpr int SLOTS = walk_slots(CAPACITY);

    static constexpr int FRAME_WORDS = FRAME, PACE = 1, SHARE = 1, START = 0, NEED = FRAME;

    counter_t<SQUARE> part;             // k
    counter_t<BLOCKS> block;            // b
    counter_t<STRIDE> tap_x, tap_y;     // j, i
    counter_t<PART> first;              // P where k = 0
    fraction_t<PART % WIDTH, WIDTH> x;  // P mod WIDTH
    number<MAP> y;                      // P / WIDTH
    counter_t<WIDTH> first_x;           // the same where k = 0
    number<MAP> first_y;
    int current;  // the word of the frame that leaves next

    darknet_whole_walk() : y(0), first_y(0), current(0) {}

    bool inside() const { return true; }

    // The word of the input frame. Each counter has a factor of its own, so that no product waits for another.
    int source() const {
#pragma HLS INLINE
        const int row = int(y), column = int(x.rest), across = tap_x.value, down = tap_y.value;
        const int pixel = row * (SQUARE * WIDTH) + down * (STRIDE * WIDTH) + column * STRIDE + across;
        int beyond = 0;  // what lies n maps further is n channels further in the first map
        for (int n = 1; n < SQUARE; ++n) {
#pragma HLS UNROLL
            if (pixel >= n * MAP) beyond = n * (FRAME - 1);
        }
        return row * (SQUARE * WIDTH * CHANNELS) + down * (STRIDE * WIDTH * CHANNELS) + column * (STRIDE * CHANNELS) +
               across * CHANNELS + block.value * SQUARE - beyond;
    }

    // True after the last word of the frame.
    bool next() {
#pragma HLS INLINE
        y = y + (x.carries ? PART / WIDTH + 1 : PART / WIDTH);
        x.next();
        if (!part.next()) return false;
        const bool position = block.next() && tap_x.next() && tap_y.next();
        const bool last = position && first.next();
        if (position && first_x.next()) first_y = first_y + 1;
        if (last) {
            first_x.clear();
            first_y = 0;
        }
        y = first_y;
        x.begin_at(first_x.value);
        return last;
    }

    move_t step() {
#pragma HLS INLINE
        const bool last = next();
        const int to = source(), further = to - current + (last ? FRAME : 0);
        const move_t move = {further < 0 ? further + SLOTS : further, last ? FRAME : 0, last ? FRAME : 0, last};
        current = to;
        return move;
    }
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE, bool LOCAL>
struct darknet_order {
    typedef darknet_walk<CHANNELS / LANES, HEIGHT, WIDTH, STRIDE> walk_t;
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE>
struct darknet_order<LANES, CHANNELS, HEIGHT, WIDTH, STRIDE, false> {
    static_assert(LANES == 1, "where STRIDE squared does not divide HEIGHT, a word holds one value");
    typedef darknet_whole_walk<CHANNELS, HEIGHT, WIDTH, STRIDE> walk_t;
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE, int RAM = RAM_AUTO, class T>
void reorg_darknet(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES divides the channels");
    static_assert(HEIGHT % STRIDE == 0 && WIDTH % STRIDE == 0, "whole blocks make the map");
    static_assert(CHANNELS % (STRIDE * STRIDE) == 0, "STRIDE squared divides the channels");
    typedef darknet_order<LANES, CHANNELS, HEIGHT, WIDTH, STRIDE, HEIGHT % (STRIDE * STRIDE) == 0> order;
    typedef typename order::walk_t walk_t;
    walk_map<RAM>(frames, in, out, walk_t());
}

// A row of pixels is read ROWS times, of each pixel the words of one row of its block.
template <int G, int HEIGHT, int WIDTH, int ROWS, int COLUMNS>
struct spread_walk {
    static constexpr int ROW = WIDTH * G, RUN = G / ROWS, FRAME_WORDS = HEIGHT * ROW;
    static constexpr int PACE = 1, SHARE = 1, START = 0, NEED = ROW;
    static constexpr int CAPACITY = 2 * ROW + WALK_LANDING + 1, SLOTS = walk_slots(CAPACITY);
    static constexpr int PIXEL_STEP = cyclic(G - (RUN - 1), SLOTS), ROW_STEP = cyclic(1 - (WIDTH - 1) * G, SLOTS);

    counter_t<RUN> word_of_run;
    counter_t<WIDTH> x;
    counter_t<ROWS> row;
    counter_t<HEIGHT> y;

    bool inside() const { return true; }

    move_t step() {
#pragma HLS INLINE
        const bool run = word_of_run.last, across = run && x.last, block = across && row.last;
        const move_t move = {block    ? 1
                             : across ? ROW_STEP
                             : run    ? PIXEL_STEP
                                      : 1,
                             block ? ROW : 0, run && row.last ? G : 0, block && y.last};
        if (word_of_run.next() && x.next() && row.next()) y.next();
        return move;
    }
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int ROWS, int COLUMNS, int RAM = RAM_AUTO, class T>
void depth_to_space(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % (ROWS * COLUMNS * LANES) == 0, "LANES divides the channels that leave");
    walk_map<RAM>(frames, in, out, spread_walk<CHANNELS / LANES, HEIGHT, WIDTH, ROWS, COLUMNS>());
}

#endif  // SYSTOLIC_REORG_H
