// Sliding-window unit (SWU, im2col): writes, for each output position, the pixels under the convolution's window.
// Padding has the value AROUND, which is 0 by default.
//
// window_default reads at most one word of SIMD channels per cycle, and writes at most one word: SIMD channels of one
// tap, II 1. The words of a position are in the order (tap, channel), or (channel, tap) with DEPTHWISE. For F frames,
// with G = CHANNELS / SIMD, P output positions and K = KERNEL_H · KERNEL_W taps:
//
//   iterations = first · G + WALK_LANDING − 1 + F · P · K · G         if P · K > HEIGHT · WIDTH (the output dominates)
//              = F · HEIGHT · WIDTH · G + at most one position        otherwise (the input dominates)
//   first      = the input pixels up to the last one of position 0's window
//   buffer     = window_capacity + WALK_MARGIN words: the rows of the window, and the rows that the stride skips
//
// window_parallel reads at most one word per cycle: SIMD channels of PIXELS neighbouring pixels of a row, II 1. An
// output word has all taps of SIMD channels for PIXELS / STRIDE positions, or for one position if PIXELS is 1. The map
// passes delay lines of whole rows (scan.h). A convolution that keeps the map's size takes only the cycles in which
// words are read, also at borders and between frames:
//
//   iterations = ((F − 1) · SCAN + TAIL) · G
//   TAIL       = steps of the last frame, until its last word is read and its last window is written
//   SCAN       = max(HEIGHT, STRIDE·(OH − 1) + 1) · max(WIDTH, STRIDE·(OW − 1) + 1) / PIXELS, for OH × OW positions
//   buffer     = (KERNEL_H − 1) · DILATION rows, and the window itself in registers
//
// TOP, LEFT, BOTTOM and RIGHT are the padding in pixels. DILATION is the distance between taps and STRIDE the distance
// between positions, in pixels.
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

// The most words that window_default stores: from a window's first pixel to its last, and the words that arrive while a
// row of windows is written. These are the rows that the stride skips, or the rows that the next frame's first window
// needs. ``high`` and ``wide`` are the rows and columns from a window's first tap to its last.
constexpr int window_capacity(int groups, int height, int width, int high, int wide, int stride, int out_height,
                              int out_width) {
    return (high * width + wide + 1 +
            larger(larger(stride * larger(width, out_width), (height - (out_height - 1) * stride) * width) -
                       (out_width - 1) * stride,
                   stride)) *
               groups +
           WALK_LANDING + 1;
}

// The walk (walk.h) of a window over a map of G words per pixel. All lengths are in words.
template <int G, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP, int LEFT, int OUT_HEIGHT,
          int OUT_WIDTH, int DILATION, bool DEPTHWISE>
