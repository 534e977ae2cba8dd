// Width converters: the same values in wider or narrower words. At most a word comes and a word leaves each cycle, II
// 1.
//
//   convert_width      between any two widths; a frame has WORDS_IN words
//       iterations = F · max(words of a frame that come, that leave)
//   convert_channels   the same, and adds channels of zeros to each pixel, or drops its last channels
//       iterations = F · POSITIONS · max(CHANNELS_IN / LANES_IN, CHANNELS_OUT / LANES_OUT)
//       where less than a word is dropped, or no more zeros are added than a word is wider,
//       else F · POSITIONS · convert_steps(…)
//   convert_pixels     from PIXELS_IN pixels of LANES channels in a word to PIXELS_OUT; one divides the other
//       iterations = F · max(words of a frame that come, that leave)
//
// Values pass through a gearbox (gearbox.h).
#ifndef SYSTOLIC_WIDTH_H
#define SYSTOLIC_WIDTH_H

#include <hls_stream.h>

#include "constant.h"
#include "counter.h"
#include "gearbox.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int WIDTH_DEPTH = 3;

// Cycles for ``words_in`` words that become ``words_out``. Where words grow: while words of zeros leave, nothing comes;
// a word that comes lets at most one leave, and the last one leaves whether it is full or not. Where they shrink: words
// that are dropped come last, while nothing leaves.
constexpr int convert_steps(int lanes_in, int lanes_out, int words_in, int words_out) {
    return lanes_in < lanes_out
               ? words_in + larger(words_out - (words_in - 1) * lanes_in / lanes_out - 1, 0)
               : larger(words_out,
                        (smaller(words_in, ceiling(words_out * lanes_out, lanes_in)) - 1) * lanes_in / lanes_out + 1 +
                            larger(words_in - ceiling(words_out * lanes_out, lanes_in), 0));
}

// COUNT times a frame, WORDS_IN words become WORDS_OUT: those of a pixel, or with convert_width those of the frame.
// Where words grow, one comes in every cycle until all have come; where they shrink, one leaves until all have left.
template <int LANES_IN, int LANES_OUT, int WORDS_IN, int WORDS_OUT, int COUNT, class T>
void convert_each(int frames, hls::stream<word<T, LANES_IN>> &in, hls::stream<word<T, LANES_OUT>> &out) {
#pragma HLS INLINE
    constexpr int UNIT = common_divisor<LANES_IN, LANES_OUT>::value;
    constexpr bool GROWS = LANES_IN <= LANES_OUT;
    gearbox<T, LANES_IN / UNIT, LANES_OUT / UNIT, UNIT> box;
    quota_t<WORDS_IN> coming;
    quota_t<smaller(ceiling(WORDS_OUT * LANES_OUT, LANES_IN), WORDS_IN)> needed;  // the rest is cropped
    quota_t<WORDS_OUT> leaving;
    counter_t<convert_steps(LANES_IN, LANES_OUT, WORDS_IN, WORDS_OUT)> step;
    progress_t<COUNT> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WIDTH_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const bool comes = coming.open && (GROWS || box.hungry() || !needed.open), stays = comes && needed.open;
        const bool ended = !coming.open || (comes && coming.count.last);
        const bool leaves = leaving.open && (!GROWS || (stays && box.enough()) || ended);
        if (comes) {
            const word<T, LANES_IN> value = in.read();
            if (stays) box.put(value);
            coming.take();
        }
        if (leaves) {
            out.write(box.get(stays));
            leaving.take();
        }
        if (stays) needed.take();
        box.count(stays, leaves);
        if (step.next()) {
            coming.reopen();
            needed.reopen();
            leaving.reopen();
            box.clear();
            done.next();
        }
    }
}

template <int LANES_IN, int LANES_OUT, int WORDS_IN, class T>
void convert_width(int frames, hls::stream<word<T, LANES_IN>> &in, hls::stream<word<T, LANES_OUT>> &out) {
#pragma HLS INLINE
    static_assert(WORDS_IN * LANES_IN % LANES_OUT == 0, "a frame is whole words on both sides");
    convert_each<LANES_IN, LANES_OUT, WORDS_IN, WORDS_IN * LANES_IN / LANES_OUT, 1>(frames, in, out);
}

template <int LANES_IN, int LANES_OUT, int CHANNELS_IN, int CHANNELS_OUT, int POSITIONS, class T>
void convert_channels(int frames, hls::stream<word<T, LANES_IN>> &in, hls::stream<word<T, LANES_OUT>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS_IN % LANES_IN == 0 && CHANNELS_OUT % LANES_OUT == 0, "a pixel is whole words on both sides");
    convert_each<LANES_IN, LANES_OUT, CHANNELS_IN / LANES_IN, CHANNELS_OUT / LANES_OUT, POSITIONS>(frames, in, out);
}

