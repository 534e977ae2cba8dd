// Width converters: the same values, more or fewer of them a word.
//
//   convert_width      any pair of widths; a frame of WORDS_IN words
//       iterations = F · max(words in, words out) a frame
//   convert_channels   pads each pixel with channels of zeros, or crops it; any pair of widths
//       iterations = F · POSITIONS · max(CHANNELS_IN / LANES_IN, CHANNELS_OUT / LANES_OUT)
//       where less than a word is dropped, or no more zeros are added than words grow by,
//       else F · POSITIONS · convert_steps(…)
//   convert_pixels     words of several pixels: PIXELS_IN pixels of LANES channels ↔ PIXELS_OUT; one divides the other
//       iterations = F · max(words in, words out) a frame
//
// Widths that do not divide each other meet in a shift register of LANES_IN + LANES_OUT values, in units of their common
// divisor; where one divides the other no value needs a multiplexer on its way in or out.
#ifndef SYSTOLIC_WIDTH_H
#define SYSTOLIC_WIDTH_H

#include <hls_stream.h>

#include "constant.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int WIDTH_DEPTH = 3;

// Values on their way from words of IN units to words of OUT units. A word is taken while less than OUT units are here.
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
        // With one unit out the box is empty whenever a word comes.
        const int at = OUT == 1 ? 0 : units;
        for (int u = 0; u < IN; ++u) {
#pragma HLS UNROLL
            for (int l = 0; l < UNIT; ++l) {
#pragma HLS UNROLL
                held[at + u][l] = value.lane[u * UNIT + l];
            }
        }
        units += IN;
    }

    // Zeros stand for what is not there.
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

// Cycles for what converts on its own: while words of zeros leave nothing comes, and words that nobody needs come last.
// Where words grow, each that comes lets one leave at most, and the last one always does, full or not.
constexpr int convert_steps(int lanes_in, int lanes_out, int words_in, int words_out) {
    return lanes_in < lanes_out
               ? words_in + larger(words_out - (words_in - 1) * lanes_in / lanes_out - 1, 0)
               : larger(words_out,
                        (smaller(words_in, ceiling(words_out * lanes_out, lanes_in)) - 1) * lanes_in / lanes_out + 1 +
                            larger(words_in - ceiling(words_out * lanes_out, lanes_in), 0));
}

// WORDS_IN words, a pixel's or, with convert_width, a frame's, become WORDS_OUT; COUNT times a frame.
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

// Words of GROUPS channel groups wait until the last pixel of the wider word is there.
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
