// A tap copies the values of a stream between two processes, so that every layer can be compared with the golden model.
//
// It reads all words of the stream and writes them back. This is possible only in a simulation without a clock, in
// which the processes run one after the other. In every other build a tap is empty.
#ifndef SYSTOLIC_TAP_H
#define SYSTOLIC_TAP_H

#include "word.h"

#if defined(__SYNTHESIS__) || defined(SYSTOLIC_TRACE) || !defined(SYSTOLIC_SIMULATION_STREAM)
#define SYSTOLIC_TAP(number, stream)
#else
#include <vector>

// Receives the ``count`` values of tap ``number``, word by word and lane by lane. The program that executes the
// pipeline defines this function.
void record_tap(int number, const int32_t *values, size_t count);

template <class T, int LANES>
void tap(int number, hls::stream<word<T, LANES>> &stream) {
    // The size is read first, because the loop writes every word back to the same stream.
    const size_t words = stream.size();
    std::vector<int32_t> values;
    values.reserve(words * LANES);
    for (size_t i = 0; i < words; ++i) {
        const word<T, LANES> value = stream.read();
        for (int l = 0; l < LANES; ++l) values.push_back(int32_t(value.lane[l]));
        stream.write(value);
    }
    record_tap(number, values.data(), values.size());
}
#define SYSTOLIC_TAP(number, stream) tap((number), (stream))
#endif
#endif  // SYSTOLIC_TAP_H
