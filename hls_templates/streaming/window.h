// Sliding-window unit (SWU, im2col): for each output position what a convolution sees there, padding put in as zeros.
//
// window_default: one word of SIMD channels of one tap a cycle, in the order (tap, channel), or (channel, tap) where
// DEPTHWISE. With G = CHANNELS / SIMD, P output positions and K = KERNEL_H · KERNEL_W, of F frames:
//
//   iterations = first · G + WALK_LANDING − 1 + F · P · K · G        while P · K ≥ HEIGHT · WIDTH (and not a word less a
//   first      = pixels up to the last one that position 0 sees     frame than come in: F · HEIGHT · WIDTH · G)
//   buffer     = window_walk::CAPACITY + WALK_MARGIN words: the window's rows, and the rows that the stride skips
//
// window_parallel: all taps of SIMD channels a cycle, PIXELS pixels of a row a word; MO = PIXELS / STRIDE positions leave
// in a word (1 where PIXELS is 1). The map runs through delays of whole rows, and every step gives one window, so that a
// convolution that keeps the map's size costs no cycle beside the words it takes, at borders and between frames neither:
//
//   iterations = ((F − 1) · SCAN + TAIL) · G,  SCAN = max(HEIGHT, STRIDE·(OH − 1) + 1) · max(WIDTH, STRIDE·(OW − 1) + 1) / PIXELS
//   buffer     = (KERNEL_H − 1) · DILATION rows, and the window itself in registers
#ifndef SYSTOLIC_WINDOW_H
#define SYSTOLIC_WINDOW_H

#include <hls_stream.h>

#include "constant.h"
#include "delay.h"
#include "instrument.h"
#include "ram.h"
#include "scan.h"
#include "walk.h"
#include "word.h"

// The walk (walk.h) of a window over a map of G words a pixel.
template <int G, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP, int LEFT, int BOTTOM, int RIGHT,
          int DILATION, bool DEPTHWISE>
struct window_walk {
    static constexpr int OUT_HEIGHT = positions_of(HEIGHT, TOP, BOTTOM, KERNEL_H, DILATION, STRIDE);
    static constexpr int OUT_WIDTH = positions_of(WIDTH, LEFT, RIGHT, KERNEL_W, DILATION, STRIDE);
    static constexpr int HIGH = (KERNEL_H - 1) * DILATION, WIDE = (KERNEL_W - 1) * DILATION;
    static constexpr int ROW = WIDTH * G;
    // Words of a frame are taken evenly: as many as the frame has, or the rows and columns that a stride leaves behind.
    static constexpr int READS = larger(HEIGHT * WIDTH, STRIDE * OUT_HEIGHT * larger(WIDTH, OUT_WIDTH));
    static constexpr int EMITS = larger(READS, OUT_HEIGHT * OUT_WIDTH * KERNEL_H * KERNEL_W);
    static constexpr int DIVISOR = common_divisor<READS, EMITS>::value;
    // At the end of a row of positions, so many pixels are here beyond those that its last window sees.
    static constexpr int AHEAD = larger(STRIDE * larger(WIDTH, OUT_WIDTH), (HEIGHT - (OUT_HEIGHT - 1) * STRIDE) * WIDTH) -
                                 (OUT_WIDTH - 1) * STRIDE;
    static constexpr int CAPACITY = (HIGH * WIDTH + WIDE + 1 + larger(AHEAD, STRIDE)) * G + WALK_LANDING + 1;
    static constexpr int SLOTS = walk_slots(CAPACITY);
    static constexpr int START = cyclic(-TOP * ROW - LEFT * G, SLOTS);
    // Address steps, from the last word of one level to the first of the next.
    static constexpr int LAST = HIGH * ROW + WIDE * G + G - 1;
    static constexpr int GROUP_STEP = cyclic(DEPTHWISE ? 1 - HIGH * ROW - WIDE * G : 1, SLOTS);
    static constexpr int TAP_STEP = cyclic(DILATION * G - (DEPTHWISE ? 0 : G - 1), SLOTS);
    static constexpr int TAP_ROW_STEP = cyclic(DILATION * ROW - WIDE * G - (DEPTHWISE ? 0 : G - 1), SLOTS);
    static constexpr int POSITION_STEP = cyclic(STRIDE * G - LAST, SLOTS);
    static constexpr int ROW_STEP = cyclic(STRIDE * ROW - (OUT_WIDTH - 1) * STRIDE * G - LAST, SLOTS);
    static constexpr int FRAME_STEP = cyclic(HEIGHT * ROW - (OUT_HEIGHT - 1) * STRIDE * ROW - (OUT_WIDTH - 1) * STRIDE * G - LAST, SLOTS);

