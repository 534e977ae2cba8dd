// Width converters write the values of a stream in wider or narrower words. Each cycle reads at most one word and
// writes at most one word, II 1.
//
//   convert_width      converts between any two numbers of lanes. A frame has WORDS_IN input words
//       iterations = F · max(input words per frame, output words per frame)
//   convert_channels   also appends channels of zeros to each pixel, or drops each pixel's last channels
//       iterations = F · POSITIONS · max(CHANNELS_IN / LANES_IN, CHANNELS_OUT / LANES_OUT)
//       if less than a word is dropped, or if no more zeros are appended than the output word is wider;
//       otherwise F · POSITIONS · convert_steps(…)
//   convert_pixels     converts words of PIXELS_IN pixels into words of PIXELS_OUT pixels, with LANES channels per
//                      pixel. One number of pixels divides the other
//       iterations = F · max(input words per frame, output words per frame)
//
// F is the number of frames. convert_width and convert_channels use a gearbox (gearbox.h).
#ifndef SYSTOLIC_WIDTH_H
#define SYSTOLIC_WIDTH_H

#include <hls_stream.h>

#include "constant.h"
#include "counter.h"
#include "gearbox.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

constexpr int WIDTH_DEPTH = 3;  // declared pipeline stages

// The cycles in which ``words_in`` words are converted into ``words_out`` words.
//
// If words become wider, each input word completes at most one output word, and the last output word is written whether
// it is full or not. While further words of zeros are written, nothing is read. If words become narrower, the words
// that are dropped are read last, while nothing is written.
constexpr int convert_steps(int lanes_in, int lanes_out, int words_in, int words_out) {
    return lanes_in < lanes_out
               ? words_in + larger(words_out - (words_in - 1) * lanes_in / lanes_out - 1, 0)
               : larger(words_out,
                        (smaller(words_in, ceiling(words_out * lanes_out, lanes_in)) - 1) * lanes_in / lanes_out + 1 +
                            larger(words_in - ceiling(words_out * lanes_out, lanes_in), 0));
}

// Converts WORDS_IN words into WORDS_OUT words, COUNT times per frame. For convert_channels these are the words of one
// pixel, and for convert_width the words of the whole frame.
//
// If words become wider, every cycle reads a word until all are read. If they become narrower, every cycle writes a
// word until all are written.
template <int LANES_IN, int LANES_OUT, int WORDS_IN, int WORDS_OUT, int COUNT, class T>
void convert_each(int frames, hls::stream<word<T, LANES_IN>> &in, hls::stream<word<T, LANES_OUT>> &out) {
#pragma HLS INLINE
    constexpr int UNIT = common_divisor<LANES_IN, LANES_OUT>::value;
    constexpr bool WIDENS = LANES_IN <= LANES_OUT;
    gearbox<T, LANES_IN / UNIT, LANES_OUT / UNIT, UNIT> box;
    quota_t<WORDS_IN> input_quota;  // input words to read
    quota_t<smaller(ceiling(WORDS_OUT * LANES_OUT, LANES_IN), WORDS_IN)>
        stored_quota;                 // input words that are not dropped
    quota_t<WORDS_OUT> output_quota;  // output words to write
    counter_t<convert_steps(LANES_IN, LANES_OUT, WORDS_IN, WORDS_OUT)> step;
    progress_t<COUNT> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, WIDTH_DEPTH);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const bool reads = input_quota.open && (WIDENS || box.has_room() || !stored_quota.open),
                   stores = reads && stored_quota.open;
        // After the last input word the remaining output words are written even if the gearbox does not fill them.
        const bool ended = !input_quota.open || (reads && input_quota.count.last);
        const bool writes = output_quota.open && (!WIDENS || (stores && box.fills_word()) || ended);
        if (reads) {
            const word<T, LANES_IN> value = in.read();
            if (stores) box.put(value);
            input_quota.take();
        }
        if (writes) {
            out.write(box.get(stores));
            output_quota.take();
        }
        if (stores) stored_quota.take();
        box.count(stores, writes);
        if (step.next()) {
            input_quota.reopen();
            stored_quota.reopen();
            output_quota.reopen();
            box.clear();
            done.next();
        }
    }
}

