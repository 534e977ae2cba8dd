// Sliding-window unit (SWU, im2col): writes for each output position the pixels that a convolution sees there; padding
// is zeros.
//
// window_default writes SIMD channels of one tap a cycle, II 1. The order is (tap, channel), or (channel, tap) with
// DEPTHWISE. With G = CHANNELS / SIMD, P output positions and K = KERNEL_H · KERNEL_W, of F frames:
//
//   iterations = first · G + WALK_LANDING − 1 + F · P · K · G  where more words leave than come: P · K > HEIGHT · WIDTH
//              = F · HEIGHT · WIDTH · G, and at most one position more, where more come than leave
//   first      = pixels up to the last one that position 0 sees
//   buffer     = window_capacity + WALK_MARGIN words: the rows of the window, and the rows that the stride skips
//
// window_parallel takes a word of PIXELS pixels of a row each cycle, II 1, and writes all taps of SIMD channels, of
// PIXELS / STRIDE positions (1 where PIXELS is 1), in a word. The map runs through delays of whole rows (scan.h). A
// convolution that keeps the map's size costs no cycle but those in which words come, also at borders and between
// frames:
//
//   iterations = ((F − 1) · SCAN + TAIL) · G; TAIL: the steps until the last word has come and the last window has left
//   SCAN       = max(HEIGHT, STRIDE·(OH − 1) + 1) · max(WIDTH, STRIDE·(OW − 1) + 1) / PIXELS
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

// Words of the buffer: from a window's first pixel to its last, and what comes while a row of windows is done, that is
// the rows that the stride steps over, or those that the next frame's first window needs.
constexpr int window_capacity(int groups, int height, int width, int high, int wide, int stride, int out_height,
                              int out_width) {
    return (high * width + wide + 1 +
            larger(larger(stride * larger(width, out_width), (height - (out_height - 1) * stride) * width) -
                       (out_width - 1) * stride,
                   stride)) *
               groups +
           WALK_LANDING + 1;
}

// The walk (walk.h) of a window over a map of G words a pixel. All lengths are in words.
template <int G, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP, int LEFT, int OUT_HEIGHT,
          int OUT_WIDTH, int DILATION, bool DEPTHWISE>
