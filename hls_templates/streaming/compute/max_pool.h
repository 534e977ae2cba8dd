// Max pool: the largest value of each window of KERNEL_H rows and KERNEL_W columns, with windows STRIDE pixels apart.
// Padding has no value and is never the largest, for any datatype.
//
// An input word has LANES channels of PIXELS neighbouring pixels of a row. An output word has PIXELS / STRIDE
// positions, or one if PIXELS is 1. Each cycle reads at most one input word and writes at most one output word, II 1.
//
// A cycle finds the largest value of the window's newest row, and then the largest of this and the stored maxima of the
// KERNEL_H − 1 rows above. This takes KERNEL_H + KERNEL_W − 2 comparisons instead of KERNEL_H · KERNEL_W − 1. The scan
// of the map is in scan.h. For F frames of OH × OW positions, with G = CHANNELS / LANES:
//
//   iterations = ((F − 1) · SCAN + TAIL) · G
//   TAIL       = steps of the last frame, until its last word is read and its last position is written
//   SCAN       = max(HEIGHT, STRIDE·(OH − 1) + 1) · max(WIDTH, STRIDE·(OW − 1) + 1) / PIXELS
//   buffer     = KERNEL_H − 1 rows of OW pixels
#ifndef SYSTOLIC_MAX_POOL_H
#define SYSTOLIC_MAX_POOL_H

#include <hls_stream.h>

#include "constant.h"
#include "counter.h"
#include "delay.h"
#include "instrument.h"
#include "ram.h"
#include "scan.h"
#include "word.h"

// The declared pipeline stages: at least the stages of a scan, and otherwise one per level of a tree of comparisons,
// plus two. KERNEL is the greater side of the window.
template <int KERNEL>
constexpr int max_pool_depth() {
    return larger(SCAN_DEPTH, 2 + bits_of<KERNEL - 1>::value);
}

// Returns the largest of those COUNT values that are inside of the map, by a tree of comparisons. If none is inside,
// the result has no meaning. The function overwrites its arguments.
template <int COUNT, class T>
inline T largest_of(T (&value)[COUNT], bool (&inside)[COUNT]) {
#pragma HLS INLINE
    constexpr int LEVELS = bits_of<COUNT - 1>::value;
    for (int level = 0; level < LEVELS; ++level) {
#pragma HLS UNROLL
        for (int k = 0; k < COUNT; ++k) {
#pragma HLS UNROLL
            const int other = smaller(k + (1 << level), COUNT - 1);
            if (k % (2 << level) == 0 && other == k + (1 << level)) {
                if (inside[other] && (!inside[k] || value[other] > value[k])) value[k] = value[other];
                inside[k] = inside[k] || inside[other];
            }
        }
    }
    return value[0];
}

template <int PIXELS, int LANES, int CHANNELS, int HEIGHT, int WIDTH, int KERNEL_H, int KERNEL_W, int STRIDE, int TOP,
          int LEFT, int BOTTOM, int RIGHT, int RAM = RAM_AUTO, class T>
