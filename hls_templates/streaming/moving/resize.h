// Nearest-neighbour resize to any size. Output pixel (oy, ox) is input pixel (⌊oy · HEIGHT / OUT_HEIGHT⌋,
// ⌊ox · WIDTH / OUT_WIDTH⌋).
//
// Each cycle reads at most one word and writes at most one word, II 1 (walk.h). For F frames, with G = CHANNELS /
// LANES:
//
//   iterations = WIDTH · G + WALK_LANDING − 1 + F · OUT_HEIGHT · OUT_WIDTH · G     if neither side becomes smaller
//   buffer     = 2 rows: one is read, possibly several times, while the next one is written
//
// If the map becomes smaller, the input bounds the time: F · HEIGHT · WIDTH · G iterations, and at most one output row.
#ifndef SYSTOLIC_RESIZE_H
#define SYSTOLIC_RESIZE_H

#include <hls_stream.h>

#include "constant.h"
#include "counter.h"
#include "ram.h"
#include "walk.h"
#include "word.h"

// The walk (walk.h) of a resize of a map with G words per pixel. All lengths are in words of the input.
template <int G, int HEIGHT, int WIDTH, int OUT_HEIGHT, int OUT_WIDTH>
struct nearest_walk {
    static constexpr int ROW = WIDTH * G, FRAME_WORDS = HEIGHT * ROW, START = 0, NEED = ROW;
    static constexpr int PIXELS = HEIGHT * WIDTH, EMITS = larger(OUT_HEIGHT * OUT_WIDTH, PIXELS);
    static constexpr int DIVISOR = common_divisor<PIXELS, EMITS>::value;
    static constexpr int READ_PACE = PIXELS / DIVISOR, WRITE_PACE = EMITS / DIVISOR;
    static constexpr bool SMALLER = OUT_HEIGHT < HEIGHT || OUT_WIDTH < WIDTH;
    static constexpr int CAPACITY = (SMALLER ? WIDTH + larger(WIDTH, OUT_WIDTH) : 2 * WIDTH) * G + WALK_LANDING + 1;
    static constexpr int SLOTS = walk_slots(CAPACITY);
    // The input row of the last output row, and the input column of the last output column.
    static constexpr int LAST_Y = (OUT_HEIGHT - 1) * HEIGHT / OUT_HEIGHT, LAST_X = (OUT_WIDTH - 1) * WIDTH / OUT_WIDTH;
    // The input moves by MOVE_X columns or MOVE_Y rows per output column or row. It moves by one more if the fractions
    // FRACTION_X / OUT_WIDTH or FRACTION_Y / OUT_HEIGHT add up to a whole one.
    static constexpr int MOVE_X = WIDTH / OUT_WIDTH, FRACTION_X = WIDTH % OUT_WIDTH;
    static constexpr int MOVE_Y = HEIGHT / OUT_HEIGHT, FRACTION_Y = HEIGHT % OUT_HEIGHT;
    // BACK is the words from the first word of a row's first pixel to the last word of its last pixel. The other
    // constants are increases of the buffer address: STEP_… and FAR_… move by MOVE_… and by MOVE_… + 1.
    static constexpr int BACK = LAST_X * G + G - 1;
    static constexpr int STEP_X = cyclic(MOVE_X * G - (G - 1), SLOTS);
    static constexpr int LONG_STEP_X = cyclic((MOVE_X + 1) * G - (G - 1), SLOTS);
    static constexpr int STEP_Y = cyclic(MOVE_Y * ROW - BACK, SLOTS),
                         LONG_STEP_Y = cyclic((MOVE_Y + 1) * ROW - BACK, SLOTS);
    static constexpr int FRAME_STEP = cyclic((HEIGHT - LAST_Y) * ROW - BACK, SLOTS);

    counter_t<G> group;                             // the word of the pixel
    counter_t<OUT_HEIGHT> out_y;                    // the output row
    counter_t<OUT_WIDTH> out_x;                     // the output column
    fraction_t<FRACTION_Y, OUT_HEIGHT> fraction_y;  // the fractional part of the input row
    fraction_t<FRACTION_X, OUT_WIDTH> fraction_x;   // the fractional part of the input column

    bool inside() const { return true; }

    // An input row that is read again for the next output row (``repeats_row``) is needed from its start, so that none
    // of its words is released.
    move_t step() {
#pragma HLS INLINE
        const bool position = group.last, row = position && out_x.last, frame = row && out_y.last;
        const bool long_step_x = fraction_x.carry, long_step_y = fraction_y.carry;
        const bool repeats_row = MOVE_Y == 0 && !long_step_y && !out_y.last;
        const int across = repeats_row ? 0 : (long_step_x ? (MOVE_X + 1) * G : MOVE_X * G);
        const int down = frame ? (HEIGHT - LAST_Y) * ROW : long_step_y ? (MOVE_Y + 1) * ROW : MOVE_Y * ROW;
        const move_t move = {
            frame      ? FRAME_STEP
            : row      ? (long_step_y ? LONG_STEP_Y : STEP_Y)
            : position ? (long_step_x ? LONG_STEP_X : STEP_X)
                       : 1,
            row ? down : 0,
            row        ? (repeats_row ? down : down - LAST_X * G)
            : position ? across
                       : 0,
            frame,
        };
        group.next();
        if (position) {
            fraction_x.next();
            if (out_x.next()) {
                fraction_x.clear();
                fraction_y.next();
                if (out_y.next()) fraction_y.clear();
            }
        }
        return move;
    }
};

template <int LANES, int CHANNELS, int HEIGHT, int WIDTH, int OUT_HEIGHT, int OUT_WIDTH, int RAM = RAM_AUTO, class T>
void resize_nearest(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES must divide CHANNELS");
    walk_map<RAM>(frames, in, out, nearest_walk<CHANNELS / LANES, HEIGHT, WIDTH, OUT_HEIGHT, OUT_WIDTH>());
}

#endif  // SYSTOLIC_RESIZE_H
