// The scan of a map that parallel windows (window.h) and max pools (max_pool.h) share. In each step a *bundle* of
// PIXELS neighbouring pixels of a row enters delay lines of a row's length.
//
// In the step in which the last pixel of a window arrives, all pixels of the window are at known places in the delay
// lines. The block can therefore write the whole window in this step. If a window reaches over the border of the map,
// some of these places hold pixels of a neighbouring row or frame. row_inside and column_inside mask them, so that rows
// and frames follow each other without a gap.
//
// A step is G iterations, one for each of the G words of a bundle's channels.
#ifndef SYSTOLIC_SCAN_H
#define SYSTOLIC_SCAN_H

#include "constant.h"
#include "counter.h"

constexpr int SCAN_DEPTH = 5;  // declared pipeline stages of a loop that scans

// The number of window positions per step that has any: one for every STRIDE-th pixel of the bundle, and at least one.
constexpr int pixels_out(int pixels, int stride) { return larger(pixels / stride, 1); }

// The constants of a scan. HEIGHT and WIDTH are the map's pixels, and TOP, LEFT, BOTTOM and RIGHT its padding in
// pixels. A window has KERNEL_H × KERNEL_W taps, DILATION pixels apart, and neighbouring windows are STRIDE pixels
// apart.
template <int PIXELS, int HEIGHT_, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE_, int TOP_, int LEFT_, int BOTTOM,
          int RIGHT, int DILATION_>
struct scan_plan {
    static constexpr int PIXELS_IN = PIXELS, PIXELS_OUT = pixels_out(PIXELS, STRIDE_);
    static constexpr int HEIGHT = HEIGHT_, STRIDE = STRIDE_, TOP = TOP_, LEFT = LEFT_, DILATION = DILATION_;
    static constexpr int OUT_HEIGHT = positions_of(HEIGHT, TOP, BOTTOM, KERNEL_H, DILATION, STRIDE);
    static constexpr int OUT_WIDTH = positions_of(WIDTH, LEFT, RIGHT, KERNEL_W, DILATION, STRIDE);
    static constexpr int MAP_WIDTH = WIDTH;
    // The scan covers the map, and any rows and columns after the map in which a window position has its first pixel.
    //   IN       bundles of an input row
    //   ROW_BUNDLES     bundles of a row of the scan
    //   PERIOD   bundles from one that has window positions to the next one
    //   OUT      bundles of a row that have window positions
    //   SCAN_ROWS     rows of the scan of a frame
    static constexpr int IN = WIDTH / PIXELS;
    static constexpr int ROW_BUNDLES = ceiling(larger(WIDTH, (OUT_WIDTH - 1) * STRIDE + 1), PIXELS);
    static constexpr int PERIOD = larger(STRIDE / PIXELS, 1);
    static constexpr int OUT = OUT_WIDTH / PIXELS_OUT;
    static constexpr int SCAN_ROWS = larger(HEIGHT, (OUT_HEIGHT - 1) * STRIDE + 1);
    // The lag from the bundle of a position's own pixel, (position · STRIDE) in the map, to the bundle that completes
    // the position's window: whole rows, bundles in addition to whole rows, and the total in bundles.
    static constexpr int LAG_ROWS = (KERNEL_H - 1) * DILATION - TOP;
    static constexpr int LAG_BUNDLES = ceiling((KERNEL_W - 1) * DILATION - LEFT, PIXELS);
    static constexpr int LAG = LAG_ROWS * ROW_BUNDLES + LAG_BUNDLES;
    // SCAN is the bundles of a frame's scan. The scan of positions starts at bundle FIRST, LAG bundles before bundle 0.
    // It reaches position 0 in the step that completes the window of position 0.
    static constexpr int SCAN = SCAN_ROWS * ROW_BUNDLES, FIRST = cyclic(-LAG, SCAN);
    // The number of bundles per row that contain pixels of one step's windows.
    static constexpr int BUNDLES = LAG_BUNDLES + ceiling(LEFT, PIXELS) + 1;

    static_assert(WIDTH % PIXELS == 0 && OUT_WIDTH % PIXELS_OUT == 0,
                  "PIXELS must divide WIDTH, and PIXELS_OUT must divide OUT_WIDTH");
    static_assert(PIXELS == 1 || PIXELS % STRIDE == 0, "PIXELS must be 1 or a multiple of STRIDE");
    static_assert(TOP <= (KERNEL_H - 1) * DILATION && LEFT <= (KERNEL_W - 1) * DILATION,
                  "TOP and LEFT must not exceed (KERNEL - 1) * DILATION, so that every window reaches the map");
    static_assert(BOTTOM <= (KERNEL_H - 1) * DILATION && RIGHT <= (KERNEL_W - 1) * DILATION,
                  "BOTTOM and RIGHT must not exceed (KERNEL - 1) * DILATION, so that every window reaches the map");