struct window_walk {
    // A row of the map; from a window's first row to its last; a row of a window; from a row's first position to its last.
    static constexpr int ROW = WIDTH * G, HIGH = (KERNEL_H - 1) * DILATION * ROW;
    static constexpr int WIDE = (KERNEL_W - 1) * DILATION * G + G, ACROSS = (OUT_WIDTH - 1) * STRIDE * G;
    static constexpr int FRAME_WORDS = HEIGHT * ROW;
    static constexpr int CAPACITY = window_capacity(G, HEIGHT, WIDTH, (KERNEL_H - 1) * DILATION,
                                                    (KERNEL_W - 1) * DILATION, STRIDE, OUT_HEIGHT, OUT_WIDTH);
    static constexpr int SLOTS = walk_slots(CAPACITY);
    // Words are taken evenly: all of the frame's, or, if more, those of the rows and columns that the stride steps over.
    static constexpr int READS = larger(HEIGHT * WIDTH, STRIDE * OUT_HEIGHT * larger(WIDTH, OUT_WIDTH));
    static constexpr int WRITES = larger(READS, OUT_HEIGHT * OUT_WIDTH * KERNEL_H * KERNEL_W);
    static constexpr int DIVISOR = common_divisor<READS, WRITES>::value;
    static constexpr int PACE = READS / DIVISOR, SHARE = WRITES / DIVISOR;
    // The first address, and how far the address goes on at the end of a tap, of a row of taps, …
    static constexpr int TAP_BACK = DEPTHWISE ? 0 : G - 1, LAST = HIGH + WIDE - 1;
    static constexpr int START = cyclic(-TOP * ROW - LEFT * G, SLOTS);
    static constexpr int TAP_STEP = cyclic(DILATION * G - TAP_BACK, SLOTS);
    static constexpr int TAP_ROW_STEP = cyclic(DILATION * ROW - (WIDE - G) - TAP_BACK, SLOTS);
    static constexpr int GROUP_STEP = cyclic(DEPTHWISE ? 1 - HIGH - (WIDE - G) : 1, SLOTS);
    static constexpr int POSITION_STEP = cyclic(STRIDE * G - LAST, SLOTS);
    static constexpr int ROW_STEP = cyclic(STRIDE * ROW - ACROSS - LAST, SLOTS);
    static constexpr int FRAME_STEP = cyclic((HEIGHT - (OUT_HEIGHT - 1) * STRIDE) * ROW - ACROSS - LAST, SLOTS);
    // The last word that a window needs: rows and columns of the map end. The first: the padding has none.
    typedef rising_t<HIGH - TOP * ROW, STRIDE * ROW, (HEIGHT - 1) * ROW> need_rows;
    typedef rising_t<WIDE - LEFT * G, STRIDE * G, ROW> need_columns;
    typedef surfacing_t<-TOP * ROW, STRIDE * ROW> oldest_rows;
    typedef surfacing_t<-LEFT * G, STRIDE * G> oldest_columns;
    static constexpr int NEED = need_rows::value(0) + need_columns::value(0);
    static constexpr int NEED_BACK = need_columns::value(OUT_WIDTH - 1) - need_columns::value(0);
    static constexpr int NEED_FRAME = FRAME_WORDS + need_rows::value(0) - need_rows::value(OUT_HEIGHT - 1) - NEED_BACK;
    static constexpr int ABOVE = ceiling(TOP, STRIDE);  // rows of positions whose windows begin above the map
    static constexpr int OLDEST_BACK = oldest_columns::value(OUT_WIDTH - 1);
    static constexpr int OLDEST_FRAME =
        FRAME_WORDS - oldest_rows::value(OUT_HEIGHT - 1) - (OUT_HEIGHT - 1 < ABOVE ? 0 : OLDEST_BACK);

    counter_t<G> group;
    counter_t<KERNEL_H> tap_y;
    counter_t<KERNEL_W> tap_x;
    counter_t<OUT_HEIGHT> out_y;
    counter_t<OUT_WIDTH> out_x;

    bool inside() const {
#pragma HLS INLINE
        const int y = int(out_y.value) * STRIDE + int(tap_y.value) * DILATION - TOP;
        const int x = int(out_x.value) * STRIDE + int(tap_x.value) * DILATION - LEFT;
        return y >= 0 && y < HEIGHT && x >= 0 && x < WIDTH;
    }

    move_t step() {
#pragma HLS INLINE
        const bool taps = tap_x.last && tap_y.last, position = group.last && taps;
        const bool row = position && out_x.last, frame = row && out_y.last, above = out_y.value < ABOVE;
        const int tap = !tap_x.last ? TAP_STEP : TAP_ROW_STEP;
        const int within = DEPTHWISE ? (taps ? GROUP_STEP : tap) : (group.last ? tap : GROUP_STEP);
        const int down_need = need_rows::rise(out_y.value) - NEED_BACK;
        const int down_oldest = oldest_rows::rise(out_y.value) - (above ? 0 : OLDEST_BACK);
        const int across_need = need_columns::rise(out_x.value);
        const int across_oldest = above ? 0 : oldest_columns::rise(out_x.value);
        const move_t move = {
            frame      ? FRAME_STEP
            : row      ? ROW_STEP
            : position ? POSITION_STEP
                       : within,
            !position ? 0
            : frame   ? NEED_FRAME
            : row     ? down_need
                      : across_need,
            !position ? 0
            : frame   ? OLDEST_FRAME
            : row     ? down_oldest
                      : across_oldest,
            frame,
        };
        if (DEPTHWISE || group.next()) {
            if (tap_x.next()) tap_y.next();
        }
        if (DEPTHWISE && taps) group.next();
        if (position && out_x.next()) out_y.next();
        return move;
    }
};

template <int SIMD, int CHANNELS, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP, int LEFT,
          int BOTTOM, int RIGHT, int DILATION, bool DEPTHWISE, int RAM = RAM_AUTO, int AROUND = 0, class T>
