// The ends of the pipeline, at the AXI DMA. A frame is one packet of AXI4-Stream beats: its values little-endian,
// without gaps, the last beat padded. All loops bytes II 1.
#ifndef SYSTOLIC_DMA_H
#define SYSTOLIC_DMA_H

#include <hls_stream.h>

#include "instrument.h"
#include "word.h"

// One beat of AXI4-Stream: the vendor's own type where its header exists, because the interface must be of that type.
#if __has_include(<ap_axi_sdata.h>)
#include <ap_axi_sdata.h>
template <int BYTES>
using beat_t = ap_axiu<8 * BYTES, 0, 0, 0>;
template <int BYTES>
inline uint8_t byte_of(const beat_t<BYTES> &beat, int i) {
    return uint8_t(beat.data.range(8 * i + 7, 8 * i));
}
template <int BYTES>
inline void set_beat(beat_t<BYTES> &beat, const uint8_t *bytes, bool last) {
    for (int i = 0; i < BYTES; ++i) {
#pragma HLS UNROLL
        beat.data.range(8 * i + 7, 8 * i) = bytes[i];
    }
    beat.keep = -1;
    beat.strb = -1;
    beat.last = last;
}
#else
template <int BYTES>
struct beat_t {
    uint8_t byte[BYTES];
    bool last;
};
template <int BYTES>
inline uint8_t byte_of(const beat_t<BYTES> &beat, int i) {
    return beat.byte[i];
}
template <int BYTES>
inline void set_beat(beat_t<BYTES> &beat, const uint8_t *bytes, bool last) {
    for (int i = 0; i < BYTES; ++i) beat.byte[i] = bytes[i];
    beat.last = last;
}
#endif

// Beats become words of LANES values of a byte: WORDS words a frame, one a cycle. At most one beat comes for a word
// (LANES ≤ BEAT).
template <int BEAT, int LANES, int WORDS, class T>
void unpack_beats(int frames, hls::stream<beat_t<BEAT>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(LANES <= BEAT, "a word must not need two beats in one cycle");
    uint8_t held[2 * BEAT];
#pragma HLS ARRAY_PARTITION variable = held complete
    int bytes = 0, sent = 0, frame = 0;
    SYSTOLIC_ENTER;
    while (frame < frames) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        if (bytes < LANES) {
            const beat_t<BEAT> beat = in.read();
            for (int i = 0; i < BEAT; ++i) {
#pragma HLS UNROLL
                held[bytes + i] = byte_of<BEAT>(beat, i);
            }
            bytes += BEAT;
        }
        word<T, LANES> value;
        for (int i = 0; i < LANES; ++i) {
#pragma HLS UNROLL
            value.lane[i] = T(held[i]);
        }
        out.write(value);
        for (int i = 0; i < 2 * BEAT - LANES; ++i) {
#pragma HLS UNROLL
            held[i] = held[i + LANES];
        }
        bytes -= LANES;
        if (++sent == WORDS) {  // the rest of the last beat is padding
            sent = 0;
            bytes = 0;
            ++frame;
        }
    }
}

// Words of LANES values become beats, VALUE bytes a value: one word a cycle, and one cycle more a frame where the last
// beat is not full.
template <int BEAT, int VALUE, int LANES, int WORDS, bool LAST, class T>
void pack_beats(int frames, hls::stream<word<T, LANES>> &in, hls::stream<beat_t<BEAT>> &out) {
#pragma HLS INLINE
    static_assert(LANES * VALUE <= BEAT, "a cycle must not fill two beats");
    constexpr int REST = WORDS * LANES * VALUE % BEAT;
    constexpr int STEPS = WORDS + (REST ? 1 : 0);
    uint8_t held[2 * BEAT];
#pragma HLS ARRAY_PARTITION variable = held complete
    int bytes = 0, step = 0, frame = 0;
    SYSTOLIC_ENTER;
    while (frame < frames) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        if (step < WORDS) {
            const word<T, LANES> value = in.read();
            for (int i = 0; i < LANES; ++i) {
#pragma HLS UNROLL
                const int32_t bits = int32_t(value.lane[i]);
                for (int b = 0; b < VALUE; ++b) {
#pragma HLS UNROLL
                    held[bytes + i * VALUE + b] = uint8_t(bits >> (8 * b));
                }
            }
            bytes += LANES * VALUE;
        }
        const bool last = step == STEPS - 1;
        if (bytes >= BEAT || last) {
            beat_t<BEAT> beat;
            for (int i = 0; i < BEAT; ++i) {
#pragma HLS UNROLL
                if (i >= bytes) held[i] = 0;
            }
            set_beat<BEAT>(beat, held, LAST && last);
            out.write(beat);
            for (int i = 0; i < BEAT; ++i) {
#pragma HLS UNROLL
                held[i] = held[i + BEAT];
            }
            bytes = last ? 0 : bytes - BEAT;
        }
        if (last) {
            step = 0;
            ++frame;
        } else {
            ++step;
        }
    }
}

// The beats of one map, then those of another: two maps leave in one packet. With LAST, its last beat is marked as its
// end.
template <int BEAT, int FIRST, int SECOND, bool LAST>
void append_beats(int frames, hls::stream<beat_t<BEAT>> &first, hls::stream<beat_t<BEAT>> &second,
                  hls::stream<beat_t<BEAT>> &out) {
#pragma HLS INLINE
    int step = 0, frame = 0;
    SYSTOLIC_ENTER;
    while (frame < frames) {
        SYSTOLIC_PIPELINE(1, 2);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        beat_t<BEAT> beat = step < FIRST ? first.read() : second.read();
        beat.last = LAST && step == FIRST + SECOND - 1;
        out.write(beat);
        if (++step == FIRST + SECOND) {
            step = 0;
            ++frame;
        }
    }
}

#endif  // SYSTOLIC_DMA_H