    // The place of tap column kx of a step's position m in the delay lines:
    //   offset_of   pixels from the tap to the first pixel of the newest bundle; negative if the tap is after it
    //   age_of      the number of steps since the tap's bundle entered
    //   pixel_of    the number of the tap's pixel in its bundle
    static constexpr int offset_of(int m, int kx) { return LAG_BUNDLES * PIXELS - m * STRIDE - kx * DILATION + LEFT; }
    static constexpr int age_of(int m, int kx) { return ceiling(larger(offset_of(m, kx), 0), PIXELS); }
    static constexpr int pixel_of(int m, int kx) { return age_of(m, kx) * PIXELS - offset_of(m, kx); }
};

// The state of a scan: the bundle that enters, and the positions whose windows are complete in the same step.
template <class PLAN, int G>
struct scan_t {
    counter_t<G> group;                  // the word of the bundle
    counter_t<PLAN::SCAN_ROWS> in_y;     // the row of the bundle that enters
    counter_t<PLAN::ROW_BUNDLES> in_x;   // its place in this row, in bundles
    int frames_read, frames_written;     // frames that are completely read; frames that are completely written
    quota_t<larger(PLAN::LAG, 1)> wait;  // the steps until the first window of the run is complete
    counter_t<PLAN::SCAN_ROWS> out_y;    // the row of the positions' own pixels
    counter_t<PLAN::ROW_BUNDLES> out_x;  // their place in this row, in bundles
    counter_t<PLAN::STRIDE> phase_y;     // out_y modulo the stride
    counter_t<PLAN::PERIOD> phase_x;     // out_x modulo the period

    scan_t()
        : frames_read(0), frames_written(0), out_y(PLAN::FIRST / PLAN::ROW_BUNDLES),
          out_x(PLAN::FIRST % PLAN::ROW_BUNDLES), phase_y(PLAN::FIRST / PLAN::ROW_BUNDLES % PLAN::STRIDE),
          phase_x(PLAN::FIRST % PLAN::ROW_BUNDLES % PLAN::PERIOD) {
        wait.open = PLAN::LAG > 0;
    }

    // Return whether a word of the ``frames`` frames has still to be read or written.
    bool before(int frames) const {
#pragma HLS INLINE
        return frames_read < frames || frames_written < frames;
    }

    // Return whether the iteration reads an input word. Outside of the map the scan steps without an input.
    bool reads_input(int frames) const {
#pragma HLS INLINE
        return frames_read < frames && in_y.value < PLAN::HEIGHT && in_x.value < PLAN::IN;
    }

    // Return whether this bundle has window positions, if its row has any.
    bool has_positions() const {
#pragma HLS INLINE
        return phase_x.value == 0 && out_x.value < PLAN::OUT * PLAN::PERIOD;
    }

    // Return whether the iteration completes windows and writes an output word.
    bool writes_output() const {
#pragma HLS INLINE
        return !wait.open && phase_y.value == 0 && out_y.value < PLAN::OUT_HEIGHT * PLAN::STRIDE && has_positions();
    }

    // Return whether tap row ky of the windows is inside the map.
    bool row_inside(int ky) const {
#pragma HLS INLINE
        const int y = int(out_y.value) - PLAN::TOP + ky * PLAN::DILATION;
        return y >= 0 && y < PLAN::HEIGHT;
    }

    // Return whether tap column kx of the step's position m is inside the map.
    bool column_inside(int m, int kx) const {
#pragma HLS INLINE
        const int x = int(out_x.value) * PLAN::PIXELS_IN - PLAN::LEFT + m * PLAN::STRIDE + kx * PLAN::DILATION;
        return x >= 0 && x < PLAN::MAP_WIDTH;
    }

    // Return whether this step completes the last windows of a frame.
    bool ends() const {
#pragma HLS INLINE
        return writes_output() && out_y.value == (PLAN::OUT_HEIGHT - 1) * PLAN::STRIDE &&
               out_x.value == (PLAN::OUT - 1) * PLAN::PERIOD;
    }

    // Moves to the next bundle of positions.
    void advance_out() {
#pragma HLS INLINE
        phase_x.next();
        if (!out_x.next()) return;
        phase_x.clear();
        phase_y.next();
        if (out_y.next()) phase_y.clear();
    }

    // Moves to the next iteration, and after the last group of channels to the next step.
    void advance() {
#pragma HLS INLINE
        if (!group.next()) return;
        if (in_y.value == PLAN::HEIGHT - 1 && in_x.value == PLAN::IN - 1) ++frames_read;
        if (ends()) ++frames_written;
        if (in_x.next()) in_y.next();
        advance_out();
        if (wait.open) wait.take();
    }
};

#endif  // SYSTOLIC_SCAN_H