void window_default(int frames, hls::stream<word<T, SIMD>> &in, hls::stream<word<T, SIMD>> &out) {
#pragma HLS INLINE
    constexpr int HIGH = (KERNEL_H - 1) * DILATION, WIDE = (KERNEL_W - 1) * DILATION, G = CHANNELS / SIMD;
    static_assert(CHANNELS % SIMD == 0, "SIMD divides the channels");
    static_assert(TOP <= HIGH && BOTTOM <= HIGH && LEFT <= WIDE && RIGHT <= WIDE,
                  "no window lies in the padding alone");
    constexpr int OUT_HEIGHT = positions_of(HEIGHT, TOP, BOTTOM, KERNEL_H, DILATION, STRIDE);
    constexpr int OUT_WIDTH = positions_of(WIDTH, LEFT, RIGHT, KERNEL_W, DILATION, STRIDE);
    walk_map<RAM, AROUND>(frames, in, out,
                          window_walk<G, HEIGHT, WIDTH, KERNEL_H, KERNEL_W, STRIDE, TOP, LEFT, OUT_HEIGHT, OUT_WIDTH,
                                      DILATION, DEPTHWISE>());
}

template <int PIXELS, int SIMD, int CHANNELS, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP,
          int LEFT, int BOTTOM, int RIGHT, int DILATION, int RAM = RAM_AUTO, int AROUND = 0, class T>
void window_parallel(int frames, hls::stream<word<T, PIXELS * SIMD>> &in,
                     hls::stream<word<T, pixels_out(PIXELS, STRIDE) * KERNEL_H * KERNEL_W * SIMD>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % SIMD == 0, "SIMD divides the channels");
    typedef scan_plan<PIXELS, HEIGHT, WIDTH, KERNEL_H, KERNEL_W, STRIDE, TOP, LEFT, BOTTOM, RIGHT, DILATION> plan;
    typedef word<T, PIXELS * SIMD> bundle_t;
    constexpr int G = CHANNELS / SIMD;
    constexpr int ROWS = larger(KERNEL_H - 1, 1), AGES = larger(plan::BUNDLES - 1, 1);
    lines_t<bundle_t, ROWS> rows[DILATION * plan::WIDE * G];
    lines_t<bundle_t, KERNEL_H * AGES> columns[G];
#pragma HLS AGGREGATE variable = rows compact = bit
#pragma HLS AGGREGATE variable = columns compact = bit
    keep_delay<RAM>(rows);
    keep_delay<RAM_AUTO>(columns);
    delay_t<DILATION * plan::WIDE * G> by_rows;
    delay_t<G> by_bundles;
    scan_t<plan, G> scan;
    bundle_t newest = zeros<bundle_t>();
    SYSTOLIC_ENTER;
    while (scan.before(frames)) {
        SYSTOLIC_PIPELINE(1, SCAN_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
#pragma HLS DEPENDENCE variable = rows type = inter false
#pragma HLS DEPENDENCE variable = columns type = inter false
        if (scan.takes(frames)) newest = in.read();
        // seen[k][age]: the bundles of row k of the window, the newest first.
        bundle_t row[ROWS], rows_in[ROWS], age[KERNEL_H * AGES], ages_in[KERNEL_H * AGES],
            seen[KERNEL_H][plan::BUNDLES];
#pragma HLS ARRAY_PARTITION variable = row complete
#pragma HLS ARRAY_PARTITION variable = rows_in complete
#pragma HLS ARRAY_PARTITION variable = age complete
#pragma HLS ARRAY_PARTITION variable = ages_in complete
#pragma HLS ARRAY_PARTITION variable = seen complete dim = 0
        by_rows.peek(rows, row);
        by_bundles.peek(columns, age);
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
        by_rows.push(rows, rows_in);
        by_bundles.push(columns, ages_in);
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
                            window.lane[((m * KERNEL_H + ky) * KERNEL_W + kx) * SIMD + s] = inside ? value : T(AROUND);
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
