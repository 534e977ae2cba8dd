// The scan that parallel windows and max pools share. A map passes step by step, a *bundle* of PIXELS neighbouring
// pixels of a row each step, through delay lines of a row's length. In the step in which the last pixel of a window
// arrives, all its pixels are at known places in the delays, so that the window is written at once.
//
// Where a window reaches over the border of the map, those places hold pixels of the row or frame before or after. They
// are masked (row_inside, column_inside), and so rows and frames follow each other without a gap.
#ifndef SYSTOLIC_SCAN_H
#define SYSTOLIC_SCAN_H

#include "constant.h"

constexpr int SCAN_DEPTH = 5;

// Positions that a step gives: every STRIDE-th of the bundle's pixels, at least one.
constexpr int pixels_out(int pixels, int stride) { return larger(pixels / stride, 1); }

template <int PIXELS, int HEIGHT_, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE_, int TOP_, int LEFT_, int BOTTOM,
          int RIGHT, int DILATION_>
struct scan_plan {
    static constexpr int PIXELS_IN = PIXELS, PIXELS_OUT = pixels_out(PIXELS, STRIDE_);
    static constexpr int HEIGHT = HEIGHT_, STRIDE = STRIDE_, TOP = TOP_, LEFT = LEFT_, DILATION = DILATION_;
    static constexpr int OUT_HEIGHT = positions_of(HEIGHT, TOP, BOTTOM, KERNEL_H, DILATION, STRIDE);
    static constexpr int OUT_WIDTH = positions_of(WIDTH, LEFT, RIGHT, KERNEL_W, DILATION, STRIDE);
    static constexpr int PIXELS_WIDE = WIDTH;
    // In bundles: IN, a row that comes; WIDE, a row of the scan; PERIOD, from one that gives positions to the next;
    // OUT, those of a row that give positions. In rows: HIGH, a frame of the scan.
    static constexpr int IN = WIDTH / PIXELS;
    static constexpr int WIDE = ceiling(larger(WIDTH, (OUT_WIDTH - 1) * STRIDE + 1), PIXELS);
    static constexpr int PERIOD = larger(STRIDE / PIXELS, 1);
    static constexpr int OUT = OUT_WIDTH / PIXELS_OUT;
    static constexpr int HIGH = larger(HEIGHT, (OUT_HEIGHT - 1) * STRIDE + 1);
    // From the bundle of a position's own pixel to the one that completes its window: rows, and bundles beyond whole
    // rows.
    static constexpr int LAG_ROWS = (KERNEL_H - 1) * DILATION - TOP;
    static constexpr int LAG_BUNDLES = ceiling((KERNEL_W - 1) * DILATION - LEFT, PIXELS);
    static constexpr int LAG = LAG_ROWS * WIDE + LAG_BUNDLES;
    // The scan of positions begins LAG bundles before the frame: it is at position 0 when that window is complete.
    static constexpr int SCAN = HIGH * WIDE, FIRST = cyclic(-LAG, SCAN);
    // Bundles of a row that one window sees.
    static constexpr int BUNDLES = LAG_BUNDLES + ceiling(LEFT, PIXELS) + 1;

    static_assert(WIDTH % PIXELS == 0 && OUT_WIDTH % PIXELS_OUT == 0, "whole words make a row");
    static_assert(PIXELS == 1 || PIXELS % STRIDE == 0, "a word holds whole strides");
    static_assert(TOP <= (KERNEL_H - 1) * DILATION && LEFT <= (KERNEL_W - 1) * DILATION,
                  "no window lies in the padding alone");
    static_assert(BOTTOM <= (KERNEL_H - 1) * DILATION && RIGHT <= (KERNEL_W - 1) * DILATION,
                  "no window lies in the padding alone");

    // Tap kx of position m of a step: ``age_of``, how many steps ago its bundle came; ``pixel_of``, its pixel in that
    // bundle.
    static constexpr int offset_of(int m, int kx) { return LAG_BUNDLES * PIXELS - m * STRIDE - kx * DILATION + LEFT; }
    static constexpr int age_of(int m, int kx) { return ceiling(larger(offset_of(m, kx), 0), PIXELS); }
    static constexpr int pixel_of(int m, int kx) { return age_of(m, kx) * PIXELS - offset_of(m, kx); }
};

template <class PLAN, int G>
struct scan_t {
    int group;
    int in_y, in_x;    // the bundle that comes: row, bundle of the row
    int taken, left;   // frames that have come, and whose positions have left
    int wait;          // steps until the first position leaves
    int out_y, out_x;  // the position that leaves: row and bundle of the scan
    int odd_y, odd_x;  // the same modulo the stride and the period

    scan_t()
        : group(0), in_y(0), in_x(0), taken(0), left(0), wait(PLAN::LAG), out_y(PLAN::FIRST / PLAN::WIDE),
          out_x(PLAN::FIRST % PLAN::WIDE), odd_y(PLAN::FIRST / PLAN::WIDE % PLAN::STRIDE),
          odd_x(PLAN::FIRST % PLAN::WIDE % PLAN::PERIOD) {}

    bool before(int frames) const {
#pragma HLS INLINE
        return taken < frames || left < frames;
    }

    bool takes(int frames) const {
#pragma HLS INLINE
        return taken < frames && in_y < PLAN::HEIGHT && in_x < PLAN::IN;
    }

    // Whether positions lie in this column, in rows that have any.
    bool at_column() const {
#pragma HLS INLINE
        return odd_x == 0 && out_x < PLAN::OUT * PLAN::PERIOD;
    }

    bool emits() const {
#pragma HLS INLINE
        return wait == 0 && odd_y == 0 && out_y < PLAN::OUT_HEIGHT * PLAN::STRIDE && at_column();
    }

    bool row_inside(int ky) const {
#pragma HLS INLINE
        const int y = out_y - PLAN::TOP + ky * PLAN::DILATION;
        return y >= 0 && y < PLAN::HEIGHT;
    }

    bool column_inside(int m, int kx) const {
#pragma HLS INLINE
        const int x = out_x * PLAN::PIXELS_IN - PLAN::LEFT + m * PLAN::STRIDE + kx * PLAN::DILATION;
        return x >= 0 && x < PLAN::PIXELS_WIDE;
    }

    void advance_in() {
#pragma HLS INLINE
        if (++in_x < PLAN::WIDE) return;
        in_x = 0;
        if (++in_y < PLAN::HIGH) return;
        in_y = 0;
    }

    void advance_out() {
#pragma HLS INLINE
        odd_x = odd_x + 1 == PLAN::PERIOD ? 0 : odd_x + 1;
        if (++out_x < PLAN::WIDE) return;
        out_x = odd_x = 0;
        odd_y = odd_y + 1 == PLAN::STRIDE ? 0 : odd_y + 1;
        if (++out_y < PLAN::HIGH) return;
        out_y = odd_y = 0;
    }

    void advance() {
#pragma HLS INLINE
        if (++group < G) return;
        group = 0;
        if (in_y == PLAN::HEIGHT - 1 && in_x == PLAN::IN - 1) ++taken;
        if (emits() && out_y == (PLAN::OUT_HEIGHT - 1) * PLAN::STRIDE && out_x == (PLAN::OUT - 1) * PLAN::PERIOD)
            ++left;
        advance_in();
        advance_out();
        if (wait > 0) --wait;
    }
};

#endif  // SYSTOLIC_SCAN_H