void max_pool(int frames, hls::stream<word<T, PIXELS * LANES>> &in,
              hls::stream<word<T, pixels_out(PIXELS, STRIDE) * LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES must divide CHANNELS");
    static_assert(TOP < KERNEL_H && BOTTOM < KERNEL_H,
                  "TOP and BOTTOM must be less than KERNEL_H, so that every window contains a row of the map");
    static_assert(LEFT < KERNEL_W && RIGHT < KERNEL_W,
                  "LEFT and RIGHT must be less than KERNEL_W, so that every window contains a column of the map");
    typedef scan_plan<PIXELS, HEIGHT, WIDTH, KERNEL_H, KERNEL_W, STRIDE, TOP, LEFT, BOTTOM, RIGHT, 1> plan;
    typedef word<T, PIXELS * LANES> bundle_t;
    typedef word<T, plan::PIXELS_OUT * LANES> pooled_t;
    constexpr int G = CHANNELS / LANES;
    constexpr int ROWS = larger(KERNEL_H - 1, 1), AGES = larger(plan::BUNDLES - 1, 1);
    lines_t<bundle_t, AGES> columns[G];           // the last bundles of the newest row
    lines_t<pooled_t, ROWS> rows[plan::OUT * G];  // the maxima of the last rows, at the columns of positions
// One memory word holds all lanes of all lines at an address.
#pragma HLS AGGREGATE variable = columns compact = bit
#pragma HLS AGGREGATE variable = rows compact = bit
    bind_delay_memory<RAM_AUTO>(columns);
    bind_delay_memory<RAM>(rows);
    delay_t<G> bundle_delay;
    delay_t<plan::OUT * G> row_delay;
    scan_t<plan, G> scan;
    bundle_t newest = zeros<bundle_t>();
    constexpr int DEPTH = max_pool_depth<larger(KERNEL_H, KERNEL_W)>();
    SYSTOLIC_ENTER;
    while (scan.before(frames)) {
        SYSTOLIC_PIPELINE(1, DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
// The delay lines read each word long after its write (delay.h).
#pragma HLS DEPENDENCE variable = rows type = inter false
#pragma HLS DEPENDENCE variable = columns type = inter false
        // If the scan is outside of the map, newest keeps an old value, which is masked.
        if (scan.reads_input(frames)) newest = in.read();
        bundle_t age[AGES], next_ages[AGES], bundles[plan::BUNDLES];
        pooled_t row[ROWS], next_rows[ROWS], pooled;
#pragma HLS ARRAY_PARTITION variable = age complete
#pragma HLS ARRAY_PARTITION variable = next_ages complete
#pragma HLS ARRAY_PARTITION variable = bundles complete
#pragma HLS ARRAY_PARTITION variable = row complete
#pragma HLS ARRAY_PARTITION variable = next_rows complete
        bundle_delay.peek(columns, age);
        for (int b = 0; b < plan::BUNDLES; ++b) {
#pragma HLS UNROLL
            bundles[b] = b == 0 ? newest : age[larger(b - 1, 0)];
        }
        for (int b = 0; b < AGES; ++b) {
#pragma HLS UNROLL
            next_ages[b] = bundles[smaller(b, plan::BUNDLES - 1)];
        }
        bundle_delay.push(columns, next_ages);
        for (int m = 0; m < plan::PIXELS_OUT; ++m) {
#pragma HLS UNROLL
            for (int l = 0; l < LANES; ++l) {
#pragma HLS UNROLL
                T tap[KERNEL_W];
                bool inside[KERNEL_W];
#pragma HLS ARRAY_PARTITION variable = tap complete
#pragma HLS ARRAY_PARTITION variable = inside complete
                for (int kx = 0; kx < KERNEL_W; ++kx) {
#pragma HLS UNROLL
                    tap[kx] = bundles[plan::age_of(m, kx)].lane[plan::pixel_of(m, kx) * LANES + l];
                    inside[kx] = scan.column_inside(m, kx);
                }
                pooled.lane[m * LANES + l] = largest_of(tap, inside);
            }
        }
        // Maxima are stored only at the columns of positions. With a stride of 2 this is half a row.
        if (scan.has_positions()) {
            row_delay.peek(rows, row);
            pooled_t largest;
            for (int l = 0; l < plan::PIXELS_OUT * LANES; ++l) {
#pragma HLS UNROLL
                T row_maxima[KERNEL_H];
                bool inside[KERNEL_H];
#pragma HLS ARRAY_PARTITION variable = row_maxima complete
#pragma HLS ARRAY_PARTITION variable = inside complete
                for (int k = 0; k < KERNEL_H; ++k) {
#pragma HLS UNROLL
                    row_maxima[k] =
                        k == KERNEL_H - 1 ? pooled.lane[l] : row[smaller(KERNEL_H - 2 - k, ROWS - 1)].lane[l];
                    inside[k] = scan.row_inside(k);
                }
                largest.lane[l] = largest_of(row_maxima, inside);
            }
            for (int k = 0; k < ROWS; ++k) {
#pragma HLS UNROLL
                next_rows[k] = k == 0 ? pooled : row[larger(k - 1, 0)];
            }
            row_delay.push(rows, next_rows);
            if (scan.writes_output()) out.write(largest);
        }
        scan.advance();
    }
}

#endif  // SYSTOLIC_MAX_POOL_H
