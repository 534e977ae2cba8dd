// A block between a source and a sink that take no time of their own: what a test's case calls.
#ifndef COMPUTE_H
#define COMPUTE_H

#include <hls_burst_maxi.h>
#include <hls_stream.h>

#include <exception>
#include <string>
#include <vector>

#include "instrument.h"
#include "word.h"

typedef const int64_t *values_t;

template <class T, int LANES>
void feed(long words, values_t values, hls::stream<word<T, LANES>> &out) {
    SYSTOLIC_PROCESS("feed");
    SYSTOLIC_ENTER;
    for (long i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        word<T, LANES> next;
        for (int l = 0; l < LANES; ++l) next.lane[l] = T(values[i * LANES + l]);
        out.write(next);
    }
}

template <class T, int LANES>
void drain(long words, hls::stream<word<T, LANES>> &in, int64_t *values) {
    SYSTOLIC_PROCESS("drain");
    SYSTOLIC_ENTER;
    for (long i = 0; i < words; ++i) {
        SYSTOLIC_PIPELINE(1, 1);
        const word<T, LANES> next = in.read();
        for (int l = 0; l < LANES; ++l) values[i * LANES + l] = int64_t(next.lane[l]);
    }
}

template <class BLOCK>
void run_block(BLOCK block) {
    SYSTOLIC_PROCESS("block");
    block();
}

// feed → block → drain; IN and OUT are words.
template <class IN, class OUT, class BLOCK>
void run_one(long words_in, values_t in, long words_out, int64_t *out, BLOCK block) {
    SYSTOLIC_DATAFLOW(0);
    hls::stream<IN> values;
    hls::stream<OUT> results;
    SYSTOLIC_STREAM(values, 2);
    SYSTOLIC_STREAM(results, 2);
    feed(words_in, in, values);
    run_block([&] { block(values, results); });
    drain(words_out, results, out);
}

// The same with a second input.
template <class IN, class SECOND, class OUT, class BLOCK>
void run_two(long words_in, values_t in, long words_second, values_t second, long words_out, int64_t *out,
             BLOCK block) {
    SYSTOLIC_DATAFLOW(0);
    hls::stream<IN> values;
    hls::stream<SECOND> others;
    hls::stream<OUT> results;
    SYSTOLIC_STREAM(values, 2);
    SYSTOLIC_STREAM(others, 2);
    SYSTOLIC_STREAM(results, 2);
    feed(words_in, in, values);
    feed(words_second, second, others);
    run_block([&] { block(values, others, results); });
    drain(words_out, results, out);
}

// Fills a constant array of any rank from flat values.
template <class T>
void fill(T &constant, values_t &from) {
    constant = T(*from++);
}
template <class T, size_t COUNT>
void fill(T (&constants)[COUNT], values_t &from) {
    for (T &constant : constants) fill(constant, from);
}

// The sentence of what a case threw, or null.
template <class CASE>
const char *guarded(CASE run) {
    static std::string sentence;
    try {
        run();
        return nullptr;
    } catch (const std::exception &error) {
        sentence = error.what();
        return sentence.c_str();
    }
}

#endif  // COMPUTE_H