    static_assert(TOP <= HIGH && BOTTOM <= HIGH && LEFT <= WIDE && RIGHT <= WIDE, "no window lies in the padding alone");

    int group, tap_y, tap_x, out_y, out_x;
    int row, column;  // words to the map's row, and in it, where the window begins; negative in the padding
    int y, x;         // pixel of the tap

    window_walk() : group(0), tap_y(0), tap_x(0), out_y(0), out_x(0), row(-TOP * ROW), column(-LEFT * G), y(-TOP), x(-LEFT) {}

    int frame_words() const { return HEIGHT * ROW; }
    int pace() const { return READS / DIVISOR; }
    int share() const { return EMITS / DIVISOR; }
    int start() const { return START; }

    int need() const {
#pragma HLS INLINE
        return smaller(row + HIGH * ROW, (HEIGHT - 1) * ROW) + smaller(column + (WIDE + 1) * G, ROW);
    }

    int oldest() const {
#pragma HLS INLINE
        return larger(row + larger(smaller(column, ROW), 0), 0);
    }

    bool inside() const {
#pragma HLS INLINE
        return y >= 0 && y < HEIGHT && x >= 0 && x < WIDTH;
    }

    // True when the taps of a position (or, depthwise, of a group) begin anew.
    bool next_tap(int &step) {
#pragma HLS INLINE
        step = TAP_STEP;
        x += DILATION;
        if (++tap_x < KERNEL_W) return false;
        tap_x = 0;
        x -= KERNEL_W * DILATION;
        step = TAP_ROW_STEP;
        y += DILATION;
        if (++tap_y < KERNEL_H) return false;
        tap_y = 0;
        y -= KERNEL_H * DILATION;
        return true;
    }

    bool next_group(int &step) {
#pragma HLS INLINE
        step = GROUP_STEP;
        if (++group < G) return false;
        group = 0;
        return true;
    }

    bool next_position(int &step) {
#pragma HLS INLINE
        step = POSITION_STEP;
        column += STRIDE * G;
        x += STRIDE;
        if (++out_x < OUT_WIDTH) return false;
        out_x = 0;
        column = -LEFT * G;
        x = -LEFT;
        step = ROW_STEP;
        row += STRIDE * ROW;
        y += STRIDE;
        if (++out_y < OUT_HEIGHT) return false;
        out_y = 0;
        row = -TOP * ROW;
        y = -TOP;
        step = FRAME_STEP;
        return true;
    }

    bool advance(int &step) {
#pragma HLS INLINE
        if (DEPTHWISE) {
            if (!next_tap(step)) return false;
            if (!next_group(step)) return false;
        } else {
            if (!next_group(step)) return false;
            if (!next_tap(step)) return false;
        }
        return next_position(step);
    }
};

template <int SIMD, int CHANNELS, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP, int LEFT, int BOTTOM,
          int RIGHT, int DILATION, bool DEPTHWISE, int RAM = RAM_AUTO, class T>
void window_default(int frames, hls::stream<word<T, SIMD> > &in, hls::stream<word<T, SIMD> > &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % SIMD == 0, "SIMD divides the channels");
    walk_map<RAM>(frames, in, out,
                  window_walk<CHANNELS / SIMD, HEIGHT, WIDTH, KERNEL_H, KERNEL_W, STRIDE, TOP, LEFT, BOTTOM, RIGHT, DILATION,
                              DEPTHWISE>());
}

