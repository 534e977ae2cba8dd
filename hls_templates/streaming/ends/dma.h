// The ends of the pipeline, which connect it to the AXI DMA. A frame is one packet of AXI4-Stream beats. Its values are
// little-endian and follow each other without gaps, and the last beat is padded. All loops have II 1.
#ifndef SYSTOLIC_DMA_H
#define SYSTOLIC_DMA_H

#include <hls_stream.h>

#include "constant.h"
#include "counter.h"
#include "gearbox.h"
#include "instrument.h"
#include "progress.h"
#include "word.h"

// One beat of AXI4-Stream, with BYTES bytes. It is the vendor's own type if the vendor's header exists, because the
// interface of the hardware has to be of this type. ``byte_of`` returns byte i. ``set_beat`` sets all bytes, and
// ``last`` marks the end of a packet.
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

// Converts beats of BEAT bytes into words of LANES one-byte values. Each cycle writes one of a frame's WORDS words, and
// reads one beat if the gearbox has fewer bytes than a word. LANES ≤ BEAT, so that a word never needs two beats.
//
//   cycles per frame = WORDS
template <int BEAT, int LANES, int WORDS, class T>
void unpack_beats(int frames, hls::stream<beat_t<BEAT>> &in, hls::stream<word<T, LANES>> &out) {
#pragma HLS INLINE
    static_assert(LANES <= BEAT, "a word must not be wider than a beat");
    constexpr int UNIT = common_divisor<BEAT, LANES>::value;
    gearbox<uint8_t, BEAT / UNIT, LANES / UNIT, UNIT> box;
    progress_t<WORDS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const bool reads = box.has_room();
        if (reads) {
            const beat_t<BEAT> beat = in.read();
            word<uint8_t, BEAT> bytes;
            for (int i = 0; i < BEAT; ++i) {
#pragma HLS UNROLL
                bytes.lane[i] = byte_of<BEAT>(beat, i);
            }
            box.put(bytes);
        }
        const word<uint8_t, LANES> bytes = box.get(reads);
        word<T, LANES> value;
        for (int i = 0; i < LANES; ++i) {
#pragma HLS UNROLL
            value.lane[i] = T(bytes.lane[i]);
        }
        out.write(value);
        box.count(reads, true);
        if (done.step.last) box.clear();  // the remaining bytes of the last beat are padding
        done.next();
    }
}

// Converts words of LANES values into beats of BEAT bytes, with VALUE bytes per value. Each cycle reads one of a
// frame's WORDS words, and writes a beat if enough bytes are stored. A further cycle writes the last beat if it is not
// full. With LAST the frame's last beat is marked as the end of a packet.
//
//   cycles per frame = WORDS, or WORDS + 1 if the last beat is not full
template <int BEAT, int VALUE, int LANES, int WORDS, bool LAST, class T>
void pack_beats(int frames, hls::stream<word<T, LANES>> &in, hls::stream<beat_t<BEAT>> &out) {
#pragma HLS INLINE
    static_assert(LANES * VALUE <= BEAT, "a word must not be wider than a beat");
    constexpr int REST = WORDS * LANES * VALUE % BEAT;
    constexpr int STEPS = WORDS + (REST ? 1 : 0);
    constexpr int UNIT = common_divisor<LANES * VALUE, BEAT>::value;
    gearbox<uint8_t, LANES * VALUE / UNIT, BEAT / UNIT, UNIT> box;
    quota_t<WORDS> input_quota;  // the words of the frame that are still to be read
    progress_t<STEPS> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, 3);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        const bool reads = input_quota.open, last = done.step.last, writes = last || (reads && box.fills_word());
        if (reads) {
            const word<T, LANES> value = in.read();
            word<uint8_t, LANES * VALUE> bytes;
            for (int i = 0; i < LANES; ++i) {
#pragma HLS UNROLL
                const int32_t bits = int32_t(value.lane[i]);
                for (int b = 0; b < VALUE; ++b) {
#pragma HLS UNROLL
                    bytes.lane[i * VALUE + b] = uint8_t(bits >> (8 * b));
                }
            }
            box.put(bytes);
            input_quota.take();
        }
        if (writes) {
            const word<uint8_t, BEAT> bytes = box.get(reads);
            beat_t<BEAT> beat;
            set_beat<BEAT>(beat, bytes.lane, LAST && last);
            out.write(beat);
        }
        box.count(reads, writes);
        if (last) {
            box.clear();
            input_quota.reopen();
        }
        done.next();
    }
}

// Writes the FIRST beats of one map and then the SECOND beats of another map, so that one packet holds both maps. Each
// cycle reads a beat of either map and writes it. With LAST the last beat is marked as the end of the packet.
//
//   cycles per frame = FIRST + SECOND
template <int BEAT, int FIRST, int SECOND, bool LAST>
void append_beats(int frames, hls::stream<beat_t<BEAT>> &first, hls::stream<beat_t<BEAT>> &second,
                  hls::stream<beat_t<BEAT>> &out) {
#pragma HLS INLINE
    progress_t<FIRST + SECOND> done;
    SYSTOLIC_ENTER;
    while (done.before(frames)) {
        SYSTOLIC_PIPELINE(1, 2);
#pragma HLS LOOP_TRIPCOUNT min = 1 max = 1000000
        beat_t<BEAT> beat = done.step.value < FIRST ? first.read() : second.read();
        // The inputs' own marks are replaced, because each of them would end the packet.
        beat.last = LAST && done.step.last;
        out.write(beat);
        done.next();
    }
}

#endif  // SYSTOLIC_DMA_H
