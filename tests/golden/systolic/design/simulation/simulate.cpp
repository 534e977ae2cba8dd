// tiny on a 6×8×8 systolic array: a C interface to the top function, for execution on a computer. Generated; not for synthesis.
#include <cstring>
#include <exception>
#include <stdexcept>

#include "c_abi.h"
#include "top.h"

namespace {

// The callback of the current call of systolic_simulate.
int (*notify)(uint32_t) = nullptr;

void copy_message(const char *from, char *to, size_t room) {
    std::strncpy(to, from, room - 1);
    to[room - 1] = '\0';
}

}  // namespace

void after_pass(uint32_t index) {
    if (notify != nullptr && notify(index) != 0)
        throw std::runtime_error("the caller has stopped the simulation");
}

// Execute passes ``first`` … ``first + count − 1`` (c_abi.h). Pointers point to whole words, and sizes count words.
// ``callback`` is called after each pass. If it returns a value other than 0, the execution stops. Return 0, or 1 with
// an error in ``message``.
extern "C" __attribute__((visibility("default"))) int systolic_simulate(
    int8_t *maps, size_t maps_words, int8_t *const *weights, size_t weights_words, uint32_t *requantisers,
    size_t requantisers_words, uint32_t *program, size_t program_words, uint32_t first, uint32_t count,
    uint32_t *current, int (*callback)(uint32_t), char *message, size_t room) {
    notify = callback;
    try {
        systolic_top(
            hls::burst_maxi<word_t>(reinterpret_cast<word_t *>(maps), maps_words, "maps_0", 0),
            hls::burst_maxi<word_t>(reinterpret_cast<word_t *>(maps), maps_words, "maps_0", 0),
            hls::burst_maxi<word_t>(reinterpret_cast<word_t *>(maps), maps_words, "maps_1", 1),
            hls::burst_maxi<word_t>(reinterpret_cast<word_t *>(maps), maps_words, "maps_1", 1),
            hls::burst_maxi<weight_word_t>(reinterpret_cast<weight_word_t *>(weights[0]), weights_words, "weights_0", 2),
            hls::burst_maxi<requantiser_t>(reinterpret_cast<requantiser_t *>(requantisers), requantisers_words, "program", 3),
            hls::burst_maxi<uint32_t>(program, program_words, "layers", 4),
            first, count, current);
    } catch (const std::exception &error) {
        copy_message(error.what(), message, room);
        return 1;
    }
    return 0;
}

// The parameters that the engine was compiled for (c_abi.h). The caller compares them with its program and its buffers.
extern "C" __attribute__((visibility("default"))) int systolic_geometry(int64_t *values, int room) {
    const int64_t numbers[] = {ROWS, COLUMNS, LANES, SAVE_ROWS, MAP_PORTS, WEIGHT_PORTS, ROW_DEPTH, WEIGHT_DEPTH,
                               KEPT_DEPTH, CHUNK, CHANNEL_TILES, VALUE_BITS, WEIGHT_WORDS, MAP_DEPTH, UPSCALE, TABLE_DEPTH,
                               TABLE_SLOPES, WINDOWS, LATE_OFFSETS, MAP_PRODUCTS, ADDED_MAPS, MAP_STRIDE, sizeof(word_t),
                               sizeof(weight_word_t), PASS_WORDS};
    const int count = int(sizeof(numbers) / sizeof(numbers[0]));
    for (int i = 0; i < count && i < room; ++i) values[i] = numbers[i];
    return count;
}

// Copy the first words of a bank of map buffer 1 or 2, in the format of DDR.
extern "C" __attribute__((visibility("default"))) void systolic_map_bank(int buffer, int bank, int8_t *to, size_t words) {
    for (size_t i = 0; i < words; ++i) {
        const word_t word = map_buffers[buffer - 1][i][bank];
        std::memcpy(to + i * sizeof(word), &word, sizeof(word));
    }
}
