// The position of a block in a map whose pixels have G words: word ``group`` of the pixel in column x of row y.
#ifndef SYSTOLIC_RASTER_H
#define SYSTOLIC_RASTER_H

#include "counter.h"

template <int G, int HEIGHT, int WIDTH, int STRIDE = 1>
struct raster_t {
    counter_t<G> group;                  // the word of the pixel
    counter_t<WIDTH> x;                  // the column
    counter_t<HEIGHT> y;                 // the row
    counter_t<STRIDE> phase_x, phase_y;  // x and y modulo the stride

    // Return whether the stride divides both the row and the column.
    bool on_grid() const {
#pragma HLS INLINE
        return phase_x.value == 0 && phase_y.value == 0;
    }

    // Moves to the next word in raster order. The first word of the next frame follows the last word of a frame.
    void advance() {
#pragma HLS INLINE
        if (!group.next()) return;
        phase_x.next();
        if (!x.next()) return;
        phase_x.clear();
        phase_y.next();
        if (y.next()) phase_y.clear();
    }
};

#endif  // SYSTOLIC_RASTER_H
