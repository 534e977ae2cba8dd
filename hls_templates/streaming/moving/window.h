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

// The numbers of a default window's walk, all known to the compiler. A word has SIMD channels of a pixel.
struct window_plan {
    int height, width, out_height, out_width, stride, dilation, top, left;
    int row, high, wide;  // words: of a row of the map, from a window's first row to its last, of a row of a window
    int pace, share;      // walk.h
    // The first address, and how far the address goes on at the end of a tap, of a row of taps, …
    int start, tap_step, tap_row_step, group_step, position_step, row_step, frame_step;
};

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

constexpr window_plan plan_window(int groups, int height, int width, int kernel_h, int kernel_w, int stride, int top,
                                  int left, int out_height, int out_width, int dilation, bool depthwise, int slots) {
    const int row = width * groups, high = (kernel_h - 1) * dilation * row, wide = (kernel_w - 1) * dilation * groups;
    const int last = high + wide + groups - 1;           // from a position's first word to its last
    const int back = (out_width - 1) * stride * groups;  // from a row's first position to its last
    const int tap_back = depthwise ? 0 : groups - 1;
    // Words are taken evenly: all of the frame's, or, if more, those of the rows and columns that the stride steps
    // over.
    const int reads = larger(height * width, stride * out_height * larger(width, out_width));
    return {height,
            width,
            out_height,
            out_width,
            stride,
            dilation,
            top,
            left,
            row,
            high,
            wide + groups,
            reads,
            larger(reads, out_height * out_width * kernel_h * kernel_w),
            cyclic(-top * row - left * groups, slots),
            cyclic(dilation * groups - tap_back, slots),
            cyclic(dilation * row - wide - tap_back, slots),
            cyclic(depthwise ? 1 - high - wide : 1, slots),
            cyclic(stride * groups - last, slots),
            cyclic(stride * row - back - last, slots),
            cyclic((height - (out_height - 1) * stride) * row - back - last, slots)};
}

// The walk (walk.h) of a window over a map of G words a pixel.
template <int G, int KERNEL_H, int KERNEL_W, bool DEPTHWISE, int CAPACITY_>
struct window_walk {
    static constexpr int CAPACITY = CAPACITY_;

    window_plan plan;
    int group, tap_y, tap_x, out_y, out_x;
    int row, column;  // where the window begins, in words: its row of the map, and in that row; negative in the padding
    int y, x;         // the tap's pixel

    explicit window_walk(const window_plan &of)
        : plan(of), group(0), tap_y(0), tap_x(0), out_y(0), out_x(0), row(-of.top * of.row), column(-of.left * G),
          y(-of.top), x(-of.left) {}

    int frame_words() const { return plan.height * plan.row; }
    int pace() const { return plan.pace; }
    int share() const { return plan.share; }
    int start() const { return plan.start; }

    int need() const {
#pragma HLS INLINE
        return smaller(row + plan.high, (plan.height - 1) * plan.row) + smaller(column + plan.wide, plan.row);
    }

    int oldest() const {
#pragma HLS INLINE
        return larger(row + larger(smaller(column, plan.row), 0), 0);
    }

    bool inside() const {
#pragma HLS INLINE
        return y >= 0 && y < plan.height && x >= 0 && x < plan.width;
    }

    // True after the last tap of the window.
    bool next_tap(int &step) {
#pragma HLS INLINE
        step = plan.tap_step;
        x += plan.dilation;
        if (++tap_x < KERNEL_W) return false;
        tap_x = 0;
        x -= KERNEL_W * plan.dilation;
        step = plan.tap_row_step;
        y += plan.dilation;
        if (++tap_y < KERNEL_H) return false;
        tap_y = 0;
        y -= KERNEL_H * plan.dilation;
        return true;
    }

    bool next_group(int &step) {
#pragma HLS INLINE
        step = plan.group_step;
        if (++group < G) return false;
        group = 0;
        return true;
    }

    bool next_position(int &step) {
#pragma HLS INLINE
        step = plan.position_step;
        column += plan.stride * G;
        x += plan.stride;
        if (++out_x < plan.out_width) return false;
        out_x = 0;
        column = -plan.left * G;
        x = -plan.left;
        step = plan.row_step;
        row += plan.stride * plan.row;
        y += plan.stride;
        if (++out_y < plan.out_height) return false;
        out_y = 0;
        row = -plan.top * plan.row;
        y = -plan.top;
        step = plan.frame_step;
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

template <int SIMD, int CHANNELS, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP, int LEFT,
          int BOTTOM, int RIGHT, int DILATION, bool DEPTHWISE, int RAM = RAM_AUTO, class T>
void window_default(int frames, hls::stream<word<T, SIMD>> &in, hls::stream<word<T, SIMD>> &out) {
#pragma HLS INLINE
    constexpr int HIGH = (KERNEL_H - 1) * DILATION, WIDE = (KERNEL_W - 1) * DILATION, G = CHANNELS / SIMD;
    static_assert(CHANNELS % SIMD == 0, "SIMD divides the channels");
    static_assert(TOP <= HIGH && BOTTOM <= HIGH && LEFT <= WIDE && RIGHT <= WIDE,
                  "no window lies in the padding alone");
    constexpr int OUT_HEIGHT = positions_of(HEIGHT, TOP, BOTTOM, KERNEL_H, DILATION, STRIDE);
    constexpr int OUT_WIDTH = positions_of(WIDTH, LEFT, RIGHT, KERNEL_W, DILATION, STRIDE);
    constexpr int CAPACITY = window_capacity(G, HEIGHT, WIDTH, HIGH, WIDE, STRIDE, OUT_HEIGHT, OUT_WIDTH);
    constexpr window_plan PLAN = plan_window(G, HEIGHT, WIDTH, KERNEL_H, KERNEL_W, STRIDE, TOP, LEFT, OUT_HEIGHT,
                                             OUT_WIDTH, DILATION, DEPTHWISE, walk_slots(CAPACITY));
    window_plan plan = PLAN;
    plan.pace = PLAN.pace / common_divisor<PLAN.pace, PLAN.share>::value;
    plan.share = PLAN.share / common_divisor<PLAN.pace, PLAN.share>::value;
    walk_map<RAM>(frames, in, out, window_walk<G, KERNEL_H, KERNEL_W, DEPTHWISE, CAPACITY>(plan));
}

template <int PIXELS, int SIMD, int CHANNELS, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP,
          int LEFT, int BOTTOM, int RIGHT, int DILATION, int RAM = RAM_AUTO, class T>
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