template <int LANES_IN, int LANES_OUT, int WORDS_IN, class T>
void convert_width(int frames, hls::stream<word<T, LANES_IN>> &in, hls::stream<word<T, LANES_OUT>> &out) {
#pragma HLS INLINE
    static_assert(WORDS_IN * LANES_IN % LANES_OUT == 0, "LANES_OUT must divide the values of a frame");
    convert_each<LANES_IN, LANES_OUT, WORDS_IN, WORDS_IN * LANES_IN / LANES_OUT, 1>(frames, in, out);
}

template <int LANES_IN, int LANES_OUT, int CHANNELS_IN, int CHANNELS_OUT, int POSITIONS, class T>
void convert_channels(int frames, hls::stream<word<T, LANES_IN>> &in, hls::stream<word<T, LANES_OUT>> &out) {
#pragma HLS INLINE
    static_assert(CHANNELS_IN % LANES_IN == 0 && CHANNELS_OUT % LANES_OUT == 0,
                  "LANES_IN must divide CHANNELS_IN, and LANES_OUT must divide CHANNELS_OUT");
    convert_each<LANES_IN, LANES_OUT, CHANNELS_IN / LANES_IN, CHANNELS_OUT / LANES_OUT, POSITIONS>(frames, in, out);
}

// Converts into words with more pixels. Each cycle reads a word. The words of GROUPS groups of channels are stored
// until the last pixels of an output word arrive, and then each cycle also writes a word.
template <int LANES, int GROUPS, int PIXELS_IN, int PIXELS_OUT, int POSITIONS, class T>
void gather_pixels(int frames, hls::stream<word<T, PIXELS_IN * LANES>> &in,
                   hls::stream<word<T, PIXELS_OUT * LANES>> &out) {
#pragma HLS INLINE
    constexpr int PARTS = PIXELS_OUT / PIXELS_IN;
    word<T, PIXELS_IN * LANES> stored_words[PARTS - 1][GROUPS];  // all input words of an output word but the last
#pragma HLS ARRAY_PARTITION variable = stored_words complete dim = 0
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
                    p == PARTS - 1 ? value : stored_words[p % (PARTS - 1)][group.value];
                for (int l = 0; l < PIXELS_IN * LANES; ++l) {
#pragma HLS UNROLL
                    wide.lane[p * PIXELS_IN * LANES + l] = narrow.lane[l];
                }
            }
            out.write(wide);
        } else {
            stored_words[part.value][group.value] = value;
        }
        if (group.next()) part.next();
        done.next();
    }
}

// Converts into words with fewer pixels. Each cycle writes a word. The words of GROUPS groups of channels are read one
// per cycle, and stored until their last pixels are written.
template <int LANES, int GROUPS, int PIXELS_IN, int PIXELS_OUT, int POSITIONS, class T>
void scatter_pixels(int frames, hls::stream<word<T, PIXELS_IN * LANES>> &in,
                    hls::stream<word<T, PIXELS_OUT * LANES>> &out) {
#pragma HLS INLINE
    constexpr int PARTS = PIXELS_IN / PIXELS_OUT;
    word<T, PIXELS_IN * LANES> stored_words[GROUPS];
#pragma HLS ARRAY_PARTITION variable = stored_words complete
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
            stored_words[group.value] = wide;
        } else {
            wide = stored_words[group.value];
        }
        word<T, PIXELS_OUT * LANES> value;
        for (int p = 0; p < PARTS; ++p) {
#pragma HLS UNROLL
            for (int l = 0; l < PIXELS_OUT * LANES; ++l) {
#pragma HLS UNROLL
                // The lanes have constant indices, so that the selection is a multiplexer of PARTS inputs.
                if (part.value == p) value.lane[l] = wide.lane[p * PIXELS_OUT * LANES + l];
            }
        }
        out.write(value);
        if (group.next()) part.next();
        done.next();
    }
}

// Selects gather_pixels or scatter_pixels. Only the selected one is instantiated, because the other would not compile.
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
    static_assert(CHANNELS % LANES == 0, "LANES must divide CHANNELS");
    static_assert(PIXELS_IN % PIXELS_OUT == 0 || PIXELS_OUT % PIXELS_IN == 0,
                  "one of PIXELS_IN and PIXELS_OUT must divide the other");
    static_assert(POSITIONS % larger(PIXELS_IN, PIXELS_OUT) == 0, "PIXELS_IN and PIXELS_OUT must divide POSITIONS");
    pixel_converter<LANES, CHANNELS, PIXELS_IN, PIXELS_OUT, POSITIONS>::convert(frames, in, out);
}

#endif  // SYSTOLIC_WIDTH_H
