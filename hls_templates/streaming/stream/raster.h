// Where a block stands in a map of G words a pixel: group within pixel within row within frame.
#ifndef SYSTOLIC_RASTER_H
#define SYSTOLIC_RASTER_H

template <int G, int HEIGHT, int WIDTH, int STRIDE = 1>
struct raster_t {
    int group, x, y;
    int odd_x, odd_y;  // modulo the stride

    raster_t() : group(0), x(0), y(0), odd_x(0), odd_y(0) {}

    // Every STRIDE-th pixel of every STRIDE-th row, from the first on.
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