struct window_walk {
    //   ROW       a row of the map
    //   HIGH      from a window's first row to its last
    //   WIDE      a row of a window
    //   ACROSS    from a row's first position to its last
    static constexpr int ROW = WIDTH * G, HIGH = (KERNEL_H - 1) * DILATION * ROW;
    static constexpr int WIDE = (KERNEL_W - 1) * DILATION * G + G, ACROSS = (OUT_WIDTH - 1) * STRIDE * G;
    static constexpr int FRAME_WORDS = HEIGHT * ROW;
    static constexpr int CAPACITY = window_capacity(G, HEIGHT, WIDTH, (KERNEL_H - 1) * DILATION,
                                                    (KERNEL_W - 1) * DILATION, STRIDE, OUT_HEIGHT, OUT_WIDTH);
    static constexpr int SLOTS = walk_slots(CAPACITY);
    // The pace of reading, from the pixels that are read per frame and the words per group of channels that are
    // written. READS are the frame's pixels, or the pixels of all rows that the stride passes, if these are more.
    static constexpr int READS = larger(HEIGHT * WIDTH, STRIDE * OUT_HEIGHT * larger(WIDTH, OUT_WIDTH));
    static constexpr int WRITES = larger(READS, OUT_HEIGHT * OUT_WIDTH * KERNEL_H * KERNEL_W);
    static constexpr int DIVISOR = common_divisor<READS, WRITES>::value;
    static constexpr int READ_PACE = READS / DIVISOR, WRITE_PACE = WRITES / DIVISOR;
    // START is the address of the first output word. The constants ending in _STEP are increases of the address modulo
    // SLOTS: to the next tap, row of taps, group of channels, position, row of positions, and frame. TAP_BACK is the
    // words of a tap before its last, and LAST the words of a window before its last.
    static constexpr int TAP_BACK = DEPTHWISE ? 0 : G - 1, LAST = HIGH + WIDE - 1;
    static constexpr int START = cyclic(-TOP * ROW - LEFT * G, SLOTS);
    static constexpr int TAP_STEP = cyclic(DILATION * G - TAP_BACK, SLOTS);
    static constexpr int TAP_ROW_STEP = cyclic(DILATION * ROW - (WIDE - G) - TAP_BACK, SLOTS);
    static constexpr int GROUP_STEP = cyclic(DEPTHWISE ? 1 - HIGH - (WIDE - G) : 1, SLOTS);
    static constexpr int POSITION_STEP = cyclic(STRIDE * G - LAST, SLOTS);
    static constexpr int ROW_STEP = cyclic(STRIDE * ROW - ACROSS - LAST, SLOTS);
    static constexpr int FRAME_STEP = cyclic((HEIGHT - (OUT_HEIGHT - 1) * STRIDE) * ROW - ACROSS - LAST, SLOTS);
    // The words of a frame up to the last one that a window needs, as a sum for its row and its column of positions.
    // Windows in the padding after the map need no further words, so that the sums have limits.
    typedef increments_below_t<HIGH - TOP * ROW, STRIDE * ROW, (HEIGHT - 1) * ROW> need_rows;
    typedef increments_below_t<WIDE - LEFT * G, STRIDE * G, ROW> need_columns;
    // The words of a frame before the first one that a window needs, in the same form. Padding before the map has no
    // words.
    typedef increments_above_t<-TOP * ROW, STRIDE * ROW> oldest_rows;
    typedef increments_above_t<-LEFT * G, STRIDE * G> oldest_columns;
    // NEED is the words that the first window needs. The constants with _BACK and _FRAME are the changes back to the
    // first column of a row, and to the next frame.
    static constexpr int NEED = need_rows::value(0) + need_columns::value(0);
    static constexpr int NEED_BACK = need_columns::value(OUT_WIDTH - 1) - need_columns::value(0);
    static constexpr int NEED_FRAME = FRAME_WORDS + need_rows::value(0) - need_rows::value(OUT_HEIGHT - 1) - NEED_BACK;
    static constexpr int ABOVE = ceiling(TOP, STRIDE);  // rows of positions whose windows begin above the map
    static constexpr int OLDEST_BACK = oldest_columns::value(OUT_WIDTH - 1);
    static constexpr int OLDEST_FRAME =
        FRAME_WORDS - oldest_rows::value(OUT_HEIGHT - 1) - (OUT_HEIGHT - 1 < ABOVE ? 0 : OLDEST_BACK);

