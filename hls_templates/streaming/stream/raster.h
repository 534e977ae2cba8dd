// Where a block stands in a map whose pixels have G words: word ``group`` of pixel x of row y. ``advance`` goes to the
// next word, row by row, and from the last of a frame to the first of the next.
#ifndef SYSTOLIC_RASTER_H
#define SYSTOLIC_RASTER_H

#include "counter.h"

template <int G, int HEIGHT, int WIDTH, int STRIDE = 1>
struct raster_t {
    counter_t<G> group;
    counter_t<WIDTH> x;
    counter_t<HEIGHT> y;
    counter_t<STRIDE> odd_x, odd_y;  // x and y modulo the stride

    // Whether this pixel is a STRIDE-th one of a STRIDE-th row, counted from 0.
    bool on_grid() const {
#pragma HLS INLINE
        return odd_x.value == 0 && odd_y.value == 0;
    }

    void advance() {
#pragma HLS INLINE
        if (!group.next()) return;
        odd_x.next();
        if (!x.next()) return;
        odd_x.clear();
        odd_y.next();
        if (y.next()) odd_y.clear();
    }
};

#endif  // SYSTOLIC_RASTER_H
