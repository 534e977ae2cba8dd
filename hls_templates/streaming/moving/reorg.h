// Reorg (space to depth) moves each block of STRIDE × STRIDE pixels into the channels of one pixel. Depth to space is
// the inverse.
//
// Each cycle reads at most one word and writes at most one word, II 1 (walk.h). With the stride s and G = CHANNELS /
// LANES words per input pixel:
//
//   reorg_block      output channels in the order [row of the block][column of the block][channel], which is a window
//                    without overlap
//   reorg_darknet    the order of darknet's reorg_cpu, which reads the map as if it had CHANNELS / s² channels.
//                    If s² divides HEIGHT, output channel (i · s + j) · CHANNELS + c of pixel (y, x) is input channel c
//                    of pixel (⌊y / s⌋ · s² + i · s + y mod s, x · s + j). Otherwise rows and channels mix across the
//                    whole map: the buffer holds two frames, and a word has one value
//   depth_to_space   the inverse of reorg_block, for blocks of ROWS × COLUMNS pixels
//
//   iterations = first · G + WALK_LANDING − 1 + F · HEIGHT · WIDTH · G     for F frames of HEIGHT × WIDTH input pixels
//
//   block                           first: input pixels before the first output     buffer
//   reorg_block                     (s − 1) · WIDTH + s                             s rows
//   reorg_darknet, s² | HEIGHT      (s − 1) · s · WIDTH + s                         2 · s · (s − 1) + 1 rows
//   reorg_darknet, other heights    the whole frame                                 two frames
//   depth_to_space                  WIDTH                                           2 rows
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
    static_assert(HEIGHT % STRIDE == 0 && WIDTH % STRIDE == 0, "STRIDE must divide HEIGHT and WIDTH");
    window_default<LANES, CHANNELS, HEIGHT, WIDTH, STRIDE, STRIDE, STRIDE, 0, 0, 0, 0, 1, false, RAM>(frames, in, out);
}

// The walk (walk.h) of darknet's order if STRIDE² divides HEIGHT: a window whose rows of taps are STRIDE rows of the
// map apart. All lengths are in words of the input, and the constants ending in _STEP are increases of the buffer
// address.
//   ROW       words of a row of the map
//   HIGH      words from a window's first row of taps to its last
//   BLOCKS    groups of STRIDE² rows of the map, each of which becomes STRIDE rows of the output
template <int G, int HEIGHT, int WIDTH, int STRIDE>
struct darknet_walk {
    static constexpr int ROW = WIDTH * G, OUT_WIDTH = WIDTH / STRIDE, BLOCKS = HEIGHT / (STRIDE * STRIDE);
    static constexpr int HIGH = (STRIDE - 1) * STRIDE * ROW;
    static constexpr int CAPACITY = (2 * STRIDE * (STRIDE - 1) + 1) * ROW + STRIDE * G + WALK_LANDING + 1;
    static constexpr int SLOTS = walk_slots(CAPACITY);
    static constexpr int TAP_ROW_STEP = cyclic(STRIDE * ROW - STRIDE * G + 1, SLOTS);
    static constexpr int POSITION_STEP = cyclic(1 - HIGH, SLOTS);
    static constexpr int BLOCK_STEP = 1;  // the last tap of the last position is the block's last word

    static constexpr int FRAME_WORDS = HEIGHT * ROW, READ_PACE = 1, WRITE_PACE = 1, START = 0, NEED = HIGH + STRIDE * G;

    counter_t<G> group;                   // the word of the input pixel
    counter_t<STRIDE> tap_y, tap_x, row;  // the tap of the window; the output row of the group of rows
    counter_t<OUT_WIDTH> out_x;           // the output column
    counter_t<BLOCKS> block;              // the group of rows

    bool inside() const { return true; }

    move_t step() {
#pragma HLS INLINE
        const bool tap = group.last, taps = tap && tap_x.last, position = taps && tap_y.last;
        const bool rows = position && out_x.last && row.last;
        // The words that are released after a position: its words of the window's first row. After the last position of
        // a group of rows, the words of the window's other rows are released too.
        const int released_words = rows ? STRIDE * G + HIGH : position ? STRIDE * G : 0;
        const move_t move = {rows       ? BLOCK_STEP
                             : position ? POSITION_STEP
                             : taps     ? TAP_ROW_STEP
                                        : 1,
                             released_words, released_words, rows && block.last};
        if (group.next() && tap_x.next() && tap_y.next() && out_x.next() && row.next()) block.next();
        return move;
    }
};

// The walk (walk.h) of darknet's order for any HEIGHT, with one value per word.
//
//   P = k · HEIGHT · WIDTH / s² + y · WIDTH / s + x
//   C = ((i · s + j) · CHANNELS / s² + b) · s² + k
//   V = (⌊P / WIDTH⌋ · s + i) · WIDTH · s + (P mod WIDTH) · s + j
//
// Output channel C of pixel (y, x) is value V of input channels b · s² … b · s² + s² − 1, which are stored one channel
// after the other.
template <int CHANNELS, int HEIGHT, int WIDTH, int STRIDE>
struct darknet_whole_walk {
    static constexpr int MAP = HEIGHT * WIDTH, FRAME = MAP * CHANNELS, SQUARE = STRIDE * STRIDE;
    static constexpr int PART = MAP / SQUARE, BLOCKS = CHANNELS / SQUARE;
    static constexpr int CAPACITY = 2 * FRAME + WALK_LANDING;
    static constexpr int SLOTS = walk_slots(CAPACITY);

