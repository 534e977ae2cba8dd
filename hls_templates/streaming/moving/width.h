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
// Values pass through a shift register of LANES_IN + LANES_OUT − 1 values at most, in units of the widths' common
// divisor. Where one width divides the other, no value needs a multiplexer on its way in or out.
#ifndef SYSTOLIC_WIDTH_H
#define SYSTOLIC_WIDTH_H

#include <hls_stream.h>

#include "constant.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int WIDTH_DEPTH = 3;

// The shift register between words of IN units and words of OUT units. It takes a word while it holds less than OUT
// units.
template <class T, int IN, int OUT, int UNIT>
struct gearbox {
    T held[IN + OUT - 1][UNIT];
    int units;

    gearbox() : units(0) {
#pragma HLS ARRAY_PARTITION variable = held complete dim = 0
        for (int u = 0; u < IN + OUT - 1; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                held[u][l] = 0;
            }
        }
    }

    bool wants() const {
#pragma HLS INLINE
        return units < OUT;
    }

    void put(const word<T, IN * UNIT> &value) {
#pragma HLS INLINE
        // Where OUT is 1, the register is empty whenever it takes a word: it needs no multiplexer.
        const int first = OUT == 1 ? 0 : units;
        for (int u = 0; u < IN; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                held[first + u][l] = value.lane[u * UNIT + l];
            }
        }
        units += IN;
    }

    // The first OUT units; zeros for those that are missing.
    word<T, OUT * UNIT> get() {
#pragma HLS INLINE
        word<T, OUT * UNIT> value;
        for (int u = 0; u < OUT; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                value.lane[u * UNIT + l] = u < units ? held[u][l] : T(0);
            }
        }
        for (int u = 0; u < IN - 1; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                held[u][l] = held[u + OUT][l];
            }
        }
        units = larger(units - OUT, 0);
        return value;
    }
};

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
template <int LANES_IN, int LANES_OUT, int WORDS_IN, int WORDS_OUT, int COUNT, class T>
void convert_each(int frames, hls::stream<word<T, LANES_IN>> &in, hls::stream<word<T, LANES_OUT>> &out) {
#pragma HLS INLINE
    constexpr int UNIT = common_divisor<LANES_IN, LANES_OUT>::value;
    gearbox<T, LANES_IN / UNIT, LANES_OUT / UNIT, UNIT> box;
    int read = 0, written = 0;
    constexpr int NEEDED = smaller(ceiling(WORDS_OUT * LANES_OUT, LANES_IN), WORDS_IN);
    progress_t<COUNT * convert_steps(LANES_IN, LANES_OUT, WORDS_IN, WORDS_OUT)> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WIDTH_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        if (read < WORDS_IN && (box.wants() || read >= NEEDED)) {
            const word<T, LANES_IN> value = in.read();
            if (read < NEEDED) box.put(value);  // the rest is cropped
            ++read;
        }
        if (written < WORDS_OUT && (!box.wants() || read == WORDS_IN)) {
            out.write(box.get());
            ++written;
        }
        if (read == WORDS_IN && written == WORDS_OUT) {
            read = written = 0;
            box.units = 0;
        }
        done.next();
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
    word<T, PIXELS_OUT * LANES> waiting[GROUPS];
#pragma HLS ARRAY_PARTITION variable = waiting complete
    int group = 0, part = 0;
    progress_t<POSITIONS / PIXELS_IN * GROUPS> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WIDTH_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const word<T, PIXELS_IN * LANES> value = in.read();
        word<T, PIXELS_OUT * LANES> wide = waiting[group];
        for (int p = 0; p < PARTS; ++p) {
#pragma HLS UNROLL
            for (int l = 0; l < PIXELS_IN * LANES; ++l) {
#pragma HLS UNROLL
                if (p == part) wide.lane[p * PIXELS_IN * LANES + l] = value.lane[l];
            }
        }
        waiting[group] = wide;
        if (part == PARTS - 1) out.write(wide);
        if (++group == GROUPS) {
            group = 0;
            part = part == PARTS - 1 ? 0 : part + 1;
        }
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
    int group = 0, part = 0;
    progress_t<POSITIONS / PIXELS_OUT * GROUPS> done = {0, 0};
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WIDTH_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        word<T, PIXELS_IN * LANES> wide;
        if (part == 0) {
            wide = in.read();
            waiting[group] = wide;
        } else {
            wide = waiting[group];
        }
        word<T, PIXELS_OUT * LANES> value;
        for (int p = 0; p < PARTS; ++p) {
#pragma HLS UNROLL
            for (int l = 0; l < PIXELS_OUT * LANES; ++l) {
#pragma HLS UNROLL
                if (p == part) value.lane[l] = wide.lane[p * PIXELS_OUT * LANES + l];
            }
        }
        out.write(value);
        if (++group == GROUPS) {
            group = 0;
            part = part == PARTS - 1 ? 0 : part + 1;
        }
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
