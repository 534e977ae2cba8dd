// small as a streaming pipeline: a C interface to the top function, for execution on a computer. Generated; not for synthesis.
#include <cstring>
#include <exception>
#include <stdexcept>

#include "c_abi.h"
#include "top.h"

namespace {

// The arguments of the current call of systolic_stream.
int (*taker)(int, const int32_t *, size_t) = nullptr;
const uint8_t *packets_in = nullptr;
uint8_t *packets_out = nullptr;

void copy_message(const char *from, char *to, size_t room) {
    std::strncpy(to, from, room - 1);
    to[room - 1] = '\0';
}

}  // namespace

// Pass the integers of a stream to the callback of systolic_stream.
void record_tap(int number, const int32_t *values, size_t count) {
    if (taker != nullptr && taker(number, values, count) != 0)
        throw std::runtime_error("the caller has stopped the simulation");
}

// The DMA as a process: it sends one beat per cycle, because its 64-bit side runs at the pipeline's clock.
void dma_read(int frames, hls::stream<beat_t<IN_BEAT> > &in) {
    SYSTOLIC_PROCESS("dma_read");
    SYSTOLIC_ENTER;
    for (int i = 0; i < frames * IN_BEATS; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        const int frame = i / IN_BEATS, at = i % IN_BEATS * IN_BEAT;
        uint8_t bytes[IN_BEAT] = {0};
        const int count = at + IN_BEAT <= IN_BYTES ? IN_BEAT : IN_BYTES - at;
        std::memcpy(bytes, packets_in + size_t(frame) * IN_BYTES + at, size_t(count));
        beat_t<IN_BEAT> beat;
        set_beat<IN_BEAT>(beat, bytes, i % IN_BEATS == IN_BEATS - 1);
        in.write(beat);
    }
}

// The DMA as a process: it receives one beat per cycle.
void dma_write(int frames, hls::stream<beat_t<OUT_BEAT> > &out) {
    SYSTOLIC_PROCESS("dma_write");
    SYSTOLIC_ENTER;
    for (int i = 0; i < frames * OUT_BEATS; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        const beat_t<OUT_BEAT> beat = out.read();
        const int frame = i / OUT_BEATS, at = i % OUT_BEATS * OUT_BEAT;
        if (bool(beat.last) != (i % OUT_BEATS == OUT_BEATS - 1)) throw std::runtime_error("TLAST must be set in the last beat of a packet only");
        for (int b = 0; b < OUT_BEAT && at + b < OUT_BYTES; ++b) packets_out[size_t(frame) * OUT_BYTES + at + b] = byte_of<OUT_BEAT>(beat, b);
    }
}

// Execute ``frames`` frames (c_abi.h). ``in`` and ``out`` are that many packets of IN_BYTES and OUT_BYTES. images: the
// weights that stay in DDR, with their sizes in words. ``take`` is called with every layer's stream; if it returns a
// value other than 0, the execution stops. Return 0, or 1 with an error in ``message``.
extern "C" __attribute__((visibility("default"))) int systolic_stream(
    const uint8_t *in, uint8_t *out, void *const *images, const size_t *image_words, int frames,
    int (*take)(int, const int32_t *, size_t), char *message, size_t room) {
    taker = take;
    packets_in = in;
    packets_out = out;
    (void)images;
    (void)image_words;
    try {
        hls::stream<beat_t<IN_BEAT> > beats_in;
        hls::stream<beat_t<OUT_BEAT> > beats_out;
        streaming_top(beats_in, beats_out,
            frames);
    } catch (const std::exception &error) {
        copy_message(error.what(), message, room);
        return 1;
    }
    return 0;
}

// The sizes that the pipeline was compiled for (c_abi.h). The caller compares them with its packets and weights.
extern "C" __attribute__((visibility("default"))) int systolic_geometry(int64_t *values, int room) {
    const int64_t numbers[] = {IN_BYTES, OUT_BYTES};
    const int count = int(sizeof(numbers) / sizeof(numbers[0]));
    for (int i = 0; i < count && i < room; ++i) values[i] = numbers[i];
    return count;
}
