// A look at a stream between two processes, for the comparison of every layer. Only where processes run one after the
// other and no clock is recorded: the stream is emptied, shown and filled again.
#ifndef SYSTOLIC_TAP_H
#define SYSTOLIC_TAP_H

#include "word.h"

#if defined(__SYNTHESIS__) || defined(SYSTOLIC_TRACE) || !defined(SYSTOLIC_SIMULATION_STREAM)
#define SYSTOLIC_TAP(number, stream)
#else
#include <vector>

// Whoever executes the pipeline takes the values of tap ``number``: words in their order, lanes in theirs.
void take_tap(int number, const int32_t *values, size_t count);

template <class T, int LANES>
void tap(int number, hls::stream<word<T, LANES>> &stream) {
    const size_t words = stream.size();
    std::vector<int32_t> values;
    values.reserve(words * LANES);
    for (size_t i = 0; i < words; ++i) {
        const word<T, LANES> value = stream.read();
        for (int l = 0; l < LANES; ++l) values.push_back(int32_t(value.lane[l]));
        stream.write(value);
    }
    take_tap(number, values.data(), values.size());
}
#define SYSTOLIC_TAP(number, stream) tap((number), (stream))
#endif
#endif  // SYSTOLIC_TAP_H