    counter_t<G> group;           // the word of the pixel
    counter_t<KERNEL_H> tap_y;    // the row of the tap in the window
    counter_t<KERNEL_W> tap_x;    // the column of the tap in the window
    counter_t<OUT_HEIGHT> out_y;  // the row of the position
    counter_t<OUT_WIDTH> out_x;   // the column of the position

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
        const int down_need = need_rows::increment(out_y.value) - NEED_BACK;
        const int down_oldest = oldest_rows::increment(out_y.value) - (above ? 0 : OLDEST_BACK);
        const int across_need = need_columns::increment(out_x.value);
        const int across_oldest = above ? 0 : oldest_columns::increment(out_x.value);
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
    static_assert(CHANNELS % SIMD == 0, "SIMD must divide CHANNELS");
    static_assert(TOP <= HIGH && BOTTOM <= HIGH && LEFT <= WIDE && RIGHT <= WIDE,
                  "the padding must not exceed the kernel's size less 1, dilation included, so that every window "
                  "reaches the map");
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
    static_assert(CHANNELS % SIMD == 0, "SIMD must divide CHANNELS");
    typedef scan_plan<PIXELS, HEIGHT, WIDTH, KERNEL_H, KERNEL_W, STRIDE, TOP, LEFT, BOTTOM, RIGHT, DILATION> plan;
    typedef word<T, PIXELS * SIMD> bundle_t;
    constexpr int G = CHANNELS / SIMD;
    constexpr int ROWS = larger(KERNEL_H - 1, 1), AGES = larger(plan::BUNDLES - 1, 1);
    lines_t<bundle_t, ROWS> rows[DILATION * plan::ROW_BUNDLES * G];  // the rows of the map above the newest one
    lines_t<bundle_t, KERNEL_H * AGES> columns[G];                   // the last bundles of each row of the window
// One memory word holds all lanes of all lines at an address.
#pragma HLS AGGREGATE variable = rows compact = bit
#pragma HLS AGGREGATE variable = columns compact = bit
    bind_delay_memory<RAM>(rows);
    bind_delay_memory<RAM_AUTO>(columns);
    delay_t<DILATION * plan::ROW_BUNDLES * G> row_delay;
    delay_t<G> bundle_delay;
    scan_t<plan, G> scan;
    bundle_t newest = zeros<bundle_t>();
    SYSTOLIC_ENTER;
    while (scan.before(frames)) {
        SYSTOLIC_PIPELINE(1, SCAN_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// The delay lines read each word long after its write (delay.h).
#pragma HLS DEPENDENCE variable = rows type = inter false
#pragma HLS DEPENDENCE variable = columns type = inter false
        // If the scan is outside of the map, newest keeps an old value, which is masked.
        if (scan.reads_input(frames)) newest = in.read();
        // bundles[k][age] are the bundles of row k of the window, the newest first.
        bundle_t row[ROWS], next_rows[ROWS], age[KERNEL_H * AGES], next_ages[KERNEL_H * AGES],
            bundles[KERNEL_H][plan::BUNDLES];
#pragma HLS ARRAY_PARTITION variable = row complete
#pragma HLS ARRAY_PARTITION variable = next_rows complete
#pragma HLS ARRAY_PARTITION variable = age complete
#pragma HLS ARRAY_PARTITION variable = next_ages complete
#pragma HLS ARRAY_PARTITION variable = bundles complete dim = 0
        row_delay.peek(rows, row);
        bundle_delay.peek(columns, age);
        for (int k = 0; k < KERNEL_H; ++k) {
#pragma HLS UNROLL
            bundles[k][0] = k == KERNEL_H - 1 ? newest : row[smaller(KERNEL_H - 2 - k, ROWS - 1)];
            for (int b = 1; b < plan::BUNDLES; ++b) {
#pragma HLS UNROLL
                bundles[k][b] = age[k * AGES + b - 1];
            }
            for (int b = 0; b < AGES; ++b) {
#pragma HLS UNROLL
                next_ages[k * AGES + b] = bundles[k][smaller(b, plan::BUNDLES - 1)];
            }
        }
        for (int k = 0; k < ROWS; ++k) {
#pragma HLS UNROLL
            next_rows[k] = k == 0 ? newest : row[k - 1];
        }
        row_delay.push(rows, next_rows);
        bundle_delay.push(columns, next_ages);
        if (scan.writes_output()) {
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
                            const T value = bundles[ky][plan::age_of(m, kx)].lane[plan::pixel_of(m, kx) * SIMD + s];
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
