// Nearest-neighbour resize to any size: output pixel (oy, ox) is the input's (⌊oy · HEIGHT / OUT_HEIGHT⌋,
// ⌊ox · WIDTH / OUT_WIDTH⌋). A word a cycle, II 1; G = CHANNELS / LANES:
//
//   iterations = WIDTH · G + WALK_LANDING − 1 + F · OUT_HEIGHT · OUT_WIDTH · G     where no side becomes smaller
//   buffer     = 2 rows: one that is read, perhaps several times, and one that comes meanwhile
//
// Where the map becomes smaller, the words that come bound the time: F · HEIGHT · WIDTH · G, and at most one output
// row.
#ifndef SYSTOLIC_RESIZE_H
#define SYSTOLIC_RESIZE_H

#include <hls_stream.h>

#include "constant.h"
#include "ram.h"
#include "walk.h"
#include "word.h"

template <int G, int HEIGHT, int WIDTH, int OUT_HEIGHT, int OUT_WIDTH>
struct nearest_walk {
    static constexpr int ROW = WIDTH * G;
    static constexpr int PIXELS = HEIGHT * WIDTH, EMITS = larger(OUT_HEIGHT * OUT_WIDTH, PIXELS);
    static constexpr int DIVISOR = common_divisor<PIXELS, EMITS>::value;
    static constexpr bool SMALLER = OUT_HEIGHT < HEIGHT || OUT_WIDTH < WIDTH;
    static constexpr int CAPACITY = (SMALLER ? WIDTH + larger(WIDTH, OUT_WIDTH) : 2 * WIDTH) * G + WALK_LANDING + 1;
    static constexpr int SLOTS = walk_slots(CAPACITY);
    static constexpr int LAST_Y = (OUT_HEIGHT - 1) * HEIGHT / OUT_HEIGHT, LAST_X = (OUT_WIDTH - 1) * WIDTH / OUT_WIDTH;
    // Whole pixels and rows from a position to the next one; where the rest adds up to a whole one, one more.
    static constexpr int MOVE_X = WIDTH / OUT_WIDTH, MORE_X = WIDTH % OUT_WIDTH;
    static constexpr int MOVE_Y = HEIGHT / OUT_HEIGHT, MORE_Y = HEIGHT % OUT_HEIGHT;
    static constexpr int BACK = LAST_X * G + G - 1;
    static constexpr int STEP_X = cyclic(MOVE_X * G - (G - 1), SLOTS);
    static constexpr int FAR_X = cyclic((MOVE_X + 1) * G - (G - 1), SLOTS);
    static constexpr int STEP_Y = cyclic(MOVE_Y * ROW - BACK, SLOTS), FAR_Y = cyclic((MOVE_Y + 1) * ROW - BACK, SLOTS);
    static constexpr int FRAME_STEP = cyclic((HEIGHT - LAST_Y) * ROW - BACK, SLOTS);

    int group, out_y, out_x, rest_y, rest_x;
    int row, column;  // where the input pixel lies, in words: its row, and in that row

    nearest_walk() : group(0), out_y(0), out_x(0), rest_y(0), rest_x(0), row(0), column(0) {}

    int frame_words() const { return HEIGHT * ROW; }
    int pace() const { return PIXELS / DIVISOR; }
    int share() const { return EMITS / DIVISOR; }
    int start() const { return 0; }

    int need() const {
#pragma HLS INLINE
        return row + ROW;
    }

    // A row that is read again is needed from its start.
    int oldest() const {
#pragma HLS INLINE
        const bool again = MOVE_Y == 0 && rest_y + MORE_Y < OUT_HEIGHT && out_y < OUT_HEIGHT - 1;
        return again ? row : row + column;
    }

    bool inside() const { return true; }

    bool advance(int &step) {
#pragma HLS INLINE
        step = 1;
        if (++group < G) return false;
        group = 0;
        const bool far_x = rest_x + MORE_X >= OUT_WIDTH;
        rest_x += far_x ? MORE_X - OUT_WIDTH : MORE_X;
        column += far_x ? (MOVE_X + 1) * G : MOVE_X * G;
        step = far_x ? FAR_X : STEP_X;
        if (++out_x < OUT_WIDTH) return false;
        out_x = rest_x = column = 0;
        const bool far_y = rest_y + MORE_Y >= OUT_HEIGHT;
        rest_y += far_y ? MORE_Y - OUT_HEIGHT : MORE_Y;
        row += far_y ? (MOVE_Y + 1) * ROW : MOVE_Y * ROW;
        step = far_y ? FAR_Y : STEP_Y;
        if (++out_y < OUT_HEIGHT) return false;
        out_y = rest_y = row = 0;
        step = FRAME_STEP;
        return true;
    }
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int OUT_HEIGHT, int OUT_WIDTH, int RAM = RAM_AUTO, class T>
void resize_nearest(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES divides the channels");
    walk_map<RAM>(frames, in, out, nearest_walk<CHANNELS / LANES, HEIGHT, WIDTH, OUT_HEIGHT, OUT_WIDTH>());
}

#endif  // SYSTOLIC_RESIZE_H
