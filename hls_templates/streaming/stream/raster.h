// Where a block stands in a map whose pixels have G words: word ``group`` of pixel x of row y. ``advance`` goes to the
// next word, row by row, and from the last of a frame to the first of the next.
#ifndef SYSTOLIC_RASTER_H
#define SYSTOLIC_RASTER_H

template <int G, int HEIGHT, int WIDTH, int STRIDE = 1>
struct raster_t {
    int group, x, y;
    int odd_x, odd_y;  // x and y modulo the stride

    raster_t() : group(0), x(0), y(0), odd_x(0), odd_y(0) {}

    // Whether this pixel is a STRIDE-th one of a STRIDE-th row, counted from 0.
    bool on_grid() const {
#pragma HLS INLINE
        return odd_x == 0 && odd_y == 0;
    }

    void advance() {
#pragma HLS INLINE
        if (++group < G) return;
        group = 0;
        odd_x = odd_x + 1 == STRIDE ? 0 : odd_x + 1;
        if (++x < WIDTH) return;
        x = odd_x = 0;
        odd_y = odd_y + 1 == STRIDE ? 0 : odd_y + 1;
        if (++y < HEIGHT) return;
        y = odd_y = 0;
    }
};

#endif  // SYSTOLIC_RASTER_H
