// The layer of a small streaming design: max(x + bias, 0), its biases in external memory.
#ifndef TEST_RELU_H
#define TEST_RELU_H

#include "instrument.h"
#include "word.h"

template <int WORDS, class T, int LANES>
void relu(int frames, hls::stream<word<T, LANES>> &in, hls::stream<word<T, LANES>> &out,
          hls::burst_maxi<word<T, LANES>> biases, int at = 0) {
    for (int frame = 0; frame < frames; ++frame) {
        biases.read_request(at, WORDS);
        for (int i = 0; i < WORDS; ++i) {
            const word<T, LANES> x = in.read(), bias = biases.read();
            word<T, LANES> y;
            for (int l = 0; l < LANES; ++l) {
                const int sum = int(x.lane[l]) + int(bias.lane[l]);
                y.lane[l] = T(sum > 0 ? sum : 0);
            }
            out.write(y);
        }
    }
}

#endif  // TEST_RELU_H
