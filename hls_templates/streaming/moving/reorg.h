// Reorg (space to depth): blocks of STRIDE × STRIDE pixels become the channels of one pixel. A word a cycle, II 1.
// G = CHANNELS / LANES; s is the stride:
//
//   reorg_block     channels in the order [row of the block][column of the block][channel]: a window without overlap
//   reorg_darknet   darknet's reorg_cpu, which reads the map's memory as if it had CHANNELS / s² channels:
//                   output channel (i · s + j) · CHANNELS + c of pixel (y, x) is channel c of the input's pixel
//                   (⌊y / s⌋ · s² + i · s + y mod s, x · s + j), where s² divides HEIGHT. Else rows and channels
//                   mix across the whole map: two frames are kept, and a word has one value.
//
//   iterations = first · G + WALK_LANDING − 1 + F · HEIGHT · WIDTH · G
//   first      = pixels up to the last one that the first output pixel needs: (s − 1) · WIDTH + s for reorg_block,
//                (s − 1) · s · WIDTH + s for darknet's, or the whole frame
//   buffer     = s rows, 2 · s · (s − 1) + 1 rows, or two frames
#ifndef SYSTOLIC_REORG_H
#define SYSTOLIC_REORG_H

#include <hls_stream.h>

#include "constant.h"
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
    static constexpr int ROW_STEP = POSITION_STEP;
    static constexpr int BLOCK_STEP = 1;  // the last tap of the last position is the block's last word

    int group, tap_y, tap_x, out_x, row, block;
    int position;  // the word of the position's first tap

    darknet_walk() : group(0), tap_y(0), tap_x(0), out_x(0), row(0), block(0), position(0) {}

    int frame_words() const { return HEIGHT * ROW; }
    int pace() const { return 1; }
    int share() const { return 1; }
    int start() const { return 0; }
    int need() const { return position + HIGH + STRIDE * G; }
    int oldest() const { return position; }
    bool inside() const { return true; }

    bool advance(int &step) {
#pragma HLS INLINE
        step = 1;
        if (++group < G) return false;
        group = 0;
        if (++tap_x < STRIDE) return false;
        tap_x = 0;
        step = TAP_ROW_STEP;
        if (++tap_y < STRIDE) return false;
        tap_y = 0;
        step = POSITION_STEP;
        position += STRIDE * G;
        if (++out_x < OUT_WIDTH) return false;
        out_x = 0;
        if (++row < STRIDE) return false;
        row = 0;
        step = BLOCK_STEP;
        position += HIGH;
        if (++block < BLOCKS) return false;
        block = position = 0;
        return true;
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

    int part, block, tap_x, tap_y;  // k, b, j, i
    int y, x;                       // P / WIDTH and P mod WIDTH
    int first_y, first_x;           // the same where k = 0
    int current;                    // the word of the frame that leaves next

    darknet_whole_walk() : part(0), block(0), tap_x(0), tap_y(0), y(0), x(0), first_y(0), first_x(0), current(0) {}

    int frame_words() const { return FRAME; }
    int pace() const { return 1; }
    int share() const { return 1; }
    int start() const { return 0; }
    int need() const { return FRAME; }
    int oldest() const { return 0; }
    bool inside() const { return true; }

    // The word of the input frame.
    int source() const {
#pragma HLS INLINE
        int pixel = (y * STRIDE + tap_y) * WIDTH * STRIDE + x * STRIDE + tap_x, channel = block * SQUARE;
        for (int n = 1; n < SQUARE; ++n) {
#pragma HLS UNROLL
            if (pixel >= MAP) {
                pixel -= MAP;
                ++channel;
            }
        }
        return pixel * CHANNELS + channel;
    }

    // True after the last word of the frame.
    bool next() {
#pragma HLS INLINE
        x += PART % WIDTH;
        y += PART / WIDTH;
        if (x >= WIDTH) {
            x -= WIDTH;
            ++y;
        }
        if (++part < SQUARE) return false;
        part = 0;
        y = first_y;
        x = first_x;
        if (++block < BLOCKS) return false;
        block = 0;
        if (++tap_x < STRIDE) return false;
        tap_x = 0;
        if (++tap_y < STRIDE) return false;
        tap_y = 0;
        first_x = first_x + 1 == WIDTH ? 0 : first_x + 1;
        first_y = first_x == 0 ? first_y + 1 : first_y;
        const bool last = first_y * WIDTH + first_x == PART;
        if (last) first_y = first_x = 0;
        y = first_y;
        x = first_x;
        return last;
    }

    bool advance(int &step) {
#pragma HLS INLINE
        const bool last = next();
        const int to = source();
        step = to - current + (last ? FRAME : 0);
        if (step < 0) step += SLOTS;
        current = to;
        return last;
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

#endif  // SYSTOLIC_REORG_H