template <int PIXELS, int SIMD, int CHANNELS, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP, int LEFT,
          int BOTTOM, int RIGHT, int DILATION, int RAM = RAM_AUTO, class T>
void window_parallel(int frames, hls::stream<word<T, PIXELS * SIMD> > &in,
                     hls::stream<word<T, pixels_out(PIXELS, STRIDE) * KERNEL_H * KERNEL_W * SIMD> > &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % SIMD == 0, "SIMD divides the channels");
    typedef scan_plan<PIXELS, HEIGHT, WIDTH, KERNEL_H, KERNEL_W, STRIDE, TOP, LEFT, BOTTOM, RIGHT, DILATION> plan;
    typedef word<T, PIXELS * SIMD> bundle_t;
    constexpr int G = CHANNELS / SIMD;
    constexpr int ROWS = larger(KERNEL_H - 1, 1), AGES = larger(plan::BUNDLES - 1, 1);
    delay_lines<bundle_t, ROWS, DILATION * plan::WIDE * G, RAM> rows;
    delay_lines<bundle_t, KERNEL_H * AGES, G, RAM_AUTO> columns;
    scan_t<plan, G> scan;
    const int steps = plan::steps(frames) * G;
    bundle_t newest = zeros<bundle_t>();
    SYSTOLIC_ENTER;
    for (int i = 0; i < steps; ++i) {
        SYSTOLIC_PIPELINE(1, SCAN_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min=1 max=1000000
        if (scan.takes(frames)) newest = in.read();
        // seen[tap row][age]: what the taps of one row of the window see, the newest first.
        bundle_t row[ROWS], rows_in[ROWS], age[KERNEL_H * AGES], ages_in[KERNEL_H * AGES], seen[KERNEL_H][plan::BUNDLES];
#pragma HLS ARRAY_PARTITION variable=row complete
#pragma HLS ARRAY_PARTITION variable=rows_in complete
#pragma HLS ARRAY_PARTITION variable=age complete
#pragma HLS ARRAY_PARTITION variable=ages_in complete
#pragma HLS ARRAY_PARTITION variable=seen complete dim=0
        rows.peek(row);
        columns.peek(age);
        for (int k = 0; k < KERNEL_H; ++k) {
#pragma HLS UNROLL
            seen[k][0] = k == KERNEL_H - 1 ? newest : row[smaller(KERNEL_H - 2 - k, ROWS - 1)];
            for (int b = 1; b < plan::BUNDLES; ++b) {
#pragma HLS UNROLL
                seen[k][b] = age[k * AGES + b - 1];
            }
            for (int b = 0; b < AGES; ++b) {
#pragma HLS UNROLL
                ages_in[k * AGES + b] = seen[k][smaller(b, plan::BUNDLES - 1)];
            }
        }
        for (int k = 0; k < ROWS; ++k) {
#pragma HLS UNROLL
            rows_in[k] = k == 0 ? newest : row[k - 1];
        }
        rows.push(rows_in);
        columns.push(ages_in);
        if (scan.emits()) {
            word<T, plan::PIXELS_OUT * KERNEL_H * KERNEL_W * SIMD> window;
            for (int m = 0; m < plan::PIXELS_OUT; ++m) {
#pragma HLS UNROLL
                for (int ky = 0; ky < KERNEL_H; ++ky) {
#pragma HLS UNROLL
                    for (int kx = 0; kx < KERNEL_W; ++kx) {
#pragma HLS UNROLL
                        const bool inside = scan.row_inside(ky) && scan.column_inside(m, kx);
                        for (int s = 0; s < SIMD; ++s) {
#pragma HLS UNROLL
                            const T value = seen[ky][plan::age_of(m, kx)].lane[plan::pixel_of(m, kx) * SIMD + s];
                            window.lane[((m * KERNEL_H + ky) * KERNEL_W + kx) * SIMD + s] = inside ? value : T(0);
                        }
                    }
                }
            }
            out.write(window);
        }
        scan.advance();
    }
}

#endif  // SYSTOLIC_WINDOW_H