    static constexpr int FRAME_WORDS = FRAME, READ_PACE = 1, WRITE_PACE = 1, START = 0, NEED = FRAME;

    counter_t<SQUARE> part;             // k
    counter_t<BLOCKS> block;            // b
    counter_t<STRIDE> tap_x, tap_y;     // j, i
    counter_t<PART> first;              // P for k = 0
    fraction_t<PART % WIDTH, WIDTH> x;  // P mod WIDTH
    number<MAP> y;                      // P / WIDTH
    counter_t<WIDTH> first_x;           // P mod WIDTH for k = 0
    number<MAP> first_y;                // P / WIDTH for k = 0
    int current;                        // the number of the input word that is the next output word

    darknet_whole_walk() : y(0), first_y(0), current(0) {}

    bool inside() const { return true; }

    // Returns the number of the input word in its frame. Each counter is multiplied by its own constant, so that no
    // product depends on another.
    int source() const {
#pragma HLS INLINE
        const int row = int(y), column = int(x.remainder), across = tap_x.value, down = tap_y.value;
        const int pixel = row * (SQUARE * WIDTH) + down * (STRIDE * WIDTH) + column * STRIDE + across;
        // ``pixel`` is an index into the maps of channels that are stored one after the other. The stream has all
        // channels of a pixel next to each other, so that n maps further means n channels further.
        int map_offset = 0;
        for (int n = 1; n < SQUARE; ++n) {
#pragma HLS UNROLL
            if (pixel >= n * MAP) map_offset = n * (FRAME - 1);
        }
        return row * (SQUARE * WIDTH * CHANNELS) + down * (STRIDE * WIDTH * CHANNELS) + column * (STRIDE * CHANNELS) +
               across * CHANNELS + block.value * SQUARE - map_offset;
    }

    // Moves to the next output word. Returns whether the previous word was the last of its frame.
    bool next() {
#pragma HLS INLINE
        y = y + (x.carry ? PART / WIDTH + 1 : PART / WIDTH);
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
        x.set_remainder(first_x.value);
        return last;
    }

    move_t step() {
#pragma HLS INLINE
        const bool last = next();
        const int to = source(), distance = to - current + (last ? FRAME : 0);
        const move_t move = {distance < 0 ? distance + SLOTS : distance, last ? FRAME : 0, last ? FRAME : 0, last};
        current = to;
        return move;
    }
};

// Selects the walk of reorg_darknet. LOCAL says that STRIDE² divides HEIGHT.
template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE, bool LOCAL>
struct darknet_order {
    typedef darknet_walk<CHANNELS / LANES, HEIGHT, WIDTH, STRIDE> walk_t;
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE>
struct darknet_order<LANES, CHANNELS, HEIGHT, WIDTH, STRIDE, false> {
    static_assert(LANES == 1, "LANES must be 1 if STRIDE squared does not divide HEIGHT");
    typedef darknet_whole_walk<CHANNELS, HEIGHT, WIDTH, STRIDE> walk_t;
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int STRIDE, int RAM = RAM_AUTO, class T>
void reorg_darknet(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES must divide CHANNELS");
    static_assert(HEIGHT % STRIDE == 0 && WIDTH % STRIDE == 0, "STRIDE must divide HEIGHT and WIDTH");
    static_assert(CHANNELS % (STRIDE * STRIDE) == 0, "STRIDE squared must divide CHANNELS");
    typedef darknet_order<LANES, CHANNELS, HEIGHT, WIDTH, STRIDE, HEIGHT % (STRIDE * STRIDE) == 0> order;
    typedef typename order::walk_t walk_t;
    walk_map<RAM>(frames, in, out, walk_t());
}

// The walk (walk.h) of depth to space. Each input row is read ROWS times. In each pass the walk visits, for every
// pixel, the words of one row of the pixel's block. RUN is the number of these words.
template <int G, int HEIGHT, int WIDTH, int ROWS, int COLUMNS>
struct depth_to_space_walk {
    static constexpr int ROW = WIDTH * G, RUN = G / ROWS, FRAME_WORDS = HEIGHT * ROW;
    static constexpr int READ_PACE = 1, WRITE_PACE = 1, START = 0, NEED = ROW;
    static constexpr int CAPACITY = 2 * ROW + WALK_LANDING + 1, SLOTS = walk_slots(CAPACITY);
    static constexpr int PIXEL_STEP = cyclic(G - (RUN - 1), SLOTS), ROW_STEP = cyclic(1 - (WIDTH - 1) * G, SLOTS);

    counter_t<RUN> word_of_run;  // the word of a pixel's run
    counter_t<WIDTH> x;          // the input column
    counter_t<ROWS> row;         // the row of the block
    counter_t<HEIGHT> y;         // the input row

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
    static_assert(CHANNELS % (ROWS * COLUMNS * LANES) == 0, "ROWS * COLUMNS * LANES must divide CHANNELS");
    walk_map<RAM>(frames, in, out, depth_to_space_walk<CHANNELS / LANES, HEIGHT, WIDTH, ROWS, COLUMNS>());
}

#endif  // SYSTOLIC_REORG_H
