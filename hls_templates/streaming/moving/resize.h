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
#include "counter.h"
#include "ram.h"
#include "walk.h"
#include "word.h"

template <int G, int HEIGHT, int WIDTH, int OUT_HEIGHT, int OUT_WIDTH>
struct nearest_walk {
    static constexpr int ROW = WIDTH * G, FRAME_WORDS = HEIGHT * ROW, START = 0, NEED = ROW;
    static constexpr int PIXELS = HEIGHT * WIDTH, EMITS = larger(OUT_HEIGHT * OUT_WIDTH, PIXELS);
    static constexpr int DIVISOR = common_divisor<PIXELS, EMITS>::value;
    static constexpr int PACE = PIXELS / DIVISOR, SHARE = EMITS / DIVISOR;
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

    counter_t<G> group;
    counter_t<OUT_HEIGHT> out_y;
    counter_t<OUT_WIDTH> out_x;
    fraction_t<MORE_Y, OUT_HEIGHT> rest_y;
    fraction_t<MORE_X, OUT_WIDTH> rest_x;

    bool inside() const { return true; }

    // A row that is read again is needed from its start.
    move_t step() {
#pragma HLS INLINE
        const bool position = group.last, row = position && out_x.last, frame = row && out_y.last;
        const bool far_x = rest_x.carries, far_y = rest_y.carries;
        const bool again = MOVE_Y == 0 && !far_y && !out_y.last;
        const int across = again ? 0 : (far_x ? (MOVE_X + 1) * G : MOVE_X * G);
        const int down = frame ? (HEIGHT - LAST_Y) * ROW : far_y ? (MOVE_Y + 1) * ROW : MOVE_Y * ROW;
        const move_t move = {
            frame      ? FRAME_STEP
            : row      ? (far_y ? FAR_Y : STEP_Y)
            : position ? (far_x ? FAR_X : STEP_X)
                       : 1,
            row ? down : 0,
            row        ? (again ? down : down - LAST_X * G)
            : position ? across
                       : 0,
            frame,
        };
        group.next();
        if (position) {
            rest_x.next();
            if (out_x.next()) {
                rest_x.clear();
                rest_y.next();
                if (out_y.next()) rest_y.clear();
            }
        }
        return move;
    }
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int OUT_HEIGHT, int OUT_WIDTH, int RAM = RAM_AUTO, class T>
void resize_nearest(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES divides the channels");
    walk_map<RAM>(frames, in, out, nearest_walk<CHANNELS / LANES, HEIGHT, WIDTH, OUT_HEIGHT, OUT_WIDTH>());
}

#endif  // SYSTOLIC_RESIZE_H
