// The scan that parallel windows and max pools share. A map passes step by step, a *bundle* of PIXELS neighbouring
// pixels of a row each step, through delay lines of a row's length. In the step in which the last pixel of a window
// arrives, all its pixels are at known places in the delays, so that the window is written at once.
//
// Where a window reaches over the border of the map, those places hold pixels of the row or frame before or after. They
// are masked (row_inside, column_inside), and so rows and frames follow each other without a gap.
#ifndef SYSTOLIC_SCAN_H
#define SYSTOLIC_SCAN_H

#include "constant.h"
#include "counter.h"

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
    counter_t<G> group;
    counter_t<PLAN::HIGH> in_y;  // the bundle that comes: row, bundle of the row
    counter_t<PLAN::WIDE> in_x;
    int taken, left;                     // frames that have come, and whose positions have left
    quota_t<larger(PLAN::LAG, 1)> wait;  // steps until the first position leaves
    counter_t<PLAN::HIGH> out_y;         // the position that leaves: row and bundle of the scan
    counter_t<PLAN::WIDE> out_x;
    counter_t<PLAN::STRIDE> odd_y;  // the same modulo the stride and the period
    counter_t<PLAN::PERIOD> odd_x;

    scan_t()
        : taken(0), left(0), out_y(PLAN::FIRST / PLAN::WIDE), out_x(PLAN::FIRST % PLAN::WIDE),
          odd_y(PLAN::FIRST / PLAN::WIDE % PLAN::STRIDE), odd_x(PLAN::FIRST % PLAN::WIDE % PLAN::PERIOD) {
        wait.open = PLAN::LAG > 0;
    }

    bool before(int frames) const {
#pragma HLS INLINE
        return taken < frames || left < frames;
    }

    bool takes(int frames) const {
#pragma HLS INLINE
        return taken < frames && in_y.value < PLAN::HEIGHT && in_x.value < PLAN::IN;
    }

    // Whether positions lie in this column, in rows that have any.
    bool at_column() const {
#pragma HLS INLINE
        return odd_x.value == 0 && out_x.value < PLAN::OUT * PLAN::PERIOD;
    }

    bool emits() const {
#pragma HLS INLINE
        return !wait.open && odd_y.value == 0 && out_y.value < PLAN::OUT_HEIGHT * PLAN::STRIDE && at_column();
    }

    bool row_inside(int ky) const {
#pragma HLS INLINE
        const int y = int(out_y.value) - PLAN::TOP + ky * PLAN::DILATION;
        return y >= 0 && y < PLAN::HEIGHT;
    }

    bool column_inside(int m, int kx) const {
#pragma HLS INLINE
        const int x = int(out_x.value) * PLAN::PIXELS_IN - PLAN::LEFT + m * PLAN::STRIDE + kx * PLAN::DILATION;
        return x >= 0 && x < PLAN::PIXELS_WIDE;
    }

    // Whether the last position of a frame leaves.
    bool ends() const {
#pragma HLS INLINE
        return emits() && out_y.value == (PLAN::OUT_HEIGHT - 1) * PLAN::STRIDE &&
               out_x.value == (PLAN::OUT - 1) * PLAN::PERIOD;
    }

    void advance_out() {
#pragma HLS INLINE
        odd_x.next();
        if (!out_x.next()) return;
        odd_x.clear();
        odd_y.next();
        if (out_y.next()) odd_y.clear();
    }

    void advance() {
#pragma HLS INLINE
        if (!group.next()) return;
        if (in_y.value == PLAN::HEIGHT - 1 && in_x.value == PLAN::IN - 1) ++taken;
        if (ends()) ++left;
        if (in_x.next()) in_y.next();
        advance_out();
        if (wait.open) wait.take();
    }
};

#endif  // SYSTOLIC_SCAN_H