// From fewer pixels in a word to more: the words of GROUPS groups of channels wait until their last pixel has come.
template <int LANES, int GROUPS, int PIXELS_IN, int PIXELS_OUT, int POSITIONS, class T>
void gather_pixels(int frames, hls::stream<word<T, PIXELS_IN * LANES>> &in,
                   hls::stream<word<T, PIXELS_OUT * LANES>> &out) {
#pragma HLS INLINE
    constexpr int PARTS = PIXELS_OUT / PIXELS_IN;
    word<T, PIXELS_IN * LANES> waiting[PARTS - 1][GROUPS];
#pragma HLS ARRAY_PARTITION variable = waiting complete dim = 0
    counter_t<GROUPS> group;
    counter_t<PARTS> part;
    progress_t<POSITIONS / PIXELS_IN * GROUPS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WIDTH_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<T, PIXELS_IN * LANES> value = in.read();
        if (part.last) {
            word<T, PIXELS_OUT * LANES> wide;
            for (int p = 0; p < PARTS; ++p) {
#pragma HLS UNROLL
                const word<T, PIXELS_IN * LANES> narrow =
                    p == PARTS - 1 ? value : waiting[p % (PARTS - 1)][group.value];
                for (int l = 0; l < PIXELS_IN * LANES; ++l) {
#pragma HLS UNROLL
                    wide.lane[p * PIXELS_IN * LANES + l] = narrow.lane[l];
                }
            }
            out.write(wide);
        } else {
            waiting[part.value][group.value] = value;
        }
        if (group.next()) part.next();
        done.next();
    }
}

// From more pixels in a word to fewer: the words of GROUPS groups of channels are kept until their last pixel has left.
template <int LANES, int GROUPS, int PIXELS_IN, int PIXELS_OUT, int POSITIONS, class T>
void scatter_pixels(int frames, hls::stream<word<T, PIXELS_IN * LANES>> &in,
                    hls::stream<word<T, PIXELS_OUT * LANES>> &out) {
#pragma HLS INLINE
    constexpr int PARTS = PIXELS_IN / PIXELS_OUT;
    word<T, PIXELS_IN * LANES> waiting[GROUPS];
#pragma HLS ARRAY_PARTITION variable = waiting complete
    counter_t<GROUPS> group;
    counter_t<PARTS> part;
    progress_t<POSITIONS / PIXELS_OUT * GROUPS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WIDTH_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        word<T, PIXELS_IN * LANES> wide;
        if (part.value == 0) {
            wide = in.read();
            waiting[group.value] = wide;
        } else {
            wide = waiting[group.value];
        }
        word<T, PIXELS_OUT * LANES> value;
        for (int p = 0; p < PARTS; ++p) {
#pragma HLS UNROLL
            for (int l = 0; l < PIXELS_OUT * LANES; ++l) {
#pragma HLS UNROLL
                if (part.value == p) value.lane[l] = wide.lane[p * PIXELS_OUT * LANES + l];
            }
        }
        out.write(value);
        if (group.next()) part.next();
        done.next();
    }
}

template <int LANES, int CHANNELS, int PIXELS_IN, int PIXELS_OUT, int POSITIONS, bool WIDER = (PIXELS_OUT > PIXELS_IN)>
struct pixel_converter {
    template <class T>
    static void convert(int frames, hls::stream<word<T, PIXELS_IN * LANES>> &in,
                        hls::stream<word<T, PIXELS_OUT * LANES>> &out) {
#pragma HLS INLINE
        gather_pixels<LANES, CHANNELS / LANES, PIXELS_IN, PIXELS_OUT, POSITIONS>(frames, in, out);
    }
};

template <int LANES, int CHANNELS, int PIXELS_IN, int PIXELS_OUT, int POSITIONS>
struct pixel_converter<LANES, CHANNELS, PIXELS_IN, PIXELS_OUT, POSITIONS, false> {
    template <class T>
    static void convert(int frames, hls::stream<word<T, PIXELS_IN * LANES>> &in,
                        hls::stream<word<T, PIXELS_OUT * LANES>> &out) {
#pragma HLS INLINE
        scatter_pixels<LANES, CHANNELS / LANES, PIXELS_IN, PIXELS_OUT, POSITIONS>(frames, in, out);
    }
};

template <int LANES, int CHANNELS, int PIXELS_IN, int PIXELS_OUT, int POSITIONS, class T>
void convert_pixels(int frames, hls::stream<word<T, PIXELS_IN * LANES>> &in,
                    hls::stream<word<T, PIXELS_OUT * LANES>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS % LANES == 0, "LANES divides the channels");
    static_assert(PIXELS_IN % PIXELS_OUT == 0 || PIXELS_OUT % PIXELS_IN == 0, "one number of pixels divides the other");
    static_assert(POSITIONS % larger(PIXELS_IN, PIXELS_OUT) == 0, "a frame is whole words on both sides");
    pixel_converter<LANES, CHANNELS, PIXELS_IN, PIXELS_OUT, POSITIONS>::convert(frames, in, out);
}

#endif  // SYSTOLIC_WIDTH_H
